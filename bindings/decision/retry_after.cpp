#include "loki/decision/retry_after.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "rooms.hpp"
#include "text_argument.hpp"

namespace py = pybind11;

namespace loki::bindings {
namespace {

std::optional<std::int64_t> count(std::optional<Nanoseconds> duration) {
  return duration ? std::optional(duration->count()) : std::nullopt;
}

}  // namespace

void bind_retry_after(py::module_& module) {
  module.def(
      "parse_retry_after",
      [](const py::str& value, std::int64_t now_us) {
        return count(
            parse_retry_after(TextArgument(value).view(), std::chrono::microseconds(now_us)));
      },
      py::arg("value"), py::arg("now_us"), "Nanoseconds that Retry-After asks for, or None.");
  module.def(
      "parse_retry_after_ms",
      [](const py::str& value) { return count(parse_retry_after_ms(TextArgument(value).view())); },
      py::arg("value"), "The same for a header in milliseconds.");
}

}  // namespace loki::bindings
