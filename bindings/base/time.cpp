#include "loki/base/time.hpp"

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string_view>

#include "rooms.hpp"

namespace py = pybind11;

namespace loki::bindings {

void bind_time(py::module_& module) {
  module.def(
      "parse_duration", [](std::string_view text) { return parse_duration(text).count(); },
      py::arg("text"), "Nanoseconds in a duration like '1h30m'; ValueError where it is none.");
  module.def(
      "format_duration", [](std::int64_t count) { return format_duration(Nanoseconds(count)); },
      py::arg("count"), "The text of so many nanoseconds, 0 or more, like '1h30m'.");
}

}  // namespace loki::bindings
