#include "loki/recognition/line_head.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace loki {
namespace {

using Strings = std::vector<std::string>;

std::string random_text(std::mt19937& random, std::string_view letters, std::size_t most) {
  std::string text;
  for (std::size_t i = 0, size = random() % (most + 1); i < size; ++i) {
    text += letters[random() % letters.size()];
  }
  return text;
}

TEST(NumberSet, GivesWhatWasAddedInOrderAndOnce) {
  std::mt19937 random(3);
  for (const std::size_t bound : {1U, 63U, 64U, 65U, 4096U, 4097U, 9000U}) {
    NumberSet some(bound), others(bound), both(bound);
    std::set<std::uint32_t> expected, in_some, in_others, taken;
    for (int i = 0; i < 50; ++i) {
      const auto a = static_cast<std::uint32_t>(random() % bound);
      const auto b = static_cast<std::uint32_t>(random() % bound);
      some.add(a);
      others.add(b);
      in_some.insert(a);
      in_others.insert(b);
    }
    for (const std::uint32_t number : in_some) {
      if (in_others.contains(number)) expected.insert(number);
    }
    both.add_common(some, others);
    for (const std::uint32_t number : in_some) both.add_if(number, others);
    std::vector<std::uint32_t> found;
    both.take([&](std::uint32_t number) { found.push_back(number); });
    EXPECT_EQ(found, std::vector<std::uint32_t>(expected.begin(), expected.end())) << bound;
    both.take([&](std::uint32_t number) { taken.insert(number); });
    EXPECT_TRUE(taken.empty());
    some.clear();
    some.take([&](std::uint32_t number) { taken.insert(number); });
    EXPECT_TRUE(taken.empty());
  }
}

TEST(HeadTable, FindsAllHeadsThatALineBeginsWith) {
  std::mt19937 random(4);
  HeadTable table;
  std::vector<std::string> heads;
  for (std::uint32_t number = 0; number < 300; ++number) {
    heads.push_back("a" + random_text(random, "ab:\xC3", 8) + "xx");
    table.add(heads.back(), number);
  }
  int hits = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::string line = "a" + random_text(random, "ab:\xC3x", 14);
    std::multiset<std::uint32_t> expected, found;
    for (std::uint32_t number = 0; number < heads.size(); ++number) {
      if (line.starts_with(heads[number])) expected.insert(number);
    }
    table.each(line, [&](std::uint32_t number) { found.insert(number); });
    ASSERT_EQ(found, expected) << line;
    hits += static_cast<int>(found.size());
  }
  EXPECT_GT(hits, 100);
}

TEST(HeadTable, IsAskedWhereHeadsAreAsRareAsLiterals) {
  EXPECT_TRUE(HeadTable::serves({"npm warn"}, {"npm warn"}));
  EXPECT_TRUE(HeadTable::serves({"traceback"}, {}));
  EXPECT_FALSE(HeadTable::serves({"error:"}, {"segmentation"}));
  EXPECT_FALSE(HeadTable::serves({"ab"}, {}));
  EXPECT_FALSE(HeadTable::serves({}, {"segmentation"}));
}

// Every regex that matches a line is among those that its first byte allows.
TEST(FirstBytes, AllowsWhateverMatches) {
  const Strings expressions = {
      "^ab",          "^\\s*ab",    "^ +\\d",       "^(?i)[k-t]x", "(?i)^k",      "^[^a\\s]",
      "^\\W*warn",    "^\\d+ b",    "ab",           "^a?",         "^(?:a|\\d)b", "^[\\w.]+:",
      "^\\s*[^\\s:]", "^(?:a b)?c", "^a{2}",        "^a{0,2}b",    "^(?:)b",      "^\\[x",
      "^[]a]",        "^[a-]b",     "^[[:alpha:]]", "^\xC3\xA9",   "^[\xC3\xA9]", "^\\S",
      "^\\D1",        "^\\x41",     "^\\p{Greek}",  "^.b",         "^$",          "^\\bab",
      "^\\t",         "^[\\t ]b",   "^\\Qa.\\E",    "^a|b",        "^\\s*$",      "^ *(?:[\\t]|b)"};
  std::vector<std::optional<Regex::FirstByte>> first;
  std::vector<Regex> regexes;
  for (const std::string& expression : expressions) {
    regexes.emplace_back(expression);
    ASSERT_EQ(regexes.back().check(), "") << expression;
    first.push_back(regexes.back().first_byte());
  }
  const FirstBytes table(first);
  const Strings pieces = {
      "a", "b", "c",  "k", "K", "1",    " ",        "\t",           ":",        ".", "[", "]",
      "-", "w", "ab", "x", "A", "warn", "\xC3\xA9", "\xE2\x84\xAA", "\xCE\xB1", "T"};
  std::mt19937 random(6);
  int matched = 0, ruled_out = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string line;
    for (std::size_t i = 0, size = random() % 5; i < size; ++i) {
      line += pieces[random() % pieces.size()];
    }
    NumberSet room(expressions.size());
    NumberSet allowed = table.of(FoldedLine(line), room);
    std::vector<bool> is_allowed(expressions.size(), false);
    allowed.take([&](std::uint32_t number) { is_allowed[number] = true; });
    for (std::size_t i = 0; i < expressions.size(); ++i) {
      const bool matches = RE2::PartialMatch(line, regexes[i].compiled());
      ASSERT_TRUE(is_allowed[i] || !matches) << expressions[i] << " on '" << line << "'";
      matched += matches;
      ruled_out += !is_allowed[i];
    }
  }
  EXPECT_GT(matched, 20000);
  EXPECT_GT(ruled_out, 200000);
}

// What the combined expression of them all would cut, the first that fits before the others.
TEST(LinePrefix, CutsWhatTheFirstFittingExpressionMatches) {
  const Strings expressions = {"\\[INFO\\] ", "\\d+:\\d\\d ", " *\\[(?:a|b)\\] ",
                               "[a-z]+> ",    "  =+ ",        "##"};
  const LinePrefix prefix(expressions);
  std::string all = "^(?:";
  for (const std::string& expression : expressions) all += "(?:" + expression + ")|";
  all.back() = ')';
  const RE2 combined(all);
  const Strings pieces = {
      "[INFO] ", "[info] ", "1:22 ", "12:3", "  == ", "  [a] ", "[b] ",    "ab> ",
      "x",       "##",      "#",     " ",    "[",     "> ",     "\xC3\xA9"};
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string line;
    for (std::size_t i = 0, size = random() % 6; i < size; ++i) {
      line += pieces[random() % pieces.size()];
    }
    re2::StringPiece rest(line);
    std::string marked = line;
    for (int nested = 0; nested < 3; ++nested) {
      const std::string before(rest);
      if (!RE2::Consume(&rest, combined)) break;
      marked = before;
    }
    FoldedLine folded;
    std::string_view innermost;
    const std::string_view shown = prefix.removed(line, folded, &innermost);
    ASSERT_EQ(shown, std::string_view(rest.data(), rest.size())) << line;
    ASSERT_EQ(innermost, marked) << line;
    ASSERT_EQ(folded.text(), FoldedLine(shown).text());
    ASSERT_EQ(folded.unindented(), FoldedLine(shown).unindented());
    ASSERT_EQ(prefix.removed(line), shown);
  }
  EXPECT_EQ(LinePrefix({}).removed("as it is"), "as it is");
}

}  // namespace
}  // namespace loki
