// A breaker that processes share through a file, as one process sees it.
//
// Under test: tests/cpp/decision/breakers_test.cpp; with real files and processes in
// tests/py/decision/test_breakers*.py. docs/design/breakers.md says what is exact and what is seen
// later.
//
// The idea: an event that changes nothing that others must see (a call through a closed breaker, a
// refusal) is answered from what this process knows. Any other is answered from the file, by
// whoever holds its lock: read, apply, write. So nobody's outcome is lost, and no call through a
// healthy breaker costs a file.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "loki/decision/breaker.hpp"
#include "loki/decision/breaker_locked.hpp"
#include "loki/decision/breakers_file.hpp"

namespace loki {

// `none` is what looks at the file and puts it in order.
enum class BreakerEventKind {
  none,
  acquire,
  success,
  failure,
  ignore,
  open,
  close,
  reset,
  isolate,
  expire
};

struct BreakerEvent {
  BreakerEventKind kind = BreakerEventKind::none;
  BreakerPermit permit = {};              // of the outcomes
  std::string error = {};                 // of a failure
  std::optional<Nanoseconds> asked = {};  // of a failure: how long the service asks to wait
};

struct BreakerReply {
  BreakerAnswer answer = {};     // permit and retry_at: of `acquire`; the transition: of any event
  bool is_counted = false;       // of the outcomes
  MaybeTransition learned = {};  // what others had done before
  bool is_to_write = false;      // the file is another now
};

class SharedBreaker {
 public:
  // Throws InvalidArgument as `check(config)` does.
  SharedBreaker(std::string name, const BreakerConfig& config);

  // The reply, where the event changes nothing that others must see; none: ask `together`.
  std::optional<BreakerReply> locally(const BreakerEvent& event, Nanoseconds now);

  // The same for the hot path: calls through a closed breaker, and their successes where those are
  // not heeded. None, and false: ask `locally`.
  std::optional<BreakerPermit> acquire_closed(Nanoseconds now);
  bool success_closed(const BreakerPermit& permit);

  // The reply from the file, which the caller has read under its lock, and writes where the reply
  // says so. Throws InvalidArgument, and changes nothing, where the file's entry cannot be read.
  BreakerReply together(const BreakerEvent& event, BreakersFile& file, const BreakerMoment& moment,
                        std::string_view owner);

  // The reply where there is no file to be had.
  BreakerReply alone(const BreakerEvent& event, Nanoseconds now);

  // It could not be written: what happened stays true here, until others have gone on in the file.
  void note_unwritten();

  // Takes over what others changed in the file; true where it should be put in order, under its
  // lock. Throws as `together` does.
  MaybeTransition look(const BreakersFile& file, const BreakerMoment& moment, bool& is_to_mend);

  BreakerView view(Nanoseconds now) const;
  BreakerCounts counts() const;  // of this process
  const BreakerConfig& config() const { return config_; }
  const std::string& name() const { return name_; }

 private:
  BreakerReply counted(const BreakerEvent& event, const BreakerReply& reply);
  BreakerReply applied(const BreakerEvent& event, Nanoseconds now);
  void merge_unwritten(const BreakerState& found);
  MaybeTransition adopt(BreakerState found, Nanoseconds now);

  const std::string name_;
  const BreakerConfig config_;
  mutable std::mutex mutex_;  // guards what follows; nothing is called under it but the table
  BreakerState state_;
  bool is_written_ = true;
  std::vector<Nanoseconds> unwritten_;  // failures that the file may not have; if not is_written_
  BreakerCounts counts_;
};

}  // namespace loki
