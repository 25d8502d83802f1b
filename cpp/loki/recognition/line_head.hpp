// What lines begin with: what CI systems put before them, and the literals by which rules know
// them.
//
// Covered by tests/cpp/recognition/line_head_test.cpp, against slow references.
//
// Idea: most rules begin with a literal. To look up the first bytes of a line in a table rules out
// nearly all of them at once, where a scan would find the same literals anywhere in the line.
//
// Worst case: a line costs as many comparisons as there are heads that share its first three bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "loki/recognition/regex.hpp"

namespace loki {

// Some of the numbers below a bound, in order.
class NumberSet {
 public:
  explicit NumberSet(std::size_t bound = 0)
      : words_((bound + 63) / 64), used_((bound + 4095) / 4096) {}

  void add(std::uint32_t number) { add_word(number / 64, std::uint64_t{1} << (number % 64)); }
  // Adds it if it is in the other set, which has the same bound. True: it is.
  bool add_if(std::uint32_t number, const NumberSet& allowed) {
    const std::size_t word = number / 64;
    return add_word(word, allowed.words_[word] & std::uint64_t{1} << (number % 64));
  }
  // Adds what is in both. True: there is any.
  bool add_common(const NumberSet& a, const NumberSet& b) {
    bool any = false;
    for (std::size_t i = 0; i < words_.size(); ++i) any |= add_word(i, a.words_[i] & b.words_[i]);
    return any;
  }

  // Calls visit(number) for each in order, and leaves none.
  template <typename Visit>
  void take(Visit&& visit) {
    for (std::size_t k = 0; k < used_.size(); ++k) {
      for (std::uint64_t left = std::exchange(used_[k], 0); left != 0; left &= left - 1) {
        const std::size_t i = k * 64 + static_cast<std::size_t>(std::countr_zero(left));
        for (std::uint64_t rest = std::exchange(words_[i], 0); rest != 0; rest &= rest - 1) {
          visit(static_cast<std::uint32_t>(i * 64 +
                                           static_cast<std::size_t>(std::countr_zero(rest))));
        }
      }
    }
  }
  void add_all(const NumberSet& other) { add_common(other, other); }
  void clear() {
    std::fill(words_.begin(), words_.end(), 0);
    std::fill(used_.begin(), used_.end(), 0);
  }

 private:
  bool add_word(std::size_t i, std::uint64_t bits) {
    words_[i] |= bits;
    used_[i / 64] |= std::uint64_t{bits != 0} << (i % 64);
    return bits != 0;
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> used_;  // which words hold any
};

// Numbers by the literals with which a line may begin. Letter case (ASCII) does not matter.
class HeadTable {
 public:
  static constexpr std::size_t kShortest = 3;  // bytes of a head

  // To look for these heads at the beginning of lines is better than for those literals anywhere.
  static bool serves(const std::vector<std::string>& heads,
                     const std::vector<std::string>& literals);

  // head: in lower case, `kShortest` bytes or more, no blank at its beginning.
  void add(std::string_view head, std::uint32_t number);

  // Calls visit(number) for each head that the line begins with. text: the line in lower case,
  // without the blanks at its beginning.
  template <typename Visit>
  void each(std::string_view text, Visit&& visit) const {
    if (text.size() < kShortest || !seen_[slot(key(text, kShortest))]) return;
    for (const std::size_t size : {kShortest, kLong}) {
      if (text.size() < size) return;
      const auto bucket = buckets_.find(key(text, size));
      if (bucket == buckets_.end()) continue;
      for (const auto& [head, number] : bucket->second) {
        if (text.starts_with(head)) visit(number);
      }
    }
  }

 private:
  static constexpr std::size_t kLong = 7;  // bytes of longer heads that are looked up; chosen

  // The first bytes, 7 at most, and how many.
  static std::uint64_t key(std::string_view text, std::size_t size) {
    std::uint64_t key = size;
    for (std::size_t i = 0; i < size; ++i) key = key << 8U | static_cast<unsigned char>(text[i]);
    return key;
  }
  static std::size_t slot(std::uint64_t key) { return key * 0x9E3779B97F4A7C15U >> 49U; }

  std::bitset<1U << 15U> seen_;  // most lines begin with no head at all
  std::unordered_map<std::uint64_t, std::vector<std::pair<std::string, std::uint32_t>>> buckets_;
};

// Of numbers, those whose expression may match a line, as far as its first byte tells.
class FirstBytes {
 public:
  FirstBytes() = default;
  // first: by number; where there is none, any line will do.
  explicit FirstBytes(const std::vector<std::optional<Regex::FirstByte>>& first);

  // Those that may match the line. room: where they may be kept.
  const NumberSet& of(const FoldedLine& line, NumberSet& room) const;

 private:
  // By the first byte of a line; by the first that is no blank; where they are one and the same.
  std::vector<NumberSet> by_first_, by_said_, by_both_;
  NumberSet all_;
};

// Expressions for what stands before what a tool printed.
class LinePrefix {
 public:
  // Without the ^: they match at the beginning of a line.
  explicit LinePrefix(const std::vector<std::string>& expressions);

  // The line without what the first of the expressions that fits matches, plain text before others,
  // up to three times, as prefixes nest. folded: becomes what is left in lower case. marked:
  // becomes the line with the innermost of them.
  std::string_view removed(std::string_view line, FoldedLine& folded,
                           std::string_view* marked = nullptr) const;
  std::string_view removed(std::string_view line) const;

 private:
  // Bytes of the one that the line begins with; 0: none.
  std::size_t size_of_one(std::string_view line, const FoldedLine& folded) const;

  std::array<std::vector<std::string>, 256> literals_;  // by their first byte
  std::vector<std::unique_ptr<Regex>> prefixes_;
  std::array<const Regex*, 256> by_first_{};  // by the line's first byte: what may fit; null: none
  std::bitset<256> behind_blanks_;  // bytes: of a line that begins blank, the first that is not
};

}  // namespace loki
