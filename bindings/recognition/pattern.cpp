#include "loki/recognition/pattern.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "loki/recognition/site.hpp"
#include "loki/recognition/text.hpp"
#include "matches.hpp"
#include "rooms.hpp"
#include "text_argument.hpp"

namespace py = pybind11;

namespace loki::bindings {

void bind_pattern(py::module_& module) {
  py::class_<PatternSet>(module, "PatternSet")
      .def(py::init<std::string_view>(), py::arg("json"))
      .def("check", &PatternSet::check,
           "Compiles every regex; DefinitionError for the first bad one.")
      .def(
          "match",
          [](const PatternSet& set, const py::object& text, const std::string& language,
             const std::string& message, const std::string& tool, const std::string& code,
             const std::string& kind, const SiteRules* rules) {
            const Regex* prefix = rules == nullptr ? nullptr : rules->prefix();
            const TextArgument argument(text);
            return unlocked(argument.view().size(), [&] {
              const CleanText cleaned(argument.view());
              std::vector<PatternMatch> matches =
                  set.match({cleaned.text(), message, tool, code, kind, language, prefix});
              return to_plain(matches, cleaned, argument);
            });
          },
          py::arg("text"), py::arg("language"), py::arg("message") = "", py::arg("tool") = "",
          py::arg("code") = "", py::arg("kind") = "", py::arg("rules") = nullptr,
          "(pattern, confidence, coverage, [(signal, begin, end)]), best first. rules: whose "
          "prefixes "
          "no regex sees.");
}

}  // namespace loki::bindings
