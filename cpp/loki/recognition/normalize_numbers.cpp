// The rules of normalize for numbers of every kind. Each looks at most a few dozen bytes ahead,
// apart from runs of digits or hex digits, which it takes whole.
#include <algorithm>
#include <array>

#include "loki/recognition/normalize.hpp"

namespace loki::normalizing {
namespace {

char at(std::string_view text, std::size_t i) {
  return i < text.size() ? text[i] : '\0';
}

std::size_t digits(std::string_view text, std::size_t from, std::size_t most = 1000000000) {
  std::size_t i = from;
  while (i < text.size() && i - from < most && is_digit(text[i])) ++i;
  return i - from;
}

int two(std::string_view text, std::size_t i) {
  return (text[i] - '0') * 10 + (text[i + 1] - '0');
}

bool ends_word(std::string_view text, std::size_t i) {
  return !is_word(at(text, i));
}

// hh:mm:ss with a fraction, AM/PM and a zone where they follow. 0 where it is no time of day: the
// ratio 31:21 and the position 12:70 are none.
std::size_t clock_time(std::string_view text, std::size_t from) {
  std::size_t i = from;
  const std::size_t hour = digits(text, i, 3);
  if (hour == 0 || hour > 2 || at(text, i + hour) != ':') return 0;
  if (hour == 2 && two(text, i) > 24) return 0;
  i += hour;
  for (int part = 0; part < 2; ++part, i += 3) {
    if (at(text, i) != ':' || digits(text, i + 1, 3) != 2 || two(text, i + 1) > 60) return 0;
  }
  if ((at(text, i) == '.' || at(text, i) == ',') && digits(text, i + 1) > 0) {
    i += 1 + digits(text, i + 1);
  }
  const std::string_view rest = text.substr(i);
  if (rest.starts_with(" AM") || rest.starts_with(" PM")) i += 3;
  if (at(text, i) == 'Z' && ends_word(text, i + 1)) return i + 1 - from;
  const std::size_t sign = at(text, i) == ' ' ? i + 1 : i;
  if (at(text, sign) == '+' || at(text, sign) == '-') {
    const std::size_t zone = digits(text, sign + 1, 5);
    if (zone == 4 && ends_word(text, sign + 5)) return sign + 5 - from;
    if (zone == 2 && at(text, sign + 3) == ':' && digits(text, sign + 4, 3) == 2) {
      return sign + 6 - from;
    }
  }
  for (const std::string_view zone : {" UTC", " GMT"}) {
    if (text.substr(i).starts_with(zone) && ends_word(text, i + 4)) return i + 4 - from;
  }
  return ends_word(text, i) ? i - from : 0;
}

// A time of day behind a date, with its separator.
std::size_t time_after_date(std::string_view text, std::size_t i) {
  const char separator = at(text, i);
  if (separator != 'T' && separator != ' ' && separator != ':' && separator != '_') return 0;
  const std::size_t time = clock_time(text, i + 1);
  return time == 0 ? 0 : time + 1;
}

// 2024-01-31, 2024/01/31, 2024.01.31, 31.01.2024, 01/31/2024.
std::size_t numeric_date(std::string_view text) {
  const std::size_t head = digits(text, 0, 5);
  const char separator = at(text, head);
  if (separator != '-' && separator != '/' && separator != '.') return 0;
  const std::size_t middle = digits(text, head + 1, 3);
  if (middle == 0 || middle > 2 || at(text, head + 1 + middle) != separator) return 0;
  const std::size_t tail = digits(text, head + middle + 2, 5);
  const std::size_t size = head + middle + tail + 2;
  const bool year_first =
      head == 4 && middle == 2 && tail == 2 && (text.starts_with("19") || text.starts_with("20"));
  const bool year_last = head == 2 && middle == 2 && tail == 4 && separator != '-' &&
                         (text.substr(6).starts_with("19") || text.substr(6).starts_with("20"));
  if (!year_first && !year_last) return 0;
  if (year_first && (two(text, 5) > 12 || two(text, 8) > 31)) return 0;
  if (year_last && (two(text, 0) > 31 || two(text, 3) > 31)) return 0;
  if (const std::size_t time = time_after_date(text, size)) return size + time;
  return ends_word(text, size) ? size : 0;
}

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"Mon", "Tue", "Wed", "Thu",
                                                       "Fri", "Sat", "Sun"};

template <std::size_t N>
bool begins_with_one(std::string_view text, const std::array<std::string_view, N>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return text.starts_with(name); });
}

