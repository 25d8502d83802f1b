#include "loki/recognition/grouping.hpp"

#include <gtest/gtest.h>

#include "loki/recognition/grouping_template.hpp"

namespace loki {
namespace {

using grouping::MessageTemplate;
using grouping::TokenKind;

// Words and marks as they are, holes as _, quoted holes as Q.
std::string shown(std::string_view text) {
  const MessageTemplate message(text);
  std::string out;
  for (const auto& token : message.tokens()) {
    if (!out.empty()) out += ' ';
    if (token.kind == TokenKind::kHole) out += '_';
    if (token.kind == TokenKind::kQuoted) out += 'Q';
    if (token.kind == TokenKind::kWord || token.kind == TokenKind::kMark)
      out += message.text(token);
  }
  return out;
}

TEST(MessageTemplate, ArgumentsByTheirShape) {
  EXPECT_EQ(shown("took 5 of 10 slots"), "took _ of _ slot");
  EXPECT_EQ(shown("job_17 moved to /var/lib/x"), "_ moved to _");
  EXPECT_EQ(shown("loaded org.example.app.Main"), "loaded _");
  EXPECT_EQ(shown("flag is true"), "flag is _");
  EXPECT_EQ(shown("password is ****"), "password is _");
  EXPECT_EQ(shown("see src/app.py for more"), "see _ for more");
  EXPECT_EQ(shown("took <1 sec"), "took _");
  EXPECT_EQ(shown("Type::method failed"), "Type::method failed");
}

TEST(MessageTemplate, Quotes) {
  EXPECT_EQ(shown("cannot find `x y` here"), "cannot find Q here");
  EXPECT_EQ(shown("cannot find \"x\""), "cannot find Q");
  EXPECT_EQ(shown("don't stop, don't"), "don ' t stop , don ' t");
  EXPECT_EQ(shown("name '' is empty"), "name ' is empty");
  EXPECT_EQ(shown("got \"GET /index HTTP/1.1\""), "got \" GET _");
}

TEST(MessageTemplate, ValuesBehindAnEqualsSign) {
  EXPECT_EQ(shown("done name=bob size=5"), "done name = _ size = _");
  EXPECT_EQ(shown("open uid= gid=root"), "open uid = _ gid = _");
  EXPECT_EQ(shown("open gid=Group{a, b} now"), "open gid = _ now");
  EXPECT_EQ(shown("a == b"), "a = = _");
}

TEST(MessageTemplate, AListIsOneArgument) {
  EXPECT_EQ(shown("lost nodes 1, 2 and 3 today"), "lost node _ today");
  EXPECT_EQ(shown("lost nodes 17 today"), "lost node _ today");
  EXPECT_EQ(shown("size 1.5 KB read"), "size _ read");
}

TEST(MessageTemplate, AdviceIsNoPartOfTheMessage) {
  EXPECT_EQ(shown("`os` imported but unused; consider removing it"), "Q imported but unused");
  EXPECT_EQ(shown("`os` imported but unused"), "Q imported but unused");
  EXPECT_EQ(shown("Use `a`; try again"), "Use Q ; try again");
}

TEST(MessageTemplate, NoWords) {
  EXPECT_EQ(shown("17 42"), "<int> <int>");
  EXPECT_EQ(shown("---"), "---");
  EXPECT_EQ(shown(""), "");
}

using Groups = std::vector<std::uint32_t>;

TEST(Group, OneWordThatVariesManyTimes) {
  EXPECT_EQ(group({"login of ann rejected today", "login of bob rejected today",
                   "login of cid rejected today", "login of dan rejected today"}),
            (Groups{0, 0, 0, 0}));
  // Two are as good as two messages.
  EXPECT_EQ(group({"door opened by staff member today", "door closed by staff member today"}),
            (Groups{0, 1}));
}

TEST(Group, OneWordThatIsAlsoAnArgument) {
  EXPECT_EQ(group({"cannot reach backend alpha over there", "cannot reach backend b17 over there"}),
            (Groups{0, 0}));
}

TEST(Group, WordsSeenAsArgumentsAreArgumentsElsewhere) {
  std::vector<std::string> names = {"ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal"};
  std::vector<std::string> lines;
  for (const std::string& name : names) lines.push_back("login as " + name + " is not allowed");
  lines.push_back("ann gave up after many tries");
  lines.push_back("bob gave up after many tries");
  EXPECT_EQ(group({lines.begin(), lines.end()}), (Groups{0, 0, 0, 0, 0, 0, 0, 0, 1, 1}));
}

TEST(Group, LabelsAreNoArguments) {
  EXPECT_EQ(
      group({"getTasks: caller has no right to this", "getApps: caller has no right to this"}),
      (Groups{0, 1}));
}

TEST(Group, UnspecificMessagesAreToldByWhatTheyQuote) {
  const std::string path = "`os.remove` should be replaced by `Path.unlink`";
  const std::string size = "`os.getsize` should be replaced by `Path.stat`";
  EXPECT_EQ(group({path, size, path, size}), (Groups{0, 1, 0, 1}));
  // All different: the quotes are arguments.
  EXPECT_EQ(group({"Use `a` instead of `b`", "Use `c` instead of `d`", "Use `e` instead of `f`"}),
            (Groups{0, 0, 0}));
}

TEST(Group, EmptyAndHostile) {
  EXPECT_TRUE(group({}).empty());
  const std::string deep(3000, '('), quotes(3000, '"');
  EXPECT_EQ(group({"", deep, quotes, "\xFF\xFE", ""}).back(), 0U);
}

}  // namespace
}  // namespace loki
