#include "loki/recognition/grouping_slots.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>
#include <utility>

namespace loki::grouping {
namespace {

// All constants: chosen on messages of log files and linters; docs/design/grouping.md.
constexpr int kRounds = 3;               // a hole may make another one visible
constexpr std::size_t kDeepest = 60;     // tokens of a message that may become holes
constexpr std::size_t kContext = 2;      // words that must stay the same
constexpr std::size_t kCodeContext = 3;  // the same where names of programs differ
constexpr std::size_t kMany = 8;         // so many different words are arguments
constexpr std::size_t kManyBehind = 4;   // so many behind a preposition
constexpr std::size_t kVeryMany = 32;    // so many are, whatever stands round them
constexpr std::size_t kMostMasks = 64;  // hole positions that messages of a length are held against

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t both[2] = {a, b};
  return hash64({reinterpret_cast<const char*>(both), sizeof both});
}

std::size_t word_count(const Key& key, const Symbols& symbols) {
  return static_cast<std::size_t>(std::count_if(
      key.begin(), key.end(), [&](std::uint32_t e) { return symbols.is_word(symbol_of(e)); }));
}

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
        changed = changed || symbol_of(element) != kOpen;
        element = (kOpen << 1U) | (element & 1U);
      }
    }
    return changed;
  }

 private:
  void collect() {
    std::vector<std::uint64_t> before;
    for (std::uint32_t k = 0; k < keys_.size(); ++k) {
      const Key& key = keys_[k];
      const std::size_t all = word_count(key, symbols_);
      before.assign(key.size() + 1, 0);
      for (std::size_t i = 0; i < key.size(); ++i) before[i + 1] = mixed(before[i], key[i]);
      std::uint64_t after = key.size();
      for (std::size_t i = key.size(); i-- > 0; after = mixed(after, key[i])) {
        const std::uint32_t symbol = symbol_of(key[i]);
        const bool is_word = symbols_.is_word(symbol);
        if (i >= kDeepest || !(is_word || symbol == kOpen) || all == is_word) continue;
        places_.push_back({mixed(mixed(before[i], after), key[i] & 1U), symbol, k,
                           static_cast<std::uint32_t>(i)});
      }
    }
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) { return a.order() < b.order(); });
  }

  // What stands before "=", ":" or "(" names something, as a rule.
  bool is_label(const Key& key, std::size_t i) const {
    if (i + 1 >= key.size()) return false;
    const std::string_view next = symbols_.text(symbol_of(key[i + 1]));
    return next.starts_with(':') || next.starts_with('=') ||
           (next.starts_with('(') && (key[i + 1] & 1U) == 0);
  }

  bool is_argument(std::size_t begin, std::size_t end, bool is_second) {
    if (places_[begin].symbol == places_[end - 1].symbol) return false;  // sorted: all the same
    const Place& place = places_[begin];
    const Key& key = keys_[place.key];
    const bool has_hole = place.symbol == kOpen;
    std::size_t values = 0, code = 0, known = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (places_[i].symbol == kOpen || (i > begin && places_[i].symbol == places_[i - 1].symbol))
        continue;
      ++values;
      code += symbols_.is_code(places_[i].symbol);
      known += symbols_.is_known_value(places_[i].symbol);
    }
    const std::size_t rest = word_count(key, symbols_) - symbols_.is_word(place.symbol);
    const bool is_open = rest >= kContext && !is_label(key, place.position);
    const bool is_many = values >= (is_open ? kMany : kVeryMany);
    if (!is_open && !is_many) return false;
    const std::string_view previous =
        place.position > 0 ? symbols_.text(symbol_of(key[place.position - 1])) : "";
    if (is_many) {
      for (std::size_t i = begin; i < end; ++i) symbols_.set_known_value(places_[i].symbol);
    }
    return is_many || has_hole || (values >= kManyBehind && is_preposition(previous)) ||
           (code >= 2 && code * 2 > values && rest >= kCodeContext) ||
           (values >= 2 && is_naming_noun(previous)) || (is_second && known * 2 >= values);
  }

  std::vector<Key>& keys_;
  Symbols& symbols_;
  std::vector<Place> places_;
  std::vector<std::pair<std::size_t, std::size_t>> marked_;
};

// Finds messages that differ in several words. What stays the same in `least` messages are words
// that stand in that many; if the others differ in that many ways, they are arguments.
class Frames {
 public:
  Frames(std::vector<Key>& keys, const Symbols& symbols) : keys_(keys), symbols_(symbols) {}

