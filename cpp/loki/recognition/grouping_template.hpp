// What one message says apart from its arguments: its words, with holes where arguments stand.
//
// Covered by tests/cpp/recognition/grouping_test.cpp. The rules, and why: docs/design/grouping.md.
//
// Worst case: O(n).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loki::grouping {

enum class TokenKind : std::uint8_t {
  kWord,    // may turn out to be an argument when other messages are seen
  kHole,    // an argument by its shape: number, path, qualified name, value after '='
  kQuoted,  // an argument in quotes
  kMark,    // punctuation, or the whole of a message that has no words
};

struct TemplateToken {
  TokenKind kind;
  bool is_spaced;  // white space stands before it
  std::uint32_t begin, end;
};

// The template of one message. Tokens are ranges of its normalized text.
class MessageTemplate {
 public:
  MessageTemplate() = default;
  // text: any bytes; more than 1 MiB is not read.
  explicit MessageTemplate(std::string_view text);

  const std::vector<TemplateToken>& tokens() const { return tokens_; }
  // Of a word: in the singular. Of a quoted argument: what stands between the quotes.
  std::string_view text(const TemplateToken& token) const;

 private:
  std::string normalized_;
  std::vector<TemplateToken> tokens_;
};

}  // namespace loki::grouping
