// The rules of normalize for numbers of every kind. Each looks at most a few dozen bytes ahead,
// apart from runs of digits or hex digits, which it takes whole.
#include <algorithm>
#include <array>

#include "loki/recognition/normalize.hpp"

namespace loki::normalizing {
namespace {

bool is_octets(std::string_view text, std::size_t size) {
  int value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (text[i] == '.') {
      value = 0;
      continue;
    }
    value = value * 10 + (text[i] - '0');
    if (value > 255) return false;
  }
  return true;
}

struct Unit {
  std::string_view name;
  bool spaced;  // also with a space before it
};

// Longer names first where one begins like another.
constexpr std::array<Unit, 33> kDurations = {
    {{"milliseconds", true}, {"millisecond", true}, {"microseconds", true},
     {"nanoseconds", true},  {"seconds", true},     {"second", true},
     {"secs", true},         {"sec", true},         {"minutes", true},
     {"minute", true},       {"mins", true},        {"min", true},
     {"hours", true},        {"hour", true},        {"weeks", true},
     {"months", true},       {"month", true},       {"years", true},
     {"year", true},         {"week", true},        {"days", true},
     {"day", true},          {"hrs", true},         {"hr", true},
     {"ms", true},           {"us", true},          {"ns", true},
     {"µs", true},           {"μs", true},          {"s", true},
     {"m", false},           {"h", false},          {"d", false}}};
constexpr std::array<Unit, 22> kSizes = {
    {{"kilobytes", true}, {"megabytes", true}, {"gigabytes", true}, {"bytes", true}, {"byte", true},
     {"Bytes", true},     {"PiB", true},       {"PB", true},        {"KiB", true},   {"MiB", true},
     {"GiB", true},       {"TiB", true},       {"KB", true},        {"kB", true},    {"MB", true},
     {"GB", true},        {"TB", true},        {"B", true},         {"K", false},    {"k", false},
     {"M", false},        {"G", false}}};

template <std::size_t N>
std::size_t unit(std::string_view text, std::size_t i, const std::array<Unit, N>& units) {
  const std::size_t space = at(text, i) == ' ' ? 1 : 0;
  const char first = at(text, i + space);
  if (!is_word(first)) return 0;
  for (const Unit& candidate : units) {
    if (candidate.name[0] != first || (space != 0 && !candidate.spaced)) continue;
    if (!text.substr(std::min(i + space, text.size())).starts_with(candidate.name)) continue;
    const std::size_t size = space + candidate.name.size();
    const char next = at(text, i + size);
    if (ends_word(text, i + size) || (is_digit(next) && space == 0)) return size;
  }
  return 0;
}

// 1h30m, 1m 2.5s: more numbers with units of time behind the first.
std::size_t more_duration(std::string_view text, std::size_t i) {
  const std::size_t begin = i;
  std::size_t end = i;  // where the last of them that ends a word does
  for (int part = 0; part < 4; ++part) {
    const std::size_t start = at(text, i) == ' ' ? i + 1 : i;
    std::size_t next = start + digits(text, start);
    if (next == start) break;
    if (at(text, next) == '.' && digits(text, next + 1) > 0) next += 1 + digits(text, next + 1);
    const std::size_t size = unit(text, next, kDurations);
    if (size == 0) break;
    i = next + size;
    if (ends_word(text, i)) end = i;
  }
  return end - begin;
}

Found quantity(std::string_view text, std::size_t size) {
  if (at(text, size) == '%') return {size + 1, "<percent>"};
  if (const std::size_t found = unit(text, size, kDurations)) {
    const std::size_t end = size + found + more_duration(text, size + found);
    // Days alone are an array's dimensions as often.
    const bool is_bare_day = text[size] == 'd' && end == size + 1;
    if (ends_word(text, end) && !is_bare_day) return {end, "<duration>"};
  }
  if (const std::size_t found = unit(text, size, kSizes)) {
    if (ends_word(text, size + found)) return {size + found, "<size>"};
  }
  return {};
}

// -rc1, .dev3, b2, _292, +build.5: what may follow the numbers of a version.
std::size_t version_suffix(std::string_view text, std::size_t from) {
  constexpr std::array<std::string_view, 15> kStages = {
      "alpha", "beta", "post",     "dev",     "preview", "pre",   "rc",     "a",
      "b",     "next", "SNAPSHOT", "nightly", "canary",  "Final", "RELEASE"};
  std::size_t i = from;
  if (at(text, i) == '_' && digits(text, i + 1) > 0) i += 1 + digits(text, i + 1);
  const std::size_t word = at(text, i) == '-' || at(text, i) == '.' ? i + 1 : i;
  for (const std::string_view stage : kStages) {
    if (!text.substr(std::min(word, text.size())).starts_with(stage)) continue;
    const std::size_t end = word + stage.size();
    const std::size_t dot = at(text, end) == '.' && is_digit(at(text, end + 1)) ? 1 : 0;
    const std::size_t numbered = end + dot + digits(text, end + dot);
    if (!ends_word(text, numbered) && !ends_word(text, end)) continue;
    i = ends_word(text, numbered) ? numbered : end;
    break;
  }
  if (at(text, i) == '+' && is_word(text, i + 1)) {
    std::size_t end = i + 1;
    while (is_word(text, end) || (at(text, end) == '.' && is_word(text, end + 1))) ++end;
    i = end;
  }
  return i - from;
}

// Size of \d+(\.\d+)* and the number of its parts.
std::size_t dotted(std::string_view text, std::size_t from, std::size_t& parts) {
  std::size_t i = from + digits(text, from);
  for (parts = 1; at(text, i) == '.' && is_digit(at(text, i + 1)); ++parts) {
    i += 1 + digits(text, i + 1);
  }
  return i - from;
}

// The end of an IPv4 address in digits and dots, else 0.
std::size_t ipv4(std::string_view text, std::size_t from) {
  std::size_t parts = 0;
  const std::size_t size = dotted(text, from, parts);
  if (parts != 4 || !is_octets(text.substr(from), size) || !ends_word(text, from + size)) return 0;
  return from + size;
}

// Groups of up to four hex digits between colons: a MAC or an IPv6 address. `first`: the size of
// the first group.
Found address(std::string_view text, std::size_t first) {
  std::size_t i = 0, groups = 0, pairs = 0, last = 0;
  bool gap = false, has_digit = false;
  for (; groups < 9; ++groups) {
    std::size_t length = 0;
    for (; length < 5 && is_hex(at(text, i + length)); ++length) {
      has_digit = has_digit || is_digit(text[i + length]);
    }
    if (length > 4) return {};
    pairs += length == 2;
    last = i;
    i += length;
    if (at(text, i) != ':') {
      groups += length > 0;
      break;
    }
    if (at(text, i + 1) == ':') {
      if (gap) return {};
      gap = true;
      ++i;
    } else if (!is_hex(at(text, i + 1))) {
      ++groups;
      break;
    }
    ++i;
  }
  if (at(text, i) == '.' && (gap || groups == 7)) {  // ::ffff:10.0.0.1
    if (const std::size_t end = ipv4(text, last)) {
      i = end;
      ++groups;
    }
  }
  // '<' stands for a number that would have been read as a group.
  if (!ends_word(text, i) || at(text, i) == ':' || at(text, i) == '<') return {};
  if (groups == 6 && pairs == 6 && !gap) return {i, "<mac>"};
  const bool is_loopback = text.starts_with("::") && groups == 2 && digits(text, 2) == i - 2;
  const bool is_short = gap && groups >= 2 && groups < 9 && (first >= 3 || groups >= 3);
  if (!has_digit || !((groups == 8 && !gap) || is_short || is_loopback)) return {};
  if (at(text, i) == '%') {  // fe80::1%eth0
    for (std::size_t zone = i + 1; is_word(text, zone); i = zone) ++zone;
  }
  return {i, "<ip>"};
}

// Without the last of its dotted parts, which is glued to a word: 1.2.0x1f is 1.2 and 0x1f.
Found shorter(std::string_view text, std::size_t size, std::size_t parts) {
  if (parts < 2) return {};
  return number(text.substr(0, text.rfind('.', size - 1)));
}

}  // namespace

