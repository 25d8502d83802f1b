// How many retries all callers of a service may make together: a token bucket.
//
// Retries multiply load when a service can least take it; a budget caps them as a share of calls,
// so that an outage of everything costs a share more, and not a multiple. The bucket and its words
// are those of Finagle's RetryBudget; gRPC's retry throttling (gRFC A6) and the AWS SDKs' retry
// quota do the same. Tested by tests/cpp/decision/retry_budget_test.cpp.
#pragma once

#include <cstdint>
#include <mutex>

#include "loki/base/time.hpp"

namespace loki {

// May be used by many threads at once.
class RetryBudget {
 public:
  // share: retries that each call pays for, 0 or more. per_second: retries a second that are
  // allowed without calls, 0 or more. capacity: retries that may be saved up, 1 or more; a new
  // budget is full. All of them at most 1,000,000. Throws InvalidArgument outside these ranges.
  // now: of any clock that does not go back; later calls take the same one.
  RetryBudget(double share, double per_second, double capacity, Nanoseconds now);

  // A call is made: not a retry of one.
  void deposit();

  // Whether a retry may be made now; if so, it is paid for.
  bool try_withdraw(Nanoseconds now);

  // Retries that could be made now.
  double balance(Nanoseconds now);

 private:
  void refill(Nanoseconds now);
  void add(std::int64_t tokens);

  // A retry is a billion of these: sums stay exact, ten times a tenth is one.
  static constexpr std::int64_t kRetry = 1'000'000'000;

  const std::int64_t share_, per_second_, capacity_;
  std::mutex mutex_;
  std::int64_t balance_;
  std::int64_t rest_ = 0;  // of the division in refill: less than kRetry
  Nanoseconds refilled_;
};

}  // namespace loki
