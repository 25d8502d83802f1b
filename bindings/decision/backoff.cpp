#include "loki/decision/backoff.hpp"

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string_view>

#include "rooms.hpp"

namespace py = pybind11;

namespace loki::bindings {

void bind_backoff(py::module_& module) {
  py::class_<Backoff>(module, "Backoff")
      .def(py::init([](std::int64_t base_ns, double multiplier, std::int64_t cap_ns, double jitter,
                       std::uint64_t seed) {
             return Backoff(Nanoseconds(base_ns), multiplier, Nanoseconds(cap_ns), jitter, seed);
           }),
           py::arg("base_ns"), py::arg("multiplier"), py::arg("cap_ns"), py::arg("jitter"),
           py::arg("seed"))
      .def(
          "delay_ns",
          [](const Backoff& backoff, std::uint32_t failures, std::string_view key,
             std::uint32_t offset) { return backoff.delay(failures, key, offset).count(); },
          py::arg("failures"), py::arg("key"), py::arg("offset"));
}

}  // namespace loki::bindings
