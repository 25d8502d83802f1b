// 128-bit whole numbers, where a product of two of 64 bits must not overflow.
#pragma once

#include <cstdint>

namespace loki {

__extension__ typedef unsigned __int128 uint128;

// Where in 0 ... count - 1 a 64-bit number lies that is taken as a share of 2^64; whole numbers
// only, so that it is the same on every machine (Lemire 2019, "Fast random integer generation in an
// interval", without the rejection: the bias is below count / 2^64).
inline std::uint64_t share_of(std::uint64_t share, std::uint64_t count) {
  return static_cast<std::uint64_t>((uint128{share} * count) >> 64);
}

}  // namespace loki
