#include "loki/recognition/failure.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <tuple>

#include "loki/base/parallel.hpp"
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
  result["tool_kind"] = site.kind;
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
  result["site_lines"] = py::make_tuple(site.own_first, site.own_last);
  result["excerpt_lines"] = py::make_tuple(site.excerpt_first, site.excerpt_last);
  result["normalized"] = found.normalized;
  result["fingerprint"] = found.fingerprint;
  result["signature"] = found.signature;
  result["matches"] = py::cast(matches);
  return result;
}

struct Answer {
  Recognized failure;
  std::vector<PlainMatch> matches;
};

Answer recognized(const SiteRules& rules, const PatternSet& patterns, const TextArgument& text,
                  const SiteContext& context) {
  const CleanText cleaned(text.view());
  Answer answer{recognize(cleaned, rules, patterns, context), {}};
  answer.matches = to_plain(answer.failure.matches, cleaned, text);
  return answer;
}

using Dict = py::typing::Dict<py::str, py::object>;

Dict recognize_text(const SiteRules& rules, const PatternSet& patterns, const py::object& text,
                    const std::string& command, const std::string& root,
                    const std::string& language) {
  const TextArgument argument(text);
  const Answer answer = unlocked(argument.view().size(), [&] {
    return recognized(rules, patterns, argument, {command, root, language});
  });
  return to_dict(answer.failure, answer.matches);
}

py::typing::List<Dict> recognize_texts(const SiteRules& rules, const PatternSet& patterns,
                                       const TextList& texts, const std::string& command,
                                       const std::string& root, const std::string& language,
                                       unsigned threads) {
  const TextArguments arguments(texts);
  std::vector<Answer> answers(arguments.size());
  {
    const py::gil_scoped_release release;
    in_parallel(answers.size(), threads, 4, [&](std::size_t i) {
      answers[i] = recognized(rules, patterns, arguments[i], {command, root, language});
    });
  }
  py::typing::List<Dict> result;
  for (const Answer& answer : answers) result.append(to_dict(answer.failure, answer.matches));
  return result;
}

}  // namespace

void bind_failure(py::module_& module) {
  module.def("recognize", &recognize_text, py::arg("rules"), py::arg("patterns"), py::arg("text"),
             py::arg("command"), py::arg("root"), py::arg("language"),
             "The failure as a dict of plain values; 0 and '' for what is not known.");
  module.def("recognize_many", &recognize_texts, py::arg("rules"), py::arg("patterns"),
             py::arg("texts"), py::arg("command"), py::arg("root"), py::arg("language"),
             py::arg("threads"), "The same for each text, on several threads.");
}

}  // namespace loki::bindings
