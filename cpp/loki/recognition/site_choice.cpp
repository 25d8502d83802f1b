// The second half of `site`: which block is the causing failure, and what it says.
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "loki/recognition/site_rules.hpp"
#include "loki/recognition/text.hpp"

namespace loki::site {
namespace {

constexpr std::size_t kExcerptLines = 40;
constexpr std::size_t kMessageBytes = 4096;
// What surrounds a failure of one line: enough to see the command above it and the details below.
// Chosen, not measured.
constexpr std::size_t kLinesAround = 12;
// Of a longer one in a step of a log: the heading above it, and what follows, as far as there is
// room. Measured on logs of our own and of others: more lines above show no more of what people
// mark.
constexpr std::size_t kLinesAbove = 8;
// Echoes with no more lines between them are one chain: make in make in a script.
constexpr std::size_t kChain = 8;
// A shape that many tools share counts most shortly before the chain of echoes that ends the step.
constexpr std::size_t kNear = 60;
// From this rank on it counts wherever it stands in the step.
constexpr std::size_t kSure = 60;

class Chooser {
 public:
  Chooser(const Rules& rules, std::string_view text, Findings findings, const SiteContext& context)
      : rules_(rules),
        text_(text),
        quote_(rules, text),
        found_(std::move(findings)),
        context_(context) {}

  Site run() {
    sort_blocks();
    step_ = failing_step(rules_, text_, found_.blocks);
    detect_by_command();
    drop_unfit();
    apply_links();
    excuse_retried();
    drop_nested();
    drop_outranked();
    find_anchor();
    const Block* cause = best();
    if (cause == nullptr || (standing(*cause) <= kEchoes || !is_in_step(*cause))) {
      if (std::optional<Site> site = line_before_anchor()) return *site;
    }
    return cause == nullptr ? Site{.language = std::string(context_.language)} : described(*cause);
  }

 private:
  const ToolRules& tool(const Block& block) const { return rules_.tools[block.tool]; }

  // Blocks are large: they move once.
  void sort_blocks() {
    std::vector<Block*> order;
    for (Block& block : found_.blocks) order.push_back(&block);
    std::stable_sort(order.begin(), order.end(), [this](const Block* a, const Block* b) {
      const bool a_last = tool(*a).fallback, b_last = tool(*b).fallback;
      return std::tie(a->first, a_last, b->last, a->tool, a->rule) <
             std::tie(b->first, b_last, a->last, b->tool, b->rule);
    });
    std::vector<Block> sorted;
    sorted.reserve(order.size());
    for (Block* const block : order) sorted.push_back(std::move(*block));
    found_.blocks = std::move(sorted);
  }

  void detect_by_command() {
    for (const std::string_view command : {context_.command, step_.command}) {
      for (const std::uint32_t tool : rules_.commands.started_by(command))
        found_.detected[tool] = true;
    }
  }

  void drop_unfit() {
    std::erase_if(found_.blocks, [&](const Block& block) {
      return block.rule->detected && !found_.detected[block.tool];
    });
  }

  // Blocks are sorted by line, so those of each tool are, too.
  void apply_links() {
    if (found_.links.empty()) return;
    std::vector<std::vector<Block*>> by_tool(rules_.tools.size());
    for (Block& block : found_.blocks) by_tool[block.tool].push_back(&block);
    for (const Link& link : found_.links) {
      const std::vector<Block*>& own = by_tool[link.tool];
      const auto after = std::partition_point(
          own.begin(), own.end(), [&](const Block* block) { return block->first <= link.line; });
      if (link.echo_next && after != own.end()) (*after)->role = Role::kEcho;
      if (!link.echo_next && after != own.begin()) (*std::prev(after))->role = Role::kEcho;
    }
  }

  void excuse_retried() {
    for (std::size_t i = 0; i < found_.blocks.size(); ++i) {
      if (found_.blocks[i].role != Role::kRetry) continue;
      for (std::size_t k = i; k-- > 0;) {
        Block& earlier = found_.blocks[k];
        if (earlier.first + found_.blocks[i].rule->reach < found_.blocks[i].first) break;
        if (earlier.role == Role::kRetry) break;
        if (earlier.role == Role::kCause) earlier.role = Role::kEcho;
      }
    }
  }

