// How long to wait before trying again.
//
// delay = base * multiplier^(failures - offset), kept within [base, cap], then spread over a window
// by a deterministic jitter. Tested by tests/cpp/decision/backoff_test.cpp, and value by value
// against a slow reference by tests/py/decision/test_backoff_reference.py; docs/design/backoff.md
// says why it is so.
//
// Jitter is a hash of (seed, key, failures), not a random number: a restart computes the same
// delay, and tasks that fail together still spread out. At a bound the window is shifted inside,
// not clipped: clipping would put a whole herd on the same instant.
//
// The same on every machine: hashes are XXH3, draws are whole numbers, and the only floating-point
// operations are products in IEEE 754 binary64, which the standard defines to the last bit (pow, of
// which it does not say so, is not used).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "loki/base/time.hpp"

namespace loki {

// The window around the computed delay d. The names and formulas of the last three are those of
// M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
enum class JitterMode : std::uint8_t {
  kProportional,  // [d - jitter d, d + jitter d]
  kNone,          // d
  kFull,          // [0, d]
  kEqual,         // [d / 2, d]
  kDecorrelated,  // [base, 3 p], p the delay before it, base before the first
};

// "proportional", "none", "full", "equal", "decorrelated"; InvalidArgument for any other name.
JitterMode parse_jitter_mode(std::string_view name);
std::string_view jitter_mode_name(JitterMode mode);

class Backoff {
 public:
  // base, cap: 0 or more; a cap below base counts as base. multiplier: finite, 1 or more; not used
  // by decorrelated. jitter: the half-width of the proportional window as a share of the computed
  // delay, in [0, 1]; not used by other modes. Throws InvalidArgument outside these ranges.
  Backoff(Nanoseconds base, double multiplier, Nanoseconds cap, double jitter, std::uint64_t seed,
          JitterMode mode = JitterMode::kProportional);

  // failures: how many in a row, any 32-bit count. 0 gives base exactly, without jitter.
  // offset: failures that do not count yet; 1 for a retry inside the loop (base, 2 base, ...), 0
  // for a recurring task (2 base, 4 base, ...). Never outside [base, cap]; never overflows.
  Nanoseconds delay(std::uint32_t failures, std::string_view key, std::uint32_t offset) const;

  // The longer of the delay and what the service asked for (even beyond cap: it knows when it will
  // be back). No value where nothing of the time that is left would remain for trying.
  std::optional<Nanoseconds> wait(std::uint32_t failures, std::string_view key,
                                  std::uint32_t offset, std::optional<Nanoseconds> asked,
                                  std::optional<Nanoseconds> left) const;

  Nanoseconds base() const { return base_; }
  double multiplier() const { return multiplier_; }
  Nanoseconds cap() const { return cap_; }
  double jitter() const { return jitter_; }
  JitterMode mode() const { return mode_; }
  std::uint64_t seed() const { return seed_; }

 private:
  struct Window {
    std::int64_t low, width;  // nanoseconds: low, low + 1, ... low + width
  };

  Nanoseconds grown(std::uint32_t exponent) const;
  std::int64_t proportional_width(Nanoseconds middle) const;
  Window window(Nanoseconds middle) const;
  Nanoseconds decorrelated(std::uint32_t failures, std::uint64_t key_hash,
                           std::uint32_t offset) const;

  Nanoseconds base_;
  double multiplier_;
  Nanoseconds cap_;
  double jitter_;
  std::uint64_t seed_;
  JitterMode mode_;
  std::array<double, 32> powers_{};  // multiplier^1, ^2, ^4, ^8, ...
  std::uint64_t saturated_;          // from this exponent on the delay is the cap
  Nanoseconds highest_middle_;       // of a proportional window
};

}  // namespace loki
