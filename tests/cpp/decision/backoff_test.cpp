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

TEST(Backoff, GrowsFromTheBaseWithoutJitter) {
  const Backoff backoff(5s, 2, 24h, 0, 0);
  EXPECT_EQ(backoff.delay(0, "", 1), 5s);
  EXPECT_EQ(backoff.delay(1, "", 1), 5s);
  EXPECT_EQ(backoff.delay(2, "", 1), 10s);
  EXPECT_EQ(backoff.delay(3, "", 1), 20s);
  EXPECT_EQ(backoff.delay(1, "", 0), 10s);
  EXPECT_EQ(backoff.delay(2, "", 7), 5s) << "failures below the offset count as none";
}

TEST(Backoff, IsCappedForAnyCount) {
  const Backoff backoff(5s, 2, 24h, 0.1, 0);
  for (std::uint32_t failures : {64U, 1024U, 10'000U, std::numeric_limits<std::uint32_t>::max()}) {
    const Nanoseconds delay = backoff.delay(failures, "task", 0);
    EXPECT_LE(delay, 24h);
    EXPECT_GE(delay, 86400s - 86400s / 5) << "the window is shifted inside, not clipped";
  }
}

TEST(Backoff, FailuresOfZeroGiveTheBaseExactly) {
  EXPECT_EQ(Backoff(5s, 2, 24h, 0.1, 7).delay(0, "task", 0), 5s);
}

TEST(Backoff, JitterIsDeterministicAndDependsOnSeedKeyAndCount) {
  const Backoff backoff(5s, 2, 24h, 0.1, 7);
  EXPECT_EQ(backoff.delay(3, "a", 0), Backoff(5s, 2, 24h, 0.1, 7).delay(3, "a", 0));
  EXPECT_NE(backoff.delay(3, "a", 0), backoff.delay(3, "b", 0));
  EXPECT_NE(backoff.delay(3, "a", 0), Backoff(5s, 2, 24h, 0.1, 8).delay(3, "a", 0));
}

TEST(Backoff, StaysWithinTheBounds) {
  for (double jitter : {0.0, 0.1, 0.5, 1.0}) {
    const Backoff backoff(5s, 3, 5500ms, jitter, 1);
    for (std::uint32_t failures = 0; failures < 200; ++failures) {
      const Nanoseconds delay = backoff.delay(failures, "k" + std::to_string(failures), 0);
      EXPECT_GE(delay, 5s);
      EXPECT_LE(delay, 5500ms);
    }
  }
}

TEST(Backoff, AHerdStaysSpreadAtTheCap) {
  const Backoff backoff(1s, 2, 100s, 0.1, 0);
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
  EXPECT_EQ(Backoff(10s, 2, 1s, 0.1, 0).delay(9, "", 0), 10s);
}

TEST(Backoff, RefusesArgumentsOutsideTheirRange) {
  const double nan = std::nan("");
  EXPECT_THROW(Backoff(-1s, 2, 1s, 0, 0), InvalidArgument);
  EXPECT_THROW(Backoff(1s, 0.5, 1s, 0, 0), InvalidArgument);
  EXPECT_THROW(Backoff(1s, nan, 1s, 0, 0), InvalidArgument);
  EXPECT_THROW(Backoff(1s, INFINITY, 1s, 0, 0), InvalidArgument);
  EXPECT_THROW(Backoff(1s, 2, 1s, -0.1, 0), InvalidArgument);
  EXPECT_THROW(Backoff(1s, 2, 1s, nan, 0), InvalidArgument);
}

}  // namespace
}  // namespace loki
