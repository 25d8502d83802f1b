#include "loki/recognition/text_map.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "loki/recognition/text.hpp"

namespace loki {
namespace {

struct Piece {
  std::size_t original;
  std::size_t length;
  std::size_t shown;
};

TEST(TextMap, FindsWhatAListOfPiecesFinds) {
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed() + 7U);
  for (const std::size_t largest : {std::size_t{3}, std::size_t{5000}, std::size_t{1} << 40}) {
    TextMap map;
    std::vector<Piece> pieces;
    std::size_t total = 0;
    for (int i = 0; i < 3000; ++i) {
      const bool goes_on = !pieces.empty() && random() % 2 == 0;
      Piece piece{random() % (largest * 8), 1 + random() % largest, 0};
      if (goes_on) piece.original = pieces.back().original + pieces.back().length;
      piece.shown = piece.length + (random() % 3 == 0 ? random() % 3 : 0);
      map.add(piece.original, piece.length, piece.shown);
      pieces.push_back(piece);
      total += piece.shown;
    }
    std::size_t cleaned = 0;
    for (const Piece& piece : pieces) {
      const TextMap::Stretch found = map.at(cleaned);
      ASSERT_LE(found.cleaned, cleaned);
      ASSERT_LE(cleaned + piece.shown, found.cleaned + found.shown);
      ASSERT_LE(found.original, piece.original);
      ASSERT_LE(piece.original + piece.length, found.original + found.length);
      if (found.is_exact()) {
        ASSERT_EQ(piece.original - found.original, cleaned - found.cleaned);
      }
      cleaned += piece.shown;
    }
    std::size_t walked = 0;
    map.each([&](const TextMap::Stretch& stretch) {
      ASSERT_EQ(stretch.cleaned, walked);
      walked += stretch.shown;
    });
    EXPECT_EQ(walked, total);
  }
}

TEST(TextMap, ReplacedBytesAreFoundAnywhereInALongText) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += i % 7 == 0 ? "\xE2\x82 x" : "a\xFF";
  const CleanText cleaned(text);
  std::size_t at = 0, from = 0;
  while (from < text.size()) {
    bool valid = false;
    const std::size_t step = utf8_step(text, from, valid);
    const std::size_t shown = valid ? step : 3;
    ASSERT_EQ(cleaned.original({at, at + shown}), (Span{from, from + step}));
    at += shown;
    from += step;
  }
  EXPECT_EQ(at, cleaned.text().size());
}

TEST(TextMap, ALineInVeryManyPiecesIsShownInParts) {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += "a\x1B[m";
  text += "\rb\n";
  const std::string shown(CleanText(text).text());
  EXPECT_EQ(shown.size(), 200001U);
  EXPECT_EQ(shown.find('b') == std::string::npos, false);
  EXPECT_EQ(shown.back(), '\n');
}

}  // namespace
}  // namespace loki
