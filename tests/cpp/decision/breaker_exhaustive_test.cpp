// Every sequence of up to six events, from every state, beside a slow reference that keeps the
// whole story and looks everything up in it.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "loki/decision/breaker.hpp"

namespace loki {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kDepth = 4;  // a hundred times slower there, and it is one thread's arithmetic
#else
constexpr int kDepth = 6;
#endif

enum class Event {
  acquire,
  success,
  failure,
  ignore,
  late_success,
  late_failure,
  half_window,
  interval,
  cooldown,
  lease,
  open,
  close,
  reset,
  isolate
};
constexpr int kEvents = 14;
constexpr std::array<const char*, kEvents> kNames = {
    "acquire", "success", "failure", "ignore", "late success", "late failure", "+30s",
    "+10s",    "+300s",   "+600s",   "open",   "close",        "reset",        "isolate"};

BreakerConfig small_config() {
  BreakerConfig config;  // the documents' times; fewer outcomes, so that six events reach far
  config.threshold = 2;
  config.recovery_threshold = 2;
  config.cooldown_multiplier = 2;
  return config;
}

// What can be seen from outside after an event.
struct Seen {
  std::string state;
  bool is_granted = false;
  bool is_counted = false;
  bool has_changed = false;
  long failures = 0, successes = 0;
  std::optional<long> wait;  // seconds to come back; none: isolated

  bool operator==(const Seen&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << seen.state << " granted=" << seen.is_granted << " counted=" << seen.is_counted
             << " changed=" << seen.has_changed << " failures=" << seen.failures
             << " successes=" << seen.successes << " wait=" << seen.wait.value_or(-1);
}

// --- the reference: whole seconds, nothing is ever thrown away -----------------------------------

class Reference {
 public:
  Seen after(Event event) {
    const std::string before = state_;
    seen_ = Seen{};
    step(event);
    seen_.has_changed = state_ != before;
    seen_.state = state_;
    seen_.failures = failures();
    seen_.successes = state_ == "half-open" ? successes_ : 0;
    seen_.wait = wait();
    return seen_;
  }

 private:
  struct Call {
    long began;
    int period;
    bool is_probe;
    bool is_done = false;
  };

  void step(Event event) {
    switch (event) {
      case Event::acquire:
        return acquire();
      case Event::success:
        return finish(calls_.size(), 's');
      case Event::failure:
        return finish(calls_.size(), 'f');
      case Event::ignore:
        return finish(calls_.size(), 'i');
      case Event::late_success:
        return finish(1, 's');
      case Event::late_failure:
        return finish(1, 'f');
      case Event::half_window:
        now_ += 30;
        return;
      case Event::interval:
        now_ += 10;
        return;
      case Event::cooldown:
        now_ += 300;
        return;
      case Event::lease:
        now_ += 600;
        return;
      case Event::open:
        failed_.clear();
        return begin("open");
      case Event::close:
        if (state_ != "closed") begin("closed");
        return;
      case Event::reset:
        return begin("closed");
      case Event::isolate:
        failed_.clear();
        begin("open");
        isolated_ = true;
        return;
    }
  }

  // A new period: from now on everything that went out before is late.
  void begin(const std::string& state) {
    if (state == "closed") trips_ = 0;
    if (state != "open") failed_.clear();
    state_ = state;
    began_ = now_;
    isolated_ = false;
    successes_ = 0;
    ++period_;
  }

  long cooldown() const { return std::min(86400L, 300L << (trips_ > 1 ? trips_ - 1 : 0)); }
  bool is_flying(const Call& call) const {
    return call.is_probe && call.period == period_ && !call.is_done && now_ - call.began < 600;
  }

  void acquire() {
    if (state_ == "open" && !isolated_ && now_ - began_ >= cooldown()) begin("half-open");
    seen_.is_granted = state_ == "closed" || (state_ == "half-open" && wait() == 0 && !flying());
    if (seen_.is_granted) calls_.push_back({now_, period_, state_ == "half-open"});
  }

  bool flying() const {
    for (const Call& call : calls_)
      if (is_flying(call)) return true;
    return false;
  }

  void finish(std::size_t number, char outcome) {
    if (number == 0 || calls_.empty()) return;
    Call& call = calls_[number - 1];
    if (call.period != period_ || (call.is_probe && !is_flying(call))) return;
    seen_.is_counted = outcome != 'i';
    const bool is_probe = call.is_probe;
    call.is_done = true;
    if (outcome == 'f') {
      failed_.push_back(now_);
      if (!is_probe && failures() < 2) return;
      ++trips_;
      begin("open");
    }
    if (outcome == 's' && is_probe && ++successes_ == 2) begin("closed");
  }

  long failures() const {
    long count = 0;
    const long until = state_ == "closed" ? now_ : began_;
    for (const long at : failed_) count += until - at < 60;
    return count;
  }

  std::optional<long> wait() const {
    if (isolated_) return std::nullopt;
    if (state_ == "closed") return 0;
    if (state_ == "open") return std::max(0L, began_ + cooldown() - now_);
    for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
      if (!call->is_probe || call->period != period_) continue;
      const long next = call->began + 10 - now_;
      if (next > 0) return next;
      return is_flying(*call) ? std::min(10L, call->began + 600 - now_) : 0;
    }
    return 0;
  }

