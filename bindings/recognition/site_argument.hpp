// A loki.Failure that Python passes in, as what the core compares.
#pragma once

#include <pybind11/gil_safe_call_once.h>
#include <pybind11/pybind11.h>

#include <string>
#include <utility>

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

// Names of attributes, made once: an index reads millions of them.
struct SiteNames {
  pybind11::str error_type{"error_type"}, error_code{"error_code"}, normalized{"normalized"},
      path{"path"}, tests{"tests"}, frames{"frames"}, in_project{"in_project"},
      function{"function"}, match{"match"}, pattern{"pattern"}, line{"line"};
};
inline const SiteNames& site_names() {
  PYBIND11_CONSTINIT static pybind11::gil_safe_call_once_and_store<SiteNames> names;
  return names.call_once_and_store_result([] { return SiteNames(); }).get_stored();
}

inline FailureSite site_of(const pybind11::handle& failure) {
  const SiteNames& names = site_names();
  FailureSite site;
  site.error_type = plain_text(failure.attr(names.error_type));
  site.error_code = plain_text(failure.attr(names.error_code));
  site.normalized = plain_text(failure.attr(names.normalized));
  site.path = plain_text(failure.attr(names.path));
  for (const pybind11::handle test : failure.attr(names.tests)) {
    site.tests.push_back(plain_text(test));
  }
  for (const pybind11::handle frame : failure.attr(names.frames)) {
    if (!frame.attr(names.in_project).cast<bool>()) continue;
    std::string function = plain_text(frame.attr(names.function));
    if (!function.empty()) site.functions.push_back(std::move(function));
  }
  const pybind11::object line = failure.attr(names.line);
  if (!line.is_none()) site.line = line.cast<std::size_t>();
  const pybind11::object match = failure.attr(names.match);
  if (!match.is_none()) site.pattern = plain_text(match.attr(names.pattern));
  return site;
}

}  // namespace loki::bindings