  void open(std::size_t least) {
    std::vector<std::uint32_t> keys_with(symbols_.size(), 0), last(symbols_.size(), 0);
    for (std::uint32_t k = 0; k < keys_.size(); ++k) {
      for (const std::uint32_t element : keys_[k]) {
        const std::uint32_t symbol = symbol_of(element);
        keys_with[symbol] += last[symbol] != k + 1;
        last[symbol] = k + 1;
      }
    }
    std::unordered_map<Key, std::vector<std::uint32_t>, KeyHash> frames;
    for (std::uint32_t k = 0; k < keys_.size(); ++k) {
      Key frame = keys_[k];
      std::size_t rest = 0, opened = 0;
      for (std::uint32_t& element : frame) {
        if (!symbols_.is_word(symbol_of(element))) continue;
        const bool is_rare = keys_with[symbol_of(element)] < least;
        opened += is_rare;
        rest += !is_rare;
        if (is_rare) element = (kOpen << 1U) | (element & 1U);
      }
      if (opened > 1 && rest >= kContext) frames[std::move(frame)].push_back(k);
    }
    for (const auto& [frame, keys] : frames) {
      if (keys.size() < least) continue;
      for (const std::uint32_t k : keys) keys_[k] = frame;
    }
  }

 private:
  std::vector<Key>& keys_;
  const Symbols& symbols_;
};

// Templates that very many messages made: others that fit one are the same message.
class Fits {
 public:
  Fits(Keys& keys, const Symbols& symbols) : keys_(keys) {
    for (std::uint32_t k = 0; k < keys.all.size(); ++k) {
      const Key& key = keys.all[k];
      const bool is_proven = keys.ways[k] >= kVeryMany && word_count(key, symbols) >= kContext &&
                             std::any_of(key.begin(), key.end(),
                                         [](std::uint32_t e) { return symbol_of(e) == kOpen; });
      if (!is_proven) continue;
      proven_.emplace(key, k);
      masks_[key.size()].insert(holes(key));
    }
  }

  void join(const Symbols& symbols) {
    for (std::uint32_t k = 0; k < keys_.all.size(); ++k) {
      const auto masks = masks_.find(keys_.all[k].size());
      if (keys_.ways[k] >= kVeryMany || masks == masks_.end() || masks->second.size() > kMostMasks)
        continue;
      if (const Key* found = fitting(keys_.all[k], masks->second, symbols)) keys_.all[k] = *found;
    }
  }

 private:
  using Positions = std::vector<std::uint32_t>;

  static Positions holes(const Key& key) {
    Positions result;
    for (std::uint32_t i = 0; i < key.size(); ++i) {
      if (symbol_of(key[i]) == kOpen) result.push_back(i);
    }
    return result;
  }

  // The one with the fewest holes; none where two fit equally well.
  const Key* fitting(const Key& key, const std::set<Positions>& masks,
                     const Symbols& symbols) const {
    const Key* best = nullptr;
    std::size_t fewest = 0, equals = 0;
    for (const Positions& mask : masks) {
      Key open = key;
      const bool are_words = std::all_of(mask.begin(), mask.end(), [&](std::uint32_t i) {
        const std::uint32_t symbol = symbol_of(open[i]);
        open[i] = (kOpen << 1U) | (open[i] & 1U);
        return symbol == kOpen || symbols.is_word(symbol);
      });
      const auto found = are_words ? proven_.find(open) : proven_.end();
      if (found == proven_.end() || (best != nullptr && mask.size() > fewest)) continue;
      equals = best != nullptr && mask.size() == fewest ? equals + 1 : 1;
      fewest = mask.size();
      best = &found->first;
    }
    return equals == 1 ? best : nullptr;
  }

  Keys& keys_;
  std::unordered_map<Key, std::uint32_t, KeyHash> proven_;
  std::unordered_map<std::size_t, std::set<Positions>> masks_;  // by length
};

}  // namespace

void Keys::deduplicate() {
  Numbering<Key, KeyHash> numbering;
  std::vector<std::uint32_t> renumbered, sums;
  std::vector<Key> different;
  ways.resize(all.size(), 1);
  for (std::size_t k = 0; k < all.size(); ++k) {
    renumbered.push_back(numbering.of(all[k]));
    if (renumbered.back() == different.size()) {
      different.push_back(std::move(all[k]));
      sums.push_back(0);
    }
    sums[renumbered.back()] += ways[k];
  }
  for (std::uint32_t& number : of_message) number = renumbered[number];
  all = std::move(different);
  ways = std::move(sums);
}

void open_arguments(Keys& keys, Symbols& symbols) {
  keys.deduplicate();
  keys.ways.assign(keys.all.size(), 1);
  const auto open_slots = [&] {
    for (int round = 0; round < kRounds && Slots(keys.all, symbols).open(); ++round) {
      keys.deduplicate();
    }
  };
  open_slots();
  for (std::size_t least = kVeryMany; least <= keys.all.size(); least *= kMany) {
    Frames(keys.all, symbols).open(least);
    keys.deduplicate();
  }
  open_slots();
  Fits(keys, symbols).join(symbols);
  keys.deduplicate();
}

}  // namespace loki::grouping
