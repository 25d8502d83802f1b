// What is known of the texts that a part of an expression matches. Private to `regex_reader`.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "loki/recognition/regex_rarity.hpp"
#include "loki/recognition/regex_reader.hpp"

namespace loki {

// What is known of all matches of a part of the expression.
struct Known {
  using Strings = RegexNeeds::Strings;
  static constexpr std::size_t kMostTried = 6;  // alternatives that are looked for one by one

  bool exact = false;  // a match is one of `strings`
  Strings strings;
  Strings best;              // a match holds one of these; empty: nothing known
  std::vector<Strings> all;  // a match holds one of each of these
  Strings head, tail;  // not exact: a match begins, ends with one of these; empty: nothing known

  static Known anything() { return {}; }
  static Known empty() { return {true, {""}, {}, {}, {}, {}}; }
  static Known one(std::string text) { return {true, {std::move(text)}, {}, {}, {}, {}}; }
  const Strings& begins() const { return exact ? strings : head; }
};

inline void offer(Known& known, const RegexNeeds::Strings& strings) {
  if (shortest(strings) > 1 && strings.size() <= Known::kMostTried) known.all.push_back(strings);
  if (better(strings, known.best)) known.best = strings;
}

}  // namespace loki
