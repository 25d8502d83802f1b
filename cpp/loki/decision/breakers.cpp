#include "loki/decision/breakers.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace loki {
namespace {

BreakerReply apply(const BreakerConfig& config, BreakerState& state, const BreakerEvent& event,
                   Nanoseconds now) {
  const auto by_hand = [](MaybeTransition transition) {
    return BreakerReply{.answer = {std::nullopt, std::nullopt, transition}, .is_counted = true};
  };
  const auto outcome = [](const BreakerOutcome& of) {
    return BreakerReply{.answer = {std::nullopt, std::nullopt, of.transition},
                        .is_counted = of.is_counted};
  };
  switch (event.kind) {
    case BreakerEventKind::none:
      return {};
    case BreakerEventKind::acquire:
      return {.answer = breaker::acquire(config, state, now)};
    case BreakerEventKind::success:
      return outcome(breaker::success(config, state, event.permit, now));
    case BreakerEventKind::failure:
      return outcome(breaker::failure(config, state, event.permit, now, event.error, event.asked));
    case BreakerEventKind::ignore:
      return outcome(breaker::ignore(state, event.permit));
    case BreakerEventKind::open:
      return by_hand(breaker::open(config, state, now));
    case BreakerEventKind::close:
      return by_hand(breaker::close(state, now));
    case BreakerEventKind::reset:
      return by_hand(breaker::reset(state, now));
    case BreakerEventKind::isolate:
      return by_hand(breaker::isolate(state, now));
    case BreakerEventKind::expire:
      return by_hand(breaker::expire(config, state, now));
  }
  return {};
}

// What is counted for rates is each process's own business.
bool is_same_for_others(const BreakerState& before, BreakerState& after) {
  BreakerCalls calls = std::exchange(after.calls, before.calls);
  const bool is_same = before == after;
  after.calls = std::move(calls);
  return is_same;
}

void keep_newest(std::vector<Nanoseconds>& times, std::size_t count) {
  const std::size_t too_many = times.size() - std::min(times.size(), count);
  times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(too_many));
}

}  // namespace

SharedBreaker::SharedBreaker(std::string name, const BreakerConfig& config)
    : name_(std::move(name)), config_(config) {
  check(config_);
}

std::optional<BreakerPermit> SharedBreaker::acquire_closed(Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  if (state_.circuit != CircuitState::closed) return std::nullopt;
  ++counts_.granted;
  return BreakerPermit{state_.generation, 0, now};
}

bool SharedBreaker::success_closed(const BreakerPermit& permit) {
  if (permit.is_probe() || breaker::heeds_success(config_)) return false;
  const std::lock_guard lock(mutex_);
  const bool is_late =
      state_.circuit != CircuitState::closed || permit.generation != state_.generation;
  ++(is_late ? counts_.late : counts_.successes);
  return true;
}

std::optional<BreakerReply> SharedBreaker::locally(const BreakerEvent& event, Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  BreakerState after = state_;
  const BreakerReply reply = apply(config_, after, event, now);
  if (!is_same_for_others(state_, after)) return std::nullopt;
  state_ = std::move(after);
  return counted(event, reply);
}

BreakerReply SharedBreaker::together(const BreakerEvent& event, BreakersFile& file,
                                     const BreakerMoment& moment, std::string_view owner) {
  const std::lock_guard lock(mutex_);
  const MaybeTransition learned = adopt(file.state(name_, config_, moment), moment.now);
  const BreakerState before = state_;
  BreakerReply reply = applied(event, moment.now);
  reply.learned = learned;
  // Where nothing happened it stays as it is: its writer may know other arguments than we.
  const bool has_news = !is_written_ || event.kind == BreakerEventKind::none || !file.has(name_) ||
                        !is_same_for_others(before, state_);
  reply.is_to_write = has_news && file.put(name_, state_, moment, owner);
  is_written_ = true;
  return counted(event, reply);
}

