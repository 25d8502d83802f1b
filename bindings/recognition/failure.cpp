#include "loki/recognition/failure.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <tuple>

#include "matches.hpp"
#include "rooms.hpp"
#include "text_argument.hpp"

namespace py = pybind11;

namespace loki::bindings {
namespace {

py::typing::Dict<py::str, py::object> to_dict(const Recognized& found,
                                              const std::vector<PlainMatch>& matches) {
  const Site& site = found.site;
  py::list frames;
  for (const Frame& frame : site.frames) {
    frames.append(py::make_tuple(frame.path, frame.line, frame.function, frame.in_project));
  }
  py::typing::Dict<py::str, py::object> result;
  result["tool"] = site.tool;
  result["language"] = site.language;
  result["error_type"] = site.error_type;
  result["error_code"] = site.error_code;
  result["message"] = site.message;
  result["path"] = site.path;
  result["line"] = site.line;
  result["column"] = site.column;
  result["extension"] = site.extension;
  result["tests"] = py::cast(site.tests);
  result["frames"] = frames;
  result["output_line"] = site.output_line;
  result["excerpt"] = site.excerpt;
  result["excerpt_lines"] = py::make_tuple(site.excerpt_first, site.excerpt_last);
  result["normalized"] = found.normalized;
  result["fingerprint"] = found.fingerprint;
  result["signature"] = found.signature;
  result["matches"] = py::cast(matches);
  return result;
}

py::typing::Dict<py::str, py::object> recognize_text(
    const SiteRules& rules, const PatternSet& patterns, const py::object& text,
    const std::string& command, const std::string& root, const std::string& language) {
  const TextArgument argument(text);
  Recognized found;
  std::vector<PlainMatch> matches;
  unlocked(argument.view().size(), [&] {
    const CleanText cleaned(argument.view());
    found = recognize(cleaned, rules, patterns, {command, root, language});
    matches = to_plain(found.matches, cleaned, argument);
  });
  return to_dict(found, matches);
}

}  // namespace

void bind_failure(py::module_& module) {
  module.def("recognize", &recognize_text, py::arg("rules"), py::arg("patterns"), py::arg("text"),
             py::arg("command"), py::arg("root"), py::arg("language"),
             "The failure as a dict of plain values; 0 and '' for what is not known.");
}

}  // namespace loki::bindings
