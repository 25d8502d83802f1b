// Output in UTF-16, as PowerShell redirects it and some Windows tools write it.
//
// Covered by tests/cpp/recognition/text_utf16_test.cpp.
//
// Worst case: O(n).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace loki {

// Bytes that begin with a byte order mark of UTF-16, in either order.
bool is_utf16(std::string_view bytes);

// The same text in UTF-8, without the mark. Lone surrogates take three bytes each, and half a unit
// at the end one that is no UTF-8: cleaning shows both as U+FFFD.
std::string utf8_from_utf16(std::string_view bytes);

// How many bytes the character with this first byte of UTF-8 has in UTF-16.
inline std::size_t utf16_width(char lead) {
  return static_cast<unsigned char>(lead) >= 0xF0 ? 4 : 2;
}
inline constexpr std::size_t kUtf16Mark = 2;

}  // namespace loki
