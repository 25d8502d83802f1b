// A regular expression that knows which literals it cannot match without.
//
// Covered by tests/cpp/recognition/regex_test.cpp.
//
// Idea: the required literals are read off the expression's text (as Russ Cox describes in "Regular
// Expression Matching with a Trigram Index", 2012, for whole literals instead of trigrams), so that
// nothing is compiled before one of them was seen. Matching is RE2's: linear time.
//
// Worst case: reading is linear in the expression; matching linear in the text.
#pragma once

#include <re2/re2.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loki {

// A line in lower case (ASCII), and which pairs of bytes it holds, by hash: most of what is looked
// for in it is ruled out by a look at these.
class FoldedLine {
 public:
  // A text in lower case that is looked for.
  class Needle {
   public:
    explicit Needle(std::string text);

   private:
    friend class FoldedLine;
    std::string text_;
    std::string pairs_;  // hashes of its pairs of bytes
  };

  FoldedLine() = default;
  explicit FoldedLine(std::string_view line) { assign(line); }
  void assign(std::string_view line);
  // What is left of the line without so many bytes at its beginning.
  void remove_prefix(std::size_t bytes);

  std::string_view text() const { return std::string_view(text_).substr(begin_); }
  // The end of the line, of so many bytes, from which prefixes were removed; without its blanks.
  std::string_view marked(std::size_t bytes) const;
  std::string_view unindented() const { return std::string_view(text_).substr(said_); }

  bool holds(const Needle& needle) const;

 private:
  std::string text_;
  std::size_t begin_ = 0, said_ = 0;  // bytes: what is left, and of that the first that is no blank
  mutable std::array<bool, 256> pairs_{};  // by hash, once enough was asked for
  mutable int asked_ = 0;
};

class Regex {
 public:
  // RE2 syntax, UTF-8. Nothing is read or compiled yet.
  explicit Regex(std::string expression);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Literals in lower case, of 3 bytes or more or of two marks ("::"), of which every match holds
  // one (ASCII letter case ignored). Empty: none is known.
  const std::vector<std::string>& required() const;

  // Literals in lower case, with one of which every match, and thus the line, begins, but for
  // blanks that may stand before it. Empty: none is known.
  std::vector<std::string> heads() const;

  // Bytes, in lower case (ASCII), with one of which every match, and thus the line, begins; but for
  // the blanks that may stand before it, where `is_behind_blanks`. None: it is not known.
  struct FirstByte {
    std::bitset<256> bytes;
    bool is_behind_blanks = false;
  };
  std::optional<FirstByte> first_byte() const;

  const std::string& expression() const;

  // Compiles at the first call; later calls, from any thread, get the same object. It is unusable
  // (`!ok()`) where the expression has an error; `check` says which.
  const RE2& compiled() const;

  // False: the line cannot match. Cheap: it looks at the beginning, where the expression begins
  // with
  // ^, at the end, where it ends with $, and for the other literals that every match holds. folded:
  // of the line.
  bool may_match(std::string_view line, const FoldedLine& folded) const;

  // What is wrong with the expression; empty where nothing is.
  std::string check() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Many regexes of one file, compiled one after the other: together they may be so large and no
// larger, as a few characters can ask for megabytes.
class RegexBudget {
 public:
  static constexpr int kMost = 1'000'000;  // instructions of RE2; chosen: a third of a second

  // What is wrong with the regex, or with all so far; empty where nothing is.
  std::string spend(const Regex& regex);

 private:
  long spent_ = 0;
};

// Exposed for its tests: the literals that `Regex::required` gives.
std::vector<std::string> required_literals(std::string_view expression);

}  // namespace loki
