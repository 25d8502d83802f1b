// The first half of `site`: which blocks there are. The second is site_choice.cpp.
#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "loki/recognition/site_rules.hpp"
#include "loki/recognition/text.hpp"

namespace loki::site {
namespace {

struct Line {
  std::size_t number = 0;  // 1-based
  std::size_t begin = 0;
  std::size_t end = 0;  // without the newline
};

// Blocks of one rule: so many first ones are kept and so many last ones. What is chosen is the
// first of its kind or the one next to the end of the step; a log of millions of errors must fit in
// memory.
constexpr std::size_t kFirstKept = 1000, kLastKept = 1000;  // chosen, not measured

std::size_t line_end(std::string_view text, std::size_t from) {
  const void* newline =
      from < text.size() ? std::memchr(text.data() + from, '\n', text.size() - from) : nullptr;
  return newline == nullptr
             ? text.size()
             : static_cast<std::size_t>(static_cast<const char*>(newline) - text.data());
}

class BlockFinder {
 public:
  BlockFinder(const Rules& rules, std::string_view text)
      : rules_(rules),
        text_(text),
        open_(rules.tools.size()),
        taken_(rules.tools.size(), 0),
        noted_(rules.references.size(), 0) {
    found_.detected.resize(rules.tools.size(), false);
  }

  // One pass of all literals over the text; lines on which rules have something to look for are
  // visited as they come.
  Findings run() {
    Line line{1, 0, line_end(text_, 0)};
    std::vector<std::uint32_t> here;
    rules_.scan->each(text_, [&](std::size_t literal, std::size_t end) {
      while (line.end < end) {
        visit(line, here);
        line = after(line);
      }
      if (end - line.begin <= kLineLimit) note(rules_.referred_by(literal), line.number, here);
    });
    visit(line, here);
    while (open_count_ > 0 && after(line_).begin < text_.size()) step();
    for (std::uint32_t tool = 0; tool < open_.size(); ++tool) {
      if (open_[tool]) close(tool);
    }
    for (auto& [rule, kept] : kept_) {
      for (Block& block : kept.last) found_.blocks.push_back(std::move(block));
    }
    return std::move(found_);
  }

 private:
  struct Kept {
    std::size_t first = 0;  // how many of them went to the findings
    std::deque<Block> last;
  };

  Line after(const Line& line) const {
    return {line.number + 1, line.end + 1, line_end(text_, line.end + 1)};
  }

  void note(std::span<const std::uint32_t> numbers, std::size_t line,
            std::vector<std::uint32_t>& here) {
    for (const std::uint32_t number : numbers) {
      if (noted_[number] == line) continue;
      noted_[number] = line;
      const Reference& reference = rules_.references[number];
      if (reference.kind == Reference::kDetected) {
        found_.detected[reference.tool] = true;
      } else if (reference.kind != Reference::kDetect || !found_.detected[reference.tool]) {
        here.push_back(number);
      }
    }
  }

  // references: numbers of what the rules have to look for there; used up.
  void visit(const Line& line, std::vector<std::uint32_t>& references) {
    if (references.empty()) return;
    std::sort(references.begin(), references.end());
    while (open_count_ > 0 && line_.number + 1 < line.number) step();
    line_ = line;
    const LineView shown = visible(line, folded_);
    feed(line, shown);
    for (const std::uint32_t number : references) consider(rules_.references[number], line, shown);
    references.clear();
  }

  void step() {
    line_ = after(line_);
    feed(line_, visible(line_, folded_));
  }

  // folded: where that of it is kept.
  LineView visible(const Line& line, FoldedLine& folded) const {
    std::string_view marked;
    const std::string_view shown = rules_.without_prefix(
        utf8_prefix(text_.substr(line.begin, line.end - line.begin), kLineLimit), &marked);
    folded.assign(shown);
    return {shown, folded, marked};
  }

  static bool any(const std::vector<LineRule>& rules, const LineView& line) {
    return std::any_of(rules.begin(), rules.end(),
                       [&](const LineRule& rule) { return rule.matches(line); });
  }

  void feed(const Line& line, const LineView& shown) {
    for (std::uint32_t tool = 0; open_count_ > 0 && tool < open_.size(); ++tool) {
      if (!open_[tool]) continue;
      Block& block = *open_[tool];
      const BlockRule& rule = *block.rule;
      if (any(rule.acquit, shown)) {
        open_[tool].reset();
        --open_count_;
        continue;
      }
      const bool through = any(rule.through, shown);
      const bool goes_on = rule.go_on.empty() || any(rule.go_on, shown);
      if (!through && (!goes_on || any(rule.until, shown))) {
        close(tool);
        continue;
      }
      block.last = line.number;
      taken_[tool] = line.number;
      fields(block, line, shown);
      if (through || block.last - block.first >= rule.max_lines) close(tool);
    }
  }

  void consider(const Reference& reference, const Line& line, const LineView& shown) {
    const ToolRules& tool = rules_.tools[reference.tool];
    if (reference.kind == Reference::kDetect) {
      if (!found_.detected[reference.tool] && tool.detect[reference.index].matches(shown)) {
        found_.detected[reference.tool] = true;
      }
    } else if (reference.kind == Reference::kLink) {
      const LinkRule& link = tool.links[reference.index];
      if (link.match.matches(shown)) {
        found_.links.push_back({reference.tool, line.number, link.echo_next});
      }
    } else if (taken_[reference.tool] != line.number) {
      start(reference.tool, tool.blocks[reference.index], reference.which, line, shown);
    }
  }

