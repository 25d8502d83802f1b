#include "loki/analysis/json_lines.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rooms.hpp"

namespace py = pybind11;

namespace loki::bindings {
namespace {

using Asked = py::typing::Dict<py::str, py::object>;

JsonColumn asked(std::string name, const py::handle& what) {
  JsonColumn column;
  column.name = std::move(name);
  if (py::isinstance<py::dict>(what)) {
    for (const auto& [member, of_it] : py::cast<py::dict>(what))
      column.members.push_back(asked(py::cast<std::string>(member), of_it));
  } else if (py::isinstance<py::list>(what)) {
    column.kind = JsonColumn::Kind::kList;
    column.members.push_back(asked("", py::cast<py::list>(what)[0]));
  } else {
    const std::string kind = py::cast<std::string>(what);
    column.kind = kind == "text"    ? JsonColumn::Kind::kText
                  : kind == "truth" ? JsonColumn::Kind::kTruth
                                    : JsonColumn::Kind::kNumber;
  }
  return column;
}

// (entries, which of them are there, offsets, bytes, members); with what was found freed on the
// way.
py::tuple found(JsonColumn& column) {
  py::list members;
  for (JsonColumn& member : column.members) members.append(found(member));
  const py::bytes offsets(reinterpret_cast<const char*>(column.offsets.data()),
                          column.offsets.size() * sizeof(std::int32_t));
  const py::tuple all = py::make_tuple(column.size, py::bytes(column.valid), offsets,
                                       py::bytes(column.bytes), members);
  column = {};
  return all;
}

// (entries of each log, the columns), or None.
py::object read(const JsonColumn& wanted, const std::vector<py::bytes>& logs) {
  const std::vector<std::string_view> texts(logs.begin(), logs.end());
  JsonColumn objects = wanted;
  std::vector<std::size_t> sizes;
  {
    const py::gil_scoped_release release;
    for (const std::string_view log : texts) {
      const std::size_t before = objects.size;
      if (!read_json_lines(log, objects)) break;
      sizes.push_back(objects.size - before);
    }
  }
  if (sizes.size() < texts.size()) return py::none();
  return py::make_tuple(sizes, found(objects)[4]);
}

}  // namespace

void bind_json_lines(py::module_& module) {
  py::class_<JsonColumn>(module, "JsonColumns", "Columns of logs of JSON lines.")
      .def(py::init([](const Asked& what) { return asked("", what); }), py::arg("asked"))
      .def("read", &read, py::arg("logs"),
           "How many entries each log has, and (entries, which of them are there, offsets, bytes, "
           "members) of each column; None: a line is not as it should be.");
}

}  // namespace loki::bindings
