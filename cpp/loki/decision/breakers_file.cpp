#include "loki/decision/breakers_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "loki/base/error.hpp"
#include "loki/base/iso_time.hpp"

namespace loki {
namespace {

using Json = nlohmann::ordered_json;

// Deeper than any file of breakers, shallow enough for a writer that recurses. Chosen.
constexpr int kMaxDepth = 64;

// Names in one object: the keeper of their order looks for each among all before it, so that a long
// file of short names would take hours. Chosen, not measured.
constexpr std::size_t kMaxNames = 5000;

// The two clocks disagree by more than this: the time of day was set. Chosen, not measured: over
// what a daemon corrects in steps, under what a person would see as wrong.
constexpr Nanoseconds kSet = std::chrono::seconds(1);

constexpr std::array<std::pair<CircuitState, std::string_view>, 3> kStates = {
    {{CircuitState::closed, "CLOSED"},
     {CircuitState::open, "OPEN"},
     {CircuitState::half_open, "HALF_OPEN"}}};

// Saturating, as times may be the ends of time.
Nanoseconds sum(Nanoseconds a, Nanoseconds b) {
  std::int64_t result = 0;
  if (!__builtin_add_overflow(a.count(), b.count(), &result)) return Nanoseconds(result);
  return a.count() > 0 ? Nanoseconds::max() : Nanoseconds::min();
}
Nanoseconds difference(Nanoseconds a, Nanoseconds b) {
  std::int64_t result = 0;
  if (!__builtin_sub_overflow(a.count(), b.count(), &result)) return Nanoseconds(result);
  return a > b ? Nanoseconds::max() : Nanoseconds::min();
}

// The same moment in a state's clock and in times of day.
struct Anchor {
  Nanoseconds now;
  Nanoseconds since_1970;

  Nanoseconds to_clock(Nanoseconds time_of_day) const {
    return sum(difference(time_of_day, since_1970), now);
  }
  Nanoseconds to_day(Nanoseconds clock) const { return sum(difference(clock, now), since_1970); }
};

// The fields of an entry, read by name.
class Fields {
 public:
  explicit Fields(const Json& entry) : entry_(entry) {}

  const Json* find(const char* field) const {
    const auto it = entry_.find(field);
    return it == entry_.end() || it->is_null() ? nullptr : &*it;
  }

  [[noreturn]] static void refuse(const char* field, const Json* found, const char* expected) {
    std::string text = found == nullptr ? "nothing" : found->dump(-1, ' ', true);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    throw InvalidArgument(std::string(field) + " is " + text + ", expected " + expected);
  }

