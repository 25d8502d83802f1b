#include "loki/recognition/pattern.hpp"

#include <gtest/gtest.h>

#include "loki/base/error.hpp"
#include "loki/recognition/line_head.hpp"
#include "loki/recognition/pattern_rules.hpp"
#include "loki/recognition/regex.hpp"

namespace loki {
namespace {

std::vector<PatternMatch> match(const std::string& signals, const PatternSubject& subject,
                                const char* version = "2") {
  const PatternSet set(R"({"version": )" + std::string(version) +
                       R"(, "patterns": [{"id": "p", "signals": )" + signals + "}]}");
  return set.match(subject);
}

double confidence(const std::string& signals, std::string_view text, const char* version = "2") {
  const auto found = match(signals, {text, {}, {}, {}, {}}, version);
  return found.empty() ? 0 : found.front().confidence;
}

TEST(Pattern, EvidenceCombines) {
  EXPECT_NEAR(confidence(R"([{"literal": "alpha"}, {"word": "beta"}])", "alpha beta"), 0.91, 1e-9);
  EXPECT_EQ(confidence(R"([{"literal": "alpha", "w": "weak"}, {"word": "beta", "w": "weak"},
                           {"word": "gamma", "w": "weak"}])",
                       "alpha beta gamma"),
            0)
      << "weak hits alone match nothing";
  EXPECT_NEAR(confidence(R"([{"literal": "alpha"}, {"literal": "lph"}])", "alpha"), 0.7, 1e-9)
      << "nested";
  EXPECT_NEAR(confidence(R"([{"literal": "alpha"}, {"regex": "alph."}])", "alpha"), 0.7, 1e-9)
      << "duplicate";
}

TEST(Pattern, WhatStandsInTheMessageAndInTheExcerptIsOnePiece) {
  const std::string both = R"([{"literal": "alpha beta"}, {"word": "beta", "in": "message"}])";
  const auto found = match(both, {"E: alpha beta", "alpha beta", "", "", ""});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found.front().confidence, 0.7, 1e-9);
  EXPECT_NEAR(found.front().coverage, 1.0, 1e-9) << "both hit";
  const std::string apart = R"([{"literal": "alpha beta"}, {"word": "gamma", "in": "message"}])";
  EXPECT_NEAR(match(apart, {"alpha beta: gamma", "gamma", "", "", ""}).front().confidence, 0.91,
              1e-9);
}

TEST(Pattern, ScopesSayWhereASignalMustStand) {
  const std::string in_code = R"([{"word": "x1", "in": "code"}])";
  EXPECT_TRUE(match(in_code, {"x1", "x1", "x1", "", ""}).empty());
  EXPECT_FALSE(match(in_code, {"", "", "", "x1", ""}).empty());
  const std::string in_message = R"([{"word": "boom", "in": "message"}])";
  EXPECT_TRUE(match(in_message, {"boom", "quiet", "", "", ""}).empty());
  EXPECT_FALSE(match(in_message, {"boom", "", "", "", ""}).empty()) << "only a text is known";
}

TEST(Pattern, ALineBeginsBehindWhatACiSystemPutsBeforeIt) {
  const PatternSet set(R"({"version": 2, "patterns": [{"id": "p", "signals": [
      {"regex": "^boom: \\w+"}]}]})");
  const LinePrefix prefix({"\\d\\d:\\d\\d ", "#"});
  const std::string_view text = "calm\n10:42 #boom: now";
  EXPECT_TRUE(set.match({text, {}, {}, {}, {}, {}}).empty());
  const auto found = set.match({text, {}, {}, {}, {}, {}, &prefix});
  ASSERT_EQ(found.size(), 1U);
  const Span span = found.front().hits.front().span;
  EXPECT_EQ(text.substr(span.begin, span.size()), "boom: now");
}

TEST(Pattern, AWordEndsAtWhatIsNoLetterInAnyScript) {
  const std::string word = R"([{"word": "FluxError"}])";
  for (const char* text : {"\u2018FluxError\u2019", "\u2502FluxError\u2502", "\u2192FluxError",
                           "\u00A0FluxError\u00A0", "\u00ABFluxError\u00BB", "FluxError\uFF1A",
                           "\xFF"
                           "FluxError\xFF"}) {
    EXPECT_GT(confidence(word, text), 0) << text;
  }
  for (const char* text :
       {"\u00E9FluxError", "FluxError\u00E9", "FluxError_", "\u0416FluxError", "9FluxError"}) {
    EXPECT_EQ(confidence(word, text), 0) << text;
  }
}

