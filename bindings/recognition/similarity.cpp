#include "loki/recognition/similarity.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>

#include "loki/recognition/normalize.hpp"
#include "loki/recognition/similarity_sets.hpp"
#include "loki/recognition/text.hpp"
#include "recognition/site_argument.hpp"
#include "rooms.hpp"
#include "text_argument.hpp"

namespace py = pybind11;

namespace loki::bindings {
namespace {

using Measure = double (*)(const Tokens&, const Tokens&);

void bind_measure(py::module_& module, const char* name, Measure measure, const char* doc) {
  module.def(
      name,
      [measure](const py::object& a, const py::object& b) {
        const TextArgument first(a), second(b);
        return unlocked(first.view().size() + second.view().size(), [&] {
          return measure(tokens(normalize(CleanText(first.view()).text())),
                         tokens(normalize(CleanText(second.view()).text())));
        });
      },
      py::arg("a"), py::arg("b"), doc);
}

}  // namespace

void bind_similarity(py::module_& module) {
  bind_measure(module, "overlap", overlap, "Shared tokens over all tokens.");
  bind_measure(module, "containment", containment, "Share of a's tokens that b has.");
  bind_measure(module, "dice", dice, "Twice the shared tokens over the sum of both.");
  bind_measure(module, "larger_share", larger_share, "Shared tokens over those of the larger.");
  module.def(
      "tokens", [](const std::string& normalized) { return tokens(normalized); },
      py::arg("normalized"), "The distinct tokens of a normalized text, sorted.");
  py::class_<TokenSets>(module, "TokenSets")
      .def(py::init([](const TextList& texts, unsigned threads) {
             const TextArguments arguments(texts);
             const py::gil_scoped_release release;
             return std::make_unique<TokenSets>(arguments.views(), threads);
           }),
           py::arg("texts"), py::arg("threads"))
      .def("__len__", &TokenSets::size)
      .def(
          "overlaps",
          [](const TokenSets& sets, const py::object& text) {
            const TextArgument argument(text);
            std::vector<double> found;
            {
              const py::gil_scoped_release release;
              found = sets.overlaps(argument.view());
            }
            return py::bytes(reinterpret_cast<const char*>(found.data()),
                             found.size() * sizeof(double));
          },
          py::arg("text"), "Overlap with each, as the bytes of doubles.");
  py::class_<FailureSite>(module, "FailureSite")
      .def(py::init([](const py::object& failure) { return site_of(failure); }), py::arg("failure"),
           "What takes part in same_failure of a loki.Failure.");
  module.def("is_specific", &is_specific, py::arg("site"), "It may arm a sign.");
  module.def("same_failure", &same_failure, py::arg("a"), py::arg("b"), py::arg("threshold"),
             "Both sites are one failure.");
}

}  // namespace loki::bindings