  void start(std::uint32_t tool, const BlockRule& rule, std::uint32_t which, const Line& line,
             const LineView& shown) {
    Captures captures;
    if (!rule.start[which].capture(shown, captures) &&
        !(rules_.tools[tool].fallback && begins_marked(rule.start[which], line, shown, captures))) {
      return;
    }
    if (rule.closes) end_all(line);
    Block block;
    block.tool = tool;
    block.rule = &rule;
    block.role = rule.role;
    block.kind = rule.kind;
    block.first = block.start = block.last = line.number;
    block.begin = line.begin;
    take(block, line, captures, Take::kFirst);
    lead(block);
    fields(block, line, shown);
    taken_[tool] = line.number;
    open_[tool] = std::move(block);
    ++open_count_;
    if (rule.is_one_line()) close(tool);
  }

  // What one tool puts before each line marks the errors of another's, that nobody knows.
  bool begins_marked(const LineRule& start, const Line& line, const LineView& shown,
                     Captures& captures) {
    if (shown.marked.size() == shown.text.size()) return false;
    if (!start.regex.expression().starts_with('^')) return false;
    if (marked_line_ != line.number) marked_.assign(shown.marked);
    marked_line_ = line.number;
    return start.capture({shown.marked, marked_}, captures);
  }

  // A step is over, and what its tools were saying.
  void end_all(const Line& line) {
    for (std::uint32_t tool = 0; tool < open_.size(); ++tool) {
      if (!open_[tool]) continue;
      Block& block = *open_[tool];
      if (block.last == line.number && block.first < line.number) --block.last;
      close(tool);
    }
  }

  // The lines before the start that belong to it, the farthest first.
  void lead(Block& block) {
    std::vector<Line> lines;
    FoldedLine folded;
    for (std::size_t i = 0; i < block.rule->lead && block.begin > 0; ++i) {
      const std::size_t end = block.begin - 1;
      const std::size_t before = end == 0 ? std::string_view::npos : text_.rfind('\n', end - 1);
      block.begin = before == std::string_view::npos ? 0 : before + 1;
      --block.first;
      lines.push_back({block.first, block.begin, end});
    }
    for (auto line = lines.rbegin(); line != lines.rend(); ++line)
      fields(block, *line, visible(*line, folded));
  }

  void fields(Block& block, const Line& line, const LineView& shown) {
    const std::size_t tests = block.tests.size();
    bool is_joined = line.number == block.start && tests > 0;
    for (const FieldRule& rule : block.rule->fields) {
      Captures captures;
      if (!rule.join.empty() && (is_joined || !block.is_heading)) continue;
      if (!rule.match.capture(shown, captures)) continue;
      if (!rule.join.empty()) {
        block.tests.back() += rule.join + std::string(trimmed(captures[kTest].value_or("")));
        is_joined = true;
      } else if (rule.frame) {
        block.frames.push_back({captures[kPath].value_or(""), captures[kLine].value_or(""),
                                captures[kFunction].value_or("")});
      } else {
        take(block, line, captures, rule.take);
      }
    }
    block.is_heading = is_joined || block.tests.size() > tests;
  }

  static void take(Block& block, const Line& line, const Captures& captures, Take how) {
    for (std::size_t i = 0; i < kFields; ++i) {
      if (!captures[i]) continue;
      const std::string_view text = trimmed(*captures[i]);
      if (i == kTest && !text.empty()) block.tests.emplace_back(text);
      if (i == kTestName && !text.empty()) block.test_names.push_back(text);
      Value& value = block.values[i];
      if (value.text.empty() || (how == Take::kLast && !text.empty())) value = {text, line.number};
    }
  }

  void close(std::uint32_t tool) {
    keep(std::move(*open_[tool]));
    open_[tool].reset();
    --open_count_;
  }

  void keep(Block&& block) {
    const auto& required = block.rule->requires_fields;
    if (std::any_of(required.begin(), required.end(),
                    [&](Field field) { return !block.has(field); })) {
      return;
    }
    Kept& kept = kept_[block.rule];
    if (kept.first < kFirstKept) {
      ++kept.first;
      found_.blocks.push_back(std::move(block));
      return;
    }
    kept.last.push_back(std::move(block));
    if (kept.last.size() <= kLastKept) return;
    found_.dropped.add(kept.last.front());
    kept.last.pop_front();
  }

  const Rules& rules_;
  std::string_view text_;
  std::vector<std::optional<Block>> open_;
  std::vector<std::size_t> taken_;  // by tool: the last line that a block of it took
  std::vector<std::size_t> noted_;  // by reference: the last line where it was wanted
  std::size_t open_count_ = 0;
  Line line_;          // the last one that was looked at
  FoldedLine folded_;  // the same in lower case
  FoldedLine marked_;  // line `marked_line_` with its mark
  std::size_t marked_line_ = 0;
  std::unordered_map<const BlockRule*, Kept> kept_;
  Findings found_;
};

}  // namespace

Findings find_blocks(const Rules& rules, std::string_view text) {
  return BlockFinder(rules, text).run();
}

}  // namespace loki::site
