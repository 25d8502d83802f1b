#include "loki/decision/breakers_file.hpp"

#include <gtest/gtest.h>

#include <string>

#include "loki/base/error.hpp"
#include "loki/base/iso_time.hpp"

namespace loki {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kNow = seconds(5000);
const Nanoseconds kDay = *parse_iso_time("2025-01-20T10:36:00Z");

BreakerMoment at(Nanoseconds passed, std::string boot_id = "boot", Nanoseconds set = {}) {
  return {kNow + passed, kDay + passed + set, std::move(boot_id)};
}

Nanoseconds clock(const char* time_of_day) {
  return *parse_iso_time(time_of_day) - kDay + kNow;
}

// The example of the resilience documents.
const char* const kExample = R"({
  "api/claude": {
    "state": "CLOSED", "failure_count": 0, "success_count": 0, "last_failure_time": null,
    "last_state_change": "2025-01-20T10:30:00Z", "cooldown_until": null,
    "failure_window_start": null},
  "api/openai": {
    "state": "OPEN", "failure_count": 3, "success_count": 0,
    "last_failure_time": "2025-01-20T10:35:42Z", "last_state_change": "2025-01-20T10:35:42Z",
    "cooldown_until": "2025-01-20T10:40:42Z", "failure_window_start": "2025-01-20T10:34:50Z"},
  "api/gemini": {
    "state": "HALF_OPEN", "failure_count": 0, "success_count": 1,
    "last_failure_time": "2025-01-20T10:25:00Z", "last_state_change": "2025-01-20T10:30:00Z",
    "cooldown_until": null, "failure_window_start": null}
})";

BreakerState read(std::string_view bytes, const BreakerMoment& moment = at(seconds(0)),
                  const std::string& name = "x") {
  return BreakersFile(bytes).state(name, BreakerConfig{}, moment);
}

// A file of one entry: a CLOSED one with these fields more.
std::string with(const std::string& fields, const std::string& state = "CLOSED") {
  return R"({"x": {"state": ")" + state + "\"" + (fields.empty() ? "" : ", ") + fields + "}}";
}

TEST(BreakersFile, ReadsTheExampleOfTheDocuments) {
  const BreakersFile file(kExample);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"api/claude", "api/openai", "api/gemini"}));
  BreakerState claude;
  claude.last_change = clock("2025-01-20T10:30:00Z");
  EXPECT_EQ(file.state("api/claude", {}, at(seconds(0))), claude);

  const BreakerState openai = file.state("api/openai", {}, at(seconds(0)));
  EXPECT_EQ(openai.circuit, CircuitState::open);
  EXPECT_EQ(openai.cooldown_until, kNow + seconds(282));
  EXPECT_EQ(openai.failures, std::vector<Nanoseconds>(3, kNow - seconds(18)));

  const BreakerState gemini = file.state("api/gemini", {}, at(seconds(0)));
  EXPECT_EQ(gemini.circuit, CircuitState::half_open);
  EXPECT_EQ(gemini.success_count, 1U);
  EXPECT_FALSE(gemini.is_probing);
}

TEST(BreakersFile, AForeignCountIsDatedLastFailure) {
  const auto failures = [](const std::string& fields) { return read(with(fields)).failures; };
  EXPECT_EQ(failures(R"("failure_count": 2, "last_failure_time": "2025-01-20T10:35:50Z")"),
            std::vector<Nanoseconds>(2, kNow - seconds(10)));
  // Without a date nobody knows whether it counts; in the future it is dropped.
  EXPECT_TRUE(failures(R"("failure_count": 2, "last_failure_time": null)").empty());
  EXPECT_TRUE(
      failures(R"("failure_count": 2, "last_failure_time": "2025-01-20T10:36:01Z")").empty());
  EXPECT_EQ(failures(R"("failure_count": 4000000000, "last_failure_time": "2025-01-20T10:35:50Z")")
                .size(),
            3U);
  // Another program counted on after us, or forgave: what it says holds.
  const std::string ours = R"("failure_times": ["2025-01-20T10:35:30Z", "2025-01-20T10:35:40Z"], )";
  EXPECT_EQ(failures(ours + R"("failure_count": 3, "last_failure_time": "2025-01-20T10:35:50Z")"),
            (std::vector<Nanoseconds>{kNow - seconds(30), kNow - seconds(20), kNow - seconds(10)}));
  EXPECT_EQ(failures(ours + R"("failure_count": 1, "last_failure_time": null)"),
            std::vector<Nanoseconds>{kNow - seconds(20)});
}

