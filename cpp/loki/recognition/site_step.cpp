// Lines of a log, and which of them are the step that broke the build.
#include <algorithm>

#include "loki/recognition/site_rules.hpp"
#include "loki/recognition/text.hpp"

namespace loki::site {
namespace {

bool has_letter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

constexpr std::size_t kExcerptBytes = 16 * 1024;
constexpr std::size_t kMessageBytes = 4096;
constexpr std::size_t kStretch = 64 * 1024;  // bytes; chosen
constexpr std::size_t kCommandShown = 80;    // systems cut long commands when they name them again

std::size_t start_of_line(std::string_view text, std::size_t at) {
  const std::size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return newline == std::string_view::npos ? 0 : newline + 1;
}

// The last line before `end` that begins, behind what CI puts before it, with `opener` and, where
// it is known, the command. Its byte, or npos.
std::size_t last_opened(const Rules& rules, std::string_view text, std::size_t end,
                        std::string_view opener, std::string_view command) {
  const std::string wanted = std::string(opener) + std::string(command);
  std::vector<std::size_t> places;
  // From the end, stretch by stretch, each of them forwards: to look backwards for a text is slow.
  for (std::size_t stop = end; stop > 0;) {
    const std::size_t start = stop - std::min(stop, kStretch);
    const std::string_view stretch = text.substr(0, stop - 1 + wanted.size());
    places.clear();
    for (std::size_t at = start; (at = stretch.find(wanted, at)) != std::string_view::npos; ++at) {
      places.push_back(at);
    }
    std::size_t known = std::string_view::npos;  // begin of the line that was looked at last
    for (auto at = places.rbegin(); at != places.rend(); ++at) {
      if (*at >= known) continue;
      known = start_of_line(text, *at);
      const std::string_view line = utf8_prefix(
          text.substr(known, std::min(text.find('\n', *at), text.size()) - known), kLineLimit);
      if (rules.prefix->removed(line).starts_with(wanted)) return known;
    }
    stop = start;
  }
  return std::string_view::npos;
}

}  // namespace

Step failing_step(const Rules& rules, std::string_view text, const std::vector<Block>& blocks) {
  const auto closing = std::find_if(blocks.begin(), blocks.end(),
                                    [](const Block& block) { return block.rule->closes; });
  if (closing == blocks.end()) return {};
  Step step{0, closing->first, closing->values[kCommand].text};
  const std::string_view shown = utf8_prefix(step.command, kCommandShown);
  std::size_t begin = std::string_view::npos;
  for (const std::string& opener : closing->rule->opens) {
    const std::size_t at = last_opened(rules, text, closing->begin, opener, shown);
    if (at != std::string_view::npos && (begin == std::string_view::npos || at > begin)) begin = at;
  }
  if (begin == std::string_view::npos) return step;
  const auto newlines =
      std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                 text.begin() + static_cast<std::ptrdiff_t>(closing->begin), '\n');
  step.begin = closing->first - static_cast<std::size_t>(newlines);
  return step;
}

std::size_t Quote::end_of_line(std::size_t begin) const {
  return std::min(text_.find('\n', begin), text_.size());
}

std::size_t Quote::last_said(std::size_t end) const {
  std::size_t other =
      std::string_view::npos;  // rules, carets and numbers say nothing, but better than none
  while (end > 0) {
    const std::size_t last =
        text_.substr(0, end).find_last_not_of(std::string_view(" \t\r\n\0", 5));
    if (last == std::string_view::npos) break;
    const std::size_t begin = start_of_line(text_, last + 1);
    const std::string_view whole =
        utf8_prefix(text_.substr(begin, end_of_line(last) - begin), kLineLimit);
    const std::string_view said = trimmed(rules_.prefix->removed(whole));
    if (has_letter(said)) return begin;
    if (!said.empty() && other == std::string_view::npos) other = begin;
    end = begin;
  }
  return other;
}

std::size_t Quote::above(std::size_t begin, std::size_t& up) const {
  std::size_t done = 0;
  for (; done < up && begin > 0; ++done) begin = start_of_line(text_, begin - 1);
  up = done;
  return begin;
}

std::string Quote::line(std::size_t begin, std::size_t from, std::size_t line) const {
  for (; from < line && begin < text_.size(); ++from) begin = end_of_line(begin) + 1;
  if (begin >= text_.size()) return {};
  const std::string_view whole = text_.substr(begin, end_of_line(begin) - begin);
  return std::string(
      utf8_prefix(trimmed(rules_.prefix->removed(utf8_prefix(whole, kLineLimit))), kMessageBytes));
}

void Quote::cut(Site& site, std::size_t begin, std::size_t first, std::size_t last) const {
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

void Quote::own(Site& site, std::size_t first, std::size_t last) const {
  if (site.excerpt_first == 0) return;
  site.own_first = std::clamp(first, site.excerpt_first, site.excerpt_last);
  site.own_last = std::clamp(last, site.own_first, site.excerpt_last);
  const std::size_t stop = site.excerpt_begin + site.excerpt.size();
  std::size_t begin = site.excerpt_begin, line = site.excerpt_first;
  for (; line < site.own_first; ++line) begin = std::min(end_of_line(begin) + 1, stop);
  std::size_t end = end_of_line(begin);
  for (; line < site.own_last; ++line) end = end_of_line(end + 1);
  site.own_begin = begin;
  site.own_size = std::min(end, stop) - begin;
}

}  // namespace loki::site
