// Durations: the one parser of the project, the one unit, std::chrono::nanoseconds, and sums that
// saturate.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace loki {

using Nanoseconds = std::chrono::nanoseconds;

// Reads "90s", "5m", "1h30m", "24h", "2d", "250ms": one or more whole or decimal numbers, each with
// a unit of d, h, m, s, ms, in falling order. Throws InvalidArgument for anything else: a bare
// number has no unit and is an error, as is a sum beyond 64-bit nanoseconds (about 292 years).
Nanoseconds parse_duration(std::string_view text);

// A moment and a span of 0 or more after it; what is beyond 64 bits is the last moment there is.
constexpr Nanoseconds later(Nanoseconds moment, Nanoseconds span) {
  const Nanoseconds room = Nanoseconds::max() - std::max(moment, Nanoseconds(0));
  return moment + std::min(span, room);
}

// From one moment to another; 0 where it goes back, the longest span where it is beyond 64 bits.
constexpr Nanoseconds elapsed(Nanoseconds from, Nanoseconds to) {
  if (from >= to) return Nanoseconds(0);
  const auto span =
      static_cast<std::uint64_t>(to.count()) - static_cast<std::uint64_t>(from.count());
  const auto most = static_cast<std::uint64_t>(Nanoseconds::max().count());
  return Nanoseconds(static_cast<std::int64_t>(std::min(span, most)));
}
// The shortest text of whole units that parse_duration reads as exactly this duration, 0 or more:
// "1h30m", "2d", "1.5s", "250ms", "0s".
std::string format_duration(Nanoseconds duration);

// A whole or decimal number ("12", "1.5") at the front of `text`, times `unit`, to the nearest
// nanosecond and at most Nanoseconds::max(); `text` then begins behind it. No value, and `text` as
// it was, where none stands there. Whole-number arithmetic: the same on every machine.
std::optional<Nanoseconds> take_number(std::string_view& text, Nanoseconds unit);

}  // namespace loki
