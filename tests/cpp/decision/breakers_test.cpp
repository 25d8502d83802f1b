#include "loki/decision/breakers.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "loki/base/error.hpp"

namespace loki {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using Kind = BreakerEventKind;

BreakerMoment at(Nanoseconds now) {
  return {now, hours(24 * 365 * 55) + now, "boot"};
}

// A file's content, and how often it was written.
struct Disk {
  std::string bytes = "{}";
  int writes = 0;
};

// One process: looks before every event, and does what a driver does.
class Process {
 public:
  Process(Disk& disk, const BreakerConfig& config) : disk_(disk), breaker_("x", config) {}

  BreakerReply send(const BreakerEvent& event, Nanoseconds now) {
    look(now);
    if (event.kind == Kind::acquire) {
      if (const auto permit = breaker_.acquire_closed(now)) return {{permit, {}, {}}};
    }
    const auto late = breaker_.counts().late;
    if (event.kind == Kind::success && breaker_.success_closed(event.permit)) {
      return {{}, breaker_.counts().late == late};
    }
    if (const auto reply = breaker_.locally(event, now)) return *reply;
    return together(event, now);
  }
  BreakerReply together(const BreakerEvent& event, Nanoseconds now) {
    BreakersFile file(disk_.bytes);
    const BreakerReply reply = breaker_.together(event, file, at(now), "");
    if (reply.is_to_write) {
      disk_.bytes = file.bytes();
      ++disk_.writes;
    }
    return reply;
  }
  MaybeTransition look(Nanoseconds now, const BreakerMoment* moment = nullptr) {
    return breaker_.look(BreakersFile(disk_.bytes), moment != nullptr ? *moment : at(now), mends);
  }
  SharedBreaker& breaker() { return breaker_; }
  BreakerState state() const { return breaker_.view(Nanoseconds(0)).state; }

  bool mends = false;

 private:
  Disk& disk_;
  SharedBreaker breaker_;
};

BreakerEvent failure(const BreakerPermit& permit) {
  return {Kind::failure, permit, "no answer"};
}

BreakerReply reference(const BreakerConfig& config, BreakerState& state, const BreakerEvent& event,
                       Nanoseconds now) {
  const auto outcome = [](BreakerOutcome of) {
    return BreakerReply{{std::nullopt, std::nullopt, of.transition}, of.is_counted};
  };
  const auto by_hand = [](MaybeTransition transition) {
    return BreakerReply{{std::nullopt, std::nullopt, transition}, true};
  };
  switch (event.kind) {
    case Kind::acquire:
      return {breaker::acquire(config, state, now)};
    case Kind::success:
      return outcome(breaker::success(config, state, event.permit, now));
    case Kind::failure:
      return outcome(breaker::failure(config, state, event.permit, now, event.error));
    case Kind::ignore:
      return outcome(breaker::ignore(state, event.permit));
    case Kind::open:
      return by_hand(breaker::open(config, state, now));
    case Kind::close:
      return by_hand(breaker::close(state, now));
    case Kind::reset:
      return by_hand(breaker::reset(state, now));
    case Kind::isolate:
      return by_hand(breaker::isolate(state, now));
    case Kind::expire:
      return by_hand(breaker::expire(config, state, now));
    case Kind::none:
      break;
  }
  return {};
}

// Whatever happens in whichever process: the answers are those of one breaker in one process.
TEST(SharedBreaker, ManyProcessesAreLikeOne) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 chance(seed);
    const auto below = [&](unsigned n) { return static_cast<unsigned>(chance() % n); };
    BreakerConfig config;
    if (seed % 3 == 1) config.mode = BreakerWindow::consecutive;
    if (seed % 5 == 1) config.cooldown_multiplier = 2;
    Disk disk;
    std::vector<std::unique_ptr<Process>> processes;
    for (int i = 0; i < 3; ++i) processes.push_back(std::make_unique<Process>(disk, config));
    BreakerState one;
    std::vector<BreakerPermit> permits(1, BreakerPermit{});
    Nanoseconds now = seconds(1000);
    for (int round = 0; round < 150; ++round) {
      now += seconds(std::vector<int>{0, 0, 1, 9, 10, 61, 300, 600}[below(8)]);
      BreakerEvent event{Kind::acquire, permits[below(static_cast<unsigned>(permits.size()))],
                         "e" + std::to_string(round)};
      const unsigned dice = below(20);
      if (dice < 14)
        event.kind = std::vector<Kind>{Kind::acquire, Kind::failure, Kind::success}[dice % 3];
      if (dice == 14) event.kind = Kind::ignore;
      if (dice > 15 && below(4) == 0) {
        event.kind =
            std::vector<Kind>{Kind::open, Kind::close, Kind::reset, Kind::isolate}[dice - 16];
      }
      const BreakerReply expected = reference(config, one, event, now);
      const BreakerReply reply = processes[below(3)]->send(event, now);
      ASSERT_EQ(reply.answer.permit, expected.answer.permit) << seed << " " << round;
      ASSERT_EQ(reply.answer.retry_at, expected.answer.retry_at) << seed << " " << round;
      ASSERT_EQ(reply.answer.transition, expected.answer.transition) << seed << " " << round;
      ASSERT_EQ(reply.is_counted, expected.is_counted) << seed << " " << round;
      if (reply.answer.permit) permits.push_back(*reply.answer.permit);
    }
    processes[0]->send({Kind::expire}, now);  // leases and cooldowns that are over end when asked
    reference(config, one, {Kind::expire}, now);
    BreakerState same = processes[0]->state();
    EXPECT_EQ(same, one) << seed;
  }
}

