#include "loki/analysis/json_lines.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace loki {
namespace {

using nlohmann::json;
using Kind = JsonColumn::Kind;

const JsonColumn kInner{Kind::kObject, "inner", {{Kind::kNumber, "a"}, {Kind::kTruth, "b"}}};
const JsonColumn kEntry{Kind::kObject, "", {{Kind::kNumber, "a"}}};
const JsonColumn kAsked{
    Kind::kObject,
    "",
    {{Kind::kNumber, "n"}, {Kind::kText, "text"}, kInner, {Kind::kList, "list", {kEntry}}}};

json entry(const JsonColumn& column, std::size_t at) {
  if ((column.valid.at(at / 8) >> at % 8 & 1) == 0) return nullptr;
  json found;
  const auto begin =
      static_cast<std::size_t>(column.kind == Kind::kObject ? 0 : column.offsets.at(at));
  const auto end =
      static_cast<std::size_t>(column.kind == Kind::kObject ? 0 : column.offsets.at(at + 1));
  if (column.kind == Kind::kObject) {
    for (const JsonColumn& member : column.members) found[member.name] = entry(member, at);
  } else if (column.kind == Kind::kList) {
    found = json::array();
    for (std::size_t n = begin; n < end; ++n) found.push_back(entry(column.members.at(0), n));
  } else if (column.kind == Kind::kText) {
    found = column.bytes.substr(begin, end - begin);
  } else {
    found = json::parse(column.bytes.substr(begin, end - begin));
  }
  return found;
}

std::string read(std::string_view log) {
  JsonColumn columns = kAsked;
  if (!read_json_lines(log, columns)) return "refused";
  json all = json::array();
  for (std::size_t at = 0; at < columns.size; ++at) {
    json row = entry(columns, at);
    for (auto member = row.begin(); member != row.end();)
      member = member->is_null() ? row.erase(member) : std::next(member);
    all.push_back(row);
  }
  return all.dump();
}

TEST(JsonLines, ReadsWhatIsAskedFor) {
  EXPECT_EQ(read("{\"n\": 1, \"output\": \"x\\\"}\", \"text\" :\"e\", \"m\": [1, {}]}\n"),
            R"([{"n":1,"text":"e"}])");
  EXPECT_EQ(read("{\"x\": 1}\n{}\n{ }\n"), R"([{},{},{}])");
  EXPECT_EQ(read("{\"n\": null, \"text\": null, \"inner\": null, \"list\": null}\n"), "[{}]");
  EXPECT_EQ(read("{\"n\": -0.5e+3}\n{\"text\": \"b\", \"n\": 0}\n"),
            R"([{"n":-500.0},{"n":0,"text":"b"}])");
  EXPECT_EQ(read(""), "[]");
}

TEST(JsonLines, ReadsObjectsAndListsOfThem) {
  EXPECT_EQ(read("{\"inner\": {\"c\": 1, \"b\": true, \"a\": 2}}\n{\"inner\": {\"b\": false}}\n"),
            R"([{"inner":{"a":2,"b":true}},{"inner":{"a":null,"b":false}}])");
  EXPECT_EQ(
      read("{\"list\": [{\"c\": 1, \"a\": 2}, null, {}]}\n{\"list\": [ ]}\n{\"list\": [{}]}\n"),
      R"([{"list":[{"a":2},null,{"a":null}]},{"list":[]},{"list":[{"a":null}]}])");
}

TEST(JsonLines, EscapesAreWhatTheyStandFor) {
  const std::string escaped = R"("\"\\\/\b\f\n\r\t\u0000\u00e9\u20AC\ud83d\ude00")";
  EXPECT_EQ(json::parse(read("{\"text\": " + escaped + "}\n"))[0]["text"], json::parse(escaped));
  for (const char* half : {"\\ud83d", "\\ude00", "\\ud83dx", "\\ud83d\\n", "\\ud83d\\u0041"}) {
    EXPECT_EQ(read("{\"text\": \"" + std::string(half) + "\"}\n"), "refused") << half;
    EXPECT_EQ(read("{\"x\": \"" + std::string(half) + "\"}\n"), "[{}]") << half;
  }
}

