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
  EXPECT_EQ(required_literals("^\\d+\\) (?P<test>(?:test|spec) .+ x)$"),
            (Strings{") spec ", ") test "}));  // with what stands before the group
  EXPECT_EQ(required_literals("^ {4,}(?P<type>\\w+(?:Error|Fault)):$"),
            (Strings{"error:", "fault:"}));  // blanks are everywhere
  EXPECT_EQ(required_literals("^ {4,}(?:\\w+::)+\\w+$"), Strings{"::"});
  EXPECT_EQ(required_literals("^ab\\d"), Strings{});
  EXPECT_EQ(required_literals("\\d+ \\bfailed\\b"), Strings{" failed"});
  EXPECT_EQ(required_literals("(?i)caf\xC3\xA9 noir"), Strings{" noir"});
  EXPECT_EQ(required_literals("caf\xC3\xA9? noir"), (Strings{"caf noir", "caf\xC3\xA9 noir"}));
  EXPECT_EQ(required_literals("[[:alpha:]]bar"), Strings{"bar"});
  EXPECT_EQ(required_literals("\\012foo"), Strings{"foo"});
  EXPECT_EQ(required_literals("abc(?i)*d"), Strings{});
  EXPECT_EQ(required_literals("abc\\Q\\E?d"), Strings{});
}

TEST(Regex, WhatMayMatchIsNeverTooLittle) {
  const Strings expressions = {"^ab",        "^(?:ab|abz)", "^[a-c]+b", "^a?b",        "^$",
                               "^(?i)ab",    "^ab|c",       "^b*",      "(?i)^ab",     "^\\xff",
                               "^",          "^(a|b)$",     "^.b",      "ab",          "^\xC3\xA9",
                               "^a{2}b",     "^\\bab",      "^a?\\b",   "^(?:ab|\\B)", "^[^a]",
                               "^(?:^a|b)c", "^\\w",        "^\n",      "^?ab",        "^*ab",
                               "a$",         "(?m)b$",      "a|b$",     "a\\$",        "^\\Qa$",
                               "^\\s*a",     "^ *(?:b|ab)", "^ {2,}a",  "^\\s+\\.?a",  "^ +$"};
  std::mt19937 random(5);
  for (const std::string& expression : expressions) {
    const Regex regex{expression};
    for (int round = 0; round < 500; ++round) {
      std::string line;
      for (std::size_t i = 0, size = random() % 5; i < size; ++i)
        line += "abczAB\n\xC3\xA9~  \t"[random() % 13];
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

// What an expression matches is never ruled out, and holds one of its literals: random expressions
// of all that RE2 reads, on lines made of what stands in them.
std::string random_atom(std::mt19937& random, int depth);

std::string random_sequence(std::mt19937& random, int depth) {
  static const Strings quantifiers = {"*",  "+",   "?",   "*?",   "+?",
                                      "??", "{0}", "{2}", "{1,}", "{0,2}"};
  std::string expression;
  for (std::size_t i = 0, size = 1 + random() % 4; i < size; ++i) {
    expression += random_atom(random, depth);
    if (random() % 4 == 0) expression += quantifiers[random() % quantifiers.size()];
    if (random() % 7 == 0) expression += '|';
  }
  return expression;
}

std::string random_atom(std::mt19937& random, int depth) {
  static const Strings atoms = {"a",
                                "ab",
                                "abc",
                                "B",
                                ".",
                                "^",
                                "$",
                                "\\b",
                                "\\B",
                                "\\A",
                                "\\z",
                                "\\w",
                                "\\D",
                                "\\s",
                                "[ab]",
                                "[^a]",
                                "[a-c]",
                                "[]a]",
                                "[^]a]",
                                "[\\]b]",
                                "[[:alpha:]]",
                                "[[:^digit:]b]",
                                "[b[:space:]]",
                                "\xC3\xA9",
                                "\xE2\x9C\x93",
                                "[\xC3\xA9]",
                                "\\.",
                                "\\[",
                                "\\x61",
                                "\\x{62}",
                                "\\141",
                                "\\012",
                                "\\t",
                                "\\pL",
                                "\\p{Lu}",
                                "\\Qab\\E",
                                "\\Q\\E",
                                "\\Qa\\E",
                                "\\Q[a\\E",
                                "(?i)",
                                "(?-i)",
                                "(?m)",
                                "(?s)",
                                "(?U)",
                                "(?is)",
                                "{",
                                "a{,2}",
                                "\\C",
                                "(?:)",
                                "()"};
  static const Strings groups = {"(", "(?:", "(?i:", "(?P<message>", "(?-i:", "(?m:"};
  if (depth < 3 && random() % 5 == 0) {
    return groups[random() % groups.size()] + random_sequence(random, depth + 1) + ")";
  }
  return atoms[random() % atoms.size()];
}

TEST(Regex, RulesOutNothingThatMatches) {
  const Strings pieces = {"a", "b", "c", "ab",    "abc", "A",  "B",  "ABC",      "[",
                          "]", ".", "{", "a{,2}", " ",   "\n", "\t", "\xC3\xA9", "\xE2\x9C\x93",
                          "1", "_"};
  std::mt19937 random(7);
  int matched = 0;
  for (int round = 0; round < 10000; ++round) {
    std::string expression = random() % 3 == 0 ? "^" : "";
    expression += random_sequence(random, 0);
    if (random() % 3 == 0) expression += random() % 2 == 0 ? "$" : "\\$";
    const Regex regex(expression);
    if (!regex.check().empty()) continue;
    const Strings& required = regex.required();
    for (int k = 0; k < 8; ++k) {
      std::string line;
      for (std::size_t i = 0, size = random() % 7; i < size; ++i)
        line += pieces[random() % pieces.size()];
      if (!RE2::PartialMatch(line, regex.compiled())) continue;
      ++matched;
      const FoldedLine folded(line);
      ASSERT_TRUE(regex.may_match(line, folded)) << expression << " on " << line;
      ASSERT_TRUE(required.empty() || std::any_of(required.begin(), required.end(),
                                                  [&](const std::string& literal) {
                                                    return folded.text().find(literal) !=
                                                           std::string::npos;
                                                  }))
          << expression << " on " << line;
    }
  }
  EXPECT_GT(matched, 5000);
}

TEST(Regex, SaysWhatIsWrong) {
  EXPECT_EQ(Regex("a(b)").check(), "");
  EXPECT_NE(Regex("a(b").check(), "");
  EXPECT_NE(Regex("(?=a)b").check(), "");
}

}  // namespace
}  // namespace loki
