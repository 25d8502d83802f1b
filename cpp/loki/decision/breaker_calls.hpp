// The last calls of a breaker that counts calls: for rates, and for windows of so many calls.
// Memory is bounded by the limit that `add` gets: 16 bytes a call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "loki/base/time.hpp"

namespace loki {

struct BreakerCall {
  Nanoseconds ended;
  bool is_failed;
  bool is_slow;

  bool operator==(const BreakerCall&) const = default;
};

class BreakerCalls {
 public:
  std::size_t size() const { return calls_.size(); }
  std::size_t failed() const { return failed_; }
  std::size_t slow() const { return slow_; }

  // Adds the newest and lets go of the oldest over the limit. The clock may have gone back: no call
  // ended after this one.
  void add(const BreakerCall& call, std::size_t limit) {
    for (auto it = calls_.rbegin(); it != calls_.rend() && it->ended > call.ended; ++it) {
      it->ended = call.ended;
    }
    calls_.push_back(call);
    count(call, 1);
    while (calls_.size() > limit) drop_oldest();
  }

  // Lets go of the oldest ones for which `is_old(ended)`.
  template <typename IsOld>
  void drop_while(IsOld is_old) {
    while (!calls_.empty() && is_old(calls_.front().ended)) drop_oldest();
  }

  void clear() {
    calls_.clear();
    failed_ = slow_ = 0;
  }

  bool operator==(const BreakerCalls&) const = default;

 private:
  void drop_oldest() {
    count(calls_.front(), -1);
    calls_.pop_front();
  }
  void count(const BreakerCall& call, int step) {
    failed_ += static_cast<std::size_t>(call.is_failed ? step : 0);
    slow_ += static_cast<std::size_t>(call.is_slow ? step : 0);
  }

  std::deque<BreakerCall> calls_;
  std::size_t failed_ = 0, slow_ = 0;
};

}  // namespace loki
