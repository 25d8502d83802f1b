// The signals of `pattern` as data in memory. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loki/base/definition.hpp"
#include "loki/recognition/regex.hpp"
#include "loki/recognition/scan.hpp"

namespace loki::pattern {

inline constexpr double kStrong = 0.7, kWeak = 0.15;
inline constexpr double kLeast = 0.30;      // under it nothing is matched
inline constexpr double kWeakAlone = 0.29;  // weak hits alone stay at or under it
inline constexpr double kIsStrong = 0.3;    // a signal of this weight or more can carry a match

enum class Scope : std::uint8_t { kAnywhere, kMessage, kTool, kCode, kKind };
inline constexpr std::size_t kScopes = 5;

// One way for a signal to hit.
struct Probe {
  enum Kind : std::uint8_t { kLiteral, kWord, kRegex } kind = kLiteral;
  std::string text;              // literal and word
  std::unique_ptr<Regex> regex;  // regex only
  std::string where;
};

struct Signal {
  std::vector<Probe> probes;  // alternatives that count once
  double weight = kStrong;
  Scope scope = Scope::kAnywhere;
  bool excludes = false;
};

struct PatternRule {
  std::string id;
  std::string language;
  bool non_retryable = false;
  bool ratio = false;  // version 1: matched / signals
  std::vector<Signal> signals;
};

// version: of the file; a pattern may bring its own ("version" inside it), since a project's file
// of version 1 may extend a built-in one of version 2.
PatternRule read_pattern(const Definition& definition, int version);

// True where a version 1 signal is a regex: SPEC section 3 lists what makes it one.
bool is_version1_regex(std::string_view signal);

}  // namespace loki::pattern
