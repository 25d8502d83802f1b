// Durations: the one parser of the project, and the one unit, std::chrono::nanoseconds.
#pragma once

#include <chrono>
#include <string_view>

namespace loki {

using Nanoseconds = std::chrono::nanoseconds;

// Reads "90s", "5m", "1h30m", "24h", "2d", "250ms": one or more whole or decimal numbers, each with
// a unit of d, h, m, s, ms, in falling order. Throws InvalidArgument for anything else: a bare
// number has no unit and is an error, as is a sum beyond 64-bit nanoseconds (about 292 years).
Nanoseconds parse_duration(std::string_view text);

}  // namespace loki
