// The second half of `site`: which block is the causing failure, and what it says.
#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include "loki/recognition/site_rules.hpp"
#include "loki/recognition/text.hpp"

namespace loki::site {
namespace {

constexpr std::size_t kExcerptLines = 40;
constexpr std::size_t kExcerptBytes = 16 * 1024;
constexpr std::size_t kMessageBytes = 4096;
// What surrounds a failure of one line: enough to see the command above it and the details below.
// Chosen, not measured.
constexpr std::size_t kLinesBefore = 12, kLinesAfter = 12;

std::size_t number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && value < 1'000'000'000 ? value : 0;
}

bool is_absolute(std::string_view path) {
  return path.starts_with('/') || (path.size() > 2 && path[1] == ':');
}

std::string relative(std::string_view path, std::string_view root) {
  if (path.starts_with("file://")) path.remove_prefix(7);
  while (root.size() > 1 && root.ends_with('/')) root.remove_suffix(1);
  if (!root.empty() && path.size() > root.size() + 1 && path.starts_with(root) &&
      path[root.size()] == '/') {
    path.remove_prefix(root.size() + 1);
  }
  while (path.starts_with("./")) path.remove_prefix(2);
  return std::string(path);
}

std::string extension_of(std::string_view path) {
  const std::size_t dot = path.rfind('.'), slash = path.find_last_of("/\\");
  if (dot == std::string_view::npos || (slash != std::string_view::npos && slash > dot)) return {};
  std::string extension = ascii_folded(path.substr(dot + 1));
  const bool plain = !extension.empty() && extension.size() <= 8 &&
                     std::all_of(extension.begin(), extension.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
                     });
  return plain ? extension : std::string();
}

class Chooser {
 public:
  Chooser(const Rules& rules, std::string_view text, Findings findings, const SiteContext& context)
      : rules_(rules), text_(text), found_(std::move(findings)), context_(context) {}

  Site run() {
    detect_by_command();
    drop_unfit();
    std::stable_sort(found_.blocks.begin(), found_.blocks.end(),
                     [](const Block& a, const Block& b) {
                       return std::tie(a.first, b.last, a.tool, a.rule) <
                              std::tie(b.first, a.last, b.tool, b.rule);
                     });
    apply_links();
    excuse_retried();
    drop_nested();
    drop_outranked();
    find_end_of_step();
    const Block* cause = best();
    return cause == nullptr ? last_line() : described(*cause);
  }

 private:
  const ToolRules& tool(const Block& block) const { return rules_.tools[block.tool]; }

  void detect_by_command() {
    for (std::size_t i = 0; i < rules_.tools.size(); ++i) {
      if (is_named_by(rules_.tools[i], context_.command)) found_.detected[i] = true;
    }
  }

  void drop_unfit() {
    std::erase_if(found_.blocks, [&](const Block& block) {
      return block.rule->detected && !found_.detected[block.tool];
    });
  }

