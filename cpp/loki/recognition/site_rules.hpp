// The rules of `site` as data in memory. Private to the room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "loki/base/definition.hpp"
#include "loki/recognition/line_head.hpp"
#include "loki/recognition/regex.hpp"
#include "loki/recognition/scan.hpp"
#include "loki/recognition/site.hpp"

namespace loki::site {

// The groups that a rule may name.
enum Field : std::uint8_t {
  kErrorType,
  kErrorCode,
  kMessage,
  kPath,
  kLine,
  kColumn,
  kFunction,
  kTest,
  kTestName,
  kCommand,
  kFields
};
inline constexpr std::array<std::string_view, kFields> kFieldNames = {
    "error_type", "error_code", "message", "path",      "line",
    "column",     "function",   "test",    "test_name", "command"};

enum class Role : std::uint8_t { kCause, kSummary, kEcho, kWarning, kRetry };
enum class Take : std::uint8_t { kFirst, kLast, kEach };

using Captures = std::array<std::optional<std::string_view>, kFields>;

// A line as rules see it.
struct LineView {
  std::string_view text;
  const FoldedLine& folded;
  std::string_view marked = {};  // with the innermost prefix that was cut off
};

// A regex for one line, with where it stands in the definition.
struct LineRule {
  Regex regex;
  std::string where;

  bool matches(const LineView& line) const;
  // To be asked where it matches: that is cheaper to know than where its groups lie.
  bool capture(const LineView& line, Captures& captures) const;
};

struct FieldRule {
  LineRule match;
  Take take = Take::kFirst;
  bool frame = false;
  std::string join;  // not empty: goes on with the id of the test that the line above took
};

struct BlockRule {
  std::string id, kind;
  Role role = Role::kCause;
  std::vector<LineRule> start, go_on, until, through, acquit;
  std::size_t lead = 0, max_lines = 1000, rank = 50, reach = 200;
  bool detected = false, closes = false;
  std::vector<FieldRule> fields;
  std::vector<Field> requires_fields;
  std::array<std::string, kFields> constants;
  std::vector<std::string> nests;
  std::vector<std::string> opens;  // what the line begins with that began the step this one closes

  bool is_one_line() const {
    return go_on.empty() && until.empty() && through.empty() && acquit.empty();
  }
};

struct LinkRule {
  LineRule match;
  bool echo_next = false;  // else the previous block
};

struct ToolRules {
  std::string name, language, kind;
  bool fallback = false, innermost_first = false;
  std::vector<std::vector<std::string>> commands;  // words
  std::vector<LineRule> detect;
  std::vector<std::string> over;
  std::vector<LineRule> library, prefixes;
  std::vector<BlockRule> blocks;
  std::vector<LinkRule> links;
};

// What a literal's hit asks for.
struct Reference {
  enum Kind : std::uint8_t { kDetected, kDetect, kStart, kLink } kind;
  std::uint32_t tool;
  std::uint32_t index;      // of the detect rule, block or link
  std::uint32_t which = 0;  // of a block's starts

  friend bool operator==(const Reference&, const Reference&) = default;
  // In the order of tools; a tool is known before its blocks start.
  friend bool operator<(const Reference& a, const Reference& b) {
    return std::tie(a.tool, a.index, a.which, a.kind) < std::tie(b.tool, b.index, b.which, b.kind);
  }
};

ToolRules read_tool(const Definition& definition);

// The words of a command, as typed; of a very long one the first.
std::vector<std::string> words_of(std::string_view command);

// Which commands start which tools.
class Commands {
 public:
  // commands: their words, one or more.
  void add(std::uint32_t tool, const std::vector<std::vector<std::string>>& commands);

  // The tools that a command starts: somewhere in it stand the words of one of theirs.
  std::vector<std::uint32_t> started_by(std::string_view command) const;

