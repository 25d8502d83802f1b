#include "loki/decision/retry_after.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace loki {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

// 30 s before the date of RFC 9110's examples, 1994-11-06 08:49:37 GMT.
constexpr microseconds kNow = 784111747s;

TEST(RetryAfter, ReadsSeconds) {
  EXPECT_EQ(parse_retry_after("120", kNow), 120s);
  EXPECT_EQ(parse_retry_after("0", kNow), 0s);
  EXPECT_EQ(parse_retry_after(" \t1.5 ", kNow), 1500ms);
  EXPECT_EQ(parse_retry_after("-5", kNow), 0s);
  EXPECT_EQ(parse_retry_after(std::string(500, '9'), kNow), Nanoseconds::max());
}

TEST(RetryAfter, ReadsMilliseconds) {
  EXPECT_EQ(parse_retry_after_ms("1500"), 1500ms);
  EXPECT_EQ(parse_retry_after_ms("0.5"), 500us);
  EXPECT_EQ(parse_retry_after_ms("-1"), 0s);
  EXPECT_EQ(parse_retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT"), std::nullopt);
}

TEST(RetryAfter, ReadsDatesInTheThreeFormsOfTheRfc) {
  for (const char* date : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                           "Sun Nov  6 08:49:37 1994"}) {
    EXPECT_EQ(parse_retry_after(date, kNow), 30s) << date;
    EXPECT_EQ(parse_retry_after(date, kNow - 250ms), 30250ms) << date;
    EXPECT_EQ(parse_retry_after(date, kNow + 30s), 0s) << date;
    EXPECT_EQ(parse_retry_after(date, kNow + 31s), 0s) << date;
  }
  EXPECT_EQ(parse_retry_after("Wed Nov 16 08:49:37 1994", kNow), 10 * 24h + 30s);
}

TEST(RetryAfter, ADateIsReadAtAnyTimeOfAnyClock) {
  const std::string last = "Fri, 31 Dec 9999 23:59:60 GMT";
  EXPECT_EQ(parse_retry_after(last, kNow), Nanoseconds::max());
  for (const microseconds now : {microseconds::min(), microseconds(-1), microseconds::max()})
    EXPECT_TRUE(parse_retry_after(last, now).has_value());
  EXPECT_EQ(parse_retry_after("Sat, 01 Jan 0000 00:00:00 GMT", kNow), 0s);
}

TEST(RetryAfter, AYearOfTwoDigitsIsNotMoreThanFiftyYearsAhead) {
  EXPECT_GT(parse_retry_after("Sunday, 06-Nov-44 08:49:37 GMT", kNow), 49 * 365 * 24h);
  EXPECT_EQ(parse_retry_after("Sunday, 06-Nov-45 08:49:37 GMT", kNow), 0s) << "1945";
  const microseconds in_2099 = 4102444799s;
  EXPECT_GT(parse_retry_after("Saturday, 01-Jan-00 00:00:00 GMT", in_2099), 0s) << "2100";
}

TEST(RetryAfter, RefusesEverythingElse) {
  for (const char* value : {"",
                            " ",
                            "soon",
                            "1e3",
                            "+5",
                            "0x10",
                            "1,5",
                            "1 2",
                            "5s",
                            ".5",
                            "5.",
                            "--5",
                            "-",
                            "nan",
                            "inf",
                            "٣",
                            "Sun, 06 Nov 1994 08:49:37",
                            "Sun, 06 Nov 1994 08:49:37 UTC",
                            "Sun, 06 Nov 1994 08:49:37 GMT GMT",
                            "Sun, 31 Feb 1994 08:49:37 GMT",
                            "Sun, 06 Nov 1994 24:00:00 GMT",
                            "Sun, 06 Nov 1994 08:60:00 GMT",
                            "Sun, 06 Nov 1994 08:49:61 GMT",
                            "Sun, 00 Nov 1994 08:49:37 GMT",
                            "sun, 06 nov 1994 08:49:37 gmt",
                            "Sun, 6 Nov 1994 08:49:37 GMT",
                            "Sunday, 06 Nov 1994 08:49:37 GMT",
                            "Sun Nov 6 08:49:37 1994",
                            ", 06 Nov 1994 08:49:37 GMT",
                            "06 Nov 1994 08:49:37 GMT",
                            "1994-11-06T08:49:37Z"}) {
    EXPECT_EQ(parse_retry_after(value, kNow), std::nullopt) << value;
  }
  EXPECT_EQ(parse_retry_after(std::string("5\0", 2), kNow), std::nullopt);
}

}  // namespace
}  // namespace loki
