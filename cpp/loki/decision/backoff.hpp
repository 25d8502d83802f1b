// How long to wait before trying again.
//
// delay = base * multiplier^(failures - offset), kept within [base, cap], then spread by a
// deterministic jitter. Tested by tests/cpp/decision/backoff_test.cpp.
//
// Jitter is a hash of (seed, key, failures), not a random number: a restart computes the same
// delay, and tasks that fail together still spread out. At a bound the jitter window is shifted
// inside, not clipped: clipping would put a whole herd on the same instant (Polly and stamina apply
// the maximum after the jitter, so their capped clients fall into step again).
#pragma once

#include <cstdint>
#include <string_view>

#include "loki/base/time.hpp"

namespace loki {

class Backoff {
 public:
  // base, cap: 0 or more; a cap below base counts as base. multiplier: finite, 1 or more.
  // jitter: the half-width of the window as a share of the computed delay, in [0, 1].
  // Throws InvalidArgument outside these ranges.
  Backoff(Nanoseconds base, double multiplier, Nanoseconds cap, double jitter, std::uint64_t seed);

  // failures: how many in a row, any 32-bit count. 0 gives base exactly, without jitter.
  // offset: failures that do not count yet; 1 for a retry inside the loop (base, 2 base, ...), 0
  // for a recurring task (2 base, 4 base, ...). Never outside [base, cap]; never overflows.
  Nanoseconds delay(std::uint32_t failures, std::string_view key, std::uint32_t offset) const;

 private:
  Nanoseconds grown(std::uint32_t exponent) const;

  Nanoseconds base_;
  double multiplier_;
  Nanoseconds cap_;
  double jitter_;
  std::uint64_t seed_;
};

}  // namespace loki
