// What loki needs of Unicode: what is a letter or digit, its folded case, and UTF-8.
// Covered by tests/py/recognition/test_similarity.py, which compares them with Python's own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace loki {

// Letters and numbers of any script, and '_'.
bool is_word_character(char32_t c);

// Simple case folding: one character for one character ('ß' stays).
char32_t folded_case(char32_t c);

// The character that 1 to 4 bytes of valid UTF-8 stand for.
char32_t decoded_utf8(std::string_view bytes);
void append_utf8(std::string& out, char32_t c);

}  // namespace loki