TEST(JsonLines, RefusesWhatItsColumnDoesNotHold) {
  for (const char* member :
       {R"("n": "1")", R"("n": true)", R"("n": [1])", R"("text": 1)", R"("text": {})",
        R"("inner": [])", R"("inner": "x")", R"("inner": {"b": 0})", R"("list": {})",
        R"("list": [1])", R"("list": [[]])", R"("n": 1, "n": 1)", R"("n": null, "n": 1)",
        R"("n": 1, "x": 2, "n": null)", R"("inner": {"a": 1, "a": 1})"})
    EXPECT_EQ(read("{" + std::string(member) + "}\n"), "refused") << member;
}

TEST(JsonLines, RefusesWhatReadersMightReadOtherwise) {
  for (const char* line : {
           "{}",
           "\n",
           "{}\n\n",
           " {}\n",
           "{} \n",
           "{}\r\n",
           "{}{}\n",
           "[]\n",
           "null\n",
           "{\n}\n",
           "{\t}\n",
           "{\"n\":1,}\n",
           "{\"n\" 1}\n",
           "{\"n\":}\n",
           "{n:1}\n",
           "{\"n\":1]\n",
           "{\"x\":[1}\n",
           "{\"x\":[1,]}\n",
           "{\"x\":{\"a\"}}\n",
           "{\"\\u006e\":1}\n",
           "{\"x\":\"\t\"}\n",
           "{\"x\":\"\\x\"}\n",
           "{\"x\":\"\\u12g4\"}\n",
           "{\"x\":\"\\\n\"}\n",
           "{\"x\":\"never ended}\n",
           "{\"x\":NaN}\n",
           "{\"x\":-Infinity}\n",
           "{\"x\":+1}\n",
           "{\"x\":01}\n",
           "{\"x\":1.}\n",
           "{\"x\":.5}\n",
           "{\"x\":1e}\n",
           "{\"x\":-}\n",
           "{\"x\":truth}\n",
           "{\"x\":nul\n",
           "{\"x\":\"\xff\"}\n",
           "{\"x\":\"\xed\xa0\x80\"}\n",
           "\xef\xbb\xbf{}\n",
           "{\"n\":1\n",
       })
    EXPECT_EQ(read(line), "refused") << line;
  for (const std::string& value : {std::string("\"\0\"", 3), std::string("\"\\\0\"", 4),
                                   std::string("\0", 1), std::string(101, '1')})
    EXPECT_EQ(read("{\"x\":" + value + "}\n"), "refused") << value;
}

TEST(JsonLines, BracketsHaveALimit) {
  const auto nested = [](std::size_t deep) {
    return "{\"x\":" + std::string(deep, '[') + std::string(deep, ']') + "}\n";
  };
  EXPECT_EQ(read(nested(kDeepest - 1)), "[{}]");
  EXPECT_EQ(read(nested(kDeepest)), "refused");
  EXPECT_EQ(read(nested(1'000'000)), "refused");
}

TEST(JsonLines, AStringMayEndAnywhereInAWord) {
  for (std::size_t size = 0; size < 40; ++size) {
    const std::string text(size, 'x');
    EXPECT_EQ(read("{\"x\":\"" + text + "\",\"n\":1}\n"), R"([{"n":1}])");
    EXPECT_EQ(read("{\"x\":\"" + text + "\\\"é\",\"n\":1}\n"), R"([{"n":1}])");
    EXPECT_EQ(read("{\"x\":\"" + text + "\x1f\",\"n\":1}\n"), "refused");
    EXPECT_EQ(read("{\"x\":\"" + text + "\xff\",\"n\":1}\n"), "refused");
    EXPECT_EQ(read("{\"x\":\"" + text), "refused");
  }
}

TEST(JsonLines, WhatIsCutOffAnywhereIsRefused) {
  const std::string line =
      R"({"n": -1.5e3, "x": ["\u00e9", true, null, {"y": 0}], "list": [{"a": 1}]})";
  for (std::size_t size = 0; size < line.size(); ++size) {
    EXPECT_EQ(read(line.substr(0, size) + "\n"), "refused") << size;
    EXPECT_EQ(read(line.substr(0, size)), size > 0 ? "refused" : "[]") << size;
  }
  EXPECT_EQ(read(line + "\n"), R"([{"list":[{"a":1}],"n":-1500.0}])");
}

}  // namespace
}  // namespace loki
