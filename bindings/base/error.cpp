#include "loki/base/error.hpp"

#include <pybind11/gil_safe_call_once.h>
#include <pybind11/pybind11.h>

#include "rooms.hpp"

namespace py = pybind11;

namespace loki::bindings {

void bind_error(py::module_& module) {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> definition_error;
  definition_error.call_once_and_store_result(
      [&] { return py::exception<DefinitionError>(module, "DefinitionError", PyExc_ValueError); });
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const DefinitionError& error) {
      const py::object& type = definition_error.get_stored();
      py::object value = type(error.what());
      value.attr("where") = error.where();
      value.attr("reason") = error.reason();
      PyErr_SetObject(type.ptr(), value.ptr());
    } catch (const InvalidArgument& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    }
  });
}

}  // namespace loki::bindings
