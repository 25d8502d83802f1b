#include "loki/recognition/regex.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "loki/recognition/scan.hpp"

namespace loki {
namespace {

using Strings = std::vector<std::string>;

TEST(Regex, ReadsRequiredLiteralsOffTheExpression) {
  EXPECT_EQ(required_literals("^error: (.*)$"), Strings{"error: "});
  EXPECT_EQ(required_literals("(?i)ERROR"), Strings{"error"});
  EXPECT_EQ(required_literals("foo|bar"), (Strings{"bar", "foo"}));
  EXPECT_EQ(required_literals("foo|b.r"), Strings{});
  EXPECT_EQ(required_literals("colou?r"), (Strings{"color", "colour"}));
  EXPECT_EQ(required_literals("_{3,} x"), Strings{"___"});
  EXPECT_EQ(required_literals("(a.foo)?bar"), Strings{"bar"});
  EXPECT_EQ(required_literals("(?P<path>[^:]+\\.(?:py|c)):\\d"), (Strings{".c:", ".py:"}));
  EXPECT_EQ(required_literals("[Ff]atal"), Strings{"fatal"});
  EXPECT_EQ(required_literals("a.c"), Strings{});
  EXPECT_EQ(required_literals("\\d+ \\bfailed\\b"), Strings{" failed"});
  EXPECT_EQ(required_literals("(?i)caf\xC3\xA9 noir"), Strings{" noir"});
}

TEST(Regex, WhatMayMatchIsNeverTooLittle) {
  const Strings expressions = {
      "^ab",       "^(?:ab|abz)", "^[a-c]+b", "^a?b",  "^$",         "^(?i)ab", "^ab|c",
      "^b*",       "(?i)^ab",     "^\\xff",   "^",     "^(a|b)$",    "^.b",     "ab",
      "^\xC3\xA9", "^a{2}b",      "^\\bab",   "^[^a]", "^(?:^a|b)c", "^\\w",    "^\n"};
  std::mt19937 random(5);
  for (const std::string& expression : expressions) {
    const Regex regex{expression};
    for (int round = 0; round < 500; ++round) {
      std::string line;
      for (std::size_t i = 0, size = random() % 5; i < size; ++i)
        line += "abczAB\n\xC3\xA9~"[random() % 10];
      if (RE2::PartialMatch(line, regex.compiled())) {
        ASSERT_TRUE(regex.may_match(line, FoldedLine(line))) << expression << " on " << line;
      }
    }
  }
  EXPECT_FALSE(Regex("^ {2,}x").may_match(" x", FoldedLine(" x")));
  EXPECT_FALSE(Regex("^(FAILED|ERROR) ").may_match("warning", FoldedLine("warning")));
  EXPECT_FALSE(Regex("(?i)cannot find (?:module|file) .*: GONE")
                   .may_match("x", FoldedLine("cannot find module x")));
  EXPECT_TRUE(Regex("(?i)cannot find .*: gone")
                  .may_match("Cannot find x: GONE", FoldedLine("cannot find x: gone")));
  EXPECT_TRUE(Regex("error").may_match("an error", FoldedLine("an error")));
}

TEST(Regex, TakesAnyTextAsAnExpression) {
  std::mt19937 random(5);
  const std::string alphabet = "ab()[]{}|*+?\\^$.:<>P-,1iQE";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t i = 0, size = random() % 16; i < size; ++i)
      text.push_back(alphabet[random() % alphabet.size()]);
    required_literals(text);
  }
  required_literals(std::string(100000, '('));
}

// What an expression matches holds one of its literals.
TEST(Regex, NeverRequiresWhatAMatchLacks) {
  std::mt19937 random(11);
  const std::string pieces[] = {"abc",    "cab",  "a",      "b?",     "c*",      "(?:ab|bca)",
                                "(abc)?", "[ab]", "b{2,3}", ".",      "(?:a|)",  "(?:abcb|c.a)",
                                "a+",     "^",    "\\b",    "(?:b.)", "(ca|cb)+"};
  for (int round = 0; round < 20000; ++round) {
    std::string expression;
    for (std::size_t i = 0, size = 1 + random() % 5; i < size; ++i) {
      expression += pieces[random() % std::size(pieces)];
      if (random() % 6 == 0) expression += '|';
    }
    const Regex regex(expression);
    if (regex.required().empty() || !regex.compiled().ok()) continue;
    for (int k = 0; k < 8; ++k) {
      std::string text;
      for (std::size_t i = 0; i < 10; ++i) text.push_back("abc"[random() % 3]);
      if (!RE2::PartialMatch(text, regex.compiled())) continue;
      const auto& required = regex.required();
      ASSERT_TRUE(std::any_of(
          required.begin(), required.end(),
          [&](const std::string& literal) { return text.find(literal) != std::string::npos; }))
          << expression << " in " << text;
    }
  }
}

TEST(Regex, SaysWhatIsWrong) {
  EXPECT_EQ(Regex("a(b)").check(), "");
  EXPECT_NE(Regex("a(b").check(), "");
  EXPECT_NE(Regex("(?=a)b").check(), "");
}

}  // namespace
}  // namespace loki
