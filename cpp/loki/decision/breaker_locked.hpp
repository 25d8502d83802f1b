// A breaker that threads share: the table of breaker.hpp behind a mutex.
//
// Under test: tests/cpp/decision/breaker_locked_test.cpp, also under ThreadSanitizer.
//
// Still no clock: `now` comes in. Threads read it before they take the lock, so it may go back a
// little between two events; the table takes that. Nothing is called under the lock: transitions
// are queued in their order for whoever asks, outside.
//
// The common case, a closed breaker that does not heed successes, takes no lock and no time: one
// atomic tells the generation that is closed, and granting a call or hearing of its success changes
// nothing but a count.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loki/decision/breaker.hpp"

namespace loki {

// What happened so far. Outcomes that came too late are in none but `late`.
struct BreakerCounts {
  std::uint64_t granted = 0, refused = 0;
  std::uint64_t successes = 0, failures = 0, ignored = 0, late = 0;
  std::uint64_t transitions = 0;
};

// One look, all of the same instant.
struct BreakerView {
  BreakerState state;
  std::uint32_t failure_count;
  std::optional<Nanoseconds> window_start;  // the oldest failure that counts
  std::optional<Nanoseconds> retry_at;
};

struct BreakerRefusal {
  std::optional<Nanoseconds> retry_after;  // none: isolated
  std::string last_error;
};

class LockedBreaker {
 public:
  // Throws InvalidArgument as `check` does.
  explicit LockedBreaker(const BreakerConfig& config);

  const BreakerConfig& config() const { return config_; }

  // A permit without lock and clock, where that is possible; none: ask acquire.
  std::optional<BreakerPermit> acquire_closed() {
    const std::uint64_t generation = closed_generation_.load(std::memory_order_acquire);
    if (generation == 0) return std::nullopt;
    add(granted_);
    return BreakerPermit{generation, 0, Nanoseconds(0)};
  }

  // A permit, or why not. `refusal` may be null: nobody wants to know.
  std::optional<BreakerPermit> acquire(Nanoseconds now, BreakerRefusal* refusal);

  // Whether this success needs no time: it has been counted.
  bool success_closed(const BreakerPermit& permit) {
    if (heeds_success_ || permit.is_probe()) return false;
    add(closed_generation_.load(std::memory_order_acquire) == permit.generation ? successes_
                                                                                : late_);
    return true;
  }
  void success(const BreakerPermit& permit, Nanoseconds now);
  void failure(const BreakerPermit& permit, Nanoseconds now, std::string_view error,
               std::optional<Nanoseconds> asked = std::nullopt);
  void ignore(const BreakerPermit& permit);

  void open(Nanoseconds now);
  void isolate(Nanoseconds now);
  void close(Nanoseconds now);
  void reset(Nanoseconds now);
  void expire(Nanoseconds now);

  BreakerView view(Nanoseconds now) const;
  BreakerCounts counts() const;

  // Transitions since the last time, in order. Whether there are any is one atomic away.
  bool has_news() const { return has_news_.load(std::memory_order_acquire); }
  std::vector<BreakerTransition> take_news();

 private:
  using Count = std::atomic<std::uint64_t>;
  static void add(Count& count) { count.fetch_add(1, std::memory_order_relaxed); }

  // Under the lock: runs an event and makes known what it did.
  template <typename Event>
  auto apply(Event&& event);
  void settle(const MaybeTransition& transition);

  const BreakerConfig config_;
  const bool heeds_success_;
  mutable std::mutex mutex_;
  BreakerState state_;
  std::vector<BreakerTransition> news_;
  std::atomic<std::uint64_t> closed_generation_;  // 0: not closed, or successes are heeded
  std::atomic<bool> has_news_{false};
  Count granted_{0}, refused_{0}, successes_{0}, failures_{0}, ignored_{0}, late_{0},
      transitions_{0};
};

}  // namespace loki
