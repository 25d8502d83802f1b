// What is known of the texts that a part of an expression matches. Private to `regex_reader`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loki/recognition/regex_bytes.hpp"
#include "loki/recognition/regex_rarity.hpp"
#include "loki/recognition/regex_reader.hpp"

namespace loki {

// What is known of all matches of a part of the expression.
struct Known {
  using Strings = RegexNeeds::Strings;
  static constexpr std::size_t kMostTried = 16;  // alternatives that are looked for one by one

  bool exact = false;  // a match is one of `strings`
  Strings strings;
  Strings best;              // a match holds one of these; empty: nothing known
  std::vector<Strings> all;  // a match holds one of each of these
  Strings head, tail;  // not exact: a match begins, ends with one of these; empty: nothing known
  Bytes first = all_bytes();  // a match begins with one of these
  bool may_be_empty = true;   // if not with what comes behind

  static Known anything() { return {}; }
  static Known empty() { return one(""); }
  static Known one(std::string text) {
    const Bytes first = text.empty() ? Bytes() : byte_of(text.front());
    const bool is_empty = text.empty();
    return {true, {std::move(text)}, {}, {}, {}, {}, first, is_empty};
  }
  static Known one_of(const Bytes& first) {
    Known result;
    result.first = first;
    result.may_be_empty = false;
    return result;
  }
  // What comes next is this; the first bytes alone.
  void then(const Bytes& next, bool next_may_be_empty) {
    if (may_be_empty) first |= next;
    may_be_empty = may_be_empty && next_may_be_empty;
  }
  const Strings& begins() const { return exact ? strings : head; }
};

// A match holds one of `strings`.
void offer(Known& known, const RegexNeeds::Strings& strings);

// Nothing comes behind what is known: where it is exact, it holds its strings.
void finish(Known& known);

void append(RegexNeeds::Strings& to, RegexNeeds::Strings from);
RegexNeeds::Strings product(const RegexNeeds::Strings& heads, const RegexNeeds::Strings& tails);

// What stands for itself in an expression, without and with a backslash before it.
bool is_ordinary(char c);
bool is_escaped_mark(char c);

// All blanks that stand there, or some: \s* and the like.
bool is_any_blanks(std::string_view item);
bool holds_blank(const Bytes& bytes);

// It ends with a $ that is none of \$ and \Q$: the end of the text, but where (?m) makes it that of
// a line.
bool ends_with_dollar(std::string_view expression);

}  // namespace loki
