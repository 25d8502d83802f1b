#include "loki/recognition/scan.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

#include "loki/base/error.hpp"

namespace loki {
namespace {

using Hits = std::multiset<std::pair<std::size_t, std::size_t>>;

Hits scanned(const std::vector<std::string>& literals, std::string_view text) {
  Hits hits;
  LiteralScan(literals).each(text, [&](std::size_t i, std::size_t end) { hits.emplace(i, end); });
  return hits;
}

Hits reference(const std::vector<std::string>& literals, std::string_view text) {
  Hits hits;
  const std::string folded = utf8_folded(text);
  for (std::size_t i = 0; i < literals.size(); ++i) {
    const std::string literal = utf8_folded(literals[i]);
    for (std::size_t at = folded.find(literal); at != std::string::npos;
         at = folded.find(literal, at + 1)) {
      hits.emplace(i, at + literal.size());
    }
  }
  return hits;
}

TEST(Scan, FindsAllOccurrencesLikeTheSlowReference) {
  std::mt19937 random(3);
  const auto word = [&](std::size_t longest) {
    std::string text;
    for (std::size_t i = 0, size = 1 + random() % longest; i < size; ++i)
      text.push_back("abAB\xC3"[random() % 5]);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> literals;
    for (std::size_t i = 0, count = 1 + random() % 8; i < count; ++i) literals.push_back(word(4));
    const std::string text = word(40);
    ASSERT_EQ(scanned(literals, text), reference(literals, text));
  }
}

// Long enough to be read in lanes and blocks, whose borders fall inside of hits.
TEST(Scan, FindsAllInLongTextsLikeTheSlowReference) {
  std::mt19937 random(4);
  const std::vector<std::string> pieces = {"a",        "b",    "\n", "\xC3\x89",
                                           "\xC3\xA9", "\xC3", "A",  "\xD0\x96"};
  const auto word = [&](std::size_t longest) {
    std::string text;
    for (std::size_t i = 0, size = 1 + random() % longest; i < size; ++i)
      text += pieces[random() % pieces.size()];
    return text;
  };
  for (const std::size_t size : {600U, 5000U, 30000U, 150000U}) {
    for (int round = 0; round < 8; ++round) {
      std::vector<std::string> literals;
      for (std::size_t i = 0, count = 1 + random() % 8; i < count; ++i) literals.push_back(word(9));
      std::string text;
      while (text.size() < size) text += word(50);
      ASSERT_EQ(scanned(literals, text), reference(literals, text));
    }
  }
}

TEST(Scan, LetterCaseOfAnyScriptDoesNotMatter) {
  const Hits one = {{0, 15}};
  EXPECT_EQ(scanned({"\u043D\u0415 \u043D\u0430\u0439\u0434"},
                    "! \u041D\u0435 \u041D\u0410\u0419\u0414\u0415\u041D\u041E"),
            one)
      << "Cyrillic";
  EXPECT_TRUE(scanned({"k"}, "\u212A").empty()) << "the Kelvin sign is longer than a k";
}

TEST(Scan, ReportsTheLongestFirstWhereHitsEndTogether) {
  std::vector<std::size_t> order;
  LiteralScan({"c", "abc", "bc"}).each("abc", [&](std::size_t i, std::size_t) {
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 2, 0}));
}

TEST(Scan, TakesNoLiteralsButRefusesEmptyOnes) {
  EXPECT_TRUE(scanned({}, "anything").empty());
  EXPECT_THROW(LiteralScan({""}), InvalidArgument);
}

TEST(Scan, StatesGrowWithTheLiteralsOnly) {
  EXPECT_EQ(LiteralScan({"abc", "abd"}).states(), 5U);
}

TEST(Scan, TheTableGivesOneIndexPerLiteral) {
  LiteralTable table;
  EXPECT_EQ(table.add("Error"), 0U);
  EXPECT_EQ(table.add("fatal"), 1U);
  EXPECT_EQ(table.add("ERROR"), 0U);
  EXPECT_EQ(table.literals(), (std::vector<std::string>{"error", "fatal"}));
}

}  // namespace
}  // namespace loki
