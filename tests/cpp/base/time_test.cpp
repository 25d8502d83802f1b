#include "loki/base/time.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "loki/base/error.hpp"

namespace loki {
namespace {

using namespace std::chrono_literals;

TEST(Duration, ReadsTheFormsOfTheDocuments) {
  EXPECT_EQ(parse_duration("90s"), 90s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("24h"), 24h);
  EXPECT_EQ(parse_duration("2d"), 48h);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("0s"), 0s);
}

TEST(Duration, RefusesEverythingElse) {
  for (const char* text : {"", "5", "s", "5x", "-5s", "5s5m", "5s5s", "1..5s", ".5s", "5.s", " 5s",
                           "5 s", "1e3s", "nan", "99999999999d"}) {
    EXPECT_THROW(parse_duration(text), InvalidArgument) << text;
  }
}

TEST(Moments, SumsAndSpansSaturate) {
  constexpr Nanoseconds kFirst = Nanoseconds::min(), kLast = Nanoseconds::max();
  EXPECT_EQ(later(5s, 3s), 8s);
  EXPECT_EQ(later(-5s, 3s), -2s);
  EXPECT_EQ(later(5s, kLast), kLast);
  EXPECT_EQ(later(kFirst, kLast), Nanoseconds(-1));
  EXPECT_EQ(elapsed(5s, 8s), 3s);
  EXPECT_EQ(elapsed(8s, 5s), 0s);
  EXPECT_EQ(elapsed(kFirst, kLast), kLast);
  EXPECT_EQ(elapsed(kLast, kFirst), 0s);
}

TEST(Duration, SaysWhatToWriteInsteadOfABareNumber) {
  try {
    parse_duration("90");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "'90' has no unit: expected 90s for seconds, 90m for minutes, or 90h for hours");
  }
}

TEST(Duration, FractionsAreExactToTheNanosecond) {
  EXPECT_EQ(parse_duration("0.1s").count(), 100'000'000);
  EXPECT_EQ(parse_duration("0.000001ms").count(), 1);
  EXPECT_EQ(parse_duration("0.0000005ms").count(), 1) << "to the nearest";
  EXPECT_EQ(parse_duration("0.0000004ms").count(), 0);
  EXPECT_EQ(parse_duration("1.1d").count(), 95'040'000'000'000);
  EXPECT_EQ(parse_duration("0." + std::string(1000, '9') + "s"), 1s) << "any number of digits";
  EXPECT_EQ(parse_duration("9223372036.854775806s").count(), 9'223'372'036'854'775'806);
  EXPECT_THROW(parse_duration("9223372036.854775807s"), InvalidArgument);
  EXPECT_THROW(parse_duration(std::string(1000, '9') + "s"), InvalidArgument);
  EXPECT_THROW(parse_duration("106751d23h47m16.9s"), InvalidArgument) << "the sum, too";
}

TEST(Duration, WhatIsFormattedIsReadAgain) {
  EXPECT_EQ(format_duration(0s), "0s");
  EXPECT_EQ(format_duration(90min), "1h30m");
  EXPECT_EQ(format_duration(48h), "2d");
  EXPECT_EQ(format_duration(250ms), "250ms");
  EXPECT_EQ(format_duration(1500ms), "1.5s");
  EXPECT_EQ(format_duration(1ns), "0.000001ms");
  EXPECT_EQ(format_duration(24h + 1ns), "1d0.000000001s");
  for (std::uint64_t n = 1; n < (1ULL << 62); n = n * 3 + 1) {
    const Nanoseconds duration(static_cast<std::int64_t>(n));
    EXPECT_EQ(parse_duration(format_duration(duration)), duration);
  }
}

TEST(Number, IsTakenFromTheFront) {
  std::string_view text = "1.5 rest";
  EXPECT_EQ(take_number(text, 1s), 1500ms);
  EXPECT_EQ(text, " rest");
  for (const char* none : {"", "x", ".5", "1.", "1.x", "-1", "+1"}) {
    text = none;
    EXPECT_EQ(take_number(text, 1s), std::nullopt) << none;
    EXPECT_EQ(text, none);
  }
  text = "99999999999999999999999999999999999999999999";
  EXPECT_EQ(take_number(text, 1s), Nanoseconds::max());
}

}  // namespace
}  // namespace loki
