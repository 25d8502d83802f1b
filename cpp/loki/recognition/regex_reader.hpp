// What every match of a regex holds, read off its text. Private to `regex`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loki/recognition/regex_bytes.hpp"

namespace loki {

struct RegexNeeds {
  using Strings = std::vector<std::string>;
  Strings required;  // a match holds one of these, 3 bytes or two marks; empty: none is known
  std::vector<Strings> also;  // and of each of these one, 2 bytes or more; the rare ones first
  Strings head;               // and begins with one of these; empty: not known
  bool is_indented = false;   // but for blanks, that may stand before them
  Strings last;               // and ends with one of these, as the line does; empty: not known
  bool is_said = false;       // a match is not empty, and its first byte, in lower case, is one
  Bytes first = all_bytes();  // of these
  bool skips_blanks = false;  // behind the blanks that may stand before it
  bool is_anchored = false;   // it begins where the line begins
  bool looks_beyond = false;  // what stands behind a match may decide whether it is one (\b)
};

// What \s matches.
constexpr bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v');
}

// All in lower case (ASCII). Whatever is hard to tell counts as not known.
RegexNeeds regex_needs(std::string_view expression);

}  // namespace loki
