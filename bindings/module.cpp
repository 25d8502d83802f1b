// The compiled half of loki. A binding converts and delegates; a decision found here is a bug.
#include <pybind11/pybind11.h>

#include "rooms.hpp"

PYBIND11_MODULE(_core, module, pybind11::mod_gil_not_used()) {
  module.doc() = "The C++ core of loki. Private: use the names in `loki`.";
  using namespace loki::bindings;
  bind_error(module);
  bind_time(module);
  bind_text(module);
  bind_signature(module);
  bind_similarity(module);
  bind_regex(module);
  bind_site(module);
  bind_pattern(module);
  bind_failure(module);
  bind_grouping(module);
  bind_backoff(module);
  bind_breaker(module);
  bind_breakers(module);
  bind_retry_after(module);
  bind_retry_budget(module);
  bind_json_lines(module);
}
