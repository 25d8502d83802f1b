// A loki.Failure that Python passes in, as what the core compares.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "loki/recognition/similarity.hpp"

namespace loki::bindings {

// A str or None. Lone surrogates, which file names may hold, become "?".
inline std::string plain_text(const pybind11::handle& text) {
  if (text.is_none()) return {};
  Py_ssize_t size = 0;
  if (const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) {
    return {data, static_cast<std::size_t>(size)};
  }
  PyErr_Clear();
  const auto bytes = pybind11::reinterpret_steal<pybind11::object>(
      PyUnicode_AsEncodedString(text.ptr(), "utf-8", "replace"));
  if (!bytes) throw pybind11::error_already_set();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

inline FailureSite site_of(const pybind11::handle& failure) {
  FailureSite site;
  site.error_type = plain_text(failure.attr("error_type"));
  site.error_code = plain_text(failure.attr("error_code"));
  site.normalized = plain_text(failure.attr("normalized"));
  site.path = plain_text(failure.attr("path"));
  for (const pybind11::handle test : failure.attr("tests")) {
    site.tests.push_back(plain_text(test));
  }
  for (const pybind11::handle frame : failure.attr("frames")) {
    if (!frame.attr("in_project").cast<bool>()) continue;
    std::string function = plain_text(frame.attr("function"));
    if (!function.empty()) site.functions.push_back(std::move(function));
  }
  const pybind11::object match = failure.attr("match");
  if (!match.is_none()) site.pattern = plain_text(match.attr("pattern"));
  return site;
}

}  // namespace loki::bindings
