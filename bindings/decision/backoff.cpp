#include "loki/decision/backoff.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "count_argument.hpp"
#include "rooms.hpp"
#include "text_argument.hpp"

namespace py = pybind11;

namespace loki::bindings {
namespace {

double seconds(Nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

std::optional<Nanoseconds> nanoseconds(std::optional<std::int64_t> count) {
  return count ? std::optional(Nanoseconds(*count)) : std::nullopt;
}

std::vector<double> preview(const Backoff& backoff, Count count, const py::str& key, Count offset) {
  const TextArgument text(key);
  std::vector<double> delays;
  for (std::uint32_t failures = 0; failures < count.value;)
    delays.push_back(seconds(backoff.delay(++failures, text.view(), offset.value)));
  return delays;
}

std::optional<double> wait(const Backoff& backoff, Count failures, const py::str& key, Count offset,
                           std::optional<std::int64_t> asked_ns,
                           std::optional<std::int64_t> left_ns) {
  const TextArgument text(key);
  const auto waited = backoff.wait(failures.value, text.view(), offset.value, nanoseconds(asked_ns),
                                   nanoseconds(left_ns));
  return waited ? std::optional(seconds(*waited)) : std::nullopt;
}

}  // namespace

void bind_backoff(py::module_& module) {
  py::class_<Backoff>(module, "Backoff")
      .def(py::init([](std::int64_t base_ns, double multiplier, std::int64_t cap_ns, double jitter,
                       std::string_view mode, std::uint64_t seed) {
             return Backoff(Nanoseconds(base_ns), multiplier, Nanoseconds(cap_ns), jitter, seed,
                            parse_jitter_mode(mode));
           }),
           py::arg("base_ns"), py::arg("multiplier"), py::arg("cap_ns"), py::arg("jitter"),
           py::arg("mode"), py::arg("seed"))
      .def(
          "delay",
          [](const Backoff& backoff, Count failures, const py::str& key, Count offset) {
            return seconds(backoff.delay(failures.value, TextArgument(key).view(), offset.value));
          },
          py::arg("failures"), py::arg("key"), py::arg("offset"))
      .def("preview", &preview, py::arg("count"), py::arg("key"), py::arg("offset"))
      .def("wait", &wait, py::arg("failures"), py::arg("key"), py::arg("offset"),
           py::arg("asked_ns"), py::arg("left_ns"))
      .def("arguments", [](const Backoff& b) {
        return std::make_tuple(b.base().count(), b.multiplier(), b.cap().count(), b.jitter(),
                               jitter_mode_name(b.mode()), b.seed());
      });
}

}  // namespace loki::bindings
