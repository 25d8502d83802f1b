// Which words of messages are arguments: what differs where all else is the same.
//
// Covered by tests/cpp/recognition/grouping_test.cpp. The rules, and why: docs/design/grouping.md.
//
// Idea: a message is a key of symbols; keys that become equal when a place is left out are laid
// side by side, and a place that many words fill is a hole. Only sets of keys are looked at, never
// their order.
//
// Worst case: O(n log n) in the number of symbols of all keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loki/base/hash.hpp"
#include "loki/recognition/grouping_words.hpp"

namespace loki::grouping {

// A token of a key: symbol and whether white space stands before it. Symbol 0 is a hole.
using Key = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kOpen = 0;
inline std::uint32_t symbol_of(std::uint32_t element) {
  return element >> 1U;
}

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return hash64({reinterpret_cast<const char*>(key.data()), key.size() * sizeof(key[0])});
  }
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
                        is_word && is_code_name(text), false});
    }
    return entry->second;
  }
  std::string_view text(std::uint32_t symbol) const { return infos_[symbol].text; }
  bool is_word(std::uint32_t symbol) const { return infos_[symbol].is_word; }
  bool is_code(std::uint32_t symbol) const { return infos_[symbol].is_code; }
  bool is_known_value(std::uint32_t symbol) const { return infos_[symbol].is_known_value; }
  std::size_t size() const { return infos_.size(); }
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

// The keys of messages, all different.
struct Keys {
  std::vector<Key> all;
  std::vector<std::uint32_t> of_message;  // index in `all`
  std::vector<std::uint32_t> ways;        // how many different keys became this one

  // Equal keys become one.
  void deduplicate();
};

// Makes holes of the words that are arguments.
void open_arguments(Keys& keys, Symbols& symbols);

}  // namespace loki::grouping
