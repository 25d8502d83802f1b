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

}  // namespace
}  // namespace loki
