#include "loki/decision/backoff.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "loki/base/error.hpp"

namespace loki {
namespace {

using namespace std::chrono_literals;

double seconds(Nanoseconds delay) {
  return std::chrono::duration<double>(delay).count();
}

Backoff make(Nanoseconds base, double multiplier, Nanoseconds cap, double jitter,
             std::uint64_t seed, JitterMode mode = JitterMode::kProportional) {
  return {base, multiplier, cap, jitter, seed, mode};
}

constexpr JitterMode kModes[] = {JitterMode::kProportional, JitterMode::kNone, JitterMode::kFull,
                                 JitterMode::kEqual, JitterMode::kDecorrelated};
constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();

TEST(Backoff, GrowsFromTheBaseWithoutJitter) {
  const Backoff backoff = make(5s, 2, 24h, 0, 0);
  EXPECT_EQ(backoff.delay(0, "", 1), 5s);
  EXPECT_EQ(backoff.delay(1, "", 1), 5s);
  EXPECT_EQ(backoff.delay(2, "", 1), 10s);
  EXPECT_EQ(backoff.delay(3, "", 1), 20s);
  EXPECT_EQ(backoff.delay(1, "", 0), 10s);
  EXPECT_EQ(backoff.delay(2, "", 7), 5s) << "failures below the offset count as none";
}

TEST(Backoff, IsCappedForAnyCount) {
  const Backoff backoff = make(5s, 2, 24h, 0.1, 0);
  for (std::uint32_t failures : {64U, 1024U, 10'000U, std::numeric_limits<std::uint32_t>::max()}) {
    const Nanoseconds delay = backoff.delay(failures, "task", 0);
    EXPECT_LE(delay, 24h);
    EXPECT_GE(delay, 86400s - 86400s / 5) << "the window is shifted inside, not clipped";
  }
}

TEST(Backoff, FailuresOfZeroGiveTheBaseExactly) {
  EXPECT_EQ(make(5s, 2, 24h, 0.1, 7).delay(0, "task", 0), 5s);
}

TEST(Backoff, JitterIsDeterministicAndDependsOnSeedKeyAndCount) {
  const Backoff backoff = make(5s, 2, 24h, 0.1, 7);
  EXPECT_EQ(backoff.delay(3, "a", 0), make(5s, 2, 24h, 0.1, 7).delay(3, "a", 0));
  EXPECT_NE(backoff.delay(3, "a", 0), backoff.delay(3, "b", 0));
  EXPECT_NE(backoff.delay(3, "a", 0), make(5s, 2, 24h, 0.1, 8).delay(3, "a", 0));
}

TEST(Backoff, StaysWithinTheBounds) {
  for (double jitter : {0.0, 0.1, 0.5, 1.0}) {
    const Backoff backoff = make(5s, 3, 5500ms, jitter, 1);
    for (std::uint32_t failures = 0; failures < 200; ++failures) {
      const Nanoseconds delay = backoff.delay(failures, "k" + std::to_string(failures), 0);
      EXPECT_GE(delay, 5s);
      EXPECT_LE(delay, 5500ms);
    }
  }
}

TEST(Backoff, AHerdStaysSpreadAtTheCap) {
  const Backoff backoff = make(1s, 2, 100s, 0.1, 0);
  double low = 1e9, high = 0;
  for (int task = 0; task < 1000; ++task) {
    const double delay = seconds(backoff.delay(50, std::to_string(task), 0));
    low = std::min(low, delay);
    high = std::max(high, delay);
  }
  EXPECT_LT(low, 81.0);
  EXPECT_GT(high, 99.0);
}

TEST(Backoff, ACapBelowTheBaseCountsAsTheBase) {
  EXPECT_EQ(make(10s, 2, 1s, 0.1, 0).delay(9, "", 0), 10s);
}

TEST(Backoff, RefusesArgumentsOutsideTheirRange) {
  const double nan = std::nan("");
  EXPECT_THROW(make(-1s, 2, 1s, 0, 0), InvalidArgument);
  EXPECT_THROW(make(1s, 0.5, 1s, 0, 0), InvalidArgument);
  EXPECT_THROW(make(1s, nan, 1s, 0, 0), InvalidArgument);
  EXPECT_THROW(make(1s, INFINITY, 1s, 0, 0), InvalidArgument);
  EXPECT_THROW(make(1s, 2, 1s, -0.1, 0), InvalidArgument);
  EXPECT_THROW(make(1s, 2, 1s, nan, 0), InvalidArgument);
}

// From the reference in tests/support/backoff.py, for machines and sanitizers without Python.
TEST(Backoff, GoldenValues) {
  const auto delay = [](JitterMode mode, std::uint32_t failures) {
    return make(5s, 2, 300s, 0.1, 0, mode).delay(failures, "api/claude", 1).count();
  };
  EXPECT_EQ(delay(JitterMode::kProportional, 1), 5187631420);
  EXPECT_EQ(delay(JitterMode::kProportional, 4), 39968181736);
  EXPECT_EQ(delay(JitterMode::kProportional, kMost), 269935229208);
  EXPECT_EQ(delay(JitterMode::kNone, 1), 5000000000);
  EXPECT_EQ(delay(JitterMode::kNone, 4), 40000000000);
  EXPECT_EQ(delay(JitterMode::kNone, kMost), 300000000000);
  EXPECT_EQ(delay(JitterMode::kFull, 1), 5938157101);
  EXPECT_EQ(delay(JitterMode::kFull, 4), 24840908679);
  EXPECT_EQ(delay(JitterMode::kFull, kMost), 152181543608);
  EXPECT_EQ(delay(JitterMode::kEqual, 1), 5469078550);
  EXPECT_EQ(delay(JitterMode::kEqual, 4), 29920454340);
  EXPECT_EQ(delay(JitterMode::kEqual, kMost), 224838073021);
  EXPECT_EQ(delay(JitterMode::kDecorrelated, 1), 6876314201);
  EXPECT_EQ(delay(JitterMode::kDecorrelated, 4), 21275524419);
  EXPECT_EQ(delay(JitterMode::kDecorrelated, kMost), 33704960514);
}

TEST(Backoff, EveryModeStaysWithinTheBoundsForAnyCount) {
  for (const JitterMode mode : kModes) {
    for (const Nanoseconds cap : {5000ms, 5001ms, 9000ms, 300000ms}) {
      const Backoff backoff = make(5s, 1.5, cap, 0.5, 3, mode);
      for (std::uint32_t failures : {0U, 1U, 2U, 3U, 50U, 1023U, 1024U, 5000U, kMost - 1, kMost}) {
        for (std::uint32_t offset : {0U, 1U, 7U, kMost}) {
          const Nanoseconds delay = backoff.delay(failures, "task", offset);
          EXPECT_GE(delay, 5s);
          EXPECT_LE(delay, cap);
        }
      }
    }
  }
}

TEST(Backoff, SaturatesAtTheEndsOfSixtyFourBits) {
  const Nanoseconds most = Nanoseconds::max();
  for (const JitterMode mode : kModes) {
    for (double multiplier : {1.0, 1.0000001, 2.0, 1e300}) {
      for (double jitter : {0.0, 0.1, 1.0}) {
        for (const Nanoseconds base : {Nanoseconds(0), Nanoseconds(1), most - 1ns, most}) {
          const Backoff backoff = make(base, multiplier, most, jitter, 0, mode);
          for (std::uint32_t failures : {1U, 63U, 64U, 1024U, 10'000U, kMost})
            EXPECT_GE(backoff.delay(failures, "", 0), base);
        }
      }
    }
  }
  EXPECT_EQ(make(1ns, 2, most, 0, 0).delay(kMost, "", 0), most);
  EXPECT_EQ(make(0s, 2, 1h, 0.5, 0).delay(kMost, "", 0), 0s) << "nothing grows out of nothing";
}

TEST(Backoff, AWaitIsTheLongerOfBothAndLeavesTimeToTry) {
  const Backoff backoff = make(5s, 2, 1min, 0, 0);
  EXPECT_EQ(backoff.wait(3, "", 0, std::nullopt, std::nullopt), 40s);
  EXPECT_EQ(backoff.wait(3, "", 0, 39s, std::nullopt), 40s);
  EXPECT_EQ(backoff.wait(3, "", 0, 10min, std::nullopt), 10min);
  EXPECT_EQ(backoff.wait(3, "", 0, 10min, 10min), std::nullopt);
  EXPECT_EQ(backoff.wait(3, "", 0, std::nullopt, 40s), std::nullopt);
  EXPECT_EQ(backoff.wait(3, "", 0, std::nullopt, 40s + 1ns), 40s);
}

TEST(Backoff, ModesHaveNames) {
  for (const JitterMode mode : kModes) EXPECT_EQ(parse_jitter_mode(jitter_mode_name(mode)), mode);
  EXPECT_THROW(parse_jitter_mode("Full"), InvalidArgument);
}

}  // namespace
}  // namespace loki
