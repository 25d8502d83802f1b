#include "loki/recognition/signature.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "loki/recognition/normalize.hpp"
#include "loki/recognition/text.hpp"
#include "rooms.hpp"
#include "text_argument.hpp"

namespace py = pybind11;

namespace loki::bindings {

void bind_signature(py::module_& module) {
  module.def(
      "normalize",
      [](const py::object& text, bool is_template, const std::string& root) {
        const TextArgument argument(text);
        return unlocked(argument.view().size(), [&] {
          return normalize(CleanText(argument.view()).text(),
                           is_template ? Level::kTemplate : Level::kVolatile, root);
        });
      },
      py::arg("text"), py::arg("is_template") = false, py::arg("root") = "",
      "The cleaned text with placeholders for what varies.");
  module.def(
      "mask_secrets",
      [](const py::bytes& text) {
        const std::string_view view(text);
        return py::bytes(unlocked(view.size(), [&] { return normalize(view, Level::kSecrets); }));
      },
      py::arg("text"), "The same bytes with placeholders for secrets.");
  module.def(
      "fingerprint",
      [](const std::string& error_type, const std::string& error_code,
         const std::string_view normalized, const std::vector<std::string>& tests,
         const std::vector<std::string>& functions) {
        return fingerprint({error_type, error_code, normalized, tests, functions});
      },
      py::arg("error_type"), py::arg("error_code"), py::arg("normalized"), py::arg("tests"),
      py::arg("functions"), "XXH3-128 of the fields as 32 hex digits.");
  module.def(
      "signature",
      [](const std::string& pattern, const std::string& extension, const std::string& error_code,
         const std::string& normalized) {
        return signature(pattern, extension, error_code, normalized);
      },
      py::arg("pattern"), py::arg("extension"), py::arg("error_code"), py::arg("normalized"),
      "pattern:extension:slug.");
}

}  // namespace loki::bindings
