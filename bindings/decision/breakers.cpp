#include "loki/decision/breakers.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "rooms.hpp"

namespace py = pybind11;

namespace loki::bindings {
namespace {

// (before, after, when in nanoseconds), as the breaker's own binding has it.
using Change = std::optional<std::tuple<int, int, std::int64_t>>;

Change change(const MaybeTransition& transition) {
  if (!transition) return std::nullopt;
  return std::tuple(static_cast<int>(transition->from), static_cast<int>(transition->to),
                    transition->at.count());
}

BreakerEvent event(BreakerEventKind kind, const std::optional<BreakerPermit>& permit,
                   std::string error, std::optional<std::int64_t> asked_ns = std::nullopt) {
  BreakerEvent made{kind, permit.value_or(BreakerPermit{}), std::move(error), std::nullopt};
  if (asked_ns) made.asked = Nanoseconds(*asked_ns);
  return made;
}

void bind_reply(py::module_& module) {
  py::enum_<BreakerEventKind>(module, "BreakerEventKind")
      .value("NONE", BreakerEventKind::none)
      .value("ACQUIRE", BreakerEventKind::acquire)
      .value("SUCCESS", BreakerEventKind::success)
      .value("FAILURE", BreakerEventKind::failure)
      .value("IGNORE", BreakerEventKind::ignore)
      .value("OPEN", BreakerEventKind::open)
      .value("CLOSE", BreakerEventKind::close)
      .value("RESET", BreakerEventKind::reset)
      .value("ISOLATE", BreakerEventKind::isolate)
      .value("EXPIRE", BreakerEventKind::expire);
  py::class_<BreakerPermit>(module, "BreakerPermit")
      .def_property_readonly("is_probe", &BreakerPermit::is_probe);
  py::class_<BreakerReply>(module, "BreakerReply")
      .def_property_readonly("permit", [](const BreakerReply& self) { return self.answer.permit; })
      .def_property_readonly("retry_at_ns",
                             [](const BreakerReply& self) -> std::optional<std::int64_t> {
                               if (!self.answer.retry_at) return std::nullopt;
                               return self.answer.retry_at->count();
                             })
      .def_property_readonly(
          "change", [](const BreakerReply& self) { return change(self.answer.transition); })
      .def_property_readonly("learned",
                             [](const BreakerReply& self) { return change(self.learned); })
      .def_readonly("is_counted", &BreakerReply::is_counted)
      .def_readonly("is_to_write", &BreakerReply::is_to_write);
}

void bind_file(py::module_& module) {
  py::class_<BreakerMoment>(module, "BreakerMoment")
      .def(py::init([](std::int64_t now_ns, std::int64_t since_1970_ns, std::string boot_id) {
             return BreakerMoment{Nanoseconds(now_ns), Nanoseconds(since_1970_ns),
                                  std::move(boot_id)};
           }),
           py::arg("now_ns"), py::arg("since_1970_ns"), py::arg("boot_id"));
  py::class_<BreakersFile>(module, "BreakersFile")
      .def(py::init<>())
      .def(py::init([](const py::bytes& data) { return BreakersFile(std::string_view(data)); }),
           py::arg("data"))
      .def("names", &BreakersFile::names)
      .def("remove", &BreakersFile::remove, py::arg("name"))
      .def("bytes", [](const BreakersFile& self) { return py::bytes(self.bytes()); });
}

}  // namespace

void bind_breakers(py::module_& module) {
  bind_reply(module);
  bind_file(module);
  py::class_<SharedBreaker>(module, "SharedBreaker")
      .def(py::init<std::string, const BreakerConfig&>(), py::arg("name"), py::arg("config"))
      .def(
          "acquire_closed",
          [](SharedBreaker& self, std::int64_t now_ns) {
            return self.acquire_closed(Nanoseconds(now_ns));
          },
          py::arg("now_ns"), "The hot path of `locally`; None: ask that.")
      .def("success_closed", &SharedBreaker::success_closed, py::arg("permit"),
           "The hot path of `locally`; False: ask that.")
      .def(
          "locally",
          [](SharedBreaker& self, BreakerEventKind kind, const std::optional<BreakerPermit>& permit,
             std::string error, std::int64_t now_ns, std::optional<std::int64_t> asked_ns) {
            return self.locally(event(kind, permit, std::move(error), asked_ns),
                                Nanoseconds(now_ns));
          },
          py::arg("kind"), py::arg("permit"), py::arg("error"), py::arg("now_ns"),
          py::arg("asked_ns") = py::none())
      .def(
          "together",
          [](SharedBreaker& self, BreakerEventKind kind, const std::optional<BreakerPermit>& permit,
             std::string error, BreakersFile& file, const BreakerMoment& moment,
             std::string_view owner, std::optional<std::int64_t> asked_ns) {
            return self.together(event(kind, permit, std::move(error), asked_ns), file, moment,
                                 owner);
          },
          py::arg("kind"), py::arg("permit"), py::arg("error"), py::arg("file"), py::arg("moment"),
          py::arg("owner"), py::arg("asked_ns") = py::none())
      .def(
          "alone",
          [](SharedBreaker& self, BreakerEventKind kind, const std::optional<BreakerPermit>& permit,
             std::string error, std::int64_t now_ns, std::optional<std::int64_t> asked_ns) {
            return self.alone(event(kind, permit, std::move(error), asked_ns), Nanoseconds(now_ns));
          },
          py::arg("kind"), py::arg("permit"), py::arg("error"), py::arg("now_ns"),
          py::arg("asked_ns") = py::none())
      .def(
          "check",
          [](const SharedBreaker& self, const BreakersFile& file, const BreakerMoment& moment) {
            file.state(self.name(), self.config(), moment);
          },
          py::arg("file"), py::arg("moment"), "ValueError where the file's entry cannot be read.")
      .def("note_unwritten", &SharedBreaker::note_unwritten)
      .def(
          "look",
          [](SharedBreaker& self, const BreakersFile& file, const BreakerMoment& moment) {
            bool is_to_mend = false;
            const Change learned = change(self.look(file, moment, is_to_mend));
            return std::tuple(learned, is_to_mend);
          },
          py::arg("file"), py::arg("moment"))
      .def(
          "view",
          [](const SharedBreaker& self, std::int64_t now_ns) {
            return self.view(Nanoseconds(now_ns));
          },
          py::arg("now_ns"))
      .def("counts", [](const SharedBreaker& self) {
        const BreakerCounts counts = self.counts();
        return std::tuple(counts.granted, counts.refused, counts.successes, counts.failures,
                          counts.ignored, counts.late, counts.transitions);
      });
}

}  // namespace loki::bindings
