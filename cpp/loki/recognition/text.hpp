// What a person would see on the terminal, and where each byte of it came from.
//
// Covered by tests/cpp/recognition/text_test.cpp and tests/py/recognition/test_text.py, each with a
// slow reference terminal, and by fuzz/clean.cpp.
//
// Idea: a line without control characters is its own image and is not looked at twice. A line with
// some is replayed as a terminal would: two stacks of pieces, left and right of the cursor. Writing
// moves cells from the input to the left and drops as many on the right; a backspace moves one cell
// to the right; a carriage return all of them. Each cell is pushed once per time that it is written
// or moved, so the whole is linear in the input. Source: ECMA-48 (escape and control sequences);
// invalid UTF-8 is replaced by maximal subparts as the Unicode standard recommends (section 3.9).
//
// Worst case: O(n) time; memory: the cleaned text, three times the original where nothing in that
// is UTF-8, and about three bytes for each stretch that moved.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "loki/base/span.hpp"
#include "loki/recognition/text_map.hpp"

namespace loki {

class CleanText {
 public:
  // A stretch of the cleaned text that begins at `cleaned` and shows `length` bytes of the original
  // from `original` on: the same bytes, or U+FFFD in place of bytes that are no UTF-8.
  struct Run {
    std::size_t cleaned;
    std::size_t original;
    std::size_t length;
    bool operator==(const Run&) const = default;
  };

  // Borrows `original`, which must outlive this object. Any bytes are welcome. Escape sequences are
  // dropped, carriage returns and backspaces applied, CRLF becomes LF; a text without LF has its
  // lines ended by CR. Line k of the cleaned text is line k of the original.
  explicit CleanText(std::string_view original);

  // Valid UTF-8. The original itself where there was nothing to clean.
  std::string_view text() const { return borrowed_ ? original_ : std::string_view(cleaned_); }
  std::string_view original() const { return original_; }
  std::vector<Run> runs() const;

  // The stretch of the original, in bytes, that a stretch of the cleaned text shows. Where an
  // overwrite put later bytes before earlier ones: the smallest stretch with both ends.
  Span original(Span cleaned) const;

 private:
  friend class Cleaner;
  std::size_t place(const TextMap::Stretch& stretch, std::size_t cleaned, std::size_t more) const;

  std::string_view original_;
  std::string cleaned_;
  TextMap map_;
  bool borrowed_ = true;
};

// Length in bytes of the character (or of the invalid stretch that one U+FFFD stands for) at `at`,
// which must be inside `text`; `valid` says which. A surrogate encoded in three bytes is one
// invalid stretch, so that one code point of a Python str stays one code point.
std::size_t utf8_step(std::string_view text, std::size_t at, bool& valid);

// Number of code points that begin before byte `at`.
std::size_t code_points_before(std::string_view text, std::size_t at);

// A view of the first `limit` bytes, shortened so that it does not end inside a character.
std::string_view utf8_prefix(std::string_view text, std::size_t limit);

}  // namespace loki