  std::string state_ = "closed";
  long now_ = 1000, began_ = 1000;
  int period_ = 0, trips_ = 0;
  long successes_ = 0;
  bool isolated_ = false;
  std::vector<long> failed_;
  std::vector<Call> calls_;
  Seen seen_;
};

// --- the machine under test, asked the same ------------------------------------------------------

class Machine {
 public:
  Seen after(Event event) {
    seen_ = Seen{};
    step(event);
    static constexpr std::array<const char*, 3> kStates = {"closed", "open", "half-open"};
    seen_.state = kStates.at(static_cast<std::size_t>(state_.circuit));
    seen_.failures = breaker::failure_count(config(), state_, now_);
    seen_.successes = state_.success_count;
    if (const auto at = breaker::retry_at(config(), state_, now_)) seen_.wait = (*at - now_) / 1s;
    return seen_;
  }

 private:
  static const BreakerConfig& config() {
    static const BreakerConfig kConfig = small_config();
    return kConfig;
  }

  void step(Event event) {
    switch (event) {
      case Event::acquire:
        return acquire();
      case Event::success:
        return finish(permits_.size(), 's');
      case Event::failure:
        return finish(permits_.size(), 'f');
      case Event::ignore:
        return finish(permits_.size(), 'i');
      case Event::late_success:
        return finish(1, 's');
      case Event::late_failure:
        return finish(1, 'f');
      case Event::half_window:
        now_ += 30s;
        return;
      case Event::interval:
        now_ += 10s;
        return;
      case Event::cooldown:
        now_ += 300s;
        return;
      case Event::lease:
        now_ += 600s;
        return;
      case Event::open:
        return note(breaker::open(config(), state_, now_));
      case Event::close:
        return note(breaker::close(state_, now_));
      case Event::reset:
        return note(breaker::reset(state_, now_));
      case Event::isolate:
        return note(breaker::isolate(state_, now_));
    }
  }

  void note(const MaybeTransition& transition) { seen_.has_changed = transition.has_value(); }

  void acquire() {
    const BreakerAnswer answer = breaker::acquire(config(), state_, now_);
    note(answer.transition);
    seen_.is_granted = answer.permit.has_value();
    if (answer.permit) permits_.push_back(*answer.permit);
  }

  void finish(std::size_t number, char outcome) {
    if (number == 0 || permits_.empty()) return;
    const BreakerPermit& permit = permits_[number - 1];
    if (outcome == 'i') {
      breaker::ignore(state_, permit);
      return;
    }
    const BreakerOutcome result = outcome == 's'
                                      ? breaker::success(config(), state_, permit, now_)
                                      : breaker::failure(config(), state_, permit, now_, "down");
    seen_.is_counted = result.is_counted;
    note(result.transition);
  }

  BreakerState state_;
  Nanoseconds now_ = 1000s;
  std::vector<BreakerPermit> permits_;
  Seen seen_;
};

// --- every sequence ------------------------------------------------------------------------------

struct Search {
  std::vector<Event> path;
  long steps = 0;

  // False at the first difference, which it has reported.
  bool all_agree(const Machine& machine, const Reference& reference, int depth) {
    for (int i = 0; i < kEvents && depth > 0; ++i) {
      Machine next = machine;
      Reference expected = reference;
      path.push_back(static_cast<Event>(i));
      if (!agree(next, expected, path.back())) return false;
      if (!all_agree(next, expected, depth - 1)) return false;
      path.pop_back();
    }
    return true;
  }

  bool agree(Machine& machine, Reference& reference, Event event) {
    const Seen seen = machine.after(event), expected = reference.after(event);
    ++steps;
    if (seen == expected) return true;
    std::string story;
    for (const Event past : path)
      story += std::string(kNames.at(static_cast<std::size_t>(past))) + ", ";
    ADD_FAILURE() << story << "gave\n  " << seen << "\nexpected\n  " << expected;
    return false;
  }
};

struct Start {
  const char* name;
  std::vector<Event> events;
};

class BreakerExhaustive : public testing::TestWithParam<Start> {};

TEST_P(BreakerExhaustive, AgreesWithTheReference) {
  Machine machine;
  Reference reference;
  Search search;
  for (const Event event : GetParam().events) {
    search.path.push_back(event);
    ASSERT_TRUE(search.agree(machine, reference, event));
  }
  EXPECT_TRUE(search.all_agree(machine, reference, kDepth));
  EXPECT_GT(search.steps, 14 * 14 * 14 * 14);
}

constexpr auto kAcquire = Event::acquire;
constexpr auto kFailure = Event::failure;
INSTANTIATE_TEST_SUITE_P(
    States, BreakerExhaustive,
    testing::Values(
        Start{"closed", {}}, Start{"open", {kAcquire, kFailure, kAcquire, kFailure}},
        Start{"probing", {kAcquire, kFailure, kAcquire, kFailure, Event::cooldown, kAcquire}},
        Start{"recovering",
              {kAcquire, kFailure, kAcquire, kFailure, Event::cooldown, kAcquire, Event::success}},
        Start{"isolated", {kAcquire, Event::isolate}}),
    [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace loki
