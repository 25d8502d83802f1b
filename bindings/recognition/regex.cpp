#include "loki/recognition/regex.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <utility>

#include "rooms.hpp"

namespace py = pybind11;

namespace loki::bindings {

void bind_regex(py::module_& module) {
  module.def(
      "regex_error",
      [](std::string expression) -> std::optional<std::pair<std::string, std::string>> {
        const Regex regex(std::move(expression));
        const RE2& compiled = regex.compiled();
        if (compiled.ok()) return std::nullopt;
        return std::pair(compiled.error(), compiled.error_arg());
      },
      py::arg("expression"),
      "(what RE2 says, the part of the expression that it says it of); None where it is fine.");
}

}  // namespace loki::bindings