 private:
  struct Known {
    std::vector<std::string> rest;  // words behind the first
    std::uint32_t tool;
  };
  std::unordered_map<std::string, std::vector<Known>> by_first_;  // word, without its folder
};

// A block found in a text. Views point into the text.
struct Value {
  std::string_view text;
  std::size_t line = 0;
};

struct Block {
  std::uint32_t tool = 0;
  const BlockRule* rule = nullptr;
  Role role = Role::kCause;
  std::size_t first = 0, start = 0, last = 0;  // lines, 1-based
  std::size_t begin = 0;                       // byte where line `first` begins
  std::array<Value, kFields> values{};
  std::string_view kind;  // of failure; empty: the tool's
  std::vector<std::string> tests;
  std::vector<std::string_view> test_names;
  bool is_heading = false;  // the last line took a test, or went on with its id
  struct FrameView {
    std::string_view path, line, function;
  };
  std::vector<FrameView> frames;

  bool has(Field field) const {
    return !values[field].text.empty() || !rule->constants[field].empty();
  }
};

struct Link {
  std::uint32_t tool;
  std::size_t line;
  bool echo_next;
};

// Of blocks that were too many to keep, the failing tests.
struct DroppedTests {
  struct OfTool {
    std::set<std::string> full, partial;
  };
  std::map<std::uint32_t, OfTool> by_tool;

  void add(const Block& block);
};

struct Findings {
  std::vector<Block> blocks;
  DroppedTests dropped;
  std::vector<Link> links;
  std::vector<bool> detected;  // by tool
};

struct Rules {
  std::vector<ToolRules> tools;
  std::vector<Reference> references;  // in their order
  // Numbers of references: those of literal i from referred_begin[i] to referred_begin[i + 1].
  std::vector<std::uint32_t> referred, referred_begin;
  std::unique_ptr<LiteralScan> scan;
  HeadTable heads;                    // numbers of the references whose literals begin a line
  FirstBytes first_bytes;             // by number of the reference
  NumberSet of_fallbacks;             // numbers of the references of fallbacks
  std::vector<std::int32_t> many_of;  // by literal: where its numbers are many, of `many`; else -1
  std::vector<NumberSet> many;
  std::unique_ptr<LinePrefix> prefix;
  Commands commands;

  std::span<const std::uint32_t> referred_by(std::size_t literal) const {
    return std::span(referred).subspan(referred_begin[literal],
                                       referred_begin[literal + 1] - referred_begin[literal]);
  }
};

// Rules see no more of a line.
inline constexpr std::size_t kLineLimit = 16 * 1024;

// A field of a block, or what its rule sets.
std::string value(const Block& block, Field field);

// Fills in path, line, column, extension and frames.
void place(const ToolRules& rules, const Block& block, const SiteContext& context, Site& site);

// The part of a log that broke the build.
struct Step {
  std::size_t begin = 0;     // its first line; 0: not known
  std::size_t end = 0;       // the line that says that it failed; 0: none does
  std::string_view command;  // empty: not known
};

// blocks: in the order of the text.
Step failing_step(const Rules& rules, std::string_view text, const std::vector<Block>& blocks);

// The lines a person would quote, and the walk over lines that it takes.
class Quote {
 public:
  Quote(const Rules& rules, std::string_view text) : rules_(rules), text_(text) {}

  // Fills in the excerpt: lines `first` to `last`, without blank ones at its ends. begin: of
  // `first`.
  void cut(Site& site, std::size_t begin, std::size_t first, std::size_t last) const;
  // Fills in what is said of the failure alone: lines `first` to `last` of the excerpt.
  void own(Site& site, std::size_t first, std::size_t last) const;
  // Where the line `up` lines above the one at `begin` begins; `up` becomes how many there were.
  std::size_t above(std::size_t begin, std::size_t& up) const;
  std::size_t end_of_line(std::size_t begin) const;
  // Where the last line before byte `end` begins that says something; npos: there is none.
  std::size_t last_said(std::size_t end) const;
  // A line as rules see it, trimmed. begin: of line `from`.
  std::string line(std::size_t begin, std::size_t from, std::size_t line) const;

 private:
  const Rules& rules_;
  std::string_view text_;
};

Findings find_blocks(const Rules& rules, std::string_view text);
Site choose(const Rules& rules, std::string_view text, Findings findings,
            const SiteContext& context);

std::string_view trimmed(std::string_view text);

}  // namespace loki::site