BreakerReply SharedBreaker::alone(const BreakerEvent& event, Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  if (is_written_) unwritten_.clear();
  is_written_ = false;
  return counted(event, applied(event, now));
}

void SharedBreaker::note_unwritten() {
  const std::lock_guard lock(mutex_);
  is_written_ = false;
}

MaybeTransition SharedBreaker::look(const BreakersFile& file, const BreakerMoment& moment,
                                    bool& is_to_mend) {
  const std::lock_guard lock(mutex_);
  BreakerState found = file.state(name_, config_, moment);
  // As long as a cooldown can be: it was cut to that, by a clock that is not the writer's. Unless
  // it is written so, whoever comes after us cuts it anew, and it never ends.
  is_to_mend = found.circuit == CircuitState::open && !found.is_isolated &&
               !file.is_exact(name_, moment) &&
               found.cooldown_until >= later(moment.now, breaker::cooldown(config_, found));
  return adopt(std::move(found), moment.now);
}

MaybeTransition SharedBreaker::adopt(BreakerState found, Nanoseconds now) {
  if (is_written_) unwritten_.clear();
  if (!is_written_ && found.generation <= state_.generation) {
    if (found.generation == state_.generation) merge_unwritten(found);
    return std::nullopt;
  }
  const bool is_other = found.circuit != state_.circuit;
  // The file was lost, or written by somebody who knows no generations, which never go back.
  found.generation = std::max(found.generation, state_.generation);
  if (is_other && found.generation == state_.generation) ++found.generation;
  if (found.generation == state_.generation) {
    found.calls = std::move(state_.calls);
    if (found.cooldown_until && state_.cooldown_until) {
      found.cooldown_until = std::min(*found.cooldown_until, *state_.cooldown_until);
    }
  }
  const CircuitState before = std::exchange(state_, std::move(found)).circuit;
  is_written_ = true;
  if (!is_other) return std::nullopt;
  return BreakerTransition{before, state_.circuit, state_.last_change.value_or(now)};
}

// Of the same time of the breaker: what failed here and what failed elsewhere both count.
void SharedBreaker::merge_unwritten(const BreakerState& found) {
  if (found.circuit != CircuitState::closed || state_.circuit != CircuitState::closed) return;
  state_.failures = found.failures;
  state_.failures.insert(state_.failures.end(), unwritten_.begin(), unwritten_.end());
  std::sort(state_.failures.begin(), state_.failures.end());
  keep_newest(state_.failures, config_.threshold);
}

// Keeps in mind what the file would lack, if it could not be written.
BreakerReply SharedBreaker::applied(const BreakerEvent& event, Nanoseconds now) {
  const BreakerReply reply = apply(config_, state_, event, now);
  if (state_.failures.empty() || reply.answer.transition) {
    unwritten_.clear();
  } else if (event.kind == BreakerEventKind::failure && reply.is_counted) {
    unwritten_.push_back(now);
    keep_newest(unwritten_, config_.threshold);
  }
  return reply;
}

BreakerReply SharedBreaker::counted(const BreakerEvent& event, const BreakerReply& reply) {
  const bool is_void = !reply.is_counted;
  switch (event.kind) {
    case BreakerEventKind::acquire:
      ++(reply.answer.permit ? counts_.granted : counts_.refused);
      break;
    case BreakerEventKind::success:
      ++(is_void ? counts_.late : counts_.successes);
      break;
    case BreakerEventKind::failure:
      ++(is_void ? counts_.late : counts_.failures);
      break;
    case BreakerEventKind::ignore:
      ++(is_void ? counts_.late : counts_.ignored);
      break;
    default:
      break;
  }
  if (reply.answer.transition) ++counts_.transitions;
  return reply;
}

BreakerCounts SharedBreaker::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

BreakerView SharedBreaker::view(Nanoseconds now) const {
  const std::lock_guard lock(mutex_);
  return {state_, breaker::failure_count(config_, state_, now),
          breaker::window_start(config_, state_, now), breaker::retry_at(config_, state_, now)};
}

}  // namespace loki
