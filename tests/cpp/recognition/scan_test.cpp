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
  const std::string folded = ascii_folded(text);
  for (std::size_t i = 0; i < literals.size(); ++i) {
    const std::string literal = ascii_folded(literals[i]);
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
