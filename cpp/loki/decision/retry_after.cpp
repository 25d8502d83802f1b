// The forms of a date are data: a line of codes each, read from left to right without going back.
// Linear in the length of the value; nothing is allocated.
#include "loki/decision/retry_after.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace loki {
namespace {

using Names = std::array<std::string_view, 12>;
constexpr Names kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
// Empty names stand for none.
constexpr Names kDays = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr Names kLongDays = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                             "Friday", "Saturday", "Sunday"};

// Codes as strftime has them, %e a day that a blank may begin. Letter case counts, and GMT is the
// only zone: RFC 9110 says so. The day of the week need not fit the date.
constexpr std::array<std::string_view, 3> kForms = {
    "%a, %d %b %Y %H:%M:%S GMT",  // IMF-fixdate
    "%A, %d-%b-%y %H:%M:%S GMT",  // RFC 850
    "%a %b %e %H:%M:%S %Y",       // asctime
};

struct Moment {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// A number of exactly so many digits; text then begins behind it.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  int number = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    number = number * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return number;
}

// Which of the names stands here, counted from 1.
std::optional<int> take_name(std::string_view& text, const Names& names) {
  for (std::size_t i = 0; i < names.size() && !names[i].empty(); ++i) {
    if (!text.starts_with(names[i])) continue;
    text.remove_prefix(names[i].size());
    return static_cast<int>(i) + 1;
  }
  return std::nullopt;
}

// The latest year with these last two digits that is not more than 50 years ahead (RFC 9110).
int full_year(int last_two, int this_year) {
  const int latest = this_year + 50;
  return latest - (latest - last_two) % 100;
}

struct Field {
  char code;
  std::size_t digits;
  int Moment::* where;
};
constexpr std::array<Field, 6> kFields = {{{'Y', 4, &Moment::year},
                                           {'d', 2, &Moment::day},
                                           {'e', 2, &Moment::day},
                                           {'H', 2, &Moment::hour},
                                           {'M', 2, &Moment::minute},
                                           {'S', 2, &Moment::second}}};

bool keep(int& where, std::optional<int> got) {
  where = got.value_or(0);
  return got.has_value();
}

bool take(std::string_view& text, char code, int this_year, Moment& moment) {
  if (code == 'a') return take_name(text, kDays).has_value();
  if (code == 'A') return take_name(text, kLongDays).has_value();
  if (code == 'b') return keep(moment.month, take_name(text, kMonths));
  if (code == 'y') {
    const auto last_two = take_digits(text, 2);
    return last_two && keep(moment.year, full_year(*last_two, this_year));
  }
  if (code == 'e' && text.starts_with(' ')) {
    text.remove_prefix(1);
    return keep(moment.day, take_digits(text, 1));
  }
  const auto field =
      std::find_if(kFields.begin(), kFields.end(), [&](const Field& f) { return f.code == code; });
  return keep(moment.*(field->where), take_digits(text, field->digits));
}

std::optional<Moment> read(std::string_view text, std::string_view form, int this_year) {
  Moment moment;
  for (; !form.empty(); form.remove_prefix(1)) {
    if (form[0] == '%') {
      form.remove_prefix(1);
      if (!take(text, form[0], this_year, moment)) return std::nullopt;
    } else {
      if (!text.starts_with(form[0])) return std::nullopt;
      text.remove_prefix(1);
    }
  }
  return text.empty() ? std::optional(moment) : std::nullopt;
}

// Seconds since 1970; a leap second counts as the one behind it.
std::optional<std::chrono::seconds> since_1970(const Moment& moment) {
  namespace chr = std::chrono;
  const chr::year_month_day date{chr::year{moment.year},
                                 chr::month{static_cast<unsigned>(moment.month)},
                                 chr::day{static_cast<unsigned>(moment.day)}};
  if (!date.ok() || moment.hour > 23 || moment.minute > 59 || moment.second > 60)
    return std::nullopt;
  return chr::sys_days{date}.time_since_epoch() + chr::hours{moment.hour} +
         chr::minutes{moment.minute} + chr::seconds{moment.second};
}

std::optional<Nanoseconds> parse_date(std::string_view text, std::chrono::microseconds now) {
  namespace chr = std::chrono;
  const chr::year_month_day today{chr::sys_days{chr::floor<chr::days>(now)}};
  const auto second = chr::floor<chr::seconds>(now);
  for (const std::string_view form : kForms) {
    const auto moment = read(text, form, static_cast<int>(today.year()));
    if (!moment) continue;
    const auto then = since_1970(*moment);
    if (!then) return std::nullopt;
    if (*then <= second) return Nanoseconds(0);
    // Dates reach to 9999, nanoseconds over 292 years.
    const chr::seconds wait = *then - second;
    if (wait > chr::floor<chr::seconds>(Nanoseconds::max())) return Nanoseconds::max();
    return Nanoseconds(wait) - (now - second);
  }
  return std::nullopt;
}

std::optional<Nanoseconds> parse_number(std::string_view text, Nanoseconds unit) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto number = take_number(text, unit);
  if (!number || !text.empty()) return std::nullopt;
  return negative ? Nanoseconds(0) : *number;
}

}  // namespace

std::optional<Nanoseconds> parse_retry_after(std::string_view value,
                                             std::chrono::microseconds now) {
  const std::string_view text = trimmed(value);
  const auto number = parse_number(text, std::chrono::seconds(1));
  return number ? number : parse_date(text, now);
}

std::optional<Nanoseconds> parse_retry_after_ms(std::string_view value) {
  return parse_number(trimmed(value), std::chrono::milliseconds(1));
}

}  // namespace loki
