// Which known kind of failure a text shows.
//
// Covered by tests/cpp/recognition/pattern_test.cpp and by every example and near-miss of
// failure-patterns.yml (tests/py/recognition/test_pattern.py).
//
// Idea: the literals of all signals go through one scan; a regex runs on a line only where a
// literal that it needs was seen. Version 1 scores a pattern by the share of its signals that hit;
// version 2 combines independent evidence, 1 - (1 - w1)(1 - w2)..., as MYCIN did for certainty
// factors (Shortliffe and Buchanan, "A model of inexact reasoning in medicine", 1975). Constants:
// SPEC section 3.
//
// Worst case: linear in the text for each regex whose literal is on many lines; `slow` ones read
// every line.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loki/base/span.hpp"

namespace loki {

class LinePrefix;

// What is matched. Where only a text is known, give it as `anywhere` and leave the others empty:
// signals that must stand in the message then look at the text.
struct PatternSubject {
  std::string_view anywhere;  // the excerpt or the whole text
  std::string_view message;   // error type and message
  std::string_view tool;
  std::string_view code;
  std::string_view kind;               // of failure, as the tool's rules say
  std::string_view language;           // empty: not known
  const LinePrefix* prefix = nullptr;  // of lines of `anywhere`: a regex sees what stands behind it
};

struct PatternHit {
  std::size_t signal;  // index in the pattern
  Span span;           // bytes of `anywhere`; empty where the hit is in another part
};

struct PatternMatch {
  std::size_t pattern;  // index in the set
  double confidence;    // 0.30 to 1
  double coverage;      // share of the signals that hit
  std::vector<PatternHit> hits;
};

class PatternSet {
 public:
  // json: {"version": 1 or 2, "patterns": [...]}. Throws DefinitionError.
  explicit PatternSet(std::string_view json);
  ~PatternSet();
  PatternSet(PatternSet&&) noexcept;
  PatternSet& operator=(PatternSet&&) noexcept;

  // Compiles every regex. Throws DefinitionError for the first that RE2 refuses.
  void check() const;

  std::size_t size() const;
  const std::string& id(std::size_t pattern) const;

  // Best first; nothing under 0.30. Safe from many threads at once.
  std::vector<PatternMatch> match(const PatternSubject& subject) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loki
