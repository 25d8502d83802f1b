// What the floors and loki's own C++ cost: an empty method, and loops that no Python runs in.
#include <pybind11/pybind11.h>

#include <cstdint>
#include <string_view>

#include "loki/decision/backoff.hpp"
#include "loki/decision/breaker_locked.hpp"

namespace py = pybind11;

namespace {

// A class like those of loki's core, with a method that does nothing.
class Empty {
 public:
  void nothing() const {}
};

// The sum of `count` delays, so that none can be left out: after 1, 2, ... 20 failures, over again.
std::int64_t delays(std::uint32_t count, std::string_view mode) {
  using namespace std::chrono_literals;
  const loki::Backoff backoff(5s, 2, 300s, 0.1, 0, loki::parse_jitter_mode(mode));
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    sum += backoff.delay(i % 20 + 1, "login test", 1).count() >> 20;
  return sum;
}

// How many of `count` calls a closed breaker lets through, each with its success.
std::uint32_t closed_checks(std::uint32_t count) {
  loki::LockedBreaker breaker{loki::BreakerConfig{}};
  std::uint32_t granted = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto permit = breaker.acquire_closed();
    if (permit && breaker.success_closed(*permit)) ++granted;
  }
  return granted;
}

}  // namespace

PYBIND11_MODULE(_native, module, py::mod_gil_not_used()) {
  py::class_<Empty>(module, "Empty").def(py::init()).def("nothing", &Empty::nothing);
  module.def("delays", &delays, py::arg("count"), py::arg("mode"));
  module.def("closed_checks", &closed_checks, py::arg("count"));
}
