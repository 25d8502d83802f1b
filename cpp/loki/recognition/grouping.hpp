// Message templates across many lines: which messages say the same with other arguments.
//
// Covered by tests/cpp/recognition/grouping_test.cpp and tests/py/recognition/test_grouping.py.
//
// Idea: what is an argument by its shape is a hole at once; messages that differ in one word only
// are compared, and the words that the rest of the message leaves open become holes; a message that
// has nothing but words like "use ... instead of ..." is told by its quoted arguments. No tree, no
// fixed depth, no order of arrival: the answer depends on the set of messages alone. Alternatives
// and figures: docs/design/grouping.md.
//
// Worst case: O(n log n) in the number of different tokens of all messages.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace loki {

// One number for each text, equal for equal templates, counted from 0 by first appearance.
// threads: 0 for as many as the machine has; the answer does not depend on it.
std::vector<std::uint32_t> group(const std::vector<std::string_view>& texts, unsigned threads = 0);

}  // namespace loki
