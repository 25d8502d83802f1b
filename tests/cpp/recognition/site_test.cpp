#include "loki/recognition/site.hpp"

#include <gtest/gtest.h>

#include <random>

#include "loki/base/error.hpp"

namespace loki {
namespace {

// A runner with blocks, a tool inside it, and a fallback: every role and key of the schema.
constexpr const char* kRules = R"json({"tools": [
 {"tool": "runner", "language": "lang", "commands": ["runner", "run it"], "over": ["inner"],
  "detect": [{"literal": "runner starts"}], "library": ["^lib/"],
  "blocks": [
   {"id": "fail", "role": "cause", "start": ["^== (?P<test_name>\\S+) failed$"], "until": ["^== "],
    "nests": ["inner"],
    "fields": [{"match": "^says (?P<error_type>\\w+): (?P<message>.*)$"},
               {"match": "^at (?P<path>[^:]+):(?P<line>\\d+) in (?P<function>\\w+)$", "frame": true}]},
   {"id": "sum", "role": "summary", "start": ["^FAIL (?P<test>\\S+)$"]},
   {"id": "late", "role": "cause", "detected": true, "start": ["^common shape (?P<message>.+)$"], "rank": 10},
   {"id": "warn", "role": "warning", "start": ["^WARNINGS$"], "through": ["^END WARNINGS$"]}]},
 {"tool": "inner", "links": [{"match": "^because of that:$", "echo": "next"}],
  "blocks": [{"id": "err", "role": "cause", "start": ["^inner error$"], "continue": ["^ "], "lead": 1,
    "requires": ["message"],
    "fields": [{"match": "^ (?P<message>.+)$", "take": "last"}, {"match": "^code (?P<error_code>\\w+)$"}]},
   {"id": "again", "role": "retry", "start": ["^trying again$"], "reach": 4}]},
 {"tool": "any", "fallback": true, "prefixes": ["\\d\\d:\\d\\d "],
  "blocks": [{"id": "w", "role": "warning", "start": ["^error: none$"]},
   {"id": "e", "role": "cause", "start": ["^error: (?P<message>.*)$"]},
   {"id": "marked", "role": "cause", "start": ["^12:02 that (?P<message>.+)$"], "rank": 10},
   {"id": "end", "role": "echo", "closes": true, "opens": ["step "], "start": ["^step exited$"]}]}]})json";

Site find(std::string_view text, std::string_view command = "", std::string_view root = "") {
  static const SiteRules rules(kRules);
  return rules.find(text, {command, root, ""});
}

TEST(Site, ABlockGivesItsFieldsAndFrames) {
  const Site site = find(
      "== t1 failed\nsays Odd: it broke\nat /w/a.x:3 in f\nat lib/b.x:4 in g\n== end\n", "", "/w");
  EXPECT_EQ(site.tool, "runner");
  EXPECT_EQ(site.language, "lang");
  EXPECT_EQ(site.error_type, "Odd");
  EXPECT_EQ(site.message, "it broke");
  EXPECT_EQ(site.output_line, 2U);
  EXPECT_EQ(site.path, "a.x");
  EXPECT_EQ(site.line, 3U);
  EXPECT_EQ(site.extension, "x");
  ASSERT_EQ(site.frames.size(), 2U);
  EXPECT_FALSE(site.frames[1].in_project);
  EXPECT_EQ(site.tests, std::vector<std::string>{"t1"});
  EXPECT_EQ(site.excerpt_first, 1U);
  EXPECT_EQ(site.excerpt_last, 4U);
}

TEST(Site, AllFailingTestsAreNamedByFullIdsWhereThereAreAny) {
  const Site site =
      find("== t1 failed\nsays A: a\n== t2 failed\nsays B: b\n==  \nFAIL x::t1\nFAIL x::t2\n");
  EXPECT_EQ(site.message, "a") << "the first";
  EXPECT_EQ(site.tests, (std::vector<std::string>{"x::t1", "x::t2"}));
}

TEST(Site, NestedToolsFillWhatIsMissing) {
  const Site site = find("== t1 failed\ncode Q1\ninner error\n first\n last\n== end\n");
  EXPECT_EQ(site.tool, "runner");
  EXPECT_EQ(site.message, "last");
  EXPECT_EQ(site.error_code, "Q1") << "from the line before the start";
}

TEST(Site, ARunnerOutranksToolsInItsLog) {
  EXPECT_EQ(find("inner error\n boom\nx\n== t1 failed\nsays A: a\n").tool, "runner");
  EXPECT_EQ(find("inner error\n boom\n").tool, "inner");
}

TEST(Site, ACommonShapeCountsOnlyWhereTheToolWasDetected) {
  EXPECT_EQ(find("common shape x\n").tool, "");
  EXPECT_EQ(find("common shape x\n", "env A=1 /bin/runner -q").tool, "runner");
  EXPECT_EQ(find("common shape x\n", "please run it now").tool, "runner");
  EXPECT_EQ(find("Runner Starts\ncommon shape x\n").tool, "runner");
}

TEST(Site, RequiredFieldsWarningsAndRetries) {
  EXPECT_EQ(find("inner error\nno message\n").tool, "");
  EXPECT_EQ(find("WARNINGS\nerror: a\nEND WARNINGS\nerror: b\n").message, "b");
  EXPECT_EQ(find("inner error\n one\ntrying again\nerror: two\n").message, "two");
  EXPECT_EQ(find("error: none\nerror: real\n").message, "real");
}

