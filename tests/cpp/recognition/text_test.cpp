#include "loki/recognition/text.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace loki {
namespace {

std::string shown(std::string_view text) {
  return std::string(CleanText(text).text());
}

// A terminal of one line per line, the slow and obvious way; ASCII, no escapes but ESC [ K.
std::string reference(const std::string& text) {
  std::string result, line;
  std::size_t cursor = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      result += line + '\n';
      line.clear();
      cursor = 0;
    } else if (c == '\r') {
      const std::size_t next = text.find_first_not_of('\r', i);
      if (next != std::string::npos && text[next] != '\n') cursor = 0;
    } else if (c == '\b') {
      cursor -= cursor > 0;
    } else if (c == '\x1b') {
      line.resize(cursor);
      i += 2;
    } else {
      if (cursor == line.size()) line.push_back(c);
      line[cursor++] = c;
    }
  }
  return result + line;
}

TEST(Text, BorrowsWhatNeedsNoCleaning) {
  const std::string text = "plain caf\xC3\xA9\n";
  const CleanText cleaned(text);
  EXPECT_EQ(cleaned.text().data(), text.data());
  EXPECT_EQ(cleaned.original({6, 11}), (Span{6, 11}));
}

TEST(Text, EqualsTheSlowTerminalOnAllShortTexts) {
  const std::string parts[] = {"a", "b", "\r", "\b", "\n", "\x1b[K"};
  for (int length = 0; length <= 6; ++length) {
    int count = 1;
    for (int i = 0; i < length; ++i) count *= 6;
    for (int n = 0; n < count; ++n) {
      std::string text;
      for (int i = 0, rest = n; i < length; ++i, rest /= 6) text += parts[rest % 6];
      text += "\n";  // without one, CR ends lines
      ASSERT_EQ(shown(text), reference(text)) << n;
    }
  }
}

TEST(Text, MapsEachByteToWhereItCameFrom) {
  const std::string text = "\x1b[31mab\x1b[0m\rX\xFFy\n";
  const CleanText cleaned(text);
  EXPECT_EQ(cleaned.text(), "X\xEF\xBF\xBDy\n");
  EXPECT_EQ(text.substr(cleaned.original({0, 1}).begin, 1), "X");
  EXPECT_EQ(cleaned.original({1, 4}), (Span{13, 14}));
  EXPECT_EQ(cleaned.original({4, 5}), (Span{14, 15}));
}

TEST(Text, SurvivesRandomBytesAndGivesValidText) {
  std::mt19937 random(7);
  const std::string alphabet = "ab\r\n\b\x1b[]K0;\a\\\xC3\xA9\xED\xA0\x80\xF0\xFF";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) text.push_back(alphabet[random() % alphabet.size()]);
    const CleanText cleaned(text);
    const std::string_view result = cleaned.text();
    for (std::size_t at = 0; at < result.size();) {
      bool valid = false;
      at += utf8_step(result, at, valid);
      ASSERT_TRUE(valid);
    }
    if (!result.empty()) {
      const Span all = cleaned.original({0, result.size()});
      ASSERT_LE(all.begin, all.end);
      ASSERT_LE(all.end, text.size());
    }
  }
}

TEST(Text, CountsCodePoints) {
  EXPECT_EQ(code_points_before("a\xC3\xA9z", 3), 2U);
  EXPECT_EQ(utf8_prefix("a\xC3\xA9z", 2), "a");
}

}  // namespace
}  // namespace loki