  CircuitState circuit() const {
    const Json* value = find("state");
    std::string text = value != nullptr && value->is_string() ? value->get<std::string>() : "";
    for (char& c : text) {
      c = c == '-' || c == ' ' ? '_'
                               : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    for (const auto& [state, name] : kStates) {
      if (text == name) return state;
    }
    refuse("state", value, "CLOSED, OPEN or HALF_OPEN");
  }

  std::uint32_t count(const char* field) const {
    const Json* value = find(field);
    if (value == nullptr) return 0;
    const double number = value->is_number() ? value->get<double>() : -1;
    if (number < 0 || number != std::floor(number)) refuse(field, value, "a number of 0 or more");
    return static_cast<std::uint32_t>(
        std::min<double>(number, std::numeric_limits<std::uint32_t>::max()));
  }

  std::optional<Nanoseconds> time(const char* field, const Anchor& anchor) const {
    const Json* value = find(field);
    if (value == nullptr) return std::nullopt;
    const auto read = day(*value);
    if (!read) refuse(field, value, "a time like 2026-04-04T10:15:30Z, or null");
    return anchor.to_clock(*read);
  }

  static std::optional<Nanoseconds> day(const Json& value) {
    return value.is_string() ? parse_iso_time(value.get_ref<const std::string&>()) : std::nullopt;
  }

 private:
  const Json& entry_;
};

// --- fields of ours: another program may use the same names for something else ----------------

std::uint64_t whole(const Json* value) {
  return value != nullptr && value->is_number_unsigned() ? value->get<std::uint64_t>() : 0;
}

const Json* inside(const Json* object, const char* field) {
  return object != nullptr && object->is_object() ? Fields(*object).find(field) : nullptr;
}

// Where the entry's times of day stand in the clock of this boot.
std::optional<Anchor> anchor_of(const Fields& fields, const std::string& boot_id) {
  const Json* clock = fields.find("clock");
  const Json *boot = inside(clock, "boot_id"), *time = inside(clock, "time"),
             *now = inside(clock, "monotonic_ns");
  if (boot_id.empty() || boot == nullptr || *boot != boot_id) return std::nullopt;
  if (now == nullptr || !now->is_number_integer() || time == nullptr) return std::nullopt;
  const auto day = Fields::day(*time);
  if (!day) return std::nullopt;
  return Anchor{Nanoseconds(now->get<std::int64_t>()), *day};
}

std::vector<Nanoseconds> failure_times(const Fields& fields, const Anchor& anchor) {
  std::vector<Nanoseconds> times;
  const Json* list = fields.find("failure_times");
  if (list == nullptr || !list->is_array()) return times;
  for (const Json& item : *list) {
    if (const auto day = Fields::day(item)) times.push_back(anchor.to_clock(*day));
  }
  return times;
}

// Failures that count, by `failure_count`; ours tell when they were, as far as they are known.
std::vector<Nanoseconds> failures(const Fields& fields, const BreakerConfig& config,
                                  const Anchor& anchor) {
  std::vector<Nanoseconds> times = failure_times(fields, anchor);
  const std::size_t count = std::min(fields.count("failure_count"), config.threshold);
  const auto last = fields.time("last_failure_time", anchor);
  if (times.size() > count) {
    times.erase(times.begin(), times.end() - static_cast<std::ptrdiff_t>(count));
  } else if (last) {
    times.resize(count, *last);
  }
  return times;
}

void read_probe(const Fields& fields, const Anchor& anchor, BreakerState& state) {
  const Json* probe = fields.find("probe");
  state.probes = whole(inside(probe, "number"));
  if (state.circuit != CircuitState::half_open) return;
  const Json *started = inside(probe, "started"), *in_flight = inside(probe, "in_flight");
  if (started == nullptr) return;
  if (const auto day = Fields::day(*started)) {
    state.probe_started = anchor.to_clock(*day);
    state.is_probing = in_flight != nullptr && *in_flight == true;
  }
}

// --- writing ----------------------------------------------------------------------------------

Json text(const std::optional<Nanoseconds>& moment, const Anchor& anchor) {
  return moment ? Json(format_iso_time(anchor.to_day(*moment))) : Json(nullptr);
}

// An anchor that an entry has is kept while it is right: times do not drift by being written again.
Anchor anchor_for(const Json& entry, const BreakerMoment& moment) {
  if (const auto known = anchor_of(Fields(entry), moment.boot_id)) {
    const Nanoseconds off = difference(known->to_day(moment.now), moment.since_1970);
    if (off <= kSet && off >= -kSet) return *known;
  }
  const Nanoseconds written = *parse_iso_time(format_iso_time(moment.since_1970));
  return {sum(moment.now, difference(written, moment.since_1970)), written};
}

Json probe_of(const BreakerState& state, const Anchor& anchor, const Json& entry,
              std::string_view owner) {
  if (state.probes == 0) return nullptr;
  const Json* before = Fields(entry).find("probe");
  const Json* same_owner =
      whole(inside(before, "number")) == state.probes ? inside(before, "owner") : nullptr;
  return {{"number", state.probes},
          {"owner", same_owner != nullptr ? *same_owner : Json(owner)},
          {"started", text(state.probe_started, anchor)},
          {"in_flight", state.is_probing}};
}

}  // namespace

BreakersFile::BreakersFile(std::string_view bytes) {
  std::array<std::size_t, kMaxDepth + 2> names{};  // of the object that is open at each depth
  const auto limit = [&](int depth, Json::parse_event_t event, const Json&) {
    if (depth > kMaxDepth) throw InvalidArgument("nested too deeply, expected two levels");
    const auto level = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) names.at(level + 1) = 0;
    if (event == Json::parse_event_t::key && ++names.at(level) > kMaxNames) {
      throw InvalidArgument("found more than " + std::to_string(kMaxNames) +
                            " names in an object, expected fewer");
    }
    return true;
  };
  entries_ = Json::parse(bytes, limit, false);
  if (entries_.is_object()) return;
  throw InvalidArgument(entries_.is_discarded() ? "found no whole JSON document, expected an object"
                                                : "found JSON of another kind, expected an object");
}

std::vector<std::string> BreakersFile::names() const {
  std::vector<std::string> names;
  for (const auto& item : entries_.items()) {
    if (item.value().is_object()) names.push_back(item.key());
  }
  return names;
}

BreakerState BreakersFile::state(const std::string& name, const BreakerConfig& config,
                                 const BreakerMoment& moment) const {
  BreakerState state;
  if (!has(name)) return state;
  const Json& entry = entries_[name];
  if (!entry.is_object()) throw InvalidArgument("found no object, expected one with a state");
  const Fields fields(entry);
  const Anchor anchor =
      anchor_of(fields, moment.boot_id).value_or(Anchor{moment.now, moment.since_1970});
  state.circuit = fields.circuit();
  state.success_count = fields.count("success_count");
  state.failures = failures(fields, config, anchor);
  state.last_failure = fields.time("last_failure_time", anchor);
  state.last_change = fields.time("last_state_change", anchor);
  state.cooldown_until = fields.time("cooldown_until", anchor);
  fields.time("failure_window_start", anchor);  // follows from the failures; but must be readable
  const Json *isolated = fields.find("is_isolated"), *error = fields.find("last_error");
  // Whoever wrote an end of the cooldown wants one.
  state.is_isolated = isolated != nullptr && *isolated == true && !state.cooldown_until;
  state.generation = whole(fields.find("generation"));
  state.trips = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      whole(fields.find("trips")), std::numeric_limits<std::uint32_t>::max()));
  const Json* asked = fields.find("retry_after_ns");
  if (asked != nullptr && asked->is_number_unsigned()) {
    state.asked = Nanoseconds(std::min<std::uint64_t>(
        asked->get<std::uint64_t>(), static_cast<std::uint64_t>(kLongestAsked.count())));
  }
  if (error != nullptr && error->is_string()) state.last_error = error->get<std::string>();
  read_probe(fields, anchor, state);
  breaker::restore(config, state, moment.now);
  return state;
}

