#include "loki/recognition/grouping.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "rooms.hpp"
#include "text_argument.hpp"

namespace py = pybind11;

namespace loki::bindings {

void bind_grouping(py::module_& module) {
  module.def(
      "group",
      [](const py::list& texts, unsigned threads) {
        const TextArguments arguments(texts);
        const py::gil_scoped_release release;
        return group(arguments.views(), threads);
      },
      py::arg("texts"), py::arg("threads"), "One number for each text, equal for one template.");
}

}  // namespace loki::bindings