  // A block inside one of another tool belongs to it, and one of a fallback where it begins inside.
  // Fallback rules own nothing.
  void drop_nested() {
    std::vector<bool> nested(found_.blocks.size(), false);
    std::vector<std::size_t> around;
    for (std::size_t i = 0; i < found_.blocks.size(); ++i) {
      const Block& block = found_.blocks[i];
      while (!around.empty() && found_.blocks[around.back()].last < block.first) around.pop_back();
      for (auto at = around.rbegin(); at != around.rend() && !nested[i]; ++at) {
        Block& outer = found_.blocks[*at];
        if (outer.tool == block.tool) continue;
        if (outer.last < block.last && !tool(block).fallback) continue;
        if (is_over(tool(block), tool(outer))) continue;
        const bool same_lines = outer.first == block.first && outer.last == block.last;
        if (same_lines && !tool(block).fallback && outer.role != Role::kWarning) continue;
        nested[i] = true;
        adopt(outer, block);
      }
      if (!nested[i] && !tool(block).fallback && around.size() < 64) around.push_back(i);
    }
    std::size_t i = 0;
    std::erase_if(found_.blocks, [&](const Block&) { return nested[i++]; });
  }

  static bool is_over(const ToolRules& upper, const ToolRules& lower) {
    return std::find(upper.over.begin(), upper.over.end(), lower.name) != upper.over.end();
  }

  void adopt(Block& outer, const Block& inner) const {
    const auto& nests = outer.rule->nests;
    if (std::find(nests.begin(), nests.end(), tool(inner).name) == nests.end()) return;
    if (inner.role != Role::kCause) return;
    // A message and its type belong together: both or none.
    const bool speaks = outer.has(kErrorType) || outer.has(kMessage);
    for (std::size_t field = 0; field < kFields; ++field) {
      const bool said = field == kErrorType || field == kErrorCode || field == kMessage;
      if (said && speaks) continue;
      if (outer.values[field].text.empty()) outer.values[field] = inner.values[field];
    }
    if (outer.frames.empty()) outer.frames = inner.frames;
    if (outer.kind.empty() && !speaks)
      outer.kind = inner.kind.empty() ? tool(inner).kind : inner.kind;
  }

  void drop_outranked() {
    std::set<std::string_view> outranked;
    for (const Block& block : found_.blocks) {
      if (block.role != Role::kCause && block.role != Role::kSummary) continue;
      if (!is_in_step(block)) continue;
      for (const std::string& other : tool(block).over) outranked.insert(other);
    }
    if (outranked.empty()) return;
    std::erase_if(found_.blocks,
                  [&](const Block& block) { return outranked.contains(tool(block).name); });
  }

  bool is_in_step(const Block& block) const {
    return block.first >= step_.begin && (step_.end == 0 || block.first <= step_.end);
  }

  // The first line of the chain of echoes that ends the step: what failed stands before it.
  void find_anchor() {
    anchor_ = step_.end != 0
                  ? step_.end
                  : 2 + static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n'));
    for (auto block = found_.blocks.rbegin(); block != found_.blocks.rend(); ++block) {
      if (block->role != Role::kEcho || block->first >= anchor_) continue;
      if (block->first < step_.begin || block->last + kChain < anchor_) break;
      anchor_ = block->first;
    }
  }

  bool is_near_the_end(const Block& block) const {
    return block.first <= anchor_ && block.first + kNear >= anchor_;
  }

  // What a named tool says of itself, and shapes that hardly mean anything else.
  bool counts_anywhere(const Block& block) const {
    return !tool(block).fallback || block.rule->rank >= kSure;
  }

  static constexpr int kEchoes = 2;

  // Larger is better; 0: never chosen. Up to kEchoes: a consequence only.
  int standing(const Block& block) const {
    const bool named = !tool(block).fallback;
    switch (block.role) {
      case Role::kCause:
        return named ? 6 : 4;
      case Role::kSummary:
        return named ? 5 : 3;
      case Role::kEcho:
        return named ? 2 : 1;
      case Role::kWarning:
      case Role::kRetry:
        break;
    }
    return 0;
  }

  // Larger is better; the first in the text of equals.
  std::tuple<bool, int, bool, std::size_t, bool> merit(const Block& block) const {
    return {is_in_step(block), standing(block), counts_anywhere(block) || is_near_the_end(block),
            block.rule->rank, block.has(kMessage) || block.has(kErrorType)};
  }

  const Block* best() const {
    const Block* result = nullptr;
    for (const Block& block : found_.blocks) {
      if (standing(block) == 0) continue;
      if (result == nullptr || merit(block) > merit(*result)) result = &block;
    }
    return result;
  }

  Site described(const Block& block) {
    Site site;
    const ToolRules& rules = tool(block);
    if (!rules.fallback) site.tool = rules.name;
    site.language = context_.language.empty() ? rules.language : std::string(context_.language);
    site.kind = block.kind.empty() ? rules.kind : std::string(block.kind);
    site.error_type = value(block, kErrorType);
    site.error_code = value(block, kErrorCode);
    site.message = utf8_prefix(value(block, kMessage), kMessageBytes);
    const Value& message = block.values[kMessage];
    const Value& type = block.values[kErrorType];
    site.output_line = message.line != 0 ? message.line : type.line != 0 ? type.line : block.start;
    place(rules, block, context_, site);
    site.tests = failing_tests(block);
    excerpt(block, site);
    if (site.message.empty()) {
      site.message = site.error_type.empty()
                         ? quote_.line(block.begin, block.first, site.output_line)
                         : site.error_type;
    }
    return site;
  }

