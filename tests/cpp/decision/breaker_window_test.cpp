// The windows beside brute force: after each call all calls so far are counted anew.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "loki/decision/breaker.hpp"

namespace loki {
namespace {

using namespace std::chrono_literals;

struct Call {
  Nanoseconds ended;
  bool is_failed, is_slow;
};

// Those of `all` that count when the last of them has just ended.
std::vector<Call> window_of(const BreakerConfig& config, const std::vector<Call>& all) {
  std::vector<Call> inside;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_young = all.back().ended - all[i].ended < config.window;
    const bool is_among_last = all.size() - i <= config.window_calls;
    bool is_followed_by_success = false;
    for (std::size_t j = i; j < all.size(); ++j) is_followed_by_success |= !all[j].is_failed;
    const bool is_in = config.mode == BreakerWindow::time    ? is_young
                       : config.mode == BreakerWindow::calls ? is_among_last
                                                             : !is_followed_by_success;
    if (is_in) inside.push_back(all[i]);
  }
  return inside;
}

std::size_t failed(const std::vector<Call>& calls) {
  return static_cast<std::size_t>(
      std::count_if(calls.begin(), calls.end(), [](const Call& c) { return c.is_failed; }));
}

bool should_trip(const BreakerConfig& config, const std::vector<Call>& all) {
  const std::vector<Call> window = window_of(config, all);
  if (config.failure_rate == 0 && failed(window) >= config.threshold) return true;
  std::vector<Call> sample = window;  // of a busy time only the newest
  if (sample.size() > config.window_calls) {
    sample.erase(sample.begin(), sample.end() - config.window_calls);
  }
  if (sample.size() < config.minimum_calls) return false;
  std::size_t slow = 0;
  for (const Call& call : sample) slow += call.is_slow ? 1 : 0;
  const auto share = [&](std::size_t part) {
    return static_cast<double>(part) / static_cast<double>(sample.size());
  };
  return (config.failure_rate > 0 && share(failed(sample)) >= config.failure_rate) ||
         (config.slow_call_rate > 0 && share(slow) >= config.slow_call_rate);
}

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}
  std::uint32_t roll(std::uint32_t from, std::uint32_t to) {
    return from + static_cast<std::uint32_t>(random_() % (to - from + 1));
  }

 private:
  std::mt19937 random_;
};

BreakerConfig any_config(Dice& dice) {
  BreakerConfig config;
  config.mode = static_cast<BreakerWindow>(dice.roll(0, 2));
  config.window_calls = dice.roll(3, 12);
  config.threshold = dice.roll(1, config.window_calls);
  if (config.mode != BreakerWindow::consecutive) {
    config.minimum_calls = dice.roll(1, config.window_calls);
    if (dice.roll(0, 1) == 1) config.failure_rate = dice.roll(1, 10) / 10.0;
    if (dice.roll(0, 1) == 1) {
      config.slow_call_rate = dice.roll(1, 10) / 10.0;
      config.slow_call_duration = 5s;
    }
  }
  check(config);
  return config;
}

TEST(BreakerWindow, AgreesWithBruteForce) {
  int trips = 0, kept = 0;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    Dice dice(seed);
    const BreakerConfig config = any_config(dice);
    BreakerState state;
    Nanoseconds now = 0s;
    std::vector<Call> all;
    for (int i = 0; i < 40 && state.circuit == CircuitState::closed; ++i) {
      now += std::chrono::seconds(dice.roll(0, 12));
      const BreakerPermit permit = *breaker::acquire(config, state, now).permit;
      const bool is_failed = dice.roll(0, 3) == 0, is_slow = dice.roll(0, 3) == 0;
      now += is_slow ? 5s : 1s;
      all.push_back({now, is_failed, is_slow});
      if (is_failed) {
        breaker::failure(config, state, permit, now, "");
      } else {
        breaker::success(config, state, permit, now);
      }
      ASSERT_EQ(state.circuit == CircuitState::open, should_trip(config, all))
          << "seed " << seed << ", call " << i;
      if (state.circuit == CircuitState::closed && config.failure_rate == 0) {
        ASSERT_EQ(breaker::failure_count(config, state, now), failed(window_of(config, all)))
            << "seed " << seed << ", call " << i;
      }
    }
    (state.circuit == CircuitState::open ? trips : kept) += 1;
  }
  EXPECT_GT(trips, 1000);
  EXPECT_GT(kept, 100);
}

}  // namespace
}  // namespace loki
