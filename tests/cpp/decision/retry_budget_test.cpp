#include "loki/decision/retry_budget.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "loki/base/error.hpp"

namespace loki {
namespace {

using namespace std::chrono_literals;

int drain(RetryBudget& budget, Nanoseconds now) {
  int count = 0;
  while (budget.try_withdraw(now)) ++count;
  return count;
}

TEST(RetryBudget, BeginsFull) {
  RetryBudget budget(0.2, 0, 10, 0s);
  EXPECT_EQ(budget.balance(0s), 10);
  EXPECT_EQ(drain(budget, 0s), 10);
}

TEST(RetryBudget, CallsPayForAShareOfRetries) {
  RetryBudget budget(0.1, 0, 10, 0s);
  drain(budget, 0s);
  for (int call = 0; call < 9; ++call) budget.deposit();
  EXPECT_FALSE(budget.try_withdraw(0s));
  budget.deposit();
  EXPECT_TRUE(budget.try_withdraw(0s)) << "ten times a tenth is one";
  EXPECT_FALSE(budget.try_withdraw(0s));
}

TEST(RetryBudget, TimePaysForAFewWhateverTheCalls) {
  RetryBudget budget(0, 0.5, 10, 100s);
  drain(budget, 100s);
  EXPECT_FALSE(budget.try_withdraw(102s - 1ns));
  EXPECT_TRUE(budget.try_withdraw(102s)) << "what is asked in between costs nothing";
  EXPECT_EQ(drain(budget, 1h), 10) << "no more than the capacity is saved up";
  EXPECT_FALSE(budget.try_withdraw(50s)) << "a clock that goes back gives nothing";
  EXPECT_FALSE(budget.try_withdraw(1h));
}

TEST(RetryBudget, ManySmallStepsOfTimeAddUp) {
  RetryBudget budget(0, 0.3, 10, 0s);
  drain(budget, 0s);
  Nanoseconds now{0};
  int count = 0;
  for (int step = 0; step < 1'000'000; ++step) count += budget.try_withdraw(now += 7us);
  EXPECT_EQ(count, 2) << "0.3 a second for 7 s";
}

TEST(RetryBudget, TakesAnyTime) {
  RetryBudget budget(1e6, 1e6, 1e6, Nanoseconds::min());
  drain(budget, Nanoseconds::min());
  EXPECT_EQ(budget.balance(Nanoseconds::max()), 1e6);
  budget.deposit();
  EXPECT_EQ(budget.balance(Nanoseconds::max()), 1e6);
}

TEST(RetryBudget, ThreadsShareItExactly) {
  RetryBudget budget(0.5, 0, 1000, 0s);
  std::atomic<int> allowed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5000; ++n) {
        if (n % 10 == 0) budget.deposit();
        allowed += budget.try_withdraw(0s);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // 2,000 deposits of a half; some may have come while the budget was full.
  const int left = static_cast<int>(std::lround(2 * budget.balance(0s)));
  EXPECT_LE(allowed, 2000);
  EXPECT_GE(allowed, 1000);
  EXPECT_LT(left, 2) << "more was asked for than there was";
}

TEST(RetryBudget, RefusesNumbersOutsideTheirRange) {
  EXPECT_THROW(RetryBudget(-0.1, 1, 1, 0s), InvalidArgument);
  EXPECT_THROW(RetryBudget(0.1, -1, 1, 0s), InvalidArgument);
  EXPECT_THROW(RetryBudget(0.1, 1, 0.5, 0s), InvalidArgument);
  EXPECT_THROW(RetryBudget(std::nan(""), 1, 1, 0s), InvalidArgument);
  EXPECT_THROW(RetryBudget(0.1, INFINITY, 1, 0s), InvalidArgument);
  EXPECT_THROW(RetryBudget(0.1, 1, 1e7, 0s), InvalidArgument);
}

}  // namespace
}  // namespace loki