Found number(std::string_view text) {
  std::size_t parts = 0;
  const std::size_t v = at(text, 0) == 'v' || at(text, 0) == 'V' ? 1 : 0;
  if (!is_digit(at(text, v))) return {};
  const std::size_t size = v + dotted(text, v, parts);
  if (v == 0 && parts == 4 && is_octets(text, size) && ends_word(text, size) &&
      version_suffix(text, size) == 0) {
    std::size_t end = size;
    if ((at(text, end) == ':' || at(text, end) == '/') && digits(text, end + 1) > 0 &&
        ends_word(text, end + 1 + digits(text, end + 1))) {
      end += 1 + digits(text, end + 1);
    }
    return {end, "<ip>"};
  }
  if (parts >= 3 || (v == 1 && parts == 2)) {
    const std::size_t end = size + version_suffix(text, size);
    if (!ends_word(text, end)) return shorter(text, size, parts);
    return {end, "<version>"};
  }
  if (v == 1) return {};
  if (const Found found = quantity(text, size)) return found;
  std::size_t end = size;
  const char exponent = at(text, end);
  if (exponent == 'e' || exponent == 'E') {
    const std::size_t sign = at(text, end + 1) == '+' || at(text, end + 1) == '-' ? 1 : 0;
    const std::size_t power = digits(text, end + 1 + sign);
    if (power > 0) end += 1 + sign + power;
  }
  if (!ends_word(text, end)) return shorter(text, size, parts);
  return {end, parts == 2 || end != size ? "<float>" : "<int>"};
}

