// The first half of `site`: which blocks there are. The second is site_choice.cpp.
#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
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
        taken_(rules.tools.size(), 0),
        seen_(rules.referred_begin.size(), 0),
        room_(rules.references.size()),
        wanted_(rules.references.size()) {
    found_.detected.resize(rules.tools.size(), false);
  }

  // One pass of all literals over the text; lines on which rules have something to look for are
  // visited as they come.
  Findings run() {
    enter({1, 0, line_end(text_, 0)});
    rules_.scan->each(text_, [&](std::size_t literal, std::size_t end) {
      while (next_.end < end) visit();
      if (end - next_.begin > kLineLimit) return;
      if (std::exchange(seen_[literal], next_.number) != next_.number) note(literal);
    });
    while (next_.begin < text_.size()) visit();
    while (!open_.empty() && after(line_).begin < text_.size()) step();
    close_all();
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

  // Reads the line that is visited next, and notes the rules that begin as it does.
  void enter(const Line& line) {
    next_ = line;
    if (next_.begin >= text_.size()) return;  // that was the last one
    const LineView shown = visible(next_, next_folded_);
    next_text_ = shown.text;
    next_marked_ = shown.marked;
    const bool is_marked = shown.marked.size() != shown.text.size();
    allow(is_marked);
    begin(next_folded_.unindented());
    if (is_marked) begin(next_folded_.marked(shown.marked.size()));
  }

  // Which rules may match the next line, as far as its first bytes tell.
  void allow(bool is_marked) {
    allowed_ = &rules_.first_bytes.of(next_folded_, room_);
    if (!is_marked) return;
    if (allowed_ != &room_) room_ = *allowed_;
    room_.add_all(rules_.of_fallbacks);
    allowed_ = &room_;
  }

  void begin(std::string_view unindented) {
    rules_.heads.each(unindented, [this](std::uint32_t number) {
      is_wanted_ |= wanted_.add_if(number, *allowed_);
    });
  }

  // What the rules have to look for on the next line, where the literal stands.
  void note(std::size_t literal) {
    if (const std::int32_t many = rules_.many_of[literal]; many >= 0) {
      is_wanted_ |= wanted_.add_common(rules_.many[static_cast<std::size_t>(many)], *allowed_);
    } else {
      for (const std::uint32_t number : rules_.referred_by(literal)) {
        is_wanted_ |= wanted_.add_if(number, *allowed_);
      }
    }
  }

  void visit() {
    if (std::exchange(is_wanted_, false)) {
      while (!open_.empty() && line_.number + 1 < next_.number) step();
      line_ = next_;
      const LineView shown{next_text_, next_folded_, next_marked_};
      feed(line_, shown);
      wanted_.take([&](std::uint32_t number) { consider(rules_.references[number], shown); });
    }
    enter(after(next_));
  }

  void step() {
    line_ = after(line_);
    feed(line_, visible(line_, folded_));
  }

  // folded: where that of it is kept.
  LineView visible(const Line& line, FoldedLine& folded) const {
    std::string_view marked;
    const std::string_view shown = rules_.prefix->removed(
        utf8_prefix(text_.substr(line.begin, line.end - line.begin), kLineLimit), folded, &marked);
    return {shown, folded, marked};
  }

  static bool any(const std::vector<LineRule>& rules, const LineView& line) {
    return std::any_of(rules.begin(), rules.end(),
                       [&](const LineRule& rule) { return rule.matches(line); });
  }

  void feed(const Line& line, const LineView& shown) {
    for (auto at = open_.begin(); at != open_.end();) {
      const Fed fed = feed(at->second, line, shown);
      if (fed == Fed::kOver) keep(std::move(at->second));
      at = fed == Fed::kGoesOn ? std::next(at) : open_.erase(at);
    }
  }

  enum class Fed { kGoesOn, kOver, kAcquitted };

  Fed feed(Block& block, const Line& line, const LineView& shown) {
    const BlockRule& rule = *block.rule;
    if (any(rule.acquit, shown)) return Fed::kAcquitted;
    const bool through = any(rule.through, shown);
    const bool goes_on = rule.go_on.empty() || any(rule.go_on, shown);
    if (!through && (!goes_on || any(rule.until, shown))) return Fed::kOver;
    block.last = line.number;
    taken_[block.tool] = line.number;
    fields(block, line, shown);
    return through || block.last - block.first >= rule.max_lines ? Fed::kOver : Fed::kGoesOn;
  }

  void consider(const Reference& reference, const LineView& shown) {
    const ToolRules& tool = rules_.tools[reference.tool];
    if (reference.kind == Reference::kDetected) {
      found_.detected[reference.tool] = true;
    } else if (reference.kind == Reference::kDetect) {
      if (!found_.detected[reference.tool] && tool.detect[reference.index].matches(shown)) {
        found_.detected[reference.tool] = true;
      }
    } else if (reference.kind == Reference::kLink) {
      const LinkRule& link = tool.links[reference.index];
      if (link.match.matches(shown)) {
        found_.links.push_back({reference.tool, line_.number, link.echo_next});
      }
    } else if (taken_[reference.tool] != line_.number) {
      start(reference.tool, tool.blocks[reference.index], reference.which, line_, shown);
    }
  }

  void start(std::uint32_t tool, const BlockRule& rule, std::uint32_t which, const Line& line,
             const LineView& shown) {
    const LineRule& start = rule.start[which];
    const LineView* seen = start.matches(shown) ? &shown : nullptr;
    const LineView marked{shown.marked, marked_};
    if (seen == nullptr && rules_.tools[tool].fallback && begins_marked(start, line, shown)) {
      seen = &marked;
    }
    if (seen == nullptr) return;
    if (rule.closes) end_all(line);
    Captures captures;
    start.capture(*seen, captures);
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
    if (rule.is_one_line()) {
      keep(std::move(block));
    } else {
      open_.emplace(tool, std::move(block));
    }
  }

  // What one tool puts before each line marks the errors of another's, that nobody knows.
  bool begins_marked(const LineRule& start, const Line& line, const LineView& shown) {
    if (shown.marked.size() == shown.text.size()) return false;
    if (!start.regex.expression().starts_with('^')) return false;
    return start.matches({shown.marked, folded_mark(line, shown)});
  }

  const FoldedLine& folded_mark(const Line& line, const LineView& shown) {
    if (marked_line_ != line.number) marked_.assign(shown.marked);
    marked_line_ = line.number;
    return marked_;
  }

  // A step is over, and what its tools were saying.
  void end_all(const Line& line) {
    for (auto& [tool, block] : open_) {
      if (block.last == line.number && block.first < line.number) --block.last;
    }
    close_all();
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
      if (!rule.join.empty() && (is_joined || !block.is_heading)) continue;
      if (!rule.match.matches(shown)) continue;
      Captures captures;
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

  void close_all() {
    for (auto& [tool, block] : open_) keep(std::move(block));
    open_.clear();
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
  std::map<std::uint32_t, Block> open_;  // by tool
  std::vector<std::size_t> taken_;       // by tool: the last line that a block of it took
  std::vector<std::size_t> seen_;        // by literal: the last line where it stood
  Line line_;                            // the last one that was looked at
  FoldedLine folded_;                    // the same in lower case
  Line next_;  // the one that is looked at next, if rules have something to look for there
  std::string_view next_text_, next_marked_;
  FoldedLine next_folded_;
  NumberSet room_, wanted_;  // references: room for what may match there; what is looked for
  const NumberSet* allowed_ = &room_;  // what may match there
  bool is_wanted_ = false;
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