  // All failing tests that the tool names: full ids where it gives any, else the partial names.
  std::vector<std::string> failing_tests(const Block& chosen) const {
    std::vector<std::string> full, partial;
    std::set<std::string_view> seen;
    const auto collect = [&](const auto& ids, std::vector<std::string>& into) {
      for (const std::string_view id : ids) {
        if (seen.insert(id).second) into.emplace_back(id);
      }
    };
    for (const Block& block : found_.blocks) {
      if (block.tool != chosen.tool || block.role == Role::kWarning) continue;
      collect(block.tests, full);
      collect(block.test_names, partial);
    }
    if (const auto more = found_.dropped.by_tool.find(chosen.tool);
        more != found_.dropped.by_tool.end()) {
      collect(more->second.full, full);
      collect(more->second.partial, partial);
    }
    return full.empty() ? partial : full;
  }

  // The lines a person would quote: the block, with what the tool says right after it; of a long
  // one the part round the message; of a shorter one what surrounds it in the step.
  void excerpt(const Block& block, Site& site) const {
    std::size_t first = block.first, last = block.last, begin = block.begin;
    if (last - first + 1 > kExcerptLines) {
      const std::size_t wanted = site.output_line > first + 30 ? site.output_line - 30 : first;
      const std::size_t from = std::min(wanted, last - kExcerptLines + 1);
      for (; first < from; ++first) begin = quote_.end_of_line(begin) + 1;
      quote_.cut(site, begin, first, first + kExcerptLines - 1);
      return quote_.own(site, first, site.excerpt_last);
    }
    std::size_t own_first = first, own_last = last;
    const bool is_short = last - first < 2;
    for (const Block& other : found_.blocks) {
      if (other.tool == block.tool && other.role != Role::kWarning && other.first > last &&
          other.first < block.first + kExcerptLines && is_in_step(other) == is_in_step(block)) {
        last = std::min(other.last, block.first + kExcerptLines - 1);
      }
    }
    const std::size_t room = kExcerptLines - 1 - (last - first);
    if (is_short || (step_.end != 0 && room > 0)) {
      std::size_t up = std::min(is_short ? kLinesAround : kLinesAbove, room);
      if (step_.begin != 0 && step_.begin <= first) up = std::min(up, first - step_.begin);
      begin = quote_.above(begin, up);
      first -= up;
      last = first + kExcerptLines - 1;
      if (step_.end >= block.last) last = std::min(last, step_.end);
    }
    if (is_short) {
      own_first = first;
      own_last += kLinesAround;
    }
    quote_.cut(site, begin, first, last);
    quote_.own(site, own_first, own_last);
  }

  // Nothing is known but where it ended: the last line before that which is not blank.
  std::optional<Site> line_before_anchor() const {
    std::size_t end = text_.size();
    for (const Block& block : found_.blocks) {
      if (block.first == anchor_) end = std::min(end, block.begin);
    }
    const std::size_t begin = quote_.last_said(end);
    if (begin == std::string_view::npos) return std::nullopt;
    const auto before = text_.begin() + static_cast<std::ptrdiff_t>(begin);
    Site site;
    site.language = context_.language;
    site.output_line = 1 + static_cast<std::size_t>(std::count(text_.begin(), before, '\n'));
    if (site.output_line < step_.begin) return std::nullopt;
    site.message = quote_.line(begin, site.output_line, site.output_line);
    std::size_t up = kExcerptLines - 1;
    if (step_.begin != 0) up = std::min(up, site.output_line - step_.begin);
    const std::size_t first = quote_.above(begin, up);
    quote_.cut(site, first, site.output_line - up, site.output_line);
    quote_.own(site, site.excerpt_first, site.excerpt_last);
    return site;
  }

  const Rules& rules_;
  std::string_view text_;
  Quote quote_;
  Findings found_;
  const SiteContext& context_;
  Step step_;
  std::size_t anchor_ = 0;
};

}  // namespace

void DroppedTests::add(const Block& block) {
  if (block.role == Role::kWarning) return;
  OfTool& tests = by_tool[block.tool];
  tests.full.insert(block.tests.begin(), block.tests.end());
  tests.partial.insert(block.test_names.begin(), block.test_names.end());
}

Site choose(const Rules& rules, std::string_view text, Findings findings,
            const SiteContext& context) {
  return Chooser(rules, text, std::move(findings), context).run();
}

}  // namespace loki::site
