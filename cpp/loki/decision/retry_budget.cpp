#include "loki/decision/retry_budget.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "loki/base/error.hpp"
#include "loki/base/wide.hpp"

namespace loki {
namespace {

constexpr double kMost = 1e6;

std::int64_t tokens(const char* name, double retries, double least) {
  if (!(retries >= least && retries <= kMost)) {
    std::ostringstream message;
    message << name << " is " << retries << ": expected a number from " << least << " to 1000000";
    throw InvalidArgument(message.str());
  }
  return std::llround(retries * 1e9);
}

}  // namespace

RetryBudget::RetryBudget(double share, double per_second, double capacity, Nanoseconds now)
    : share_(tokens("share", share, 0)),
      per_second_(tokens("per_second", per_second, 0)),
      capacity_(tokens("capacity", capacity, 1)),
      balance_(capacity_),
      refilled_(now) {}

// What is above the capacity is lost; there is room for the sum, as both are at most 10^15.
void RetryBudget::add(std::int64_t tokens) {
  balance_ = std::min(capacity_, balance_ + tokens);
}

// Tokens for the time since the last refill, and what a division leaves is kept for the next one.
void RetryBudget::refill(Nanoseconds now) {
  if (now <= refilled_) return;
  // As unsigned numbers, whose difference cannot overflow.
  const std::uint64_t passed =
      static_cast<std::uint64_t>(now.count()) - static_cast<std::uint64_t>(refilled_.count());
  const uint128 earned =
      uint128{passed} * static_cast<std::uint64_t>(per_second_) + static_cast<std::uint64_t>(rest_);
  const uint128 whole = earned / kRetry;
  rest_ = static_cast<std::int64_t>(earned % kRetry);
  refilled_ = now;
  add(whole < static_cast<std::uint64_t>(capacity_) ? static_cast<std::int64_t>(whole) : capacity_);
}

void RetryBudget::deposit() {
  const std::scoped_lock lock(mutex_);
  add(share_);
}

bool RetryBudget::try_withdraw(Nanoseconds now) {
  const std::scoped_lock lock(mutex_);
  refill(now);
  if (balance_ < kRetry) return false;
  balance_ -= kRetry;
  return true;
}

double RetryBudget::balance(Nanoseconds now) {
  const std::scoped_lock lock(mutex_);
  refill(now);
  return static_cast<double>(balance_) / static_cast<double>(kRetry);
}

}  // namespace loki