TEST(Pattern, SetsAreRefusedThatWouldCostTooMuch) {
  const PatternSet large(
      R"({"version": 2, "patterns": [{"id": "p", "signals": [)"
      R"({"regex": "abc0\\pL{90}"}, {"regex": "abc1\\pL{90}"}, {"regex": "abc2\\pL{90}"},)"
      R"({"regex": "abc3\\pL{90}"}, {"regex": "abc4\\pL{90}"}, {"regex": "abc5\\pL{90}"},)"
      R"({"regex": "abc6\\pL{90}"}, {"regex": "abc7\\pL{90}"}, {"regex": "abc8\\pL{90}"},)"
      R"({"regex": "abc9\\pL{90}"}]}]})");
  EXPECT_THROW(large.check(), DefinitionError);
  EXPECT_THROW(confidence("[{\"literal\": \"" + std::string(500'001, 'x') + "\"}]", ""),
               DefinitionError);
}

TEST(Pattern, RegexesRunLineByLine) {
  EXPECT_EQ(confidence(R"([{"regex": "^two$"}])", "one\ntwo\nthree"), 0.7);
  EXPECT_EQ(confidence(R"([{"regex": "one\\s+two"}])", "one\ntwo"), 0);
  EXPECT_EQ(confidence(R"([{"regex": "^..$", "slow": true}])", "long\nab\n"), 0.7);
}

TEST(Pattern, AVeryLongLineIsSearchedRoundTheLiteral) {
  const std::string far = std::string(1'000'000, 'x') + " needle 7 " + std::string(1'000'000, 'x');
  EXPECT_EQ(confidence(R"([{"regex": "needle \\d"}])", far), 0.7);
}

TEST(Pattern, AVersion1SignalIsARegexWhereSpecSaysSo) {
  for (const char* regex : {"a.*b", "a.+b", "\\d", "[a-z]", "[^x]", "[ab]+", "(a|b)", "^a", "a$"}) {
    EXPECT_TRUE(pattern::is_version1_regex(regex)) << regex;
  }
  for (const char* literal : {"a.b", "[error]", "(a)", "a|b", "$", "cost: 5$ each", "C:\\temp"}) {
    EXPECT_FALSE(pattern::is_version1_regex(literal)) << literal;
  }
  EXPECT_NEAR(confidence(R"(["Alpha", "b.*c", "zz"])", "ALPHA Bxc", "1"), 2.0 / 3, 1e-9);
}

TEST(Pattern, BadSetsNameTheirPlace) {
  const auto where = [](const std::string& json) {
    try {
      PatternSet set(json);
      set.check();
    } catch (const DefinitionError& error) {
      return error.where();
    }
    return std::string("fine");
  };
  const auto signals = [&](const std::string& list) {
    return where(R"({"version": 2, "patterns": [{"id": "p", "signals": )" + list + "}]}");
  };
  EXPECT_EQ(where("{}"), "");
  EXPECT_EQ(signals(R"([{"regex": "abc("}])"), "/patterns/0/signals/0/regex");
  EXPECT_EQ(signals(R"([{"regex": "(?=abc)x"}])"), "/patterns/0/signals/0/regex");
  EXPECT_EQ(signals(R"([{"regex": "a.b"}])"), "/patterns/0/signals/0/regex");
  EXPECT_EQ(signals(R"([{"literal": ""}])"), "/patterns/0/signals/0/literal");
  EXPECT_EQ(signals(R"([{"word": "a", "w": 2}])"), "/patterns/0/signals/0/w");
  EXPECT_EQ(signals(R"([{"any": []}])"), "/patterns/0/signals/0/any");
  EXPECT_EQ(signals(R"([])"), "/patterns/0/signals");
  EXPECT_EQ(signals(R"([{"word": "a"}])"), "fine");
}

}  // namespace
}  // namespace loki
