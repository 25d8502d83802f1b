#include "loki/recognition/grouping.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "loki/base/hash.hpp"
#include "loki/base/parallel.hpp"
#include "loki/recognition/grouping_template.hpp"
#include "loki/recognition/grouping_words.hpp"

namespace loki {
namespace {

using grouping::MessageTemplate;
using grouping::TokenKind;

// All constants: chosen on messages of log files and linters; docs/design/grouping.md.
constexpr int kRounds = 3;               // a hole may make another one visible
constexpr std::size_t kDeepest = 60;     // tokens of a message that may become holes
constexpr std::size_t kContext = 2;      // words that must stay the same
constexpr std::size_t kCodeContext = 3;  // the same where names of programs differ
constexpr std::size_t kMany = 8;         // so many different words are arguments
constexpr std::size_t kManyBehind = 4;   // so many behind a preposition
constexpr std::size_t kFewest = 3;       // messages that a group needs to be told apart by quotes
constexpr double kShareOfPairs = 0.6;    // different values over messages, where it has several
constexpr double kShareOfOne = 0.2;      // the same with one quoted argument

// A token of a key: symbol and whether white space stands before it. Symbol 0 is a hole.
using Key = std::vector<std::uint32_t>;
constexpr std::uint32_t kHole = 0;
std::uint32_t symbol_of(std::uint32_t element) {
  return element >> 1U;
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t both[2] = {a, b};
  return hash64({reinterpret_cast<const char*>(both), sizeof both});
}

std::uint64_t hash_of(const Key& key) {
  return hash64({reinterpret_cast<const char*>(key.data()), key.size() * sizeof(key[0])});
}

struct KeyHash {
  std::size_t operator()(const Key& key) const { return hash_of(key); }
};

// Words and marks by number.
class Symbols {
 public:
  std::uint32_t add(std::string_view text, bool is_word) {
    std::string key(1, is_word ? 'w' : 'm');
    key += text;
    const auto [entry, is_new] = index_.try_emplace(std::move(key), next_);
    if (is_new) {
      ++next_;
      infos_.push_back({std::string_view(entry->first).substr(1), is_word,
                        is_word && grouping::is_code_name(text), false});
    }
    return entry->second;
  }
  std::string_view text(std::uint32_t symbol) const { return infos_[symbol].text; }
  bool is_word(std::uint32_t symbol) const { return infos_[symbol].is_word; }
  bool is_code(std::uint32_t symbol) const { return infos_[symbol].is_code; }
  bool is_known_value(std::uint32_t symbol) const { return infos_[symbol].is_known_value; }
  void set_known_value(std::uint32_t symbol) { infos_[symbol].is_known_value = true; }

 private:
  struct Info {
    std::string_view text;
    bool is_word, is_code, is_known_value;
  };
  std::unordered_map<std::string, std::uint32_t> index_;  // nodes stay where they are
  std::vector<Info> infos_{Info{"", false, false, false}};
  std::uint32_t next_ = 1;
};

// A place in a message, beside all others whose rest is the same.
struct Place {
  std::uint64_t rest;
  std::uint32_t symbol, key, position;
  auto order() const { return std::tie(rest, symbol, key, position); }
};

// Finds words that are arguments and makes holes of them, in keys that are all different.
class Slots {
 public:
  Slots(std::vector<Key>& keys, Symbols& symbols) : keys_(keys), symbols_(symbols) {}

  // True where a key changed.
  bool open() {
    collect();
    bool changed = false;
    // What is an argument in one message is taken for one in others: a second look.
    for (const bool is_second : {false, true}) {
      for (std::size_t begin = 0, end; begin < places_.size(); begin = end) {
        end = begin + 1;
        while (end < places_.size() && places_[end].rest == places_[begin].rest) ++end;
        if (is_argument(begin, end, is_second)) marked_.push_back({begin, end});
      }
    }
    for (const auto& [begin, end] : marked_) {
      for (std::size_t i = begin; i < end; ++i) {
        std::uint32_t& element = keys_[places_[i].key][places_[i].position];
        changed = changed || symbol_of(element) != kHole;
        element = (kHole << 1U) | (element & 1U);
      }
    }
    return changed;
  }

 private:
  std::size_t words(const Key& key) const {
    return static_cast<std::size_t>(std::count_if(
        key.begin(), key.end(), [&](std::uint32_t e) { return symbols_.is_word(symbol_of(e)); }));
  }

  void collect() {
    std::vector<std::uint64_t> before;
    for (std::uint32_t k = 0; k < keys_.size(); ++k) {
      const Key& key = keys_[k];
      const std::size_t all = words(key);
      before.assign(key.size() + 1, 0);
      for (std::size_t i = 0; i < key.size(); ++i) before[i + 1] = mixed(before[i], key[i]);
      std::uint64_t after = key.size();
      for (std::size_t i = key.size(); i-- > 0; after = mixed(after, key[i])) {
        const std::uint32_t symbol = symbol_of(key[i]);
        const bool is_word = symbols_.is_word(symbol);
        if (i >= kDeepest || !(is_word || symbol == kHole) || all - is_word < kContext) continue;
        places_.push_back({mixed(mixed(before[i], after), key[i] & 1U), symbol, k,
                           static_cast<std::uint32_t>(i)});
      }
    }
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) { return a.order() < b.order(); });
  }

