#include "loki/recognition/signature.hpp"

#include <gtest/gtest.h>

namespace loki {
namespace {

// Stores keep these: a change here is a change of the major release.
TEST(Signature, GoldenFingerprints) {
  const struct {
    FingerprintFields fields;
    const char* expected;
  } golden[] = {
      {{"", "", "", {}, {}}, "ce62b44e257dbdc8114ddfda264d5aa9"},
      {{"KeyError", "", "'a'", {}, {}}, "c1731a14aa1674b560062cccd38ca836"},
      {{"", "TS2322", "Type <str>", {"b", "a"}, {"main", "f"}}, "d0f0db1446a1f4fcf484967ca615dfec"},
      {{"TypeError", "", "", {}, {}}, "64512cce21ccc1dc5f5279f619dd5f0f"},
      {{"", "E0308", "", {}, {}}, "8c606f0d8f717a41616a1aff596cfad7"},
      {{"", "", "exit code <int>", {}, {}}, "3a9d8549102f2bc9785b83d704fa5665"},
      {{"", "", "", {"tests/test_a.py::test_x"}, {}}, "6ecadd83ecdf1c85ffb5774aef367835"},
      {{"", "", "", {}, {"load"}}, "33e620e8dee534e772c3f3dfcf283ae2"},
      {{"AssertionError", "", "assert <int> == <int>", {"t::a", "t::b", "t::a"}, {"f", "g"}},
       "a2d12eb0c6e88f528039dbe2f97fc552"},
      {{"", "F401", "'os' imported but unused", {}, {}}, "9423fb77c131654e4e64cf8c5ace4e87"},
      {{"panic", "", "index out of range [<int>]", {"TestMain"}, {"main.main", "main.run"}},
       "acebbfb7a84ab40c5649f77c92d56d18"},
      {{"", "", "caf\u00e9 \u4e2d\u6587 \U0001F600 \uFFFD", {}, {}},
       "a954dc98e17a7bbd6589c576dc9e2892"},
      {{"", "", std::string_view("a\0b", 3), {}, {}}, "01719928f4a7c9a9f431ad4c8ddfcdd8"},
      {{"", "", "one\ntwo\t<time>", {""}, {""}}, "a7604d2baa9e9e243a88e6d76a694e3e"},
  };
  for (const auto& [fields, expected] : golden) {
    EXPECT_EQ(fingerprint(fields), expected) << fields.error_type << fields.normalized;
  }
}

TEST(Signature, GoldenFingerprintOfALongMessage) {
  const std::string message(100000, 'x');
  EXPECT_EQ(fingerprint({"", "", message, {}, {}}), "87372520183e8fa8d36652bd77b8a905");
}

TEST(Signature, FieldsDoNotRunIntoEachOther) {
  EXPECT_NE(fingerprint({"a", "b", "", {}, {}}), fingerprint({"ab", "", "", {}, {}}));
  EXPECT_NE(fingerprint({"", "", "", {"a"}, {}}), fingerprint({"", "", "", {}, {"a"}}));
  EXPECT_NE(fingerprint({"", "", "", {"ab"}, {}}), fingerprint({"", "", "", {"a", "b"}, {}}));
}

TEST(Signature, OrderAndRepetitionOfTestsDoNotMatter) {
  EXPECT_EQ(fingerprint({"", "", "", {"a", "b"}, {}}),
            fingerprint({"", "", "", {"b", "a", "b"}, {}}));
  EXPECT_NE(fingerprint({"", "", "", {}, {"a", "b"}}), fingerprint({"", "", "", {}, {"b", "a"}}));
}

TEST(Signature, IsReadable) {
  EXPECT_EQ(signature("type-error", "ts", "TS2322", "Type x"), "type-error:ts:ts2322");
  EXPECT_EQ(signature("type-error", "ts", "", "Circular reference"),
            "type-error:ts:circular_reference");
  EXPECT_EQ(signature("", "", "", "(!)"), "unknown:none:");
  EXPECT_LE(slug("", std::string(500, 'x')).size(), 40U);
  EXPECT_EQ(slug("", "assert <int> == <int>"), "assert_int_int");
}

}  // namespace
}  // namespace loki
