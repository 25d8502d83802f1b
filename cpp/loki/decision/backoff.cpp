#include "loki/decision/backoff.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "loki/base/error.hpp"
#include "loki/base/hash.hpp"

namespace loki {
namespace {

// x^n by squaring: unlike std::pow, the same bits with every C library. Overflow gives infinity,
// which the caller's cap takes care of.
double power(double x, std::uint32_t n) {
  double result = 1;
  for (; n != 0; n >>= 1, x *= x) {
    if (n & 1U) result *= x;
  }
  return result;
}

// A number in [0, 1) from a hash: its upper 53 bits, as many as a double holds.
double unit_interval(std::uint64_t hash) {
  return static_cast<double>(hash >> 11) * 0x1.0p-53;
}

void append_little_endian(std::string& out, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xFF));
}

}  // namespace

Backoff::Backoff(Nanoseconds base, double multiplier, Nanoseconds cap, double jitter,
                 std::uint64_t seed)
    : base_(base),
      multiplier_(multiplier),
      cap_(std::max(cap, base)),
      jitter_(jitter),
      seed_(seed) {
  if (base.count() < 0 || cap.count() < 0)
    throw InvalidArgument("base and cap must not be negative");
  if (!std::isfinite(multiplier) || multiplier < 1) {
    throw InvalidArgument("multiplier must be a finite number of 1 or more");
  }
  if (!(jitter >= 0 && jitter <= 1)) throw InvalidArgument("jitter must be within [0, 1]");
}

Nanoseconds Backoff::grown(std::uint32_t exponent) const {
  if (base_.count() == 0) return base_;
  const double grown = static_cast<double>(base_.count()) * power(multiplier_, exponent);
  if (!(grown < static_cast<double>(cap_.count()))) return cap_;
  return std::max(base_, Nanoseconds(static_cast<std::int64_t>(grown)));
}

Nanoseconds Backoff::delay(std::uint32_t failures, std::string_view key,
                           std::uint32_t offset) const {
  if (failures == 0) return base_;
  const Nanoseconds center = grown(failures > offset ? failures - offset : 0);
  const auto half = static_cast<std::int64_t>(jitter_ * static_cast<double>(center.count()));
  const std::int64_t room = (cap_ - base_).count();
  // width = 2 half, without overflow; where [base, cap] is narrower the window fills it.
  const std::int64_t width = half > room / 2 ? room : 2 * half;
  const std::int64_t low = std::clamp(center.count() - half, base_.count(), cap_.count() - width);
  std::string material;
  material.reserve(key.size() + 16);
  append_little_endian(material, seed_);
  append_little_endian(material, failures);
  material.append(key);
  const double at = unit_interval(hash64(material));
  return Nanoseconds(low + static_cast<std::int64_t>(at * static_cast<double>(width)));
}

}  // namespace loki
