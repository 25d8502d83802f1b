// The rules of normalize for dates and times of day. Each looks at most a few dozen bytes ahead,
// apart from the digits of a fraction, which it takes whole.
#include <algorithm>
#include <array>

#include "loki/recognition/normalize.hpp"

namespace loki::normalizing {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kWeekdays = {
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
constexpr std::array<std::string_view, 24> kZones = {
    "UTC", "GMT", "CEST", "CET", "BST", "EEST", "EET", "WEST", "WET", "MSK",  "IST",  "JST",
    "KST", "PST", "PDT",  "MST", "MDT", "CST",  "CDT", "EST",  "EDT", "AEST", "AEDT", "NZST"};

std::string_view from(std::string_view text, std::size_t i) {
  return text.substr(std::min(i, text.size()));
}

// The number in two digits; more than any limit where there are none.
int two(std::string_view text, std::size_t i) {
  return digits(text, i, 2) == 2 ? (text[i] - '0') * 10 + (text[i + 1] - '0') : 100;
}

// A name in full or by its first three letters. 0: none of them.
template <std::size_t N>
std::size_t name(std::string_view text, const std::array<std::string_view, N>& names) {
  for (const std::string_view full : names) {
    if (at(text, 0) != full[0] || !text.starts_with(full.substr(0, 3))) continue;
    const std::size_t size = text.starts_with(full) ? full.size() : 3;
    return ends_word(text, size) ? size : 0;
  }
  return 0;
}

// Z, +0200, +02:00, a space and UTC, -0700 MST. 0: none of them.
std::size_t zone(std::string_view text, std::size_t begin) {
  std::size_t i = begin;
  if (at(text, i) == 'Z' && ends_word(text, i + 1)) return 1;
  const std::size_t sign = at(text, i) == ' ' ? i + 1 : i;
  if (at(text, sign) == '+' || at(text, sign) == '-') {
    const std::size_t size = digits(text, sign + 1, 5);
    if (size == 4 && ends_word(text, sign + 5)) i = sign + 5;
    if (size == 2 && at(text, sign + 3) == ':' && digits(text, sign + 4, 3) == 2) i = sign + 6;
  }
  if (at(text, i) != ' ') return i - begin;
  for (const std::string_view known : kZones) {
    if (from(text, i + 1).starts_with(known) && ends_word(text, i + 1 + known.size())) {
      return i + 1 + known.size() - begin;
    }
  }
  return i - begin;
}

// PM, with a space before it or not. 0: none.
std::size_t half_of_day(std::string_view text, std::size_t i) {
  const std::size_t size = at(text, i) == ' ' ? 3 : 2;
  const char half = at(text, i + size - 2), m = at(text, i + size - 1);
  const bool is_half =
      ((half == 'A' || half == 'P') && m == 'M') || ((half == 'a' || half == 'p') && m == 'm');
  return is_half && ends_word(text, i + size) ? size : 0;
}

// hh:mm:ss with a fraction, AM/PM and a zone where they follow. 0 where it is no time of day: the
// ratio 31:21 and the position 12:70 are none. hh:mm alone is one behind a date, or with AM/PM.
std::size_t clock_time(std::string_view text, std::size_t begin, bool is_dated) {
  const std::size_t hour = digits(text, begin, 3);
  if (hour == 0 || hour > 2 || (hour == 2 && two(text, begin) > 24)) return 0;
  std::size_t i = begin + hour;
  const char separator = at(text, i);
  const bool in_name = is_dated && hour == 2 && (separator == '-' || separator == '_');
  if (separator != ':' && !in_name) return 0;
  int parts = 0;
  for (; parts < 2 && at(text, i) == separator; ++parts, i += 3) {
    if (digits(text, i + 1, 3) != 2 || two(text, i + 1) > 60) return 0;
  }
  if (parts == 2 && (at(text, i) == '.' || at(text, i) == ',') && digits(text, i + 1) > 0) {
    i += 1 + digits(text, i + 1);
  }
  if (in_name && at(text, i) == separator && digits(text, i + 1, 4) == 3) i += 4;
  const std::size_t half = half_of_day(text, i);
  if (parts < 2 && (in_name || !(is_dated || half > 0))) return 0;
  i += half;
  i += zone(text, i);
  return ends_word(text, i) ? i - begin : 0;
}

// A time of day behind a date, with its separator.
std::size_t time_after_date(std::string_view text, std::size_t i) {
  const char separator = at(text, i);
  if (separator == ',' && at(text, i + 1) == ' ') {
    const std::size_t time = clock_time(text, i + 2, true);
    return time == 0 ? 0 : time + 2;
  }
  if (separator != 'T' && separator != ' ' && separator != ':' && separator != '_') return 0;
  const std::size_t time = clock_time(text, i + 1, true);
  return time == 0 ? 0 : time + 1;
}

bool is_century(std::string_view text, std::size_t i) {
  return from(text, i).starts_with("19") || from(text, i).starts_with("20");
}

// 2024-01-31, 2024/01/31, 2024.01.31, 31.01.2024, 01/31/2024, 1/31/2024, 24/01/31 with a time.
std::size_t numeric_date(std::string_view text) {
  const std::size_t head = digits(text, 0, 5);
  const char separator = at(text, head);
  if (separator != '-' && separator != '/' && separator != '.') return 0;
  const std::size_t middle = digits(text, head + 1, 3);
  if (middle == 0 || middle > 2 || at(text, head + 1 + middle) != separator) return 0;
  const std::size_t last = head + middle + 2;
  const std::size_t tail = digits(text, last, 5);
  const bool is_padded = head == 2 && middle == 2;
  const bool year_first = middle == 2 && tail == 2 && two(text, head + 1) <= 12 &&
                          two(text, last) <= 31 && head == 4 && is_century(text, 0);
  const bool year_last = head <= 2 && tail == 4 && is_century(text, last) &&
                         (separator == '/' || (separator == '.' && is_padded)) &&
                         (head == 1 || two(text, 0) <= 31) &&
                         (middle == 1 || two(text, head + 1) <= 31);
  const bool short_year = is_padded && tail == 2 && separator == '/' && two(text, 3) <= 31 &&
                          (two(text, 0) <= 31 || two(text, last) <= 31);
  if (!year_first && !year_last && !short_year) return 0;
  if (const std::size_t time = time_after_date(text, last + tail)) return last + tail + time;
  return !short_year && ends_word(text, last + tail) ? last + tail : 0;
}

// 31/Jan/2024, 31-Jan-2024, 31 January 2024.
std::size_t day_month_year(std::string_view text) {
  const std::size_t day = digits(text, 0, 3);
  if (day == 0 || day > 2) return 0;
  const char separator = at(text, day);
  if (separator != '/' && separator != '-' && separator != ' ') return 0;
  const std::size_t month = day + 1 + name(from(text, day + 1), kMonths);
  if (month == day + 1 || at(text, month) != separator) return 0;
  const std::size_t year = digits(text, month + 1, 5);
  if (year != 4 && year != 2) return 0;
  const std::size_t size = month + 1 + year;
  if (const std::size_t time = time_after_date(text, size)) return size + time;
  return ends_word(text, size) ? size : 0;
}

// Jan  2 15:04:05 2024, Mon, 02 Jan 2024 15:04:05 GMT, Mon Jan  2 15:04:05 UTC 2024,
// January 2, 2024 3:04:05 PM.
std::size_t named_date(std::string_view text) {
  std::size_t i = 0;
  if (const std::size_t weekday = name(text, kWeekdays)) {
    i = weekday + (at(text, weekday) == ',' ? 1 : 0);
    if (at(text, i) != ' ') return 0;
    ++i;
    if (const std::size_t rest = day_month_year(from(text, i))) return i + rest;
  }
  const std::size_t month = name(from(text, i), kMonths);
  if (month == 0 || at(text, i + month) != ' ') return 0;
  i += month + (at(text, i + month + 1) == ' ' ? 2 : 1);
  const std::size_t day = digits(text, i, 3);
  if (day == 0 || day > 2) return 0;
  i += day;
  const std::size_t year = at(text, i) == ',' ? i + 2 : i + 1;
  if (at(text, year - 1) != ' ') return 0;
  if (digits(text, year, 5) == 4 && is_century(text, year)) {
    if (const std::size_t time = time_after_date(text, year + 4)) return year + 4 + time;
    return ends_word(text, year + 4) ? year + 4 : 0;
  }
  const std::size_t time = clock_time(text, i + 1, false);
  if (time == 0) return 0;
  i += 1 + time;
  if (at(text, i) == ' ' && digits(text, i + 1, 5) == 4 && ends_word(text, i + 5)) {
    i += 5;
    i += zone(text, i);
  }
  return i;
}

// 20240131T101112Z, 20240131-101112.
std::size_t compact_time(std::string_view text) {
  if (digits(text, 0, 9) != 8 || digits(text, 9, 7) != 6 || !is_century(text, 0)) return 0;
  const char separator = at(text, 8);
  if (separator != 'T' && separator != '-' && separator != '_') return 0;
  if (two(text, 4) > 12 || two(text, 6) > 31 || two(text, 9) > 24 || two(text, 11) > 60) return 0;
  std::size_t i = 15;
  if (at(text, i) == '.' && digits(text, i + 1) > 0) i += 1 + digits(text, i + 1);
  i += zone(text, i);
  return ends_word(text, i) ? i : 0;
}

// PT1H30M, PT0.5S, P1DT2H.
std::size_t iso_duration(std::string_view text) {
  if (at(text, 0) != 'P') return 0;
  std::size_t i = 1 + digits(text, 1);
  if (i > 1 && at(text, i++) != 'D') return 0;
  if (at(text, i++) != 'T') return 0;
  const std::size_t begin = i;
  while (digits(text, i) > 0) {
    i += digits(text, i);
    if (at(text, i) == '.' && digits(text, i + 1) > 0) i += 1 + digits(text, i + 1);
    const char unit = at(text, i);
    if (unit != 'H' && unit != 'M' && unit != 'S') return 0;
    ++i;
  }
  return i > begin && ends_word(text, i) ? i : 0;
}

}  // namespace

Found log_time(std::string_view text) {
  if (digits(text, 0, 5) != 4 || at(text, 4) != ' ') return {};
  if (two(text, 0) > 12 || two(text, 2) > 31) return {};
  const std::size_t time = clock_time(text, 5, false);
  return {time == 0 ? 0 : 5 + time, "<time>"};
}

Found timestamp(std::string_view text) {
  if (!is_digit(at(text, 0))) {
    if (const std::size_t size = iso_duration(text)) return {size, "<duration>"};
    return {named_date(text), "<time>"};
  }
  for (const auto rule : {numeric_date, day_month_year, compact_time}) {
    if (const std::size_t size = rule(text)) return {size, "<time>"};
  }
  return {clock_time(text, 0, false), "<time>"};
}

}  // namespace loki::normalizing
