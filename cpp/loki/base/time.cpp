#include "loki/base/time.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "loki/base/error.hpp"

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

[[noreturn]] void refuse(std::string_view text) {
  throw InvalidArgument("'" + std::string(text) +
                        "' is no duration: expected numbers with units, like 90s, 5m, 1h30m, 2d or "
                        "250ms");
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

Nanoseconds parse_duration(std::string_view text) {
  std::size_t at = 0;
  std::int64_t last_unit = std::numeric_limits<std::int64_t>::max();
  long double total = 0;
  while (at < text.size()) {
    const std::size_t start = at;
    long double number = 0, scale = 1;
    bool fraction = false;
    for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !fraction)); ++at) {
      if (text[at] == '.') {
        fraction = true;
      } else {
        number = number * 10 + (text[at] - '0');
        if (fraction) scale *= 10;
      }
    }
    if (at == start || text[at - 1] == '.' || text[start] == '.') refuse(text);
    const Unit* unit = nullptr;
    for (const Unit& candidate : kUnits) {
      if (text.substr(at).starts_with(candidate.name)) {
        unit = &candidate;
        break;
      }
    }
    if (unit == nullptr || unit->nanoseconds >= last_unit) refuse(text);
    at += unit->name.size();
    last_unit = unit->nanoseconds;
    total += number / scale * static_cast<long double>(unit->nanoseconds);
    if (total >= static_cast<long double>(std::numeric_limits<std::int64_t>::max())) refuse(text);
  }
  if (text.empty()) refuse(text);
  return Nanoseconds(static_cast<std::int64_t>(total + 0.5L));
}

}  // namespace loki
