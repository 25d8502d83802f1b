#include "loki/decision/breaker_locked.hpp"

#include <utility>

namespace loki {
namespace {

const BreakerConfig& checked(const BreakerConfig& config) {
  check(config);
  return config;
}

const MaybeTransition& transition_of(const MaybeTransition& transition) {
  return transition;
}
template <typename Result>
const MaybeTransition& transition_of(const Result& result) {
  return result.transition;
}

}  // namespace

LockedBreaker::LockedBreaker(const BreakerConfig& config)
    : config_(checked(config)),
      heeds_success_(breaker::heeds_success(config)),
      closed_generation_(heeds_success_ ? 0 : state_.generation) {}

template <typename Event>
auto LockedBreaker::apply(Event&& event) {
  const std::lock_guard lock(mutex_);
  auto result = event(state_);
  settle(transition_of(result));
  return result;
}

void LockedBreaker::settle(const MaybeTransition& transition) {
  const bool is_closed = state_.circuit == CircuitState::closed;
  closed_generation_.store(is_closed && !heeds_success_ ? state_.generation : 0,
                           std::memory_order_release);
  if (!transition) return;
  add(transitions_);
  news_.push_back(*transition);
  has_news_.store(true, std::memory_order_release);
}

std::optional<BreakerPermit> LockedBreaker::acquire(Nanoseconds now, BreakerRefusal* refusal) {
  const BreakerAnswer answer = apply([&](BreakerState& state) {
    BreakerAnswer given = breaker::acquire(config_, state, now);
    if (!given.permit && refusal != nullptr) refusal->last_error = state.last_error;
    return given;
  });
  add(answer.permit ? granted_ : refused_);
  if (answer.retry_at && refusal != nullptr) refusal->retry_after = elapsed(now, *answer.retry_at);
  return answer.permit;
}

void LockedBreaker::success(const BreakerPermit& permit, Nanoseconds now) {
  if (success_closed(permit)) return;
  const BreakerOutcome outcome =
      apply([&](BreakerState& state) { return breaker::success(config_, state, permit, now); });
  add(outcome.is_counted ? successes_ : late_);
}

void LockedBreaker::failure(const BreakerPermit& permit, Nanoseconds now, std::string_view error,
                            std::optional<Nanoseconds> asked) {
  const BreakerOutcome outcome = apply([&](BreakerState& state) {
    return breaker::failure(config_, state, permit, now, error, asked);
  });
  add(outcome.is_counted ? failures_ : late_);
}

void LockedBreaker::ignore(const BreakerPermit& permit) {
  const BreakerOutcome outcome =
      apply([&](BreakerState& state) { return breaker::ignore(state, permit); });
  add(outcome.is_counted ? ignored_ : late_);
}

void LockedBreaker::open(Nanoseconds now) {
  apply([&](BreakerState& state) { return breaker::open(config_, state, now); });
}

void LockedBreaker::isolate(Nanoseconds now) {
  apply([&](BreakerState& state) { return breaker::isolate(state, now); });
}

void LockedBreaker::close(Nanoseconds now) {
  apply([&](BreakerState& state) { return breaker::close(state, now); });
}

void LockedBreaker::reset(Nanoseconds now) {
  apply([&](BreakerState& state) { return breaker::reset(state, now); });
}

void LockedBreaker::expire(Nanoseconds now) {
  apply([&](BreakerState& state) { return breaker::expire(config_, state, now); });
}

BreakerView LockedBreaker::view(Nanoseconds now) const {
  const std::lock_guard lock(mutex_);
  return {state_, breaker::failure_count(config_, state_, now),
          breaker::window_start(config_, state_, now), breaker::retry_at(config_, state_, now)};
}

BreakerCounts LockedBreaker::counts() const {
  return {granted_, refused_, successes_, failures_, ignored_, late_, transitions_};
}

std::vector<BreakerTransition> LockedBreaker::take_news() {
  const std::lock_guard lock(mutex_);
  has_news_.store(false, std::memory_order_release);
  return std::exchange(news_, {});
}

}  // namespace loki
