// Words that tell which part of a message is an argument. English only, as messages are.
// Covered by tests/cpp/recognition/grouping_test.cpp. Chosen from what log messages and the
// messages of compilers and linters have in common; which word does what: docs/design/grouping.md.
#pragma once

#include <string_view>

namespace loki::grouping {

// "for", "by": what follows is often an argument.
bool is_preposition(std::string_view word);
// "user", "host": what follows is a name.
bool is_naming_noun(std::string_view word);
// "use", "instead", "should": a message with no other words is not told by them.
bool is_generic(std::string_view word);
// "consider", "try": begins a clause that gives advice.
bool is_advice(std::string_view word);
// "did you", "instead use": the same, with two words.
bool is_advice(std::string_view word, std::string_view next);
// "KB": belongs to the number before it.
bool is_unit(std::string_view word);
// "true", "null": a value by itself.
bool is_constant_value(std::string_view word);
// fooBar, foo_bar, foo.bar: a name in a program.
bool is_code_name(std::string_view word);
// errors -> error, are -> is: messages count.
std::string_view singular(std::string_view word);

}  // namespace loki::grouping
