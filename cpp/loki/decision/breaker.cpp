#include "loki/decision/breaker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "loki/base/error.hpp"
#include "loki/decision/backoff.hpp"

namespace loki {
namespace {

bool counts_rates(const BreakerConfig& config) {
  return config.failure_rate > 0 || config.slow_call_rate > 0;
}

bool keeps_calls(const BreakerConfig& config) {
  return config.mode == BreakerWindow::calls || counts_rates(config);
}

// Whether failures are counted by their times, not among the calls.
bool keeps_failures(const BreakerConfig& config) {
  return config.mode != BreakerWindow::calls && config.failure_rate == 0;
}

bool is_old(const BreakerConfig& config, Nanoseconds moment, Nanoseconds now) {
  return config.mode == BreakerWindow::time && elapsed(moment, now) >= config.window;
}

void rewind(std::optional<Nanoseconds>& moment, Nanoseconds now) {
  if (moment && *moment > now) moment = now;
}

// Where the clock went back: what lies ahead has happened now, and a cooldown is no longer than
// one.
void follow_clock(const BreakerConfig& config, BreakerState& state, Nanoseconds now) {
  for (auto it = state.failures.rbegin(); it != state.failures.rend() && *it > now; ++it) *it = now;
  rewind(state.last_failure, now);
  rewind(state.probe_started, now);
  if (!state.last_change || *state.last_change <= now) return;
  state.last_change = now;
  if (state.cooldown_until) {
    state.cooldown_until =
        std::min(*state.cooldown_until, later(now, breaker::cooldown(config, state)));
  }
}

void forget_counts(BreakerState& state) {
  state.failures.clear();
  state.calls.clear();
}

// Every transition passes here: a new generation, no probe, no counts of the old state.
MaybeTransition move_to(BreakerState& state, CircuitState to, Nanoseconds now) {
  const CircuitState from = state.circuit;
  state.circuit = to;
  ++state.generation;
  state.is_probing = false;
  state.is_isolated = false;
  state.probe_started.reset();
  state.cooldown_until.reset();
  state.asked.reset();
  state.success_count = 0;
  if (from == to) return std::nullopt;
  state.last_change = now;
  return BreakerTransition{from, to, now};
}

MaybeTransition to_open(const BreakerConfig& config, BreakerState& state, Nanoseconds now,
                        std::optional<Nanoseconds> asked = std::nullopt) {
  const MaybeTransition transition = move_to(state, CircuitState::open, now);
  state.asked = asked;
  state.cooldown_until = later(now, breaker::cooldown(config, state));
  return transition;
}

MaybeTransition trip(const BreakerConfig& config, BreakerState& state, Nanoseconds now,
                     std::optional<Nanoseconds> asked) {
  if (state.trips < std::numeric_limits<std::uint32_t>::max()) ++state.trips;
  return to_open(config, state, now, asked);
}

MaybeTransition to_closed(BreakerState& state, Nanoseconds now) {
  forget_counts(state);
  state.last_failure.reset();
  state.last_error.clear();
  state.trips = 0;
  return move_to(state, CircuitState::closed, now);
}

MaybeTransition to_half_open(BreakerState& state, Nanoseconds now) {
  forget_counts(state);
  return move_to(state, CircuitState::half_open, now);
}

void end_lease(const BreakerConfig& config, BreakerState& state, Nanoseconds now) {
  if (state.is_probing && elapsed(state.probe_started.value_or(now), now) >= config.probe_lease) {
    state.is_probing = false;
  }
}

// Whether a permit's outcome still concerns anybody.
bool is_current(const BreakerState& state, const BreakerPermit& permit) {
  if (permit.generation != state.generation) return false;
  if (state.circuit == CircuitState::closed) return !permit.is_probe();
  return state.circuit == CircuitState::half_open && state.is_probing &&
         permit.probe == state.probes;
}

// The same, once time has done its part.
bool is_current(const BreakerConfig& config, BreakerState& state, const BreakerPermit& permit,
                Nanoseconds now) {
  follow_clock(config, state, now);
  end_lease(config, state, now);
  return is_current(state, permit);
}

// Failures age while the breaker is CLOSED; those that tripped it stay as they were.
std::vector<Nanoseconds>::const_iterator first_counted(const BreakerConfig& config,
                                                       const BreakerState& state, Nanoseconds now) {
  if (state.circuit != CircuitState::closed) return state.failures.begin();
  return std::find_if(state.failures.begin(), state.failures.end(),
                      [&](Nanoseconds at) { return !is_old(config, at, now); });
}

void count_failure(const BreakerConfig& config, BreakerState& state, Nanoseconds now) {
  auto& failures = state.failures;
  failures.erase(failures.begin(), first_counted(config, state, now));
  if (failures.size() >= config.threshold) failures.erase(failures.begin());
  failures.push_back(now);
}

bool reaches(std::size_t part, std::size_t whole, double rate) {
  // The quotient, not the product: 7 of 100 is a rate of 0.07 exactly as it is written.
  return rate > 0 && static_cast<double>(part) / static_cast<double>(whole) >= rate;
}

bool is_too_much(const BreakerConfig& config, const BreakerState& state) {
  const BreakerCalls& calls = state.calls;
  if (config.failure_rate == 0) {
    const auto failed = keeps_failures(config) ? state.failures.size() : calls.failed();
    if (failed >= config.threshold) return true;
  }
  if (calls.size() < config.minimum_calls) return false;
  return reaches(calls.failed(), calls.size(), config.failure_rate) ||
         reaches(calls.slow(), calls.size(), config.slow_call_rate);
}

void count(const BreakerConfig& config, BreakerState& state, const BreakerCall& call) {
  const Nanoseconds now = call.ended;
  if (keeps_calls(config)) {
    state.calls.drop_while([&](Nanoseconds at) { return is_old(config, at, now); });
    state.calls.add(call, config.window_calls);
  }
  if (!keeps_failures(config)) return;
  if (call.is_failed) {
    count_failure(config, state, now);
  } else if (config.mode == BreakerWindow::consecutive) {
    state.failures.clear();
  }
}

BreakerOutcome record(const BreakerConfig& config, BreakerState& state, const BreakerPermit& permit,
                      Nanoseconds now, bool is_failed,
                      std::optional<Nanoseconds> asked = std::nullopt) {
  const bool is_slow =
      config.slow_call_rate > 0 && elapsed(permit.started, now) >= config.slow_call_duration;
  count(config, state, {now, is_failed, is_slow});
  if (state.circuit == CircuitState::closed) {
    return {true, is_too_much(config, state) ? trip(config, state, now, asked) : std::nullopt};
  }
  state.is_probing = false;
  if (is_failed || is_slow) return {true, trip(config, state, now, asked)};
  const bool has_recovered = ++state.success_count >= config.recovery_threshold;
  return {true, has_recovered ? to_closed(state, now) : std::nullopt};
}

void require(bool condition, const char* message) {
  if (!condition) throw InvalidArgument(message);
}

bool is_rate(double rate) {
  return rate >= 0 && rate <= 1;  // false for NaN
}

}  // namespace

void check(const BreakerConfig& config) {
  const Nanoseconds zero(0);
  require(config.threshold >= 1, "threshold must be 1 or more");
  require(config.recovery_threshold >= 1, "recovery_threshold must be 1 or more");
  require(config.window > zero, "window must be longer than 0");
  require(config.probe_lease > zero, "probe_lease must be longer than 0");
  require(config.half_open_interval >= zero, "half_open_interval must not be negative");
  require(is_rate(config.failure_rate), "failure_rate must be within (0, 1]");
  require(is_rate(config.slow_call_rate), "slow_call_rate must be within (0, 1]");
  require((config.slow_call_rate > 0) == (config.slow_call_duration > zero),
          "slow_call_rate and slow_call_duration need each other");
  require(config.slow_call_duration >= zero, "slow_call_duration must not be negative");
  require(config.window_calls >= 1, "window_calls must be 1 or more");
  require(config.minimum_calls >= 1, "minimum_calls must be 1 or more");
  require(!counts_rates(config) || config.minimum_calls <= config.window_calls,
          "minimum_calls above window_calls: no rate would ever be known");
  require(!counts_rates(config) || config.mode != BreakerWindow::consecutive,
          "a rate needs a window of time or of calls, not of consecutive failures");
  require(config.mode != BreakerWindow::calls || config.failure_rate > 0 ||
              config.threshold <= config.window_calls,
          "threshold above window_calls: it would never trip");
  cooldown_after(config, 1);  // the rest is refused there
}

Nanoseconds cooldown_after(const BreakerConfig& config, std::uint32_t trips) {
  const Backoff growing(config.cooldown, config.cooldown_multiplier, config.cooldown_cap, 0, 0);
  return growing.delay(std::max(trips, 1U), "", 1);
}

namespace breaker {

Nanoseconds cooldown(const BreakerConfig& config, const BreakerState& state) {
  const Nanoseconds own = cooldown_after(config, state.trips);
  if (!state.asked) return own;
  const Nanoseconds asked = std::clamp(*state.asked, Nanoseconds(0), kLongestAsked);
  return state.trips > 1 ? std::max(asked, own) : asked;
}

BreakerAnswer acquire(const BreakerConfig& config, BreakerState& state, Nanoseconds now) {
  BreakerAnswer answer;
  answer.transition = expire(config, state, now);
  if (state.circuit == CircuitState::closed) {
    answer.permit = BreakerPermit{state.generation, 0, now};
    return answer;
  }
  answer.retry_at = retry_at(config, state, now);
  if (state.circuit == CircuitState::half_open && !state.is_probing && answer.retry_at == now) {
    state.is_probing = true;
    state.probe_started = now;
    answer.permit = BreakerPermit{state.generation, ++state.probes, now};
    answer.retry_at.reset();
  }
  return answer;
}

BreakerOutcome success(const BreakerConfig& config, BreakerState& state,
                       const BreakerPermit& permit, Nanoseconds now) {
  if (!is_current(config, state, permit, now)) return {};
  return record(config, state, permit, now, false);
}

BreakerOutcome failure(const BreakerConfig& config, BreakerState& state,
                       const BreakerPermit& permit, Nanoseconds now, std::string_view error,
                       std::optional<Nanoseconds> asked) {
  if (!is_current(config, state, permit, now)) return {};
  state.last_failure = now;
  state.last_error = error;
  return record(config, state, permit, now, true, asked);
}

BreakerOutcome ignore(BreakerState& state, const BreakerPermit& permit) {
  if (!is_current(state, permit)) return {};
  if (permit.is_probe()) state.is_probing = false;
  return {true, std::nullopt};
}

MaybeTransition open(const BreakerConfig& config, BreakerState& state, Nanoseconds now) {
  forget_counts(state);
  return to_open(config, state, now);
}

MaybeTransition isolate(BreakerState& state, Nanoseconds now) {
  forget_counts(state);
  const MaybeTransition transition = move_to(state, CircuitState::open, now);
  state.is_isolated = true;
  return transition;
}

MaybeTransition close(BreakerState& state, Nanoseconds now) {
  return state.circuit == CircuitState::closed ? std::nullopt : to_closed(state, now);
}

MaybeTransition reset(BreakerState& state, Nanoseconds now) {
  return to_closed(state, now);
}

MaybeTransition expire(const BreakerConfig& config, BreakerState& state, Nanoseconds now) {
  if (state.circuit == CircuitState::closed) return std::nullopt;
  follow_clock(config, state, now);
  end_lease(config, state, now);
  const bool is_over = state.circuit == CircuitState::open && !state.is_isolated &&
                       now >= state.cooldown_until.value_or(now);
  return is_over ? to_half_open(state, now) : std::nullopt;
}

bool heeds_success(const BreakerConfig& config) {
  return keeps_calls(config) || config.mode == BreakerWindow::consecutive;
}

std::uint32_t failure_count(const BreakerConfig& config, const BreakerState& state,
                            Nanoseconds now) {
  if (keeps_failures(config)) {
    return static_cast<std::uint32_t>(state.failures.end() - first_counted(config, state, now));
  }
  BreakerCalls calls = state.calls;
  if (state.circuit == CircuitState::closed) {
    calls.drop_while([&](Nanoseconds at) { return is_old(config, at, now); });
  }
  return static_cast<std::uint32_t>(calls.failed());
}

std::optional<Nanoseconds> window_start(const BreakerConfig& config, const BreakerState& state,
                                        Nanoseconds now) {
  const auto first = first_counted(config, state, now);
  return first == state.failures.end() ? std::nullopt : std::optional(*first);
}

std::optional<Nanoseconds> retry_at(const BreakerConfig& config, const BreakerState& state,
                                    Nanoseconds now) {
  if (state.is_isolated) return std::nullopt;
  if (state.circuit == CircuitState::closed) return now;
  if (state.circuit == CircuitState::open) return std::max(now, state.cooldown_until.value_or(now));
  if (!state.probe_started) return now;
  const Nanoseconds next = later(*state.probe_started, config.half_open_interval);
  if (!state.is_probing || next > now) return std::max(now, next);
  const Nanoseconds lease_end = later(*state.probe_started, config.probe_lease);
  return std::max(now, std::min(later(now, config.half_open_interval), lease_end));
}

void restore(const BreakerConfig& config, BreakerState& state, Nanoseconds now) {
  auto& failures = state.failures;
  if (!keeps_failures(config)) failures.clear();
  std::erase_if(failures, [&](Nanoseconds at) { return at > now; });
  std::sort(failures.begin(), failures.end());
  if (failures.size() > config.threshold) {
    failures.erase(failures.begin(),
                   failures.end() - static_cast<std::ptrdiff_t>(config.threshold));
  }
  state.generation = std::max<std::uint64_t>(state.generation, 1);
  rewind(state.last_failure, now);
  rewind(state.last_change, now);
  rewind(state.probe_started, now);
  if (state.is_probing && !state.probe_started) state.probe_started = now;
  if (state.circuit == CircuitState::closed) state.trips = 0;  // whoever closed it
  if (state.circuit != CircuitState::open) {
    state.is_isolated = false;
    state.cooldown_until.reset();
    state.asked.reset();
  } else if (!state.is_isolated) {
    const Nanoseconds cooldown = breaker::cooldown(config, state);
    const Nanoseconds until =
        state.cooldown_until.value_or(later(state.last_change.value_or(now), cooldown));
    state.cooldown_until = std::clamp(until, now, later(now, cooldown));
  }
}

}  // namespace breaker
}  // namespace loki
