// XXH3, as published at https://xxhash.com. Values are the same on every machine.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace loki {

inline std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// 128 bits as 32 lower-case hex digits, high half first.
inline std::string hash128_hex(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex(32, '0');
  for (int i = 0; i < 16; ++i) {
    hex[static_cast<std::size_t>(15 - i)] = kDigits[(hash.high64 >> (4 * i)) & 0xF];
    hex[static_cast<std::size_t>(31 - i)] = kDigits[(hash.low64 >> (4 * i)) & 0xF];
  }
  return hex;
}

}  // namespace loki
