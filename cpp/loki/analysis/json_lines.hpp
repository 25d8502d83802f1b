// Columns of a log of JSON lines, as Arrow lays them out: what no column asks for is passed over,
// and of a log of attempts that is most (what tools printed).
//
// Covered by tests/cpp/analysis/json_lines_test.cpp, by tests/py/analysis/test_attempt_log.py,
// which compares the tables that come of it with those of Python's parser, and by
// fuzz/json_lines.cpp.
//
// Idea: one pass that checks the grammar (RFC 8259), also of what it passes over, strings eight
// bytes at a time. Stricter than a parser where two parsers differ, so that whatever is taken means
// the same to all of them. Numbers stay texts: Arrow reads them.
//
// Worst case: O(n) time, no more memory than the log and five bytes for each row of each column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loki {

// What is asked for, and what was found of it. Source of the layout: Arrow's columnar format,
// version 1.4 (variable-size binary, list, struct).
struct JsonColumn {
  enum class Kind { kText, kNumber, kTruth, kList, kObject };

  Kind kind = Kind::kObject;
  std::string name = {};                 // of a member of an object
  std::vector<JsonColumn> members = {};  // of an object; a list has one, its entry

  std::size_t size = 0;                     // entries
  std::string valid = {};                   // a bit for each, the lowest first
  std::vector<std::int32_t> offsets = {0};  // where each begins, in `bytes` or a list's entries
  std::string bytes = {};                   // of texts; of numbers and truths as they stood
  std::size_t bytes_read = 0;               // of logs, into this object

  void append_null();
  void end_entry(bool is_valid);
};

// Appends an entry to an object's column for each line. False: a line is not one object that
// everybody reads alike, or a value is not what its column asks for; then nothing that the column
// holds counts. A line has no space before it or behind it, the last one is ended; it is valid
// UTF-8, names nothing twice that is asked for and no name in an escaped form, and has no number of
// more than kLongestNumber bytes (Python's integers have a limit) and no more than kDeepest
// brackets in one another. All logs of a column together have less than 2 GiB.
bool read_json_lines(std::string_view log, JsonColumn& objects);

// Chosen, not measured.
inline constexpr std::size_t kLongestNumber = 100;
inline constexpr std::size_t kDeepest = 64;

}  // namespace loki