TEST(Site, LinksMakeEchoes) {
  EXPECT_EQ(find("inner error\n one\nbecause of that:\ninner error\n two\n").message, "one");
}

TEST(Site, TheFailingStepIsLookedAtFirst) {
  const std::string log =
      "error: early\nstep 1\nerror: late\n12:34 step 2\nno step 3\nerror: near\nerror: next\n"
      "step exited\nerror: after\n";
  EXPECT_EQ(find(log).message, "near");
  EXPECT_EQ(find(log).excerpt_first, 4U) << "what stands before the step is no part of it";
  EXPECT_EQ(find(log).excerpt_last, 8U);
}

TEST(Site, ATerseStepGivesItsLastLine) {
  const Site site = find("error: early\nstep 2\na\nb\n\nstep exited\n");
  EXPECT_EQ(site.message, "b");
  EXPECT_EQ(site.output_line, 4U);
  EXPECT_EQ(site.excerpt_first, 2U);
}

TEST(Site, AStepsEndEndsWhatItsToolsSay) {
  const Site site = find("step 1\n== t1 failed\nsays A: a\nx\nstep exited\nat lib/b.x:4 in g\n");
  EXPECT_EQ(site.message, "a");
  EXPECT_EQ(site.own_first, 2U);
  EXPECT_EQ(site.own_last, 4U);
  EXPECT_TRUE(site.frames.empty());
}

TEST(Site, WhatTheToolSaysNextIsQuotedButNotItsOwn) {
  const Site site = find("== t1 failed\nsays A: a\nx\n== t2 failed\nsays B: b\n==\n");
  EXPECT_EQ(site.excerpt_last, 6U);
  EXPECT_EQ(site.own_last, 3U);
}

TEST(Site, PrefixesAreNoPartOfALine) {
  const Site site = find("12:34 error: late\n");
  EXPECT_EQ(site.message, "late");
  EXPECT_EQ(site.output_line, 1U);
}

TEST(Site, AFallbackSeesThePrefixThatMarksALine) {
  const Site site = find("all is well\n12:00 error: it broke\n12:01 12:02 that is bad\nall done\n");
  EXPECT_EQ(site.message, "it broke");
  EXPECT_EQ(find("all is well\n12:01 12:02 that is bad\nall done\n").message, "is bad");
}

TEST(Site, UnknownTextGivesItsLastLine) {
  const Site site = find("a\nb\n\n \n");
  EXPECT_EQ(site.message, "b");
  EXPECT_EQ(site.output_line, 2U);
  EXPECT_EQ(find("").output_line, 0U);
  EXPECT_EQ(find("\n\n").excerpt_first, 0U);
}

TEST(Site, ExcerptsHaveAtMost40LinesRoundTheMessage) {
  std::string text = "== t1 failed\n";
  for (int i = 0; i < 100; ++i) text += "noise\n";
  text += "says A: a\n";
  for (int i = 0; i < 100; ++i) text += "noise\n";
  const Site site = find(text);
  EXPECT_EQ(site.excerpt_last - site.excerpt_first, 39U);
  EXPECT_LE(site.excerpt_first, site.output_line);
  EXPECT_GE(site.excerpt_last, site.output_line);
}

TEST(Site, SurvivesRandomLines) {
  const std::string lines[] = {
      "== t failed",   "says A: b",   "at a:1 in f", "== end",           "FAIL t",
      "inner error",   " x",          "code 1",      "because of that:", "trying again",
      "error: x",      "step exited", "WARNINGS",    "END WARNINGS",     "",
      "runner starts", "common shape"};
  std::mt19937 random(17);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (std::size_t i = 0, size = random() % 14; i < size; ++i)
      text += lines[random() % std::size(lines)] + "\n";
    if (random() % 2 == 0 && !text.empty()) text.pop_back();
    const Site site = find(text);
    ASSERT_LE(site.excerpt_first, site.excerpt_last);
    ASSERT_TRUE(site.output_line == 0 ||
                (site.excerpt_first <= site.output_line && site.output_line <= site.excerpt_last))
        << text;
  }
}

TEST(Site, BadRulesNameTheirPlace) {
  const auto where = [](const char* json) {
    try {
      SiteRules rules(json);
      rules.check();
    } catch (const DefinitionError& error) {
      return error.where();
    }
    return std::string("fine");
  };
  EXPECT_EQ(where("["), "");
  EXPECT_EQ(where(R"({"tools": 3})"), "/tools");
  EXPECT_EQ(where(R"({"tools": [{}]})"), "/tools/0");
  EXPECT_EQ(
      where(
          R"({"tools": [{"tool": "a", "blocks": [{"id": "b", "role": "cause", "start": ["ab("]}]}]})"),
      "/tools/0/blocks/0/start/0");
  EXPECT_EQ(
      where(
          R"({"tools": [{"tool": "a", "blocks": [{"id": "b", "role": "cause", "start": ["abc("]}]}]})"),
      "/tools/0/blocks/0/start/0");
  EXPECT_EQ(
      where(
          R"({"tools": [{"tool": "a", "blocks": [{"id": "b", "start": ["abc"], "role": "x"}]}]})"),
      "/tools/0/blocks/0/role");
  EXPECT_EQ(where(R"({"tools": [{"tool": "a", "prefixes": ["\\d+ ", " *"]}]})"),
            "/tools/0/prefixes/1");
}

}  // namespace
}  // namespace loki