TEST(SharedBreaker, WhatChangesNothingWritesNothing) {
  Disk disk;
  Process process(disk, {});
  for (int i = 0; i < 10; ++i) {
    const BreakerReply reply = process.send({}, seconds(i));
    const auto granted = process.send({Kind::acquire}, seconds(i));
    process.send({Kind::success, *granted.answer.permit}, seconds(i));
    process.send({Kind::ignore, *granted.answer.permit}, seconds(i));
    EXPECT_FALSE(reply.is_to_write);
  }
  EXPECT_EQ(disk.writes, 0);
  process.send({Kind::open}, seconds(10));
  for (int i = 0; i < 10; ++i) process.send({Kind::acquire}, seconds(11 + i));
  EXPECT_EQ(disk.writes, 1);
}

TEST(SharedBreaker, LearnsWhatOthersDid) {
  Disk disk;
  Process a(disk, {}), b(disk, {});
  a.send({Kind::open}, seconds(1));
  EXPECT_TRUE(b.breaker().locally({Kind::acquire}, seconds(1))->answer.permit);
  const auto learned = b.look(seconds(2));
  EXPECT_EQ(learned, (BreakerTransition{CircuitState::closed, CircuitState::open, seconds(1)}));
  EXPECT_EQ(b.look(seconds(3)), std::nullopt);
  EXPECT_FALSE(b.breaker().locally({Kind::acquire}, seconds(3))->answer.permit);
  // Even where it did not look: whatever matters is decided by the file.
  a.send({Kind::close}, seconds(4));
  a.send({Kind::open}, seconds(5));
  const BreakerReply reply = b.together({Kind::close}, seconds(6));
  EXPECT_EQ(reply.learned, std::nullopt);
  EXPECT_EQ(reply.answer.transition->from, CircuitState::open);
}

TEST(SharedBreaker, AFileThatWasLostOrChangedByHandBeginsANewGeneration) {
  for (const char* bytes : {"{}", R"({"x": {"state": "CLOSED"}})"}) {
    Disk disk;
    Process process(disk, {});
    const auto early = process.send({Kind::acquire}, seconds(1));
    process.send({Kind::open}, seconds(1));
    disk.bytes = bytes;
    EXPECT_EQ(process.look(seconds(2))->to, CircuitState::closed);
    const auto permit = process.send({Kind::acquire}, seconds(2)).answer.permit;
    ASSERT_TRUE(permit);
    EXPECT_GT(permit->generation, early.answer.permit->generation);
    EXPECT_FALSE(process.send(failure(*early.answer.permit), seconds(2)).is_counted);
    EXPECT_TRUE(process.send(failure(*permit), seconds(2)).is_counted);
  }
}

TEST(SharedBreaker, WithoutAFileItGoesOnAlone) {
  Disk disk;
  Process process(disk, {});
  BreakerPermit permit = *process.send({Kind::acquire}, seconds(1)).answer.permit;
  for (int i = 0; i < 3; ++i) process.breaker().alone(failure(permit), seconds(1));
  EXPECT_EQ(process.state().circuit, CircuitState::open);
  // The file still says CLOSED: what happened here stays true …
  EXPECT_EQ(process.look(seconds(2)), std::nullopt);
  EXPECT_FALSE(process.send({Kind::acquire}, seconds(2)).answer.permit);
  // … and is written by whatever comes next,
  process.together({Kind::none}, seconds(3));
  EXPECT_EQ(BreakersFile(disk.bytes).state("x", {}, at(seconds(3))).circuit, CircuitState::open);
  // unless others have gone on meanwhile.
  process.breaker().note_unwritten();
  Process other(disk, {});
  other.send({Kind::close}, seconds(4));
  EXPECT_EQ(process.look(seconds(5))->to, CircuitState::closed);
}

