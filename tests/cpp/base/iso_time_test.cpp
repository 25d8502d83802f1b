#include "loki/base/iso_time.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace loki {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// 2026-04-04T10:15:30Z, from `date -u -d … +%s`.
constexpr Nanoseconds kMoment = seconds(1775297730);

TEST(IsoTime, ReadsWhatProgramsWrite) {
  for (const char* text :
       {"2026-04-04T10:15:30Z", "2026-04-04T10:15:30z", "2026-04-04t10:15:30",
        "2026-04-04 10:15:30", "2026-04-04T10:15:30.000Z", "2026-04-04T10:15:30+00:00",
        "2026-04-04T12:15:30+02:00", "2026-04-04T06:45:30-0330", "2026-04-04T12:15:30+02",
        "2026-04-04T10:15:30,0"}) {
    EXPECT_EQ(parse_iso_time(text), kMoment) << text;
  }
  EXPECT_EQ(parse_iso_time("2026-04-04T10:15Z"), kMoment - seconds(30));
  EXPECT_EQ(parse_iso_time("2026-04-04T10:15:30.25Z"), kMoment + milliseconds(250));
  EXPECT_EQ(parse_iso_time("2026-04-04T10:15:30.123456789999Z"),
            kMoment + Nanoseconds(123'456'789));
  EXPECT_EQ(parse_iso_time("2024-02-29T00:00:00Z"), seconds(1709164800));
  EXPECT_EQ(parse_iso_time("1969-12-31T23:59:59.5Z"), milliseconds(-500));
  EXPECT_EQ(parse_iso_time("2016-12-31T23:59:60Z"), parse_iso_time("2017-01-01T00:00:00Z"));
}

TEST(IsoTime, RefusesWhatIsNone) {
  for (const char* text :
       {"", "now", "2026-04-04", "2026-04-04T", "2026-4-4T10:15:30Z", "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z", "2026-04-04T24:00:00Z", "2026-04-04T10:60:00Z",
        "2026-04-04T10:15:30.Z", "2026-04-04T10:15:30Zulu", "2026-04-04T10:15:30+2:00",
        "2026-04-04T10:15:30+", "1775297730", " 2026-04-04T10:15:30Z", "+026-04-04T10:15:30Z"}) {
    EXPECT_EQ(parse_iso_time(text), std::nullopt) << text;
  }
}

TEST(IsoTime, YearsThatMeanNeverAreTheEndsOfTime) {
  EXPECT_EQ(parse_iso_time("9999-12-31T23:59:59Z"), Nanoseconds::max());
  EXPECT_EQ(parse_iso_time("0001-01-01T00:00:00Z"), Nanoseconds::min());
}

TEST(IsoTime, WritesMillisecondsRoundedDown) {
  EXPECT_EQ(format_iso_time(kMoment), "2026-04-04T10:15:30.000Z");
  EXPECT_EQ(format_iso_time(kMoment + Nanoseconds(1'999'999)), "2026-04-04T10:15:30.001Z");
  EXPECT_EQ(format_iso_time(Nanoseconds(-1)), "1969-12-31T23:59:59.999Z");
}

TEST(IsoTime, ReadsBackWhatItWrites) {
  for (Nanoseconds moment = -hours(24 * 365 * 200); moment < hours(24 * 365 * 200);
       moment += hours(7919) + minutes(7) + milliseconds(7)) {
    EXPECT_EQ(parse_iso_time(format_iso_time(moment)), moment);
  }
  EXPECT_TRUE(parse_iso_time(format_iso_time(Nanoseconds::max())));
  EXPECT_TRUE(parse_iso_time(format_iso_time(Nanoseconds::min())));
}

}  // namespace
}  // namespace loki
