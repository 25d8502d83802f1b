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

namespace {

// subject: of which `anywhere` is still to be filled in.
auto matches_in(const PatternSet& set, const py::object& text, PatternSubject subject) {
  const TextArgument argument(text);
  return unlocked(argument.view().size(), [&] {
    const CleanText cleaned(argument.view());
    subject.anywhere = cleaned.text();
    std::vector<PatternMatch> matches = set.match(subject);
    return to_plain(matches, cleaned, argument);
  });
}

}  // namespace

void bind_pattern(py::module_& module) {
  py::class_<PatternSet>(module, "PatternSet")
      .def(py::init<std::string_view>(), py::arg("json"), py::call_guard<py::gil_scoped_release>())
      .def("check", &PatternSet::check,
           "Compiles every regex; DefinitionError for the first bad one.")
      .def(
          "match",
          [](const PatternSet& set, const py::object& text, const std::string& language) {
            return matches_in(set, text, {{}, {}, {}, {}, {}, language});
          },
          py::arg("text"), py::arg("language"),
          "(pattern, confidence, coverage, [(signal, begin, end)]), best first.")
      .def(
          "match_site",
          [](const PatternSet& set, const py::object& text, const std::string& language,
             const std::string& message, const std::string& tool, const std::string& code,
             const std::string& kind, const SiteRules& rules) {
            return matches_in(set, text,
                              {{}, message, tool, code, kind, language, &rules.prefix()});
          },
          py::arg("text"), py::arg("language"), py::arg("message"), py::arg("tool"),
          py::arg("code"), py::arg("kind"), py::arg("rules"),
          "The same for a part of a text of which more is known; no regex sees the prefixes that "
          "the rules name.");
}

}  // namespace loki::bindings
