#include "loki/recognition/normalize.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <random>

namespace loki {
namespace {

struct Case {
  const char* text;
  const char* expected;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.text;
}

class Normalize : public testing::TestWithParam<Case> {};

TEST_P(Normalize, ReplacesWhatVaries) {
  EXPECT_EQ(normalize(GetParam().text), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Normalize,
    testing::Values(
        Case{"at 2024-01-31T10:11:12.123Z x", "at <time> x"},
        Case{"2024-01-31 10:11:12,123", "<time>"}, Case{"31/Jan/2024:10:11:12 +0000", "<time>"},
        Case{"Jan  2 10:11:12", "<time>"}, Case{"Tue, 02 Jan 2024 10:11:12 GMT", "<time>"},
        Case{"10:11:12", "<time>"}, Case{"20240131T101112Z", "<time>"},
        Case{"2024/01/31", "<time>"}, Case{"ratio 31:21", "ratio <int>:<int>"},
        Case{"99:99:99", "<int>:<int>:<int>"}, Case{"2024-13-45", "<int>-<int>-<int>"},
        Case{"in 0.05s", "in <duration>"}, Case{"after 30 seconds", "after <duration>"},
        Case{"1h30m", "<duration>"}, Case{"5 m", "<int> m"},
        Case{"123e4567-e89b-12d3-a456-426614174000", "<uuid>"}, Case{"at 0x7f3a", "at <hex>"},
        Case{"commit 1a2b3c4", "commit <sha>"}, Case{"feedback deadbeef", "feedback deadbeef"},
        Case{"1234567 items", "<int> items"}, Case{"10.0.0.1:8080", "<ip>"},
        Case{"fe80::1ff:fe23", "<ip>"}, Case{"2001:db8:0:1:1:1:1:1", "<ip>"},
        Case{"Type::method", "Type::method"}, Case{"std::vector", "std::vector"},
        Case{"00:1b:44:11:3a:b7", "<mac>"}, Case{"see https://x.org/a?b=1.", "see <url>."},
        Case{"mail a.b@c.org now", "mail <email> now"},
        Case{"/tmp/tmpab1/src/a.py", "<tmp>/src/a.py"},
        Case{"/home/me/proj/a.py", "<home>/proj/a.py"},
        Case{"/tmp/pytest-of-me/pytest-3/x0/f", "<tmp>/x0/f"},
        Case{"C:\\Users\\me\\p\\a.py", "<home>\\p\\a.py"},
        Case{"a.py:12:5: bad", "a.py:<pos>: bad"}, Case{"a.py:12", "a.py:<pos>"},
        Case{"50%", "<percent>"}, Case{"12.5 MB", "<size>"},
        Case{"v1.2 and 1.2.3rc1", "<version> and <version>"}, Case{"3.14", "<float>"},
        Case{"1e-5", "<float>"}, Case{"word-908", "word-<int>"}, Case{"x = -5", "x = <int>"},
        Case{"utf8 E0308 TS2322", "utf8 E0308 TS2322"}, Case{"--seed=12345", "--seed=<int>"},
        Case{"API_KEY=abcd1234", "API_KEY=<secret>"},
        Case{"password: hunter2hunter", "password: <secret>"},
        Case{"unexpected token: foo", "unexpected token: foo"},
        Case{"ghp_abcdefghijklmnopqrstuvwx", "<secret>"},
        Case{"Bearer abc123def456", "Bearer <secret>"}, Case{"list[3]", "list[<int>]"},
        Case{"<int> stays", "<int> stays"}, Case{"", ""}));

TEST(NormalizeLevels, TemplatesAlsoLoseStringsAndGluedNumbers) {
  EXPECT_EQ(normalize("no 'x' in utf8, don't \"y z\"", Level::kTemplate),
            "no <str> in utf<int>, don't <str>");
  EXPECT_EQ(normalize("it's 'open", Level::kTemplate), "it's 'open");
}

TEST(NormalizeRoot, PathsKeepTheirProjectRelativePart) {
  EXPECT_EQ(normalize("in /srv/shop/src/a.py", Level::kVolatile, "/srv/shop"), "in src/a.py");
  EXPECT_EQ(normalize("in /srv/shopping/a.py", Level::kVolatile, "/srv/shop/"),
            "in /srv/shopping/a.py");
}

TEST(NormalizeRoot, WhatStandsBehindItIsReadAsIfItStoodAlone) {
  for (const std::string_view text :
       {"password:/srv/app/ 097g", "-L/srv/app/1T", "/srv/app//tmp/x/y", "/srv/app/", "/srv/app",
        "C:/srv/app/\\Users\\me", "\"a\"/srv/app/%b", "\u2018a\u2019/srv/app/%b",
        "-----BEGIN PRIVATE /srv/app/KEY-----", "/srv//srv/app/app/x", "/srv/app/srv/app/x"}) {
    for (const Level level : {Level::kVolatile, Level::kTemplate}) {
      const std::string once = normalize(text, level, "/srv/app");
      EXPECT_EQ(normalize(once, level, "/srv/app"), once) << text;
    }
  }
  EXPECT_EQ(normalize("'/srv/app/b'", Level::kVolatile, "/srv/app"), "'b'");
  EXPECT_EQ(normalize("\u2018/srv/app/b\u2019", Level::kVolatile, "/srv/app"), "\u2018b\u2019");
  EXPECT_EQ(normalize("-I/srv/app/b --x=/srv/app/c", Level::kVolatile, "/srv/app"), "-Ib --x=c");
  EXPECT_EQ(normalize("a/srv/app/b", Level::kVolatile, "/srv/app"), "a/srv/app/b");
}

TEST(NormalizeProperties, AnAddressDoesNotBeginWhereAKeyWasMasked) {
  for (const char* text : {"d@x.I-gldt-c1I-gld\uFFFD-SG", "ann@example.org-gldt-c1I0aBcD9eFgHiJ"}) {
    const std::string once = normalize(text);
    EXPECT_EQ(normalize(once), once);
  }
  EXPECT_EQ(normalize("to ann@example.org - again"), "to <email> - again");
}

TEST(NormalizeProperties, IsAFixedPointOnRandomText) {
  std::mt19937 random(testing::UnitTest::GetInstance()->random_seed() + 13U);
  const std::string pieces[] = {
      "1",          "23",       ".",     ":",     "-",  "a",       "f",  "/",  "tmp", "home",
      "'",          "\"",       "<int>", " ",     "x",  "%",       "s",  "KB", "@",   "e",
      "2024-01-02", "12:13:14", "=",     "token", "_",  "\n",      "0x", "v",  "[",   ")",
      "\xC3\xA9",   "T",        "+",     "Jan ",  "::", "http://", "\\", "C:"};
  for (int round = 0; round < 40000; ++round) {
    std::string text;
    for (std::size_t i = 0, size = 1 + random() % 9; i < size; ++i)
      text += pieces[random() % std::size(pieces)];
    for (const Level level : {Level::kVolatile, Level::kTemplate}) {
      const std::string once = normalize(text, level);
      EXPECT_EQ(normalize(once, level), once) << text;
    }
  }
}

}  // namespace
}  // namespace loki
