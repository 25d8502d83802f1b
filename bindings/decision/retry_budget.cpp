#include "loki/decision/retry_budget.hpp"

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>

#include "rooms.hpp"

namespace py = pybind11;

namespace loki::bindings {

void bind_retry_budget(py::module_& module) {
  py::class_<RetryBudget>(module, "RetryBudget")
      .def(py::init([](double share, double per_second, double capacity, std::int64_t now_ns) {
             return std::make_unique<RetryBudget>(share, per_second, capacity, Nanoseconds(now_ns));
           }),
           py::arg("share"), py::arg("per_second"), py::arg("capacity"), py::arg("now_ns"))
      .def("deposit", &RetryBudget::deposit)
      .def(
          "try_withdraw",
          [](RetryBudget& budget, std::int64_t now_ns) {
            return budget.try_withdraw(Nanoseconds(now_ns));
          },
          py::arg("now_ns"))
      .def(
          "balance",
          [](RetryBudget& budget, std::int64_t now_ns) {
            return budget.balance(Nanoseconds(now_ns));
          },
          py::arg("now_ns"));
}

}  // namespace loki::bindings
