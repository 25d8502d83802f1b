// Which bytes a part of an expression may begin with. Private to `regex`.
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>

namespace loki {

// In lower case (ASCII). Of characters beyond ASCII all bytes beyond it.
using Bytes = std::bitset<256>;

Bytes all_bytes();

// A letter in lower case (ASCII); another byte as it is.
constexpr std::size_t lower(std::size_t byte) {
  return byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte;
}

// The byte, and all that are written alike but for letter case.
Bytes byte_of(char c);

// Of \d, \s and the like; all bytes where it is hard to tell.
Bytes bytes_of_escape(char name);

// Of [a-z_\d]; inside: without the brackets. All bytes where it is hard to tell.
Bytes bytes_of_class(std::string_view inside);

}  // namespace loki
