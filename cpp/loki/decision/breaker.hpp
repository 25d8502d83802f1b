// The circuit breaker as a table: (config, state, event, now) -> new state and what happened.
//
// Under test: tests/cpp/decision/breaker_test.cpp (promises), breaker_exhaustive_test.cpp (every
// short sequence of events beside a slow reference). docs/design/breaker.md has the table.
//
// No lock, no clock, no I/O: `now` comes in, as nanoseconds since any fixed moment, and the lock is
// one level up (breaker_locked.hpp). Whoever shares a breaker in another way (a file under a lock)
// loads a BreakerState, applies one event and writes it back. A `now` that goes backwards does no
// harm: what lies in the future counts as having happened now. Every sum saturates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loki/base/time.hpp"
#include "loki/decision/breaker_calls.hpp"

namespace loki {

// The numbers are part of stored data: never renumber.
enum class CircuitState : std::uint8_t { closed = 0, open = 1, half_open = 2 };

// What a failure counts among.
enum class BreakerWindow : std::uint8_t {
  time = 0,         // failures younger than `window`; successes do not clear them
  consecutive = 1,  // failures since the last success, however old
  calls = 2,        // failures among the last `window_calls` calls, however old
};

struct BreakerConfig {
  std::uint32_t threshold = 3;  // failures that trip it; of no account beside a failure_rate
  BreakerWindow mode = BreakerWindow::time;
  Nanoseconds window = std::chrono::seconds(60);
  std::uint32_t window_calls = 100;  // calls mode: how many; rates over time: at most this many
  Nanoseconds cooldown = std::chrono::seconds(300);
  double cooldown_multiplier = 1;  // growth per trip without a recovery between
  Nanoseconds cooldown_cap = std::chrono::hours(24);
  Nanoseconds half_open_interval = std::chrono::seconds(10);  // between the starts of two probes
  Nanoseconds probe_lease = std::chrono::seconds(600);
  std::uint32_t recovery_threshold = 3;  // consecutive successful probes that close it
  double failure_rate = 0;  // in (0, 1]: the share of failed calls that trips it; 0: the threshold
  double slow_call_rate = 0;  // in (0, 1]: the share of slow calls that trips it, too; 0: none
  Nanoseconds slow_call_duration{0};  // a call that takes this long is slow
  std::uint32_t minimum_calls = 10;   // fewer calls than this have no rate
};

// What a service asks for is waited for no longer than this. Source: as retry_after.cpp reads it.
inline constexpr Nanoseconds kLongestAsked = std::chrono::hours(24);

// Throws InvalidArgument for a config that says nothing or contradicts itself.
void check(const BreakerConfig& config);

// How long the breaker stays open after this many trips in a row (1 or more).
Nanoseconds cooldown_after(const BreakerConfig& config, std::uint32_t trips);

struct BreakerState {
  CircuitState circuit = CircuitState::closed;
  bool is_isolated = false;  // open, and held open until somebody closes, resets or opens it

  // Counts every transition and every event by hand: an outcome of an earlier generation is void.
  // 1 or more, never back.
  std::uint64_t generation = 1;

  // Failures that count, oldest first, at most `threshold` of them. CLOSED: those that may trip it.
  // OPEN: those that did. HALF_OPEN, or opened by hand: none. Empty where calls are counted
  // instead.
  std::vector<Nanoseconds> failures;
  BreakerCalls calls;               // mode `calls`, and rates; nothing that processes share
  std::uint32_t success_count = 0;  // HALF_OPEN: successful probes in a row
  std::uint32_t trips = 0;          // in a row: since it was last closed

  std::optional<Nanoseconds> last_failure;    // none: since it was last closed
  std::optional<Nanoseconds> last_change;     // none: since the beginning
  std::optional<Nanoseconds> cooldown_until;  // OPEN, unless isolated
  std::optional<Nanoseconds> asked;  // OPEN: how long the service asked to wait, where it did
  std::string last_error;            // of the last failure that counted; cached for refusals

  std::uint64_t probes = 0;  // numbers them, never back: the last one is what is or was in flight
  bool is_probing = false;   // it is in flight
  std::optional<Nanoseconds> probe_started;  // when it left; stays, for the interval

