// XXH3, as published at https://xxhash.com. Values are the same on every machine.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace loki {

inline std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
  auto operator<=>(const Hash128&) const = default;
};

inline Hash128 hash128(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

// 32 lower-case hex digits, high half first.
inline std::string hex(const Hash128& hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[static_cast<std::size_t>(15 - i)] = kDigits[(hash.high >> (4 * i)) & 0xF];
    text[static_cast<std::size_t>(31 - i)] = kDigits[(hash.low >> (4 * i)) & 0xF];
  }
  return text;
}

}  // namespace loki
