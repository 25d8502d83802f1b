// One text against many, whose tokens were taken before.
//
// Covered by tests/cpp/recognition/similarity_test.cpp and, against a slow reference, by
// tests/py/recognition/test_similarity.py.
//
// Idea: an inverted index, token -> texts that have it; one count for each text and shared token.
// Worst case: O(texts + hits); with one token that all have, that is O(texts).
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loki/recognition/similarity.hpp"

namespace loki {

// Tokens, by their hashes, get numbers: from 0 by first appearance.
class TokenNumbers {
 public:
  static constexpr std::uint32_t kUnknown = 0xFFFFFFFF;
  std::uint32_t add(std::uint64_t token) {
    const auto next = static_cast<std::uint32_t>(tokens_.size());
    const auto [entry, is_new] = numbers_.try_emplace(token, next);
    if (is_new) tokens_.push_back(token);
    return entry->second;
  }
  std::uint32_t find(std::uint64_t token) const {
    const auto found = numbers_.find(token);
    return found == numbers_.end() ? kUnknown : found->second;
  }
  std::size_t size() const { return tokens_.size(); }
  // By number.
  const std::vector<std::uint64_t>& all() const { return tokens_; }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::vector<std::uint64_t> tokens_;
};

class TokenSets {
 public:
  // Normalizes the texts; threads as in in_parallel.
  explicit TokenSets(const std::vector<std::string_view>& texts, unsigned threads = 0);

  // Overlap of the text with each, in their order. Safe from many threads at once.
  std::vector<double> overlaps(std::string_view text) const;
  std::size_t size() const { return sizes_.size(); }

 private:
  std::vector<std::uint32_t> shared(const TokenHashes& tokens) const;

  TokenNumbers numbers_;
  std::vector<std::vector<std::uint32_t>> texts_of_;  // by token
  std::vector<std::uint32_t> sizes_;                  // by text
};

}  // namespace loki
