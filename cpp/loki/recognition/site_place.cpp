// Where a failure is: its file and line, and the frames that led there.
#include <algorithm>
#include <charconv>

#include "loki/recognition/scan.hpp"
#include "loki/recognition/site_rules.hpp"

namespace loki::site {
namespace {

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

bool in_project(const ToolRules& rules, std::string_view path, const SiteContext& context) {
  const FoldedLine folded(path);
  for (const LineRule& library : rules.library) {
    if (library.matches({path, folded})) return false;
  }
  if (path.empty() || path.front() == '<') return false;
  return context.root.empty() || !is_absolute(path) || path.starts_with(context.root);
}

}  // namespace

std::string value(const Block& block, Field field) {
  const std::string_view text = block.values[field].text;
  return std::string(text.empty() ? std::string_view(block.rule->constants[field]) : text);
}

void place(const ToolRules& rules, const Block& block, const SiteContext& context, Site& site) {
  for (const Block::FrameView& frame : block.frames) {
    site.frames.push_back({relative(frame.path, context.root), number(frame.line),
                           std::string(frame.function), in_project(rules, frame.path, context)});
  }
  if (rules.innermost_first) std::reverse(site.frames.begin(), site.frames.end());
  const auto own = std::find_if(site.frames.rbegin(), site.frames.rend(),
                                [](const Frame& frame) { return frame.in_project; });
  site.path = relative(value(block, kPath), context.root);
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

}  // namespace loki::site
