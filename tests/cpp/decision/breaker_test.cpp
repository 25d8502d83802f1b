#include "loki/decision/breaker.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "loki/base/error.hpp"

namespace loki {
namespace {

using namespace std::chrono_literals;
using breaker::acquire;
using breaker::failure;
using breaker::success;

constexpr auto kClosed = CircuitState::closed;
constexpr auto kOpen = CircuitState::open;
constexpr auto kHalfOpen = CircuitState::half_open;

// A breaker and the time that its test lets pass.
struct Machine {
  BreakerConfig config;
  BreakerState state;
  Nanoseconds now = 1000s;

  BreakerPermit granted() {
    const BreakerAnswer answer = acquire(config, state, now);
    EXPECT_TRUE(answer.permit);
    return answer.permit.value_or(BreakerPermit{});
  }
  bool is_refused() { return !acquire(config, state, now).permit; }
  MaybeTransition fails() { return failure(config, state, granted(), now, "down").transition; }
  MaybeTransition succeeds() { return success(config, state, granted(), now).transition; }
  void trip() {
    while (state.circuit == kClosed) fails();
  }
  void half_open() {
    trip();
    now = *state.cooldown_until;
    EXPECT_EQ(breaker::expire(config, state, now)->to, kHalfOpen);
  }
};

TEST(Breaker, TripsAtTheThresholdAndRefusesWithErrorAndTime) {
  Machine m;
  EXPECT_FALSE(m.fails());
  EXPECT_FALSE(m.fails());
  EXPECT_EQ(m.fails(), (BreakerTransition{kClosed, kOpen, m.now}));
  m.now += 1s;
  const BreakerAnswer refused = acquire(m.config, m.state, m.now);
  EXPECT_FALSE(refused.permit);
  EXPECT_EQ(refused.retry_at, m.now + 299s);
  EXPECT_EQ(m.state.last_error, "down");
  EXPECT_EQ(m.state.failures.size(), 3U) << "what tripped it stays to be shown";
}

TEST(Breaker, TheWindowSlidesAndSuccessesDoNotClearIt) {
  Machine m;
  m.fails();
  m.now += 30s;
  m.fails();
  m.succeeds();
  m.now += 30s;
  EXPECT_FALSE(m.fails()) << "the first one is 60 s old: not younger than the window";
  EXPECT_EQ(breaker::failure_count(m.config, m.state, m.now), 2U);
  m.now += 30s - 1ns;
  EXPECT_TRUE(m.fails()) << "a fixed window would have forgotten the second one";
}

TEST(Breaker, LateFailuresDoNotExtendTheCooldown) {
  Machine m;
  const BreakerPermit slow = m.granted();
  m.trip();
  const BreakerState open = m.state;
  m.now += 100s;
  EXPECT_FALSE(failure(m.config, m.state, slow, m.now, "late").is_counted);
  EXPECT_EQ(m.state, open);
}

TEST(Breaker, OpensHalfAtTheEndOfTheCooldownWithCountersAtZero) {
  Machine m;
  m.trip();
  m.now += 300s - 1ns;
  EXPECT_TRUE(m.is_refused());
  m.now += 1ns;
  const BreakerAnswer probe = acquire(m.config, m.state, m.now);
  ASSERT_TRUE(probe.permit);
  EXPECT_TRUE(probe.permit->is_probe());
  EXPECT_EQ(probe.transition, (BreakerTransition{kOpen, kHalfOpen, m.now}));
  EXPECT_EQ(breaker::failure_count(m.config, m.state, m.now), 0U);
  EXPECT_FALSE(m.state.cooldown_until);
}

TEST(Breaker, OneProbeAtATimeAndAnIntervalBetweenTheirStarts) {
  Machine m;
  m.half_open();
  const BreakerPermit first = m.granted();
  m.now += 10s;
  const BreakerAnswer second = acquire(m.config, m.state, m.now);
  EXPECT_FALSE(second.permit) << "the first is in flight";
  EXPECT_EQ(second.retry_at, m.now + 10s);
  EXPECT_TRUE(success(m.config, m.state, first, m.now).is_counted);
  m.succeeds();
  m.now += 4s;
  EXPECT_EQ(acquire(m.config, m.state, m.now).retry_at, m.now + 6s);
}

TEST(Breaker, ClosesAfterConsecutiveSuccessesAndForgets) {
  Machine m;
  m.half_open();
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(m.succeeds());
    m.now += 10s;
  }
  EXPECT_EQ(m.succeeds(), (BreakerTransition{kHalfOpen, kClosed, m.now}));
  BreakerState fresh;
  fresh.generation = m.state.generation;
  fresh.probes = m.state.probes;
  fresh.last_change = m.now;
  EXPECT_EQ(m.state, fresh);
}

TEST(Breaker, AFailedProbeOpensItAgainForAFullCooldown) {
  Machine m;
  m.half_open();
  m.succeeds();
  m.now += 10s;
  EXPECT_EQ(m.fails(), (BreakerTransition{kHalfOpen, kOpen, m.now}));
  EXPECT_EQ(m.state.cooldown_until, m.now + 300s);
  EXPECT_EQ(breaker::failure_count(m.config, m.state, m.now), 1U);
}

TEST(Breaker, AProbeOutOfItsLeaseFreesTheSlotAndIsVoid) {
  Machine m;
  m.half_open();
  m.succeeds();
  m.now += 10s;
  const BreakerPermit lost = m.granted();
  m.now += 600s - 1ns;
  EXPECT_EQ(acquire(m.config, m.state, m.now).retry_at, m.now + 1ns) << "the end of the lease";
  m.now += 1ns;
  BreakerState before = m.state;
  EXPECT_FALSE(failure(m.config, before, lost, m.now, "late").is_counted);
  EXPECT_EQ(before.success_count, 1U) << "it counts nothing";
  const BreakerPermit next = m.granted();
  EXPECT_FALSE(success(m.config, m.state, lost, m.now).is_counted);
  EXPECT_TRUE(success(m.config, m.state, next, m.now).is_counted);
}

TEST(Breaker, AProbeIsReportedOnce) {
  Machine m;
  m.half_open();
  const BreakerPermit probe = m.granted();
  EXPECT_TRUE(success(m.config, m.state, probe, m.now).is_counted);
  EXPECT_FALSE(success(m.config, m.state, probe, m.now).is_counted);
  EXPECT_FALSE(failure(m.config, m.state, probe, m.now, "").is_counted);
  EXPECT_EQ(m.state.success_count, 1U);
}

TEST(Breaker, AnIgnoredProbeFreesItsSlotWithoutAnOutcome) {
  Machine m;
  m.half_open();
  const BreakerPermit probe = m.granted();
  EXPECT_TRUE(breaker::ignore(m.state, probe).is_counted);
  EXPECT_EQ(m.state.success_count, 0U);
  EXPECT_TRUE(m.is_refused()) << "the interval holds for it, too";
  m.now += 10s;
  EXPECT_FALSE(m.is_refused());
}

TEST(Breaker, CooldownsGrowWithTripsInARowUpToTheCap) {
  Machine m;
  m.config.cooldown_multiplier = 2;
  m.config.cooldown_cap = 1000s;
  m.trip();
  for (const auto expected : {300s, 600s, 1000s, 1000s}) {
    EXPECT_EQ(m.state.cooldown_until, m.now + expected);
    m.now = *m.state.cooldown_until;
    m.fails();
  }
  breaker::close(m.state, m.now);
  m.trip();
  EXPECT_EQ(m.state.cooldown_until, m.now + 300s) << "closed between: the growth begins anew";
}

TEST(Breaker, StaysOpenForAsLongAsTheServiceAsks) {
  Machine m;
  m.config.threshold = 1;
  EXPECT_TRUE(failure(m.config, m.state, m.granted(), m.now, "429", 42s).transition);
  EXPECT_EQ(m.state.cooldown_until, m.now + 42s);
  breaker::restore(m.config, m.state, m.now + 1s);
  EXPECT_EQ(m.state.cooldown_until, m.now + 42s);
  m.now += 42s;
  EXPECT_TRUE(failure(m.config, m.state, m.granted(), m.now, "429", 1s).transition);
  EXPECT_EQ(m.state.cooldown_until, m.now + 300s) << "its word was not kept: the longer one holds";
  m.now += 300s;
  EXPECT_TRUE(failure(m.config, m.state, m.granted(), m.now, "429", 1000s).transition);
  EXPECT_EQ(m.state.cooldown_until, m.now + 1000s);
}

TEST(Breaker, NobodyIsAskedForDaysAtAService) {
  Machine m;
  m.config.threshold = 1;
  failure(m.config, m.state, m.granted(), m.now, "429", Nanoseconds::max());
  EXPECT_EQ(m.state.cooldown_until, m.now + kLongestAsked);
  breaker::open(m.config, m.state, m.now);
  EXPECT_FALSE(m.state.asked);
  failure(m.config, m.state, BreakerPermit{}, m.now, "429", -1s);
  EXPECT_EQ(m.state.cooldown_until, m.now + 300s);
}

TEST(Breaker, IsolatedMeansUntilSomebodySaysOtherwise) {
  Machine m;
  const BreakerPermit before = m.granted();
  EXPECT_EQ(breaker::isolate(m.state, m.now)->to, kOpen);
  m.now += std::chrono::hours(24 * 365);
  const BreakerAnswer answer = acquire(m.config, m.state, m.now);
  EXPECT_FALSE(answer.permit);
  EXPECT_FALSE(answer.retry_at);
  EXPECT_FALSE(failure(m.config, m.state, before, m.now, "").is_counted);
  EXPECT_FALSE(breaker::open(m.config, m.state, m.now)) << "open already, now with an end";
  EXPECT_EQ(acquire(m.config, m.state, m.now).retry_at, m.now + 300s);
  EXPECT_EQ(breaker::close(m.state, m.now)->to, kClosed);
  EXPECT_FALSE(m.is_refused());
}

TEST(Breaker, CloseLeavesAClosedOneAloneAndResetForgets) {
  Machine m;
  const BreakerPermit before = m.granted();
  m.fails();
  EXPECT_FALSE(breaker::close(m.state, m.now));
  EXPECT_EQ(breaker::failure_count(m.config, m.state, m.now), 1U);
  EXPECT_FALSE(breaker::reset(m.state, m.now));
  EXPECT_EQ(breaker::failure_count(m.config, m.state, m.now), 0U);
  EXPECT_FALSE(failure(m.config, m.state, before, m.now, "").is_counted) << "of an earlier time";
}

TEST(Breaker, ConsecutiveFailuresAreClearedBySuccessNotByTime) {
  Machine m;
  m.config.mode = BreakerWindow::consecutive;
  m.fails();
  m.fails();
  m.succeeds();
  m.fails();
  m.fails();
  m.now += 24h;
  EXPECT_EQ(m.fails()->to, kOpen);
}

TEST(Breaker, AFailureRateWaitsForItsMinimumOfCalls) {
  Machine m;
  m.config.failure_rate = 0.07;
  m.config.minimum_calls = 100;
  for (int i = 0; i < 93; ++i) EXPECT_FALSE(m.succeeds());
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(m.fails()) << "over the threshold of 3";
  EXPECT_EQ(m.fails()->to, kOpen) << "7 of 100";
  EXPECT_EQ(breaker::failure_count(m.config, m.state, m.now), 7U);
}

TEST(Breaker, SlowCallsTripItAndASlowProbeIsAFailedOne) {
  Machine m;
  m.config.slow_call_rate = 0.5;
  m.config.slow_call_duration = 5s;
  m.config.minimum_calls = 2;
  m.succeeds();
  const BreakerPermit slow = m.granted();
  m.now += 5s;
  EXPECT_EQ(success(m.config, m.state, slow, m.now).transition->to, kOpen);
  m.now += 300s;
  const BreakerPermit probe = m.granted();
  m.now += 5s;
  EXPECT_EQ(success(m.config, m.state, probe, m.now).transition->to, kOpen);
}

TEST(Breaker, AClockThatGoesBackDoesNoHarm) {
  Machine m;
  m.fails();
  m.fails();
  m.now -= 24h;
  EXPECT_EQ(m.fails()->to, kOpen) << "none is lost";
  EXPECT_EQ(m.state.cooldown_until, m.now + 300s);
  m.now -= 24h;
  EXPECT_EQ(acquire(m.config, m.state, m.now).retry_at, m.now + 300s) << "a cooldown, not a day";
  m.now += 300s;
  m.granted();
  m.now -= 24h;
  EXPECT_TRUE(m.is_refused());
  m.now += 600s;
  EXPECT_FALSE(m.is_refused()) << "the lease is not a day longer";
}

TEST(Breaker, AFailureOfTheFutureCountsForOneWindowMore) {
  Machine m;
  m.fails();
  m.fails();
  m.now -= 24h;
  m.config.threshold = 4;
  m.fails();
  m.now += 60s;
  EXPECT_EQ(breaker::failure_count(m.config, m.state, m.now), 0U);
}

TEST(Breaker, TheFarEndsOfTimeDoNotWrap) {
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  for (const Nanoseconds start : {Nanoseconds(kMin), Nanoseconds(0), Nanoseconds(kMax)}) {
    for (const Nanoseconds then : {Nanoseconds(kMin), Nanoseconds(0), Nanoseconds(kMax)}) {
      Machine m;
      m.config.cooldown = m.config.cooldown_cap = m.config.probe_lease = Nanoseconds(kMax);
      m.config.half_open_interval = Nanoseconds(kMax);
      m.now = start;
      m.trip();
      m.now = then;
      acquire(m.config, m.state, m.now);
      breaker::restore(m.config, m.state, m.now);
      EXPECT_LE(m.state.failures.size(), m.config.threshold);
    }
  }
}

TEST(Breaker, MemoryOfTheWindowIsBounded) {
  Machine m;
  m.config.threshold = 5;
  m.config.slow_call_rate = 1;
  m.config.slow_call_duration = 1s;
  m.config.window_calls = 50;
  for (int i = 0; i < 10'000; ++i) {
    m.now += i % 4 == 0 ? 14s : 0s;
    i % 8 == 0 ? m.fails() : m.succeeds();
    ASSERT_EQ(m.state.circuit, kClosed);
    ASSERT_LE(m.state.failures.size(), 5U);
    ASSERT_LE(m.state.calls.size(), 50U);
  }
}

TEST(BreakerRestore, ClampsWhatWasStored) {
  Machine m;
  m.trip();
  m.state.cooldown_until = m.now + 24h;
  m.state.failures = {m.now + 1s, m.now - 1s, m.now - 2s};
  m.state.last_failure = m.now + 1h;
  breaker::restore(m.config, m.state, m.now);
  EXPECT_EQ(m.state.cooldown_until, m.now + 300s);
  EXPECT_EQ(m.state.failures, (std::vector<Nanoseconds>{m.now - 2s, m.now - 1s}));
  EXPECT_EQ(m.state.last_failure, m.now);
  m.now += 24h;
  breaker::restore(m.config, m.state, m.now);
  EXPECT_EQ(m.state.cooldown_until, m.now) << "over";
}

TEST(BreakerRestore, KeepsTheNewestFailuresOfMoreThanAThreshold) {
  Machine m;
  m.state.failures = {m.now - 4s, m.now - 3s, m.now - 2s, m.now - 1s};
  breaker::restore(m.config, m.state, m.now);
  EXPECT_EQ(m.state.failures.front(), m.now - 3s);
  EXPECT_EQ(m.state.circuit, kClosed) << "a stored state is what it says";
  EXPECT_EQ(m.fails()->to, kOpen);
  EXPECT_EQ(m.state.failures.size(), 3U);
}

TEST(BreakerRestore, FillsInWhatAForeignFileLeavesOut) {
  Machine m;
  m.state.circuit = kOpen;
  m.state.generation = 0;
  m.state.last_change = m.now - 100s;
  breaker::restore(m.config, m.state, m.now);
  EXPECT_EQ(m.state.cooldown_until, m.now + 200s);
  EXPECT_EQ(m.state.generation, 1U);
}

TEST(BreakerConfig, ContradictionsAreRefused) {
  check(BreakerConfig{});
  const auto refuses = [](auto change) {
    BreakerConfig config;
    change(config);
    EXPECT_THROW(check(config), InvalidArgument);
  };
  refuses([](auto& c) { c.threshold = 0; });
  refuses([](auto& c) { c.recovery_threshold = 0; });
  refuses([](auto& c) { c.window = 0s; });
  refuses([](auto& c) { c.cooldown = -1s; });
  refuses([](auto& c) { c.cooldown_multiplier = 0.5; });
  refuses([](auto& c) { c.half_open_interval = -1s; });
  refuses([](auto& c) { c.probe_lease = 0s; });
  refuses([](auto& c) { c.failure_rate = 1.1; });
  refuses([](auto& c) { c.failure_rate = std::numeric_limits<double>::quiet_NaN(); });
  refuses([](auto& c) { c.slow_call_rate = 0.5; });
  refuses([](auto& c) { c.slow_call_duration = 1s; });
  refuses([](auto& c) { c.window_calls = 0; });
  refuses([](auto& c) { c.minimum_calls = 0; });
  refuses([](auto& c) { c.failure_rate = 0.5, c.minimum_calls = 101; });
  refuses([](auto& c) { c.failure_rate = 0.5, c.mode = BreakerWindow::consecutive; });
  refuses([](auto& c) { c.mode = BreakerWindow::calls, c.threshold = 101; });
}

}  // namespace
}  // namespace loki
