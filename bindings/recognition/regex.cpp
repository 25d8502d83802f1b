#include "loki/recognition/regex.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rooms.hpp"

namespace py = pybind11;

namespace loki::bindings {

void bind_regex(py::module_& module) {
  module.def(
      "regex_errors",
      [](const std::vector<std::string>& expressions, std::size_t most) {
        std::vector<std::tuple<std::size_t, std::string, std::string>> found;
        const py::gil_scoped_release release;
        RegexBudget budget;
        for (std::size_t i = 0; i < expressions.size() && found.size() < most; ++i) {
          const Regex regex(expressions[i]);
          const std::string error = budget.spend(regex);
          if (error.empty()) continue;
          found.emplace_back(i, error, regex.compiled().error_arg());
          if (regex.compiled().ok()) break;  // too large together: so are all that follow
        }
        return found;
      },
      py::arg("expressions"), py::arg("most"),
      "(index, what RE2 says, the part of the expression that it says it of) of those refused.");
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
