// The file that processes share breakers through: bytes in, states out, and back.
//
// Under test: tests/cpp/decision/breakers_file_test.cpp. docs/design/breakers.md has the form.
//
// The form is the one of the resilience documents: a JSON object, by breaker's name; times are ISO
// 8601 in UTC. Fields of ours stand beside theirs, and fields of others stay as they are. Where the
// two disagree, because another program wrote only what it knows, the documents' fields win.
//
// The file has times of day, a BreakerState has times of a clock that nobody sets. Each entry
// therefore says which moment of that clock its times of day were counted from, and in which boot
// of the machine. A reader of the same boot converts exactly, wherever the time of day has jumped
// to; any other has the time of day alone, and `breaker::restore` bounds the harm.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "loki/decision/breaker.hpp"

namespace loki {

// One moment in both clocks of a process.
struct BreakerMoment {
  Nanoseconds now;         // of the clock that states have; the same for all processes of a boot
  Nanoseconds since_1970;  // the time of day
  std::string boot_id;     // empty: not known, `now` means nothing to others
};

class BreakersFile {
 public:
  // Throws InvalidArgument, with what was found and expected, where the bytes are no JSON object.
  explicit BreakersFile(std::string_view bytes);
  BreakersFile() = default;

  // Of its breakers; what is no object ("$schema") is none, and stays.
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return entries_.contains(name); }

  // What the file says of a breaker, restored; a new state where it says nothing. Throws
  // InvalidArgument where the entry cannot be read.
  BreakerState state(const std::string& name, const BreakerConfig& config,
                     const BreakerMoment& moment) const;

  // Whether it was written in this boot, so that its times are exact here.
  bool is_exact(const std::string& name, const BreakerMoment& moment) const;

  // What it is to say from now on. `owner` names who has the probe, for people. False where it said
  // all of that already.
  bool put(const std::string& name, const BreakerState& state, const BreakerMoment& moment,
           std::string_view owner);
  void remove(const std::string& name) { entries_.erase(name); }

  std::string bytes() const;

 private:
  nlohmann::ordered_json entries_ = nlohmann::ordered_json::object();
};

}  // namespace loki
