#include "loki/recognition/regex_known.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace loki {

using Strings = RegexNeeds::Strings;

void offer(Known& known, const Strings& strings) {
  if (shortest(strings) > 1 && strings.size() <= Known::kMostTried) known.all.push_back(strings);
  if (better(strings, known.best)) known.best = strings;
}

void finish(Known& known) {
  if (known.exact) offer(known, known.strings);
}

void append(Strings& to, Strings from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

Strings product(const Strings& heads, const Strings& tails) {
  Strings all;
  for (const std::string& head : heads) {
    for (const std::string& tail : tails) all.push_back(head + tail);
  }
  return all;
}

bool is_ordinary(char c) {
  return static_cast<unsigned char>(c) < 0x80 &&
         std::string_view("\\^$.[]|()*+?{}").find(c) == std::string_view::npos;
}

bool is_escaped_mark(char c) {
  const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return static_cast<unsigned char>(c) < 0x80 && !is_word;
}

bool is_any_blanks(std::string_view item) {
  constexpr std::array<std::string_view, 4> kBlanks = {"\\s*", "\\s+", " *", " +"};
  return std::find(kBlanks.begin(), kBlanks.end(), item) != kBlanks.end() ||
         (item.starts_with(" {") && item.ends_with(",}"));
}

bool holds_blank(const Bytes& bytes) {
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    if (bytes[c] && is_blank(static_cast<char>(c))) return true;
  }
  return false;
}

bool ends_with_dollar(std::string_view expression) {
  if (!expression.ends_with('$') || expression.find("\\Q") != std::string_view::npos) return false;
  const std::string_view before = expression.substr(0, expression.size() - 1);
  const std::size_t other = before.find_last_not_of('\\');
  const std::size_t escapes = before.size() - (other == std::string_view::npos ? 0 : other + 1);
  return escapes % 2 == 0;
}

}  // namespace loki
