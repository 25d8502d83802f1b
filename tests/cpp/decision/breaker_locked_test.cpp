#include "loki/decision/breaker_locked.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "loki/base/error.hpp"

namespace loki {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 8;

template <typename Work>
void in_threads(Work work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([=] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

BreakerPermit granted(LockedBreaker& breaker, Nanoseconds now) {
  auto permit = breaker.acquire_closed();
  if (!permit) permit = breaker.acquire(now, nullptr);
  EXPECT_TRUE(permit);
  return permit.value_or(BreakerPermit{});
}

TEST(LockedBreaker, RefusesABrokenConfig) {
  BreakerConfig config;
  config.threshold = 0;
  EXPECT_THROW(LockedBreaker{config}, InvalidArgument);
}

TEST(LockedBreaker, SaysWhyItRefuses) {
  LockedBreaker breaker(BreakerConfig{});
  for (int i = 0; i < 3; ++i) breaker.failure(granted(breaker, 0s), 0s, "down");
  EXPECT_FALSE(breaker.acquire_closed());
  BreakerRefusal refusal;
  EXPECT_FALSE(breaker.acquire(100s, &refusal));
  EXPECT_EQ(refusal.retry_after, 200s);
  EXPECT_EQ(refusal.last_error, "down");
  breaker.isolate(100s);
  BreakerRefusal endless;
  EXPECT_FALSE(breaker.acquire(100s, &endless));
  EXPECT_FALSE(endless.retry_after);
}

TEST(LockedBreaker, TellsTransitionsInOrderAndOnce) {
  LockedBreaker breaker(BreakerConfig{});
  EXPECT_FALSE(breaker.has_news());
  breaker.open(1s);
  breaker.expire(301s);
  breaker.close(302s);
  ASSERT_TRUE(breaker.has_news());
  const auto news = breaker.take_news();
  ASSERT_EQ(news.size(), 3U);
  EXPECT_EQ(news[0].to, CircuitState::open);
  EXPECT_EQ(news[1].to, CircuitState::half_open);
  EXPECT_EQ(news[2].to, CircuitState::closed);
  EXPECT_FALSE(breaker.has_news());
  EXPECT_TRUE(breaker.take_news().empty());
}

TEST(LockedBreaker, ASuccessOfAnEarlierTimeIsLateAlsoWithoutTheLock) {
  LockedBreaker breaker(BreakerConfig{});
  const BreakerPermit before = granted(breaker, 0s);
  breaker.reset(0s);
  breaker.success(before, 0s);
  breaker.success(granted(breaker, 0s), 0s);
  EXPECT_EQ(breaker.counts().late, 1U);
  EXPECT_EQ(breaker.counts().successes, 1U);
}

TEST(LockedBreaker, WhoHeedsSuccessesIsAskedUnderTheLock) {
  BreakerConfig config;
  config.mode = BreakerWindow::consecutive;
  LockedBreaker breaker(config);
  EXPECT_FALSE(breaker.acquire_closed());
  for (int i = 0; i < 10; ++i) {
    breaker.failure(granted(breaker, 0s), 0s, "");
    breaker.failure(granted(breaker, 0s), 0s, "");
    breaker.success(granted(breaker, 0s), 0s);
  }
  EXPECT_EQ(breaker.counts().transitions, 0U);
}

TEST(LockedBreaker, CountsExactlyInManyThreads) {
  BreakerConfig config;
  config.threshold = 1'000'000;
  LockedBreaker breaker(config);
  in_threads([&](int) {
    for (int i = 0; i < 1000; ++i) {
      breaker.failure(granted(breaker, 1s), 1s, "down");
      breaker.success(granted(breaker, 1s), 1s);
    }
  });
  EXPECT_EQ(breaker.view(1s).failure_count, kThreads * 1000U);
  EXPECT_EQ(breaker.counts().successes, kThreads * 1000U);
  EXPECT_EQ(breaker.counts().granted, kThreads * 2000U);
}

TEST(LockedBreaker, LetsOneProbeOutHoweverManyAsk) {
  LockedBreaker breaker(BreakerConfig{});
  breaker.open(0s);
  std::atomic<int> probes{0};
  in_threads([&](int) {
    if (breaker.acquire(300s, nullptr)) ++probes;
  });
  EXPECT_EQ(probes, 1);
  EXPECT_EQ(breaker.counts().refused, kThreads - 1U);
}

// Everything at once, with a clock that each thread reads for itself: for ThreadSanitizer, and for
// the sums, which must come out whatever the order was.
TEST(LockedBreaker, SurvivesEverythingAtOnce) {
  BreakerConfig config;
  config.cooldown = 50us;
  config.half_open_interval = 5us;
  config.probe_lease = 200us;
  LockedBreaker breaker(config);
  std::atomic<std::uint64_t> permits{0}, changes{0};
  const auto now = [] { return Nanoseconds(std::chrono::steady_clock::now().time_since_epoch()); };
  in_threads([&](int thread) {
    for (int i = 0; i < 3000; ++i) {
      auto permit = breaker.acquire_closed();
      if (!permit) permit = breaker.acquire(now(), nullptr);
      if (permit) {
        ++permits;
        const int what = (i + thread) % 5;
        if (what == 0) breaker.failure(*permit, now(), "down");
        if (what == 1) breaker.ignore(*permit);
        if (what >= 2) breaker.success(*permit, now());
      }
      if (i % 500 == 10 * thread) breaker.isolate(now());
      if (i % 100 == 7 * thread) breaker.reset(now());
      if (i % 50 == 0) breaker.view(now());
      if (breaker.has_news()) changes += breaker.take_news().size();
    }
  });
  changes += breaker.take_news().size();
  const BreakerCounts counts = breaker.counts();
  EXPECT_EQ(counts.granted, permits);
  EXPECT_EQ(counts.granted + counts.refused, kThreads * 3000U);
  EXPECT_EQ(counts.successes + counts.failures + counts.ignored + counts.late, permits);
  EXPECT_EQ(counts.transitions, changes);
  EXPECT_GT(counts.transitions, 10U);
}

}  // namespace
}  // namespace loki
