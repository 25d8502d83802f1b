#include "loki/recognition/signature.hpp"

#include <gtest/gtest.h>

namespace loki {
namespace {

// Stores keep these: a change here is a change of the major release.
TEST(Signature, GoldenFingerprints) {
  EXPECT_EQ(fingerprint({"", "", "", {}, {}}), "ce62b44e257dbdc8114ddfda264d5aa9");
  EXPECT_EQ(fingerprint({"KeyError", "", "'a'", {}, {}}), "c1731a14aa1674b560062cccd38ca836");
  EXPECT_EQ(fingerprint({"", "TS2322", "Type <str>", {"b", "a"}, {"main", "f"}}),
            "d0f0db1446a1f4fcf484967ca615dfec");
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
