#include "loki/recognition/text.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tuple>
#include <vector>

#include "rooms.hpp"
#include "text_argument.hpp"

namespace py = pybind11;

namespace loki::bindings {
namespace {

using Run = std::tuple<std::size_t, std::size_t, std::size_t>;

// (cleaned text, [(position in it, position in the argument, length there)])
std::pair<std::string, std::vector<Run>> clean_with_runs(const py::object& text) {
  const TextArgument argument(text);
  const CleanText cleaned =
      unlocked(argument.view().size(), [&] { return CleanText(argument.view()); });
  std::vector<Span> original, shown;
  for (const CleanText::Run& run : cleaned.runs()) {
    original.push_back({run.original, run.original + run.length});
    shown.push_back({run.cleaned, 0});
  }
  std::vector<std::size_t*> offsets;
  for (Span& span : original) offsets.insert(offsets.end(), {&span.begin, &span.end});
  argument.to_positions(std::move(offsets));
  std::vector<Run> runs;
  std::size_t at = 0, count = 0;
  for (std::size_t i = 0; i < original.size(); ++i) {
    for (; at < shown[i].begin; ++at)
      count += (static_cast<unsigned char>(cleaned.text()[at]) & 0xC0U) != 0x80U;
    runs.emplace_back(count, original[i].begin, original[i].size());
  }
  return {std::string(cleaned.text()), std::move(runs)};
}

}  // namespace

void bind_text(py::module_& module) {
  module.def(
      "clean",
      [](const py::object& text) {
        const TextArgument argument(text);
        return unlocked(argument.view().size(),
                        [&] { return std::string(CleanText(argument.view()).text()); });
      },
      py::arg("text"), "The text as a terminal would show it.");
  module.def("clean_with_runs", &clean_with_runs, py::arg("text"),
             "The same, with runs of (position in it, position in the argument, length there).");
}

}  // namespace loki::bindings
