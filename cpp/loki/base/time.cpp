// Tested by tests/cpp/base/time_test.cpp.
#include "loki/base/time.hpp"

#include <array>
#include <limits>

#include "loki/base/error.hpp"
#include "loki/base/wide.hpp"

namespace loki {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};

// Longest name first where one begins like another ("ms" before "m").
constexpr std::array<Unit, 5> kUnits = {{{"ms", 1'000'000},
                                         {"s", 1'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"h", 3'600'000'000'000},
                                         {"d", 86'400'000'000'000}}};

constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr int kFractionDigits = 18;  // more cannot move the nanosecond of a day

[[noreturn]] void refuse(std::string_view text) {
  std::string_view rest = text;
  if (take_number(rest, Nanoseconds(1)) && rest.empty()) {
    const std::string number(text);
    throw InvalidArgument("'" + number + "' has no unit: expected " + number + "s for seconds, " +
                          number + "m for minutes, or " + number + "h for hours");
  }
  throw InvalidArgument("'" + std::string(text) +
                        "' is no duration: expected numbers with units, like 90s, 5m, 1h30m, 2d or "
                        "250ms");
}

bool begins_with_digit(std::string_view text) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9';
}

const Unit* unit_at(std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (text.starts_with(unit.name)) return &unit;
  }
  return nullptr;
}

// "1.5" of 15 tenths: a number of `scale` parts without the zeros at its end.
std::string decimal(std::int64_t parts, std::int64_t scale) {
  std::string text = std::to_string(parts / scale);
  const std::int64_t rest = parts % scale;
  if (rest == 0) return text;
  const std::string digits = std::to_string(scale + rest).substr(1);
  return text + "." + digits.substr(0, digits.find_last_not_of('0') + 1);
}

}  // namespace

std::optional<Nanoseconds> take_number(std::string_view& text, Nanoseconds unit) {
  std::string_view rest = text;
  if (!begins_with_digit(rest)) return std::nullopt;
  const auto scale = static_cast<std::uint64_t>(unit.count());
  uint128 whole = 0, part = 0;
  std::uint64_t parts = 1;
  for (; begins_with_digit(rest); rest.remove_prefix(1)) {
    if (whole <= kMost) whole = whole * 10 + static_cast<std::uint64_t>(rest[0] - '0');
  }
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    if (!begins_with_digit(rest)) return std::nullopt;
    for (int digit = 0; begins_with_digit(rest); rest.remove_prefix(1), ++digit) {
      if (digit >= kFractionDigits) continue;
      part = part * 10 + static_cast<std::uint64_t>(rest[0] - '0');
      parts *= 10;
    }
  }
  text = rest;
  // Below 2^63 * 10 * 2^47 and 10^18 * 2^47: far from 2^128.
  const uint128 total = whole * scale + (part * scale + parts / 2) / parts;
  return Nanoseconds(static_cast<std::int64_t>(total < kMost ? total : kMost));
}

Nanoseconds parse_duration(std::string_view text) {
  std::string_view rest = text;
  Nanoseconds total{0};
  std::int64_t last_unit = std::numeric_limits<std::int64_t>::max();
  do {
    std::string_view behind = rest;
    if (!take_number(behind, Nanoseconds(1))) refuse(text);
    const Unit* unit = unit_at(behind);
    if (unit == nullptr || unit->nanoseconds >= last_unit) refuse(text);
    last_unit = unit->nanoseconds;
    const Nanoseconds part = *take_number(rest, Nanoseconds(last_unit));
    if (part >= Nanoseconds::max() - total) refuse(text);
    total += part;
    rest.remove_prefix(unit->name.size());
  } while (!rest.empty());
  return total;
}

std::string format_duration(Nanoseconds duration) {
  std::int64_t rest = duration.count();
  if (rest > 0 && rest < kUnits[1].nanoseconds) return decimal(rest, kUnits[0].nanoseconds) + "ms";
  std::string text;
  for (std::size_t i = kUnits.size() - 1; i > 1; --i) {
    if (rest < kUnits[i].nanoseconds) continue;
    text += std::to_string(rest / kUnits[i].nanoseconds) + std::string(kUnits[i].name);
    rest %= kUnits[i].nanoseconds;
  }
  if (rest > 0 || text.empty()) text += decimal(rest, kUnits[1].nanoseconds) + "s";
  return text;
}

}  // namespace loki
