// The two facts about Unicode that loki needs: what is a letter or digit, and its folded case.
// Covered by tests/py/recognition/test_similarity.py, which compares them with Python's own.
#pragma once

#include <cstdint>

namespace loki {

// Letters and numbers of any script, and '_'.
bool is_word_character(char32_t c);

// Simple case folding: one character for one character ('ß' stays).
char32_t folded_case(char32_t c);

}  // namespace loki
