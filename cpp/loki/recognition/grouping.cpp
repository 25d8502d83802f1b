#include "loki/recognition/grouping.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "loki/base/parallel.hpp"
#include "loki/recognition/grouping_slots.hpp"
#include "loki/recognition/grouping_template.hpp"
#include "loki/recognition/grouping_words.hpp"

namespace loki {
namespace {

using namespace grouping;

// Chosen on messages of linters; docs/design/grouping.md.
constexpr std::size_t kFewest = 3;     // messages that a group needs to be told apart by quotes
constexpr double kShareOfPairs = 0.6;  // different values over messages, where it has several
constexpr double kShareOfOne = 0.2;    // the same with one quoted argument

// Disjoint sets of values.
class Components {
 public:
  std::uint32_t find(std::uint32_t x) {
    while (x >= parent_.size()) parent_.push_back(static_cast<std::uint32_t>(parent_.size()));
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parent_;
};

// The different texts, their templates and how often each came.
struct Messages {
  std::vector<MessageTemplate> templates;
  std::vector<std::size_t> counts;
};

std::vector<std::string_view> quotes(const MessageTemplate& message) {
  std::vector<std::string_view> found;
  for (const auto& token : message.tokens()) {
    if (token.kind == TokenKind::kQuoted) found.push_back(message.text(token));
  }
  return found;
}

// Tells messages of one template apart by what they quote, where its words tell nothing: "use ...
// instead of ...". Messages that share a quoted argument stay together. One number each; all 0
// where they are one group.
std::vector<std::uint32_t> by_quotes(const Messages& messages,
                                     const std::vector<std::uint32_t>& members) {
  std::vector<std::uint32_t> parts(members.size(), 0);
  const std::size_t width = quotes(messages.templates[members.front()]).size();
  if (width == 0) return parts;
  Numbering<std::string> values;
  Components components;
  std::size_t count = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto quoted = quotes(messages.templates[members[i]]);
    if (quoted.size() != width) return std::vector<std::uint32_t>(members.size(), 0);
    for (std::size_t k = 0; k < width; ++k) {
      const auto value = values.of(std::to_string(k) + ' ' + std::string(quoted[k]));
      if (k == 0) parts[i] = value;
      components.join(parts[i], value);
    }
    count += messages.counts[members[i]];
  }
  Numbering<std::uint32_t> numbers;
  for (std::uint32_t& part : parts) part = numbers.of(components.find(part));
  const double most = (width > 1 ? kShareOfPairs : kShareOfOne) * static_cast<double>(count);
  if (count >= kFewest && static_cast<double>(numbers.size()) <= most) return parts;
  return std::vector<std::uint32_t>(members.size(), 0);
}

bool tells_nothing(const Key& key, const Symbols& symbols) {
  return std::none_of(key.begin(), key.end(), [&](std::uint32_t element) {
    return symbols.is_word(symbol_of(element)) && !is_generic(symbols.text(symbol_of(element)));
  });
}

Key key_of(const MessageTemplate& message, Symbols& symbols) {
  Key key;
  for (const auto& token : message.tokens()) {
    const bool is_word = token.kind == TokenKind::kWord;
    const bool is_text = is_word || token.kind == TokenKind::kMark;
    const std::uint32_t symbol = is_text ? symbols.add(message.text(token), is_word) : kOpen;
    key.push_back((symbol << 1U) | static_cast<std::uint32_t>(token.is_spaced));
  }
  return key;
}

// One number for each message, equal for equal templates.
std::vector<std::uint64_t> grouped(const Messages& messages) {
  Symbols symbols;
  Keys keys;
  for (const MessageTemplate& message : messages.templates) {
    keys.of_message.push_back(static_cast<std::uint32_t>(keys.all.size()));
    keys.all.push_back(key_of(message, symbols));
  }
  open_arguments(keys, symbols);
  std::vector<std::vector<std::uint32_t>> members(keys.all.size());
  for (std::uint32_t i = 0; i < keys.of_message.size(); ++i)
    members[keys.of_message[i]].push_back(i);
  std::vector<std::uint64_t> result(messages.templates.size());
  for (std::uint64_t k = 0; k < members.size(); ++k) {
    std::vector<std::uint32_t> parts(members[k].size(), 0);
    if (tells_nothing(keys.all[k], symbols)) parts = by_quotes(messages, members[k]);
    for (std::size_t i = 0; i < parts.size(); ++i) result[members[k][i]] = (k << 32U) | parts[i];
  }
  return result;
}

}  // namespace

std::vector<std::uint32_t> group(const std::vector<std::string_view>& texts, unsigned threads) {
  Numbering<std::string_view> distinct;
  std::vector<std::uint32_t> which;
  std::vector<std::string_view> once;
  Messages messages;
  for (const std::string_view text : texts) {
    which.push_back(distinct.of(text));
    if (which.back() == once.size()) {
      once.push_back(text);
      messages.counts.push_back(0);
    }
    ++messages.counts[which.back()];
  }
  messages.templates.resize(once.size());
  in_parallel(once.size(), threads, 64,
              [&](std::size_t i) { messages.templates[i] = MessageTemplate(once[i]); });
  const std::vector<std::uint64_t> groups = grouped(messages);
  Numbering<std::uint64_t> numbers;
  std::vector<std::uint32_t> result;
  for (const std::uint32_t text : which) result.push_back(numbers.of(groups[text]));
  return result;
}

}  // namespace loki