// 31/Jan/2024, 31-Jan-2024, 31 Jan 2024.
std::size_t day_month_year(std::string_view text) {
  const std::size_t day = digits(text, 0, 3);
  if (day == 0 || day > 2) return 0;
  const char separator = at(text, day);
  if (separator != '/' && separator != '-' && separator != ' ') return 0;
  if (!begins_with_one(text.substr(day + 1), kMonths) || at(text, day + 4) != separator) return 0;
  const std::size_t year = digits(text, day + 5, 5);
  if (year != 4 && year != 2) return 0;
  const std::size_t size = day + 5 + year;
  if (const std::size_t time = time_after_date(text, size)) return size + time;
  return ends_word(text, size) ? size : 0;
}

// Jan  2 15:04:05 2024 and Mon, 02 Jan 2024 15:04:05 GMT and Mon Jan  2 15:04:05 UTC 2024.
std::size_t named_date(std::string_view text) {
  std::size_t i = 0;
  if (begins_with_one(text, kWeekdays)) {
    i = at(text, 3) == ',' ? 4 : 3;
    if (at(text, i) != ' ') return 0;
    ++i;
    if (const std::size_t rest = day_month_year(text.substr(i))) return i + rest;
  }
  if (!begins_with_one(text.substr(std::min(i, text.size())), kMonths) || at(text, i + 3) != ' ') {
    return 0;
  }
  i += at(text, i + 4) == ' ' ? 5 : 4;
  const std::size_t day = digits(text, i, 3);
  if (day == 0 || day > 2 || at(text, i + day) != ' ') return 0;
  i += day + 1;
  const std::size_t time = clock_time(text, i);
  if (time == 0) return 0;
  i += time;
  if (at(text, i) == ' ' && digits(text, i + 1, 5) == 4 && ends_word(text, i + 5)) i += 5;
  return i;
}

// 20240131T101112Z.
std::size_t compact_time(std::string_view text) {
  if (digits(text, 0, 9) != 8 || at(text, 8) != 'T' || digits(text, 9, 7) != 6) return 0;
  const std::size_t size = at(text, 15) == 'Z' ? 16 : 15;
  return ends_word(text, size) ? size : 0;
}

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
constexpr std::array<Unit, 27> kDurations = {
    {{"milliseconds", true}, {"millisecond", true}, {"microseconds", true},
     {"nanoseconds", true},  {"seconds", true},     {"second", true},
     {"secs", true},         {"sec", true},         {"minutes", true},
     {"minute", true},       {"mins", true},        {"min", true},
     {"hours", true},        {"hour", true},        {"days", true},
     {"day", true},          {"hrs", true},         {"hr", true},
     {"ms", true},           {"us", true},          {"ns", true},
     {"µs", true},           {"μs", true},          {"s", true},
     {"m", false},           {"h", false},          {"d", false}}};
constexpr std::array<Unit, 19> kSizes = {{{"kilobytes", true},
                                          {"megabytes", true},
                                          {"gigabytes", true},
                                          {"bytes", true},
                                          {"byte", true},
                                          {"KiB", true},
                                          {"MiB", true},
                                          {"GiB", true},
                                          {"TiB", true},
                                          {"KB", true},
                                          {"kB", true},
                                          {"MB", true},
                                          {"GB", true},
                                          {"TB", true},
                                          {"B", false},
                                          {"K", false},
                                          {"k", false},
                                          {"M", false},
                                          {"G", false}}};

template <std::size_t N>
std::size_t unit(std::string_view text, std::size_t i, const std::array<Unit, N>& units) {
  const std::size_t space = at(text, i) == ' ' ? 1 : 0;
  for (const Unit& candidate : units) {
    if (space != 0 && !candidate.spaced) continue;
    if (!text.substr(std::min(i + space, text.size())).starts_with(candidate.name)) continue;
    const std::size_t size = space + candidate.name.size();
    const char next = at(text, i + size);
    if (!is_word(next) || (is_digit(next) && space == 0)) return size;
  }
  return 0;
}

