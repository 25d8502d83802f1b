// One registration function per room; module.cpp calls them in order.
#pragma once

#include <pybind11/pybind11.h>

namespace loki::bindings {

void bind_error(pybind11::module_& module);
void bind_time(pybind11::module_& module);
void bind_text(pybind11::module_& module);
void bind_signature(pybind11::module_& module);
void bind_similarity(pybind11::module_& module);
void bind_grouping(pybind11::module_& module);
void bind_regex(pybind11::module_& module);
void bind_site(pybind11::module_& module);
void bind_pattern(pybind11::module_& module);
void bind_failure(pybind11::module_& module);
void bind_backoff(pybind11::module_& module);
void bind_breaker(pybind11::module_& module);
void bind_breakers(pybind11::module_& module);
void bind_retry_after(pybind11::module_& module);
void bind_retry_budget(pybind11::module_& module);
void bind_json_lines(pybind11::module_& module);

}  // namespace loki::bindings