namespace {

// 00-1b-44-11-3a-b7, with a letter and a digit: other numbers stand between dashes too.
bool is_dashed_mac(std::string_view text) {
  constexpr std::size_t kSize = 17;
  bool has_digit = false, has_letter = false;
  for (std::size_t i = 0; i < kSize; ++i) {
    const char c = at(text, i);
    if (i % 3 == 2 ? c != '-' : !is_hex(c)) return false;
    (is_digit(c) ? has_digit : has_letter) |= c != '-';
  }
  return has_digit && has_letter && ends_word(text, kSize) && at(text, kSize) != '-';
}

}  // namespace

Found hexadecimal(std::string_view text) {
  if (at(text, 0) == '0' && (at(text, 1) == 'x' || at(text, 1) == 'X') && is_hex(at(text, 2))) {
    std::size_t i = 2;
    while (is_hex(at(text, i))) ++i;
    return {ends_word(text, i) ? i : 0, "<hex>"};
  }
  std::size_t size = 0, letters = 0, numerals = 0;
  for (; is_hex(at(text, size)); ++size) (is_digit(text[size]) ? numerals : letters) += 1;
  const auto group = [&](std::size_t i, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
      if (!is_hex(at(text, i + k))) return false;
    }
    return at(text, i + count) == '-' || count == 12;
  };
  if (size == 8 && at(text, 8) == '-' && group(9, 4) && group(14, 4) && group(19, 4) &&
      group(24, 12) && ends_word(text, 36)) {
    return {36, "<uuid>"};
  }
  if (size >= 7 && ends_word(text, size) && letters > 0 && numerals > 0) {
    return {size, size <= 40 ? "<sha>" : "<hex>"};
  }
  if (size == 2 && at(text, 2) == '-' && is_dashed_mac(text)) return {17, "<mac>"};
  if (size > 4 || (at(text, size) != ':')) return {};
  return address(text, size);
}

}  // namespace loki::normalizing