// 1h30m, 1m 2.5s: more numbers with units of time behind the first.
std::size_t more_duration(std::string_view text, std::size_t i) {
  const std::size_t begin = i;
  for (int part = 0; part < 4; ++part) {
    const std::size_t start = at(text, i) == ' ' ? i + 1 : i;
    std::size_t next = start + digits(text, start);
    if (next == start) break;
    if (at(text, next) == '.' && digits(text, next + 1) > 0) next += 1 + digits(text, next + 1);
    const std::size_t size = unit(text, next, kDurations);
    if (size == 0) break;
    i = next + size;
  }
  return i - begin;
}

Found quantity(std::string_view text, std::size_t size) {
  if (at(text, size) == '%') return {size + 1, "<percent>"};
  if (const std::size_t found = unit(text, size, kDurations)) {
    const std::size_t end = size + found + more_duration(text, size + found);
    if (ends_word(text, end)) return {end, "<duration>"};
  }
  if (const std::size_t found = unit(text, size, kSizes)) {
    if (ends_word(text, size + found)) return {size + found, "<size>"};
  }
  return {};
}

// -rc1, .dev3, b2, +build.5: what may follow the numbers of a version.
std::size_t version_suffix(std::string_view text, std::size_t from) {
  constexpr std::array<std::string_view, 9> kStages = {"alpha", "beta", "post", "dev",     "pre",
                                                       "rc",    "a",    "b",    "SNAPSHOT"};
  std::size_t i = from;
  const std::size_t word = at(text, i) == '-' || at(text, i) == '.' ? i + 1 : i;
  for (const std::string_view stage : kStages) {
    if (!text.substr(std::min(word, text.size())).starts_with(stage)) continue;
    std::size_t end = word + stage.size();
    if (at(text, end) == '.' && is_digit(at(text, end + 1))) ++end;
    end += digits(text, end);
    if (ends_word(text, end)) {
      i = end;
      break;
    }
  }
  if (at(text, i) == '+' && is_word(at(text, i + 1))) {
    std::size_t end = i + 1;
    while (is_word(at(text, end)) || (at(text, end) == '.' && is_word(at(text, end + 1)))) ++end;
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

// Without the last of its dotted parts, which is glued to a word: 1.2.0x1f is 1.2 and 0x1f.
Found shorter(std::string_view text, std::size_t size, std::size_t parts) {
  if (parts < 2) return {};
  return number(text.substr(0, text.rfind('.', size - 1)));
}

}  // namespace

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

Found timestamp(std::string_view text) {
  if (!is_digit(at(text, 0))) {
    const std::size_t size = named_date(text);
    return {size, "<time>"};
  }
  for (const auto rule : {numeric_date, day_month_year, compact_time}) {
    if (const std::size_t size = rule(text)) return {size, "<time>"};
  }
  return {clock_time(text, 0), "<time>"};
}

Found number(std::string_view text) {
  std::size_t parts = 0;
  const std::size_t v = at(text, 0) == 'v' || at(text, 0) == 'V' ? 1 : 0;
  if (!is_digit(at(text, v))) return {};
  const std::size_t size = v + dotted(text, v, parts);
  if (v == 0 && parts == 4 && is_octets(text, size) && ends_word(text, size)) {
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
  if (size > 4 || (at(text, size) != ':')) return {};
  // Groups of up to four hex digits between colons: a MAC or an IPv6 address.
  std::size_t i = 0, groups = 0, pairs = 0;
  bool gap = false, has_digit = false;
  for (; groups < 9; ++groups) {
    std::size_t length = 0;
    for (; length < 5 && is_hex(at(text, i + length)); ++length) {
      has_digit = has_digit || is_digit(text[i + length]);
    }
    if (length > 4) return {};
    pairs += length == 2;
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
  // '<' stands for a number that would have been read as a group.
  if (!ends_word(text, i) || at(text, i) == ':' || at(text, i) == '<') return {};
  if (groups == 6 && pairs == 6 && !gap) return {i, "<mac>"};
  const bool ipv6 = has_digit && ((groups == 8 && !gap) ||
                                  (gap && groups >= 2 && groups < 8 && (size >= 3 || groups >= 3)));
  return {ipv6 ? i : 0, "<ip>"};
}

}  // namespace loki::normalizing