  bool operator==(const BreakerState&) const = default;
};

// Leave for one call. A value: who reports it twice is looked after one level up.
struct BreakerPermit {
  std::uint64_t generation = 0;
  std::uint64_t probe = 0;  // its number; 0: an ordinary call
  Nanoseconds started{0};

  bool is_probe() const { return probe != 0; }
  bool operator==(const BreakerPermit&) const = default;
};

struct BreakerTransition {
  CircuitState from;
  CircuitState to;
  Nanoseconds at;

  bool operator==(const BreakerTransition&) const = default;
};

struct BreakerAnswer {
  std::optional<BreakerPermit> permit;  // none: refused
  // Where refused: when to come back. Sure where it is OPEN or between two probes; while a probe is
  // in flight only a good moment to ask again. None: somebody must close it.
  std::optional<Nanoseconds> retry_at;
  std::optional<BreakerTransition> transition;
};

struct BreakerOutcome {
  bool is_counted = false;  // false: late, of an earlier generation, or of a probe out of its lease
  std::optional<BreakerTransition> transition;
};

using MaybeTransition = std::optional<BreakerTransition>;

namespace breaker {

// --- the table ----------------------------------------------------------------------------

// May a call go out? OPEN becomes HALF_OPEN here, where the cooldown is over.
BreakerAnswer acquire(const BreakerConfig& config, BreakerState& state, Nanoseconds now);

// The outcome of a permit. `error`: what to show those that are refused.
BreakerOutcome success(const BreakerConfig& config, BreakerState& state,
                       const BreakerPermit& permit, Nanoseconds now);
// `asked`: how long the service asks to wait. A trip takes it for the cooldown; the second one in a
// row, and later ones, only where it is longer than their own, as a service may always ask for 1 s.
BreakerOutcome failure(const BreakerConfig& config, BreakerState& state,
                       const BreakerPermit& permit, Nanoseconds now, std::string_view error,
                       std::optional<Nanoseconds> asked = std::nullopt);

// No outcome: cancelled, dropped, or an error that says nothing about the other side. A probe frees
// its slot; in time or not is the same, so no time is asked for. Never a transition.
BreakerOutcome ignore(BreakerState& state, const BreakerPermit& permit);

// By hand. A new generation each, unless it closes what is closed: what is under way is void.
MaybeTransition open(const BreakerConfig& config, BreakerState& state, Nanoseconds now);
MaybeTransition isolate(BreakerState& state, Nanoseconds now);  // open without end
MaybeTransition close(BreakerState& state, Nanoseconds now);    // as after a recovery
MaybeTransition reset(BreakerState& state, Nanoseconds now);    // and a closed one forgets, too

// What time does alone: a lease runs out, a cooldown ends. `acquire` does it first.
MaybeTransition expire(const BreakerConfig& config, BreakerState& state, Nanoseconds now);

// --- looking and loading ------------------------------------------------------------------

// Whether an ordinary call's success can change anything. Where it cannot, who knows that the
// breaker is CLOSED needs neither lock nor clock to let calls go out and come back well.
bool heeds_success(const BreakerConfig& config);

// Failures that count at `now`.
std::uint32_t failure_count(const BreakerConfig& config, const BreakerState& state,
                            Nanoseconds now);

// The oldest failure that counts at `now`; none where there is none, or where calls are counted.
std::optional<Nanoseconds> window_start(const BreakerConfig& config, const BreakerState& state,
                                        Nanoseconds now);

// How long an open breaker stays so, from its start on: as grown, or as the service asked.
Nanoseconds cooldown(const BreakerConfig& config, const BreakerState& state);

// When a refused call may come back; `now` where the next call is granted; none while isolated.
std::optional<Nanoseconds> retry_at(const BreakerConfig& config, const BreakerState& state,
                                    Nanoseconds now);

// Makes sense of a state that was stored, perhaps by others, by another clock or long ago: what is
// left of the cooldown is at most a cooldown, failures in the future are dropped, no time lies
// ahead of `now`.
void restore(const BreakerConfig& config, BreakerState& state, Nanoseconds now);

}  // namespace breaker
}  // namespace loki
