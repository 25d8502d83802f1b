// Times of day as text: ISO 8601, as loki's files have them and as other programs write them.
//
// Under test: tests/cpp/base/iso_time_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "loki/base/time.hpp"

namespace loki {

// Nanoseconds since 1970 in UTC; none where the text is no time. Reads "2026-04-04T10:15:30Z" with
// any fraction of a second (digits beyond nanoseconds do not count), an offset ("+02:00", "+0200",
// "+02") or none, which means UTC; "T" may be a space, and letters may be small. A time beyond what
// 64 bits hold (1677 to 2262) is the first or last that they do: years like 1 and 9999 are how some
// programs write "never".
std::optional<Nanoseconds> parse_iso_time(std::string_view text);

// The same to the millisecond, rounded down, so that the past stays in the past:
// "2026-04-04T10:15:30.000Z".
std::string format_iso_time(Nanoseconds since_1970);

}  // namespace loki