TEST(BreakersFile, ReadsStatesAndTimesAsOthersWriteThem) {
  for (const char* state : {"open", "Open", "OPEN"}) {
    EXPECT_EQ(read(with("", state)).circuit, CircuitState::open) << state;
  }
  for (const char* state : {"half_open", "half-open", "Half Open"}) {
    EXPECT_EQ(read(with("", state)).circuit, CircuitState::half_open) << state;
  }
  for (const char* time : {"2025-01-20T10:37:00Z", "2025-01-20T11:37:00+01:00",
                           "2025-01-20 10:37:00", "2025-01-20T10:37:00.000000+00:00"}) {
    const std::string fields = R"("cooldown_until": ")" + std::string(time) + "\"";
    EXPECT_EQ(read(with(fields, "OPEN")).cooldown_until, kNow + seconds(60)) << time;
  }
}

TEST(BreakersFile, NothingMayBeSaid) {
  EXPECT_EQ(read("{}"), BreakerState{});
  EXPECT_EQ(read(with("")), BreakerState{});
  EXPECT_EQ(read(with(R"("failure_count": null, "success_count": null, "last_failure_time": null,
                         "failure_times": null, "clock": null, "probe": null, "trips": null)")),
            BreakerState{});
  // OPEN without an end: a cooldown since it changed, at the latest from now.
  EXPECT_EQ(read(with(R"("last_state_change": "2025-01-20T10:35:00Z")", "OPEN")).cooldown_until,
            kNow + seconds(240));
  EXPECT_EQ(read(with("", "OPEN")).cooldown_until, kNow + seconds(300));
}

TEST(BreakersFile, SaysWhatItCannotRead) {
  const auto reason = [](const std::string& bytes) -> std::string {
    try {
      read(bytes);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(reason(R"({"x": {}})"), "state is nothing, expected CLOSED, OPEN or HALF_OPEN");
  EXPECT_EQ(reason(with("", "AJAR")), "state is \"AJAR\", expected CLOSED, OPEN or HALF_OPEN");
  EXPECT_EQ(reason(with(R"("failure_count": "three")")),
            "failure_count is \"three\", expected a number of 0 or more");
  EXPECT_NE(reason(with(R"("success_count": -1)")), "");
  EXPECT_NE(reason(with(R"("success_count": 1.5)")), "");
  EXPECT_EQ(reason(with(R"("cooldown_until": 1775297730)", "OPEN")),
            "cooldown_until is 1775297730, expected a time like 2026-04-04T10:15:30Z, or null");
  EXPECT_NE(reason(with(R"("failure_window_start": "soon")")), "");
  EXPECT_EQ(reason(R"({"x": [1]})"), "found no object, expected one with a state");
  EXPECT_NE(reason("[]"), "");
  EXPECT_NE(reason("null"), "");
  EXPECT_NE(reason(""), "");
  EXPECT_NE(reason(std::string(kExample).substr(0, 300)), "");
  EXPECT_NE(reason(std::string(100'000, '[')), "");
  EXPECT_NE(reason("{\"x\": " + std::string(100, '[') + std::string(100, ']') + "}"), "");
}

TEST(BreakersFile, FieldsOfOursThatOthersUseDifferentlyAreNothing) {
  EXPECT_EQ(read(with(R"("failure_times": 3, "last_error": {"a": 1}, "generation": "x",
                         "trips": [], "is_isolated": "yes", "probe": 4, "clock": "now")")),
            BreakerState{});
}

BreakerState busy() {
  BreakerState state;
  state.generation = 41;
  state.failures = {kNow - seconds(50), kNow - milliseconds(1), kNow};
  state.trips = 2;
  state.last_failure = kNow;
  state.last_change = kNow - hours(30);
  state.last_error = "429 slow down";
  state.probes = 7;
  return state;
}

BreakerState half_open() {
  BreakerState state = busy();
  state.circuit = CircuitState::half_open;
  state.failures.clear();
  state.success_count = 2;
  state.is_probing = true;
  state.probe_started = kNow - seconds(3);
  return state;
}

BreakerState open() {
  BreakerState state = busy();
  state.circuit = CircuitState::open;
  state.cooldown_until = kNow + milliseconds(299'999);
  return state;
}

TEST(BreakersFile, ReadsBackWhatItWrites) {
  BreakerState isolated = open(), closed = busy();
  isolated.is_isolated = true;
  isolated.cooldown_until.reset();
  closed.trips = 0;
  for (const BreakerState& state : {BreakerState{}, closed, half_open(), open(), isolated}) {
    for (const char* boot : {"boot", ""}) {
      BreakersFile file;
      EXPECT_TRUE(file.put("x", state, at(seconds(0), boot), "host/1"));
      EXPECT_FALSE(file.put("x", state, at(seconds(0), boot), "host/1"));
      EXPECT_EQ(read(file.bytes(), at(seconds(0), boot)), state);
    }
  }
}

TEST(BreakersFile, WritesTheFormOfTheDocuments) {
  BreakersFile file;
  file.put("api/openai", open(), at(seconds(0)), "host/1");
  EXPECT_EQ(file.bytes(), R"({
  "api/openai": {
    "state": "OPEN",
    "failure_count": 3,
    "success_count": 0,
    "last_failure_time": "2025-01-20T10:36:00.000Z",
    "last_state_change": "2025-01-19T04:36:00.000Z",
    "cooldown_until": "2025-01-20T10:40:59.999Z",
    "failure_window_start": "2025-01-20T10:35:10.000Z",
    "failure_times": [
      "2025-01-20T10:35:10.000Z",
      "2025-01-20T10:35:59.999Z",
      "2025-01-20T10:36:00.000Z"
    ],
    "last_error": "429 slow down",
    "generation": 41,
    "trips": 2,
    "is_isolated": false,
    "probe": {
      "number": 7,
      "owner": "host/1",
      "started": null,
      "in_flight": false
    },
    "clock": {
      "boot_id": "boot",
      "monotonic_ns": 5000000000000,
      "time": "2025-01-20T10:36:00.000Z"
    }
  }
}
)");
}

TEST(BreakersFile, KeepsWhatOthersWrote) {
  BreakersFile file(R"({"mine": [1, {"deep": null}], "x": {"note": "ours", "state": "closed",
                        "weight": 0.5}, "y": {"state": "OPEN", "huge": 123456789012345678}})");
  file.put("x", busy(), at(seconds(0)), "");
  const BreakersFile again(file.bytes());
  EXPECT_EQ(again.names(), (std::vector<std::string>{"x", "y"}));
  const std::string bytes = again.bytes();
  for (const char* part :
       {"\"mine\": [", R"("note": "ours")", R"("weight": 0.5)", R"("deep": null)",
        R"("huge": 123456789012345678)", R"("state": "CLOSED")"}) {
    EXPECT_NE(bytes.find(part), std::string::npos) << part;
  }
}

TEST(BreakersFile, SaysHowLongAServiceAskedToWait) {
  BreakerState state;
  state.circuit = CircuitState::open;
  state.trips = 1;
  state.asked = hours(1);
  state.cooldown_until = kNow + hours(1);
  state.last_change = kNow;
  BreakersFile file;
  EXPECT_TRUE(file.put("x", state, at(seconds(0)), "me"));
  EXPECT_EQ(read(file.bytes()).cooldown_until, kNow + hours(1));
  EXPECT_EQ(read(file.bytes(), at(seconds(60), "another boot")).cooldown_until, kNow + hours(1));
  const std::string open = R"("cooldown_until": "2025-02-20T10:36:00Z", "retry_after_ns": )";
  EXPECT_EQ(read(with(open + "7200000000000", "OPEN")).cooldown_until, kNow + hours(2));
  EXPECT_EQ(read(with(open + "18446744073709551615", "OPEN")).cooldown_until, kNow + hours(24));
  EXPECT_EQ(read(with(open + "\"long\"", "OPEN")).cooldown_until, kNow + seconds(300));
  EXPECT_EQ(read(with(open + "-5", "OPEN")).cooldown_until, kNow + seconds(300));
}

TEST(BreakersFile, SaysHowManyCallsFailedWhereAShareCounts) {
  BreakerConfig config;
  config.failure_rate = 0.7;
  BreakerState state;
  state.calls.add({kNow, true, false}, 10);
  state.calls.add({kNow, true, false}, 10);
  BreakersFile file;
  file.put("x", state, at(seconds(0)), "me");
  EXPECT_NE(file.bytes().find("\"failure_count\": 2"), std::string::npos);
  EXPECT_TRUE(file.state("x", config, at(seconds(0))).failures.empty());
}

TEST(BreakersFile, TheOwnerOfAProbeIsWhoStartedIt) {
  BreakersFile file;
  file.put("x", half_open(), at(seconds(0)), "host/1");
  BreakerState ended = half_open();
  ended.is_probing = false;
  file.put("x", ended, at(seconds(1)), "host/2");
  EXPECT_NE(file.bytes().find("host/1"), std::string::npos);
  ended.probes = 8;
  file.put("x", ended, at(seconds(1)), "host/2");
  EXPECT_EQ(file.bytes().find("host/1"), std::string::npos);
}

TEST(BreakersFile, WithinABootTheTimeOfDayMayJump) {
  for (const Nanoseconds jump : {hours(24), -hours(24), hours(24 * 365)}) {
    BreakersFile file;
    file.put("x", open(), at(seconds(0)), "");
    // Read, and written again, by a process that sees another time of day.
    const BreakerState read_after = read(file.bytes(), at(seconds(10), "boot", jump));
    EXPECT_EQ(read_after.cooldown_until, open().cooldown_until);
    EXPECT_EQ(read_after.failures, open().failures);
    file.put("x", read_after, at(seconds(10), "boot", jump), "");
    const std::string day = format_iso_time(kDay + jump + milliseconds(299'999));
    EXPECT_NE(file.bytes().find("\"cooldown_until\": \"" + day), std::string::npos);
    EXPECT_EQ(read(file.bytes(), at(seconds(20), "boot", jump)), read_after);
  }
}

TEST(BreakersFile, InAnotherBootTheHarmIsBounded) {
  BreakersFile file;
  file.put("x", open(), at(seconds(0)), "");
  const auto remaining = [&](Nanoseconds jump) {
    return *read(file.bytes(), at(seconds(0), "other", jump)).cooldown_until - kNow;
  };
  EXPECT_EQ(remaining(seconds(0)), milliseconds(299'999));
  EXPECT_EQ(remaining(hours(24)), seconds(0));
  EXPECT_EQ(remaining(-hours(24)), seconds(300));
  BreakersFile closed;
  closed.put("x", busy(), at(seconds(0)), "");
  EXPECT_TRUE(read(closed.bytes(), at(seconds(0), "other", -hours(24))).failures.empty());
  EXPECT_EQ(read(closed.bytes(), at(seconds(0), "other", hours(24))).failures.front(),
            kNow - seconds(50) - hours(24));
}

TEST(BreakersFile, TimesDoNotDriftByBeingWrittenAgain) {
  BreakersFile file;
  const auto odd = [](int round) {  // a time of day that is corrected a little all the time
    return BreakerMoment{kNow + milliseconds(round) + Nanoseconds(round * 331),
                         kDay + milliseconds(round) + Nanoseconds(round * 77'777), "boot"};
  };
  file.put("x", open(), odd(0), "");
  const BreakerState first = file.state("x", {}, odd(0));
  for (int round = 1; round < 1000; ++round) {
    file = BreakersFile(file.bytes());
    file.put("x", file.state("x", {}, odd(round)), odd(round), "");
  }
  EXPECT_EQ(file.state("x", {}, odd(1000)), first);
}

TEST(BreakersFile, NoTimeIsTooFar) {
  for (const char* never : {"0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    const std::string time = "\"" + std::string(never) + "\"";
    const BreakerState state =
        read(with(R"("failure_count": 1, "last_failure_time": )" + time +
                      R"(, "last_state_change": )" + time + R"(, "cooldown_until": )" + time,
                  "OPEN"));
    EXPECT_GE(state.cooldown_until, kNow);
    EXPECT_LE(state.cooldown_until, kNow + seconds(300));
    BreakersFile file;
    file.put("x", state, at(seconds(0)), "");
    EXPECT_NO_THROW(read(file.bytes()));
  }
}

TEST(BreakersFile, ErrorsThatAreNoUtf8AreReplaced) {
  BreakerState state = busy();
  state.last_error = "caf\xe9 \xff";
  BreakersFile file;
  file.put("x", state, at(seconds(0)), "");
  EXPECT_EQ(read(file.bytes()).last_error, "caf\xef\xbf\xbd \xef\xbf\xbd");
}

TEST(BreakersFile, RefusesMoreNamesThanItCanKeepInOrder) {
  const auto object = [](int count) {
    std::string bytes = "{";
    for (int i = 0; i < count; ++i) bytes += "\"" + std::to_string(i) + "\": 0,";
    return bytes + "\"last\": 0}";
  };
  EXPECT_NO_THROW(BreakersFile(object(4999)));
  EXPECT_THROW(BreakersFile(object(5000)), InvalidArgument);
  EXPECT_THROW(BreakersFile(R"({"x": [{"y": )" + object(5000) + "}]}"), InvalidArgument);
  EXPECT_NO_THROW(BreakersFile(R"({"x": [)" + object(4000) + "," + object(4000) + "]}"));
}

TEST(BreakersFile, WhatAPersonWritesWinsOverOurFields) {
  const BreakerMoment moment{std::chrono::seconds(100), std::chrono::hours(24 * 365 * 55), ""};
  const BreakersFile file(R"({
    "ends": {"state": "OPEN", "cooldown_until": "2024-12-18T00:01:00Z", "is_isolated": true},
    "closed": {"state": "CLOSED", "trips": 5}})");
  const BreakerState ends = file.state("ends", {}, moment),
                     closed = file.state("closed", {}, moment);
  EXPECT_FALSE(ends.is_isolated);
  EXPECT_TRUE(ends.cooldown_until);
  EXPECT_EQ(closed.trips, 0U);
}

}  // namespace
}  // namespace loki