TEST(SharedBreaker, FailuresOfOthersAndOfTheTimeAloneAddUp) {
  Disk disk;
  Process a(disk, {}), b(disk, {});
  const BreakerPermit permit = *a.send({Kind::acquire}, seconds(1)).answer.permit;
  a.send(failure(permit), seconds(1));
  b.look(seconds(1));
  b.breaker().alone(failure(permit), seconds(2));
  a.send({Kind::reset}, seconds(3));  // a later generation holds
  EXPECT_EQ(b.look(seconds(3)), std::nullopt);
  EXPECT_EQ(b.state().failures.size(), 0U);
  const BreakerPermit next = *b.send({Kind::acquire}, seconds(4)).answer.permit;
  b.together(failure(next), seconds(4));
  b.breaker().note_unwritten();  // though the bytes may have reached the disk
  disk.bytes = "{}";
  b.look(seconds(4));
  EXPECT_EQ(b.state().failures.size(), 1U);
  a.together({Kind::none}, seconds(4));
  a.send(failure(next), seconds(5));
  EXPECT_EQ(b.look(seconds(6)), std::nullopt);
  EXPECT_EQ(b.state().failures, (std::vector<Nanoseconds>{seconds(4), seconds(5)}));
  EXPECT_EQ(b.look(seconds(6)), std::nullopt);
  EXPECT_EQ(b.together(failure(next), seconds(6)).answer.transition->to, CircuitState::open);
  EXPECT_EQ(a.look(seconds(7))->to, CircuitState::open);
}

TEST(SharedBreaker, WhoKnowsOtherArgumentsHarmsNothingByLooking) {
  BreakerConfig patient;
  patient.threshold = 10;
  patient.cooldown = hours(1);
  Disk disk;
  Process owner(disk, patient);
  const BreakerPermit permit = *owner.send({Kind::acquire}, seconds(1)).answer.permit;
  for (int i = 0; i < 7; ++i) owner.send(failure(permit), seconds(1 + i));
  Process other(disk, {});
  other.look(seconds(9));
  EXPECT_FALSE(other.together({Kind::close}, seconds(9)).is_to_write);
  owner.send({Kind::open}, seconds(10));
  other.look(seconds(11));
  EXPECT_FALSE(other.mends);
  EXPECT_EQ(other.state().cooldown_until, seconds(311));
  Process again(disk, patient);
  again.look(seconds(12));
  EXPECT_EQ(again.state().cooldown_until, seconds(3610));
}

TEST(SharedBreaker, ACooldownThatWasCutIsToBeWritten) {
  Disk disk;
  Process writer(disk, {});
  writer.send({Kind::open}, seconds(1));
  Process reader(disk, {});
  reader.look(seconds(2));
  EXPECT_FALSE(reader.mends);
  // Another boot, whose time of day is a day behind: every process would wait a whole cooldown.
  const BreakerMoment behind{seconds(2), hours(24 * 364 * 55), "other"};
  Process late(disk, {});
  late.look(seconds(2), &behind);
  EXPECT_TRUE(late.mends);
  EXPECT_EQ(late.state().cooldown_until, seconds(302));
  // Looked at again later, it is not longer than it was.
  const BreakerMoment later{seconds(100), behind.since_1970 + seconds(98), "other"};
  late.look(seconds(100), &later);
  EXPECT_EQ(late.state().cooldown_until, seconds(302));
}

TEST(SharedBreaker, RatesAreCountedByEachProcess) {
  BreakerConfig config;
  config.failure_rate = 0.5;
  config.minimum_calls = 4;
  Disk disk;
  Process a(disk, config), b(disk, config);
  const BreakerPermit permit = *a.send({Kind::acquire}, seconds(1)).answer.permit;
  a.send({Kind::success, permit}, seconds(1));
  b.send(failure(permit), seconds(1));
  a.send({Kind::success, permit}, seconds(1));
  a.send(failure(permit), seconds(1));
  EXPECT_EQ(a.state().calls.size(), 3U);
  EXPECT_EQ(a.send(failure(permit), seconds(2)).answer.transition->to, CircuitState::open);
  EXPECT_EQ(b.look(seconds(3))->to, CircuitState::open);
  EXPECT_EQ(b.state().calls.size(), 0U);
}

TEST(SharedBreaker, RefusesAConfigThatSaysNothing) {
  BreakerConfig config;
  config.threshold = 0;
  EXPECT_THROW(SharedBreaker("x", config), InvalidArgument);
}

}  // namespace
}  // namespace loki
