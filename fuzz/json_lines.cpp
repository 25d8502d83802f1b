// Logs of JSON lines: what is taken is JSON to another parser, too, and says the same to it.
#include "loki/analysis/json_lines.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "promise.hpp"

using namespace loki;
using fuzz::promise;
using nlohmann::json;

namespace {

using Kind = JsonColumn::Kind;

const JsonColumn kEntry{Kind::kObject, "", {{Kind::kText, "a"}, {Kind::kNumber, "c"}}};
const JsonColumn kAsked{Kind::kObject,
                        "",
                        {{Kind::kText, "a"},
                         {Kind::kList, "b", {kEntry}},
                         {Kind::kTruth, "c"},
                         {Kind::kNumber, "attempt"}}};

// Whether an entry says what another parser found.
bool says(const JsonColumn& column, std::size_t at, const json& value) {
  promise(column.valid.size() == (column.size + 7) / 8, "a bit for each entry");
  if ((column.valid.at(at / 8) >> at % 8 & 1) == 0) return value.is_null();
  if (column.kind == Kind::kObject)
    return value.is_object() && std::ranges::all_of(column.members, [&](const JsonColumn& member) {
             return says(member, at, value.value(member.name, json()));
           });
  const auto begin = static_cast<std::size_t>(column.offsets.at(at));
  const auto size = static_cast<std::size_t>(column.offsets.at(at + 1)) - begin;
  if (column.kind == Kind::kList) {
    if (!value.is_array() || value.size() != size) return false;
    for (std::size_t n = 0; n < size; ++n)
      if (!says(column.members.at(0), begin + n, value[n])) return false;
    return true;
  }
  const std::string bytes = column.bytes.substr(begin, size);
  return value == (column.kind == Kind::kText ? json(bytes) : json::parse(bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view log = fuzz::bytes(data, size);
  JsonColumn columns = kAsked;
  if (!read_json_lines(log, columns)) return 0;
  promise(columns.size == static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n')),
          "a line, an entry");
  std::string_view rest = log;
  for (std::size_t at = 0; at < columns.size; ++at) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const json whole = json::parse(line, nullptr, false);
    // That parser refuses numbers that no double holds, and half a surrogate pair.
    if (!whole.is_discarded()) promise(says(columns, at, whole), "another parser reads the same");
  }
  return 0;
}
