#include "loki/recognition/similarity.hpp"

#include <gtest/gtest.h>

#include "loki/recognition/similarity_sets.hpp"

namespace loki {
namespace {

TEST(Similarity, TokensAreFoldedRunsAndPlaceholders) {
  EXPECT_EQ(tokens("Foo_1 bar, <int>FOO_1 \xC3\x89t\xC3\xA9!"),
            (Tokens{"<int>", "bar", "foo_1", "\xC3\xA9t\xC3\xA9"}));
  EXPECT_TRUE(tokens("\xFF ... ").empty());
}

TEST(Similarity, Measures) {
  const Tokens a = {"a", "b", "c"}, b = {"b", "c", "d", "e"};
  EXPECT_DOUBLE_EQ(overlap(a, b), 2.0 / 5);
  EXPECT_DOUBLE_EQ(containment(a, b), 2.0 / 3);
  EXPECT_DOUBLE_EQ(dice(a, b), 4.0 / 7);
  EXPECT_DOUBLE_EQ(larger_share(a, b), 0.5);
  EXPECT_EQ(overlap({}, {}), 1);
  EXPECT_EQ(overlap({}, a), 0);
  EXPECT_EQ(overlap({"a", "b"}, a), 0);
}

TEST(Similarity, TheOrderOfTheDecision) {
  FailureSite a{"OddError", "", "the basket of the customer is empty again", "", {}, {}, "p"};
  FailureSite b = a;
  EXPECT_TRUE(same_failure(a, b, 0.8));
  b.tests = {"t1"};
  EXPECT_FALSE(same_failure(a, b, 0.99));
  a.tests = {"t2"};
  EXPECT_FALSE(same_failure(a, b, 0.0)) << "different tests";
  a.tests.clear();
  b = a;
  b.normalized += " and again";
  EXPECT_TRUE(same_failure(a, b, 0.8)) << "same pattern, specific, alike";
  b.pattern = "q";
  EXPECT_FALSE(same_failure(a, b, 0.8));
  a.error_code = b.error_code = "E1";
  EXPECT_TRUE(same_failure(a, b, 0.8)) << "same code, alike";
  b.error_code = "E2";
  EXPECT_FALSE(same_failure(a, b, 0.0));
}

TEST(Similarity, WhatOneStyleLeavesOutIsNoDifference) {
  const FailureSite whole{"OddError", "",          "the basket of the customer is empty",
                          "",         {"t.py::f"}, {"total", "price"},
                          "p"};
  FailureSite brief = whole;
  brief.functions.clear();
  brief.normalized = "the basket of th...";
  EXPECT_TRUE(same_failure(whole, brief, 0.8));
  EXPECT_TRUE(same_failure(brief, whole, 0.8));
  brief.error_type.clear();
  brief.normalized = "OddError: the bask\u2026";
  EXPECT_TRUE(same_failure(whole, brief, 0.8)) << "cut with the type before it";
  brief.normalized = "FAILED t.py::f";
  EXPECT_TRUE(same_failure(whole, brief, 0.8)) << "a line that names the test only";
  brief.normalized = "--- FAIL: t.py::f (<duration>)";
  EXPECT_TRUE(same_failure(whole, brief, 0.8));
  brief.normalized = "FAILED t.py::f of quite another cause";
  EXPECT_FALSE(same_failure(whole, brief, 0.8)) << "more than the test's name";
  brief.normalized = "t.py::f: cannot open the fixture file";
  EXPECT_FALSE(same_failure(whole, brief, 0.8)) << "a message that names the test, too";
  brief.normalized = "another message, whole";
  EXPECT_FALSE(same_failure(whole, brief, 0.8));
  brief.normalized = "the basket is...";
  EXPECT_FALSE(same_failure(whole, brief, 0.8)) << "cut, and of another message";
  FailureSite elsewhere = brief;
  elsewhere.normalized = "the basket of th...";
  elsewhere.tests.clear();
  EXPECT_FALSE(same_failure(whole, elsewhere, 0.8)) << "nothing but a cut message in common";
}

TEST(Similarity, WhatATestGotIsAnArgument) {
  FailureSite a{"AssertionError", "", "assert 'pear' == 'plum'", "", {"t.py::f"}, {}, "p"};
  FailureSite b = a;
  b.normalized = "assert 'grape or berry' == 'plum'";
  EXPECT_TRUE(same_failure(a, b, 0.8));
  b.error_type = "ValueError";
  EXPECT_FALSE(same_failure(a, b, 0.8)) << "another type";
  b.error_type = a.error_type;
  b.normalized = "assert 'grape or berry' in basket";
  EXPECT_FALSE(same_failure(a, b, 0.8)) << "another message";
}

TEST(Similarity, TheSameTestsTellMoreThanTheErrorOfOneOfThem) {
  FailureSite a{"AssertionError", "", "first of them", "", {"t.py::f", "t.py::g"}, {}, "p"};
  FailureSite b{"KeyError", "", "in another order", "", {"t.py::g", "t.py::f"}, {}, "p"};
  EXPECT_TRUE(same_failure(a, b, 0.8));
  b.pattern = "q";
  EXPECT_FALSE(same_failure(a, b, 0.8)) << "another kind";
  b.pattern = a.pattern;
  b.tests.pop_back();
  EXPECT_FALSE(same_failure(a, b, 0.8)) << "other tests";
  a.tests = b.tests;
  EXPECT_FALSE(same_failure(a, b, 0.8)) << "one test, another error";
}

TEST(Similarity, Specific) {
  EXPECT_TRUE(is_specific({"OddError", "", "something long enough", "", {}, {}, ""}));
  EXPECT_FALSE(is_specific({"", "", "something long enough without an anchor", "", {}, {}, ""}));
  EXPECT_FALSE(is_specific({"E", "", "short", "", {}, {}, ""}));
}

TEST(Similarity, ShortFailuresWithAPlaceAreSpecific) {
  EXPECT_TRUE(is_specific({"KeyError", "", "'x'", "", {"t.py::test_a"}, {}, ""}));
  EXPECT_TRUE(is_specific({"", "", "undefined: x", "main.go", {}, {}, ""})) << "a few words";
  EXPECT_FALSE(is_specific({"", "", "error", "main.go", {}, {}, ""})) << "one word";
  EXPECT_TRUE(is_specific({"", "SIGKILL", "Killed", "", {}, {}, ""}));
}

TEST(Similarity, ABareAssertIsToldByWhereItStands) {
  FailureSite a = {"", "", "assert False", "t.py", {"t.py::test_a"}, {}, ""}, b = a;
  EXPECT_TRUE(same_failure(a, b, 0.8));
  a.line = 3;
  EXPECT_TRUE(same_failure(a, b, 0.8)) << "one of them does not say where";
  b.line = 9;
  EXPECT_FALSE(same_failure(a, b, 0.8));
  a.normalized = b.normalized = "assert x == <int>";
  EXPECT_TRUE(same_failure(a, b, 0.8)) << "lines move; what it says does not";
}

TEST(TokenSets, EqualsOneByOne) {
  const std::vector<std::string_view> texts = {"disk full on node 17", "", "no route to host", "a"};
  for (const unsigned threads : {1U, 4U}) {
    const TokenSets sets(texts, threads);
    EXPECT_EQ(sets.overlaps("disk full on node 23"), (std::vector<double>{1, 0, 0, 0}));
    EXPECT_EQ(sets.overlaps(""), (std::vector<double>{0, 1, 0, 0}));
    EXPECT_EQ(sets.overlaps("a"), (std::vector<double>{0, 0, 0, 1}));
  }
}

}  // namespace
}  // namespace loki
