#include "loki/recognition/grouping.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <tuple>
#include <utility>

#include "loki/base/parallel.hpp"
#include "loki/recognition/failure.hpp"
#include "loki/recognition/grouping_index.hpp"
#include "recognition/site_argument.hpp"
#include "rooms.hpp"
#include "text_argument.hpp"

namespace py = pybind11;

namespace loki::bindings {
namespace {

std::vector<std::uint32_t> add_texts(FailureIndex& index, const SiteRules& rules,
                                     const PatternSet& patterns, const TextList& texts,
                                     std::vector<std::string> keys, unsigned threads) {
  const TextArguments arguments(texts);
  const py::gil_scoped_release release;
  std::vector<FailureSite> sites(arguments.size());
  in_parallel(sites.size(), threads, 16, [&](std::size_t i) {
    const CleanText cleaned(arguments[i].view());
    sites[i] = failure_site(recognize(cleaned, rules, patterns, {}), patterns);
  });
  return index.add(sites, std::move(keys), threads);
}

std::vector<std::uint32_t> add_failures(FailureIndex& index, const TextList& failures,
                                        std::vector<std::string> keys, unsigned threads) {
  std::vector<FailureSite> sites;
  sites.reserve(failures.size());
  for (const py::handle failure : failures) sites.push_back(site_of(failure));
  const py::gil_scoped_release release;
  return index.add(sites, std::move(keys), threads);
}

// The site is borrowed from Python, which holds it during the call.
std::vector<std::tuple<std::uint32_t, double, bool>> nearest(const FailureIndex& index,
                                                             const FailureSite& site,
                                                             std::size_t most) {
  std::vector<std::tuple<std::uint32_t, double, bool>> result;
  for (const Neighbor& near : index.nearest(site, most))
    result.emplace_back(near.group, near.overlap, near.is_same);
  return result;
}

}  // namespace

void bind_grouping(py::module_& module) {
  module.def(
      "group",
      [](const TextList& texts, unsigned threads) {
        const TextArguments arguments(texts);
        const py::gil_scoped_release release;
        return group(arguments.views(), threads);
      },
      py::arg("texts"), py::arg("threads"), "One number for each text, equal for one template.");
  using Release = py::call_guard<py::gil_scoped_release>;
  py::class_<FailureIndex>(module, "FailureIndex")
      .def(py::init<double>(), py::arg("threshold"))
      .def_property_readonly("threshold", &FailureIndex::threshold)
      .def("add", py::overload_cast<const FailureSite&, std::string>(&FailureIndex::add),
           py::arg("site"), py::arg("key"), Release())
      .def("add_failures", &add_failures, py::arg("failures"), py::arg("keys"), py::arg("threads"))
      .def("add_texts", &add_texts, py::arg("rules"), py::arg("patterns"), py::arg("texts"),
           py::arg("keys"), py::arg("threads"))
      .def("nearest", &nearest, py::arg("site"), py::arg("most"), Release(),
           "Group, overlap and whether it is the same failure; nearest first.")
      .def("keys", &FailureIndex::keys, py::arg("group"), Release())
      .def(
          "report",
          [](const FailureIndex& index) {
            const FailureIndex::Report report = index.report();
            return std::make_tuple(report.failures, report.groups, report.queries,
                                   report.candidates, report.most);
          },
          Release())
      .def("save",
           [](const FailureIndex& index) {
             std::string bytes;
             {
               const py::gil_scoped_release release;
               bytes = index.save();
             }
             return py::bytes(bytes);
           })
      .def_static(
          "load",
          [](const py::bytes& bytes) {
            const TextArgument argument(bytes);
            const py::gil_scoped_release release;
            return FailureIndex::load(argument.view());
          },
          py::arg("bytes"));
}

}  // namespace loki::bindings
