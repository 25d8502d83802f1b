#include "loki/recognition/text_utf16.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace loki {
namespace {

using namespace std::string_view_literals;

TEST(Utf16, IsKnownByItsMark) {
  EXPECT_TRUE(
      is_utf16("\xFF\xFE"
               "a\0"sv));
  EXPECT_TRUE(is_utf16("\xFE\xFF\0a"sv));
  EXPECT_FALSE(is_utf16("a\0b\0"sv));
  EXPECT_FALSE(is_utf16("\xFF"sv));
  EXPECT_FALSE(is_utf16("\xEF\xBB\xBFtext"sv));
}

TEST(Utf16, BecomesUtf8) {
  EXPECT_EQ(utf8_from_utf16("\xFF\xFE"sv), "");
  EXPECT_EQ(utf8_from_utf16("\xFF\xFE"
                            "a\0\xE9\0\x2D\x4E\x3D\xD8\x00\xDE"sv),
            "a\u00e9\u4e2d\U0001F600");
  EXPECT_EQ(utf8_from_utf16("\xFE\xFF\0a\0\xE9\x4E\x2D\xD8\x3D\xDE\x00"sv),
            "a\u00e9\u4e2d\U0001F600");
}

TEST(Utf16, WhatIsNoTextIsNoUtf8) {
  EXPECT_EQ(utf8_from_utf16("\xFF\xFE\x3D\xD8"
                            "a\0"sv),
            "\xED\xA0\xBD"
            "a");
  EXPECT_EQ(utf8_from_utf16("\xFF\xFE\x3D\xD8"sv), "\xED\xA0\xBD");
  EXPECT_EQ(utf8_from_utf16("\xFF\xFE"
                            "a\0b"sv),
            "a\xFF");
}

}  // namespace
}  // namespace loki
