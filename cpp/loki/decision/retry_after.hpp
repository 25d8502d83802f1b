// When a service says that it may be asked again: the values of Retry-After and of its relatives in
// milliseconds. Headers are hostile input. Tested by tests/cpp/decision/retry_after_test.cpp and
// fuzz/retry_after.cpp.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "loki/base/time.hpp"

namespace loki {

// The wait that `value` asks for: a number of seconds ("120"; "1.5", which RFC 9110 does not have
// but services send), or a date in any of the three forms of RFC 9110, section 5.6.7, as seen at
// `now`, counted from 1970 in UTC. Blanks around it do not matter. 0 for a negative number or a
// time that is past; at most Nanoseconds::max(); no value for anything else.
std::optional<Nanoseconds> parse_retry_after(std::string_view value, std::chrono::microseconds now);

// The same for a header whose unit is the millisecond, such as retry-after-ms: never a date.
std::optional<Nanoseconds> parse_retry_after_ms(std::string_view value);

}  // namespace loki