  // Links and blocks are both sorted by line.
  void apply_links() {
    for (const Link& link : found_.links) {
      const auto after =
          std::partition_point(found_.blocks.begin(), found_.blocks.end(),
                               [&](const Block& block) { return block.first <= link.line; });
      const auto is_linked = [&](const Block& block) { return block.tool == link.tool; };
      if (link.echo_next) {
        const auto next = std::find_if(after, found_.blocks.end(), is_linked);
        if (next != found_.blocks.end()) next->role = Role::kEcho;
      } else {
        const auto previous =
            std::find_if(std::make_reverse_iterator(after), found_.blocks.rend(), is_linked);
        if (previous != found_.blocks.rend()) previous->role = Role::kEcho;
      }
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

  // A block inside one of another tool belongs to it. Fallback rules own nothing.
  void drop_nested() {
    std::vector<bool> nested(found_.blocks.size(), false);
    std::vector<std::size_t> around;
    for (std::size_t i = 0; i < found_.blocks.size(); ++i) {
      const Block& block = found_.blocks[i];
      while (!around.empty() && found_.blocks[around.back()].last < block.first) around.pop_back();
      for (auto at = around.rbegin(); at != around.rend() && !nested[i]; ++at) {
        Block& outer = found_.blocks[*at];
        if (outer.last < block.last || outer.tool == block.tool) continue;
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
      for (const std::string& other : tool(block).over) outranked.insert(other);
    }
    if (outranked.empty()) return;
    std::erase_if(found_.blocks,
                  [&](const Block& block) { return outranked.contains(tool(block).name); });
  }

  // The line where the failing step ended: nothing behind it broke the build.
  void find_end_of_step() {
    for (const Block& block : found_.blocks) {
      if (!block.rule->closes) continue;
      closed_ = block.first;
      reach_ = block.rule->reach;
      return;
    }
  }

  bool is_near_the_end(const Block& block) const {
    return block.first <= closed_ && block.first + reach_ >= closed_;
  }

  // Larger is better; 0: never chosen.
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
  std::tuple<int, bool, std::size_t, bool> merit(const Block& block) const {
    return {standing(block), is_near_the_end(block), block.rule->rank,
            block.has(kMessage) || block.has(kErrorType)};
  }

  const Block* best() const {
    const Block* result = nullptr;
    for (const Block& block : found_.blocks) {
      if (standing(block) == 0) continue;
      if (result == nullptr || merit(block) > merit(*result)) result = &block;
    }
    return result;
  }

  std::string value(const Block& block, Field field) const {
    const std::string_view text = block.values[field].text;
    return std::string(text.empty() ? std::string_view(block.rule->constants[field]) : text);
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
    place(block, site);
    site.tests = failing_tests(block);
    excerpt(block, site);
    if (site.message.empty()) {
      site.message = site.error_type.empty() ? line_text(block, site.output_line) : site.error_type;
    }
    return site;
  }

  void place(const Block& block, Site& site) const {
    const ToolRules& rules = tool(block);
    for (const Block::FrameView& frame : block.frames) {
      site.frames.push_back({relative(frame.path, context_.root), number(frame.line),
                             std::string(frame.function), in_project(rules, frame.path)});
    }
    if (rules.innermost_first) std::reverse(site.frames.begin(), site.frames.end());
    const auto own = std::find_if(site.frames.rbegin(), site.frames.rend(),
                                  [](const Frame& frame) { return frame.in_project; });
    site.path = relative(value(block, kPath), context_.root);
    if (!site.path.empty()) {
      site.line = number(value(block, kLine));
      site.column = number(value(block, kColumn));
    } else if (!site.frames.empty()) {
      const Frame& frame = own == site.frames.rend() ? site.frames.back() : *own;
      site.path = frame.path;
      site.line = frame.line;
    }
    site.extension = extension_of(site.path);
  }

  bool in_project(const ToolRules& rules, std::string_view path) const {
    for (const LineRule& library : rules.library) {
      if (library.matches(path)) return false;
    }
    if (path.empty() || path.front() == '<') return false;
    return context_.root.empty() || !is_absolute(path) || path.starts_with(context_.root);
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

  // --- lines -------------------------------------------------------------------------------------

  std::size_t end_of_line(std::size_t begin) const {
    return std::min(text_.find('\n', begin), text_.size());
  }

  // Where the line `up` lines above the one at `begin` begins; `up` becomes how many there were.
  std::size_t above(std::size_t begin, std::size_t& up) const {
    std::size_t done = 0;
    for (; done < up && begin > 0; ++done) {
      const std::size_t newline = begin < 2 ? std::string_view::npos : text_.rfind('\n', begin - 2);
      begin = newline == std::string_view::npos ? 0 : newline + 1;
    }
    up = done;
    return begin;
  }

  std::string line_text(const Block& block, std::size_t line) const {
    std::size_t begin = block.begin;
    for (std::size_t at = block.first; at < line && begin < text_.size(); ++at) {
      begin = end_of_line(begin) + 1;
    }
    if (begin >= text_.size()) return {};
    const std::string_view whole = text_.substr(begin, end_of_line(begin) - begin);
    return std::string(
        utf8_prefix(trimmed(rules_.without_prefix(utf8_prefix(whole, kLineLimit))), kMessageBytes));
  }

  // The lines a person would quote: the block; of a long one the part round the message; around a
  // block of a line or two its neighbours.
  void excerpt(const Block& block, Site& site) const {
    std::size_t first = block.first, last = block.last, begin = block.begin;
    if (last - first + 1 > kExcerptLines) {
      const std::size_t wanted = site.output_line > first + 30 ? site.output_line - 30 : first;
      const std::size_t from = std::min(wanted, last - kExcerptLines + 1);
      for (; first < from; ++first) begin = end_of_line(begin) + 1;
      last = first + kExcerptLines - 1;
    } else if (last - first < 2) {
      std::size_t up = kLinesBefore;
      begin = above(begin, up);
      first -= up;
      last += kLinesAfter;
    }
    cut(site, begin, first, last);
  }

  // Fills in the excerpt, without blank lines at its ends.
  void cut(Site& site, std::size_t begin, std::size_t first, std::size_t last) const {
    std::size_t end = begin, shown = first;
    bool seen = false;
    for (std::size_t line = first, at = begin; line <= last && at <= text_.size(); ++line) {
      const std::size_t stop = end_of_line(at);
      if (!trimmed(text_.substr(at, std::min(stop - at, kLineLimit))).empty()) {
        if (!seen) {
          first = line;
          begin = at;
        }
        seen = true;
        shown = line;
        end = stop;
      }
      at = stop + 1;
    }
    if (!seen) return;
    site.excerpt_first = first;
    site.excerpt_last = shown;
    site.excerpt_begin = begin;
    site.excerpt = utf8_prefix(text_.substr(begin, end - begin), kExcerptBytes);
  }

  // Nothing is known: the last line that is not blank.
  Site last_line() const {
    Site site;
    site.language = context_.language;
    const std::size_t last = text_.find_last_not_of(std::string_view(" \t\r\n\0", 5));
    if (last == std::string_view::npos) return site;
    const std::size_t newline = text_.rfind('\n', last);
    std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    site.output_line =
        1 + static_cast<std::size_t>(std::count(
                text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(begin), '\n'));
    const std::string_view line = text_.substr(begin, last + 1 - begin);
    site.message =
        utf8_prefix(trimmed(rules_.without_prefix(utf8_prefix(line, kLineLimit))), kMessageBytes);
    std::size_t up = kExcerptLines - 1;
    begin = above(begin, up);
    cut(site, begin, site.output_line - up, site.output_line);
    return site;
  }

  const Rules& rules_;
  std::string_view text_;
  Findings found_;
  const SiteContext& context_;
  std::size_t closed_ = 0, reach_ = 0;  // 0: no step is known to have failed
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
