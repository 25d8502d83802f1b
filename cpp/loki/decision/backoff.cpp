#include "loki/decision/backoff.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "loki/base/error.hpp"
#include "loki/base/hash.hpp"
#include "loki/base/wide.hpp"

namespace loki {
namespace {

static_assert(std::numeric_limits<double>::is_iec559 && FLT_EVAL_METHOD == 0,
              "delays are the same on every machine: products are rounded to binary64 at once");

constexpr std::array<std::pair<JitterMode, std::string_view>, 5> kModes = {{
    {JitterMode::kProportional, "proportional"},
    {JitterMode::kNone, "none"},
    {JitterMode::kFull, "full"},
    {JitterMode::kEqual, "equal"},
    {JitterMode::kDecorrelated, "decorrelated"},
}};

// A decorrelated delay depends on all before it. So that no count of failures costs more than this
// many steps, every 1,024th one follows a delay of cap, where a sequence that long has been before:
// it grows by a tenth a step, in the geometric mean. Chosen, not measured.
constexpr std::uint32_t kLongestSequence = 1024;
constexpr std::int64_t kDecorrelatedGrowth = 3;  // AWS's

// XXH3 of the failures, seeded with XXH3 of the key, seeded with the seed: no copy of the key.
std::uint64_t draw(std::uint64_t key_hash, std::uint32_t failures) {
  std::array<char, 8> bytes{};  // little-endian on every machine
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>((failures >> (8 * i)) & 0xFF);
  return hash64({bytes.data(), bytes.size()}, key_hash);
}

Nanoseconds spread(std::int64_t low, std::int64_t width, std::uint64_t drawn) {
  const std::uint64_t part = share_of(drawn, static_cast<std::uint64_t>(width) + 1);
  return Nanoseconds(low + static_cast<std::int64_t>(part));
}

std::string found(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

}  // namespace

JitterMode parse_jitter_mode(std::string_view name) {
  for (const auto& [mode, known] : kModes) {
    if (name == known) return mode;
  }
  std::string all;
  for (const auto& [mode, known] : kModes) all += (all.empty() ? "" : ", ") + std::string(known);
  throw InvalidArgument("unknown jitter mode '" + std::string(name) + "': expected one of " + all);
}

std::string_view jitter_mode_name(JitterMode mode) {
  return std::find_if(kModes.begin(), kModes.end(), [&](const auto& m) { return m.first == mode; })
      ->second;
}

Backoff::Backoff(Nanoseconds base, double multiplier, Nanoseconds cap, double jitter,
                 std::uint64_t seed, JitterMode mode)
    : base_(base),
      multiplier_(multiplier),
      cap_(std::max(cap, base)),
      jitter_(jitter),
      seed_(seed),
      mode_(mode),
      saturated_(std::uint64_t{1} << 32),
      highest_middle_(cap_) {
  if (base.count() < 0 || cap.count() < 0) {
    throw InvalidArgument("base and cap must not be negative: found " +
                          std::to_string(std::min(base, cap).count()) + " ns");
  }
  if (!std::isfinite(multiplier) || multiplier < 1) {
    throw InvalidArgument("multiplier is " + found(multiplier) +
                          ": expected a finite number of 1 or more");
  }
  if (!(jitter >= 0 && jitter <= 1)) {
    throw InvalidArgument("jitter is " + found(jitter) + ": expected a number from 0 to 1");
  }
  double power = multiplier;
  for (std::size_t bit = 0; bit < powers_.size(); ++bit, power *= power) {
    powers_[bit] = power;
    if (static_cast<double>(base_.count()) * power >= static_cast<double>(cap_.count()))
      saturated_ = std::min(saturated_, std::uint64_t{1} << bit);
  }
  if (mode_ == JitterMode::kProportional)
    highest_middle_ -= Nanoseconds(proportional_width(cap_) / 2);
}

// base * multiplier^exponent: a product of at most 32 powers. All are 1 or more, so that it is cap
// or more as soon as one of them takes it there.
Nanoseconds Backoff::grown(std::uint32_t exponent) const {
  if (exponent >= saturated_) return cap_;
  auto product = static_cast<double>(base_.count());
  for (std::size_t bit = 0; exponent != 0; exponent >>= 1, ++bit) {
    if (exponent & 1U) product *= powers_[bit];
  }
  if (!(product < static_cast<double>(cap_.count()))) return cap_;
  return std::max(base_, Nanoseconds(static_cast<std::int64_t>(product)));
}

// Twice jitter * middle; all of [base, cap] where that is less.
std::int64_t Backoff::proportional_width(Nanoseconds middle) const {
  const std::int64_t room = (cap_ - base_).count();
  const double half = jitter_ * static_cast<double>(middle.count());
  if (half >= static_cast<double>(room) / 2) return room;
  return 2 * static_cast<std::int64_t>(half);
}

// Where the delay may lie: as wide as the mode says, and shifted inside [base, cap].
Backoff::Window Backoff::window(Nanoseconds middle) const {
  const std::int64_t room = (cap_ - base_).count(), d = middle.count();
  std::int64_t low = d, width = 0;
  if (mode_ == JitterMode::kProportional) {
    width = proportional_width(middle);
    // Not above the middle of the window at the cap: more failures never mean less waiting on
    // average.
    low = std::min(middle, highest_middle_).count() - width / 2;
  } else if (mode_ == JitterMode::kFull) {
    low = 0;
    width = std::min(d, room);
  } else if (mode_ == JitterMode::kEqual) {
    low = d - d / 2;
    width = std::min(d / 2, room);
  }
  return {std::clamp(low, base_.count(), cap_.count() - width), width};
}

Nanoseconds Backoff::decorrelated(std::uint32_t failures, std::uint64_t key_hash,
                                  std::uint32_t offset) const {
  const std::uint32_t first = std::min(offset, failures);
  const std::uint32_t restart = (failures - first) / kLongestSequence * kLongestSequence;
  std::int64_t delay = restart == 0 ? base_.count() : cap_.count();
  for (std::uint32_t step = first + restart;; ++step) {
    const std::int64_t upper =
        delay > cap_.count() / kDecorrelatedGrowth ? cap_.count() : delay * kDecorrelatedGrowth;
    delay = spread(base_.count(), upper - base_.count(), draw(key_hash, step)).count();
    if (step == failures) return Nanoseconds(delay);
  }
}

Nanoseconds Backoff::delay(std::uint32_t failures, std::string_view key,
                           std::uint32_t offset) const {
  if (failures == 0 || base_.count() == 0) return base_;
  const std::uint64_t key_hash = hash64(key, seed_);
  if (mode_ == JitterMode::kDecorrelated) return decorrelated(failures, key_hash, offset);
  const auto [low, width] = window(grown(failures > offset ? failures - offset : 0));
  return spread(low, width, draw(key_hash, failures));
}

std::optional<Nanoseconds> Backoff::wait(std::uint32_t failures, std::string_view key,
                                         std::uint32_t offset, std::optional<Nanoseconds> asked,
                                         std::optional<Nanoseconds> left) const {
  const Nanoseconds longer = std::max(delay(failures, key, offset), asked.value_or(Nanoseconds(0)));
  if (left && longer >= *left) return std::nullopt;
  return longer;
}

}  // namespace loki
