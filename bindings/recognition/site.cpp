#include "loki/recognition/site.hpp"

#include <pybind11/pybind11.h>

#include "rooms.hpp"

namespace py = pybind11;

namespace loki::bindings {

void bind_site(py::module_& module) {
  py::class_<SiteRules>(module, "SiteRules")
      .def(py::init<std::string_view>(), py::arg("json"), py::call_guard<py::gil_scoped_release>())
      .def("check", &SiteRules::check,
           "Compiles every regex; DefinitionError for the first bad one.");
}

}  // namespace loki::bindings
