#include "loki/base/time.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace loki