bool BreakersFile::is_exact(const std::string& name, const BreakerMoment& moment) const {
  return has(name) && entries_[name].is_object() &&
         anchor_of(Fields(entries_[name]), moment.boot_id).has_value();
}

bool BreakersFile::put(const std::string& name, const BreakerState& state,
                       const BreakerMoment& moment, std::string_view owner) {
  Json& entry = entries_[name];
  if (!entry.is_object()) entry = Json::object();
  Json before = entry;
  const Anchor anchor = anchor_for(entry, moment);
  const auto& failures = state.failures;
  entry["state"] = kStates.at(static_cast<std::size_t>(state.circuit)).second;
  // Where a share counts, times are not kept: a number, for people and other programs.
  entry["failure_count"] = failures.empty() ? state.calls.failed() : failures.size();
  entry["success_count"] = state.success_count;
  entry["last_failure_time"] = text(state.last_failure, anchor);
  entry["last_state_change"] = text(state.last_change, anchor);
  entry["cooldown_until"] = text(state.cooldown_until, anchor);
  entry["failure_window_start"] = failures.empty() ? Json(nullptr) : text(failures.front(), anchor);
  Json& times = entry["failure_times"] = Json::array();
  for (const Nanoseconds at : failures) times.push_back(text(at, anchor));
  entry["last_error"] = state.last_error.empty() ? Json(nullptr) : Json(state.last_error);
  entry["generation"] = state.generation;
  entry["trips"] = state.trips;
  entry["is_isolated"] = state.is_isolated;
  if (state.asked) {
    entry["retry_after_ns"] = state.asked->count();
  } else {
    entry.erase("retry_after_ns");
  }
  entry["probe"] = probe_of(state, anchor, entry, owner);
  if (moment.boot_id.empty()) {
    entry["clock"] = nullptr;
  } else {
    entry["clock"] = {{"boot_id", moment.boot_id},
                      {"monotonic_ns", anchor.now.count()},
                      {"time", format_iso_time(anchor.since_1970)}};
  }
  before["clock"] = entry["clock"];  // the clock alone is nothing to say
  return before != entry;
}

std::string BreakersFile::bytes() const {
  // Texts of others' errors may be no UTF-8; what is replaced is not worth a failure.
  return entries_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace loki
