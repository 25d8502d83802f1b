// Headers that ask to wait: whatever a service sends is a wait, or nothing.
#include "loki/decision/retry_after.hpp"

#include "promise.hpp"

using namespace loki;
using fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first bytes are the time of day, so that dates before and behind it are tried.
  std::int64_t now = 0;
  for (; size > 0 && *data >= 0x80; ++data, --size) now = (now << 7 | (*data & 0x7F)) & 0xFFFFFFFFF;
  const std::chrono::microseconds moment = std::chrono::seconds(now);
  const auto asked = parse_retry_after(fuzz::bytes(data, size), moment);
  promise(!asked || asked->count() >= 0, "no wait is negative");
  const auto in_ms = parse_retry_after_ms(fuzz::bytes(data, size));
  promise(!in_ms || in_ms->count() >= 0, "no wait is negative");
  promise(!in_ms || asked.has_value(), "a number of milliseconds is a number of seconds, too");
  // A year of two digits is one in a hundred, and which of them depends on the time.
  if (fuzz::bytes(data, size).find('-') != std::string_view::npos) return 0;
  const auto later = parse_retry_after(fuzz::bytes(data, size), moment + std::chrono::seconds(1));
  promise(later.has_value() == asked.has_value(), "what is legible does not depend on the time");
  promise(!later || *later <= *asked, "later there is not more to wait");
  return 0;
}