  bool is_argument(std::size_t begin, std::size_t end, bool is_second) {
    if (places_[begin].symbol == places_[end - 1].symbol) return false;  // sorted: all the same
    const Place& place = places_[begin];
    const Key& key = keys_[place.key];
    const bool has_hole = place.symbol == kHole;
    std::size_t values = 0, code = 0, known = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (places_[i].symbol == kHole || (i > begin && places_[i].symbol == places_[i - 1].symbol))
        continue;
      ++values;
      code += symbols_.is_code(places_[i].symbol);
      known += symbols_.is_known_value(places_[i].symbol);
    }
    const auto neighbour = [&](std::size_t i) {
      return i < key.size() ? symbols_.text(symbol_of(key[i])) : std::string_view();
    };
    const std::string_view next = neighbour(place.position + 1);
    if (!next.empty() && std::string_view(":=(").find(next.front()) != next.npos) return false;
    const std::string_view previous = place.position > 0 ? neighbour(place.position - 1) : "";
    const std::size_t rest = words(key) - symbols_.is_word(place.symbol);
    const bool is_many = values >= kMany;
    if (is_many) {
      for (std::size_t i = begin; i < end; ++i) symbols_.set_known_value(places_[i].symbol);
    }
    return is_many || has_hole || (values >= kManyBehind && grouping::is_preposition(previous)) ||
           (code >= 2 && code * 2 > values && rest >= kCodeContext) ||
           (values >= 2 && grouping::is_naming_noun(previous)) ||
           (is_second && known * 2 >= values);
  }

  std::vector<Key>& keys_;
  Symbols& symbols_;
  std::vector<Place> places_;
  std::vector<std::pair<std::size_t, std::size_t>> marked_;
};

// Gives each different value its number, in order of appearance.
template <typename T, typename Hash = std::hash<T>>
class Numbering {
 public:
  std::uint32_t of(const T& value) {
    return index_.try_emplace(value, static_cast<std::uint32_t>(index_.size())).first->second;
  }
  std::size_t size() const { return index_.size(); }

 private:
  std::unordered_map<T, std::uint32_t, Hash> index_;
};

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
    return symbols.is_word(symbol_of(element)) &&
           !grouping::is_generic(symbols.text(symbol_of(element)));
  });
}

Key key_of(const MessageTemplate& message, Symbols& symbols) {
  Key key;
  for (const auto& token : message.tokens()) {
    const bool is_word = token.kind == TokenKind::kWord;
    const bool is_text = is_word || token.kind == TokenKind::kMark;
    const std::uint32_t symbol = is_text ? symbols.add(message.text(token), is_word) : kHole;
    key.push_back((symbol << 1U) | static_cast<std::uint32_t>(token.is_spaced));
  }
  return key;
}

// For each message the number of its key, and the keys.
struct Keyed {
  std::vector<std::uint32_t> number;
  std::vector<Key> keys;
};

// Equal keys become one.
void deduplicate(Keyed& keyed) {
  Numbering<Key, KeyHash> numbering;
  std::vector<std::uint32_t> renumbered;
  std::vector<Key> keys;
  for (Key& key : keyed.keys) {
    renumbered.push_back(numbering.of(key));
    if (renumbered.back() == keys.size()) keys.push_back(std::move(key));
  }
  for (std::uint32_t& number : keyed.number) number = renumbered[number];
  keyed.keys = std::move(keys);
}

// One number for each message, equal for equal templates.
std::vector<std::uint64_t> grouped(const Messages& messages) {
  Symbols symbols;
  Keyed keyed;
  for (const MessageTemplate& message : messages.templates) {
    keyed.number.push_back(static_cast<std::uint32_t>(keyed.keys.size()));
    keyed.keys.push_back(key_of(message, symbols));
  }
  deduplicate(keyed);
  for (int round = 0; round < kRounds && Slots(keyed.keys, symbols).open(); ++round) {
    deduplicate(keyed);
  }
  std::vector<std::vector<std::uint32_t>> members(keyed.keys.size());
  for (std::uint32_t i = 0; i < keyed.number.size(); ++i) members[keyed.number[i]].push_back(i);
  std::vector<std::uint64_t> result(messages.templates.size());
  for (std::uint64_t k = 0; k < members.size(); ++k) {
    std::vector<std::uint32_t> parts(members[k].size(), 0);
    if (tells_nothing(keyed.keys[k], symbols)) parts = by_quotes(messages, members[k]);
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
