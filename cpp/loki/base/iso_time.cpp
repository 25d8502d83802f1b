#include "loki/base/iso_time.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace loki {
namespace {

namespace chrono = std::chrono;

// Takes a text apart from the left; once something does not fit, it stays unfit.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool is_fit() const { return is_fit_; }
  bool is_at_end() const { return rest_.empty(); }

  bool accept(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(std::string_view any_of) { is_fit_ = accept(any_of) && is_fit_; }

  // A number of exactly so many digits.
  int number(std::size_t digits) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (!is_digit()) {
        is_fit_ = false;
        return 0;
      }
      value = value * 10 + next_digit();
    }
    return value;
  }

  // The digits of a fraction of a second, as nanoseconds.
  Nanoseconds fraction() {
    is_fit_ = is_fit_ && is_digit();
    std::int64_t value = 0;
    for (std::int64_t unit = 100'000'000; is_digit(); unit /= 10) value += next_digit() * unit;
    return Nanoseconds(value);
  }

  // "Z", "+02:00", "-0330", "+02" or nothing.
  chrono::minutes offset() {
    if (is_at_end() || accept("Zz")) return chrono::minutes(0);
    const bool is_west = accept("-");
    if (!is_west) expect("+");
    const int hours = number(2);
    if (is_at_end()) return chrono::minutes((is_west ? -60 : 60) * hours);
    accept(":");
    const int minutes = hours * 60 + number(2);
    return chrono::minutes(is_west ? -minutes : minutes);
  }

 private:
  bool is_digit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }
  int next_digit() {
    const int digit = rest_.front() - '0';
    rest_.remove_prefix(1);
    return digit;
  }

  std::string_view rest_;
  bool is_fit_ = true;
};

Nanoseconds saturated(chrono::seconds seconds, Nanoseconds fraction) {
  const auto most = chrono::duration_cast<chrono::seconds>(Nanoseconds::max());
  if (seconds >= most) return Nanoseconds::max();
  if (seconds <= -most) return Nanoseconds::min();
  return Nanoseconds(seconds) + fraction;
}

}  // namespace

std::optional<Nanoseconds> parse_iso_time(std::string_view text) {
  Reader reader(text);
  const chrono::year year(reader.number(4));
  reader.expect("-");
  const chrono::month month(static_cast<unsigned>(reader.number(2)));
  reader.expect("-");
  const chrono::day day(static_cast<unsigned>(reader.number(2)));
  reader.expect("Tt ");
  const int hour = reader.number(2);
  reader.expect(":");
  const int minute = reader.number(2);
  int second = 0;
  Nanoseconds fraction(0);
  if (reader.accept(":")) {
    second = reader.number(2);
    if (reader.accept(".,")) fraction = reader.fraction();
  }
  const chrono::minutes offset = reader.offset();
  const chrono::year_month_day date(year, month, day);
  // 60 is a leap second, which counts as the first second after it.
  const bool is_time = hour <= 23 && minute <= 59 && second <= 60 && date.ok();
  if (!reader.is_fit() || !reader.is_at_end() || !is_time) return std::nullopt;
  const chrono::seconds since_1970 = chrono::sys_days(date).time_since_epoch() +
                                     chrono::hours(hour) + chrono::minutes(minute) +
                                     chrono::seconds(second) - offset;
  return saturated(since_1970, fraction);
}

std::string format_iso_time(Nanoseconds since_1970) {
  const auto moment = chrono::floor<chrono::milliseconds>(since_1970);
  const auto days = chrono::floor<chrono::days>(moment);
  const chrono::year_month_day date{chrono::sys_days(days)};
  const chrono::hh_mm_ss<chrono::milliseconds> time(moment - days);
  std::array<char, 64> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
      static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
      static_cast<int>(time.subseconds().count()));
  return {text.data(), static_cast<std::size_t>(std::max(size, 0))};
}

}  // namespace loki
