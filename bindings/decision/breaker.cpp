#include "loki/decision/breaker.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "decision/breaker_permit.hpp"
#include "rooms.hpp"

namespace py = pybind11;

namespace loki::bindings {
namespace {

using MaybeNs = std::optional<std::int64_t>;

MaybeNs to_ns(const std::optional<Nanoseconds>& moment) {
  return moment ? MaybeNs(moment->count()) : std::nullopt;
}

// Fields of time are whole nanoseconds in Python.
template <typename Class>
void ns_field(py::class_<Class>& bound, const char* name, Nanoseconds Class::* field) {
  bound.def_property(
      name, [field](const Class& self) { return (self.*field).count(); },
      [field](Class& self, std::int64_t ns) { self.*field = Nanoseconds(ns); });
}

void bind_config(py::module_& module) {
  py::class_<BreakerConfig> bound(module, "BreakerConfig");
  bound.def(py::init<>())
      .def_readwrite("threshold", &BreakerConfig::threshold)
      .def_property(
          "mode", [](const BreakerConfig& self) { return static_cast<int>(self.mode); },
          [](BreakerConfig& self, std::uint8_t mode) {
            self.mode = static_cast<BreakerWindow>(mode);
          })
      .def_readwrite("window_calls", &BreakerConfig::window_calls)
      .def_readwrite("cooldown_multiplier", &BreakerConfig::cooldown_multiplier)
      .def_readwrite("recovery_threshold", &BreakerConfig::recovery_threshold)
      .def_readwrite("failure_rate", &BreakerConfig::failure_rate)
      .def_readwrite("slow_call_rate", &BreakerConfig::slow_call_rate)
      .def_readwrite("minimum_calls", &BreakerConfig::minimum_calls);
  ns_field(bound, "window_ns", &BreakerConfig::window);
  ns_field(bound, "cooldown_ns", &BreakerConfig::cooldown);
  ns_field(bound, "cooldown_cap_ns", &BreakerConfig::cooldown_cap);
  ns_field(bound, "half_open_interval_ns", &BreakerConfig::half_open_interval);
  ns_field(bound, "probe_lease_ns", &BreakerConfig::probe_lease);
  ns_field(bound, "slow_call_duration_ns", &BreakerConfig::slow_call_duration);
}

template <auto field>
MaybeNs state_ns(const BreakerView& view) {
  return to_ns(view.state.*field);
}

void bind_view(py::module_& module) {
  const auto of_state = [](auto field) {
    return [field](const BreakerView& view) { return view.state.*field; };
  };
  py::class_<BreakerView>(module, "BreakerView")
      .def_property_readonly(
          "state", [](const BreakerView& view) { return static_cast<int>(view.state.circuit); })
      .def_property_readonly("is_isolated", of_state(&BreakerState::is_isolated))
      .def_property_readonly("is_probing", of_state(&BreakerState::is_probing))
      .def_property_readonly("generation", of_state(&BreakerState::generation))
      .def_property_readonly("trips", of_state(&BreakerState::trips))
      .def_property_readonly("success_count", of_state(&BreakerState::success_count))
      .def_property_readonly("last_error", of_state(&BreakerState::last_error))
      .def_readonly("failure_count", &BreakerView::failure_count)
      .def_property_readonly("last_failure_ns", state_ns<&BreakerState::last_failure>)
      .def_property_readonly("last_change_ns", state_ns<&BreakerState::last_change>)
      .def_property_readonly("cooldown_until_ns", state_ns<&BreakerState::cooldown_until>)
      .def_property_readonly("window_start_ns",
                             [](const BreakerView& view) { return to_ns(view.window_start); })
      .def_property_readonly("retry_at_ns",
                             [](const BreakerView& view) { return to_ns(view.retry_at); });
}

// An event by hand: at the edge's time, and the front is told.
template <void (LockedBreaker::*event)(Nanoseconds)>
void by_hand(const py::object& self) {
  auto& clocked = self.cast<ClockedBreaker&>();
  (clocked.locked.*event)(clocked.now());
  announce(self, clocked);
}

std::vector<std::tuple<int, int, std::int64_t>> take_news(ClockedBreaker& clocked) {
  std::vector<std::tuple<int, int, std::int64_t>> news;
  for (const BreakerTransition& change : clocked.locked.take_news()) {
    news.emplace_back(static_cast<int>(change.from), static_cast<int>(change.to),
                      change.at.count());
  }
  return news;
}

// The collector of rings sees the clock, which may well hold its breaker.
void show_collector(PyHeapTypeObject* type) {
  type->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  type->ht_type.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    // It may come while one is being made: pybind11 lays out the first of a subclass after it has
    // been handed to the collector, and allocates for that.
    const auto* made = reinterpret_cast<const py::detail::instance*>(self);
    const bool is_laid_out = made->simple_layout || made->nonsimple.status != nullptr;
    if (is_laid_out && py::detail::is_holder_constructed(self)) {
      Py_VISIT(py::handle(self).cast<ClockedBreaker&>().monotonic.ptr());
    }
    return 0;
  };
}

}  // namespace

void bind_breaker(py::module_& module) {
  bind_config(module);
  bind_view(module);
  py::class_<ClockedBreaker> bound(module, "Breaker", py::custom_type_setup(show_collector));
  bound
      .def(py::init([](const BreakerConfig& config, py::object monotonic) {
             return ::new ClockedBreaker{LockedBreaker(config), std::move(monotonic)};
           }),
           py::arg("config"), py::arg("monotonic"))
      .def("open", by_hand<&LockedBreaker::open>,
           "Refuse calls for one cooldown from now, as if it had tripped.")
      .def("close", by_hand<&LockedBreaker::close>,
           "Let calls go out, as after a recovery; a closed breaker is left as it is.")
      .def("reset", by_hand<&LockedBreaker::reset>,
           "Close it and forget all failures, also those of a closed one.")
      .def("isolate", by_hand<&LockedBreaker::isolate>,
           "Refuse calls until somebody closes, resets or opens it.")
      .def("expire", by_hand<&LockedBreaker::expire>,
           "Let time do its part now, not at the next call: an open breaker whose cooldown is over "
           "becomes half open.")
      .def("_now_ns", [](const ClockedBreaker& self) { return self.now().count(); })
      .def("_view",
           [](const ClockedBreaker& self) {
             const Nanoseconds now = self.now();
             return std::make_tuple(self.locked.view(now), now.count());
           })
      .def("_counts",
           [](const ClockedBreaker& self) {
             const BreakerCounts counts = self.locked.counts();
             return std::make_tuple(counts.granted, counts.refused, counts.successes,
                                    counts.failures, counts.ignored, counts.late,
                                    counts.transitions);
           })
      .def("_has_news", [](const ClockedBreaker& self) { return self.locked.has_news(); })
      .def("_take_news", take_news);
  bind_permit(module, bound);
}

}  // namespace loki::bindings
