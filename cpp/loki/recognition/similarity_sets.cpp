#include "loki/recognition/similarity_sets.hpp"

#include "loki/base/parallel.hpp"
#include "loki/recognition/normalize.hpp"
#include "loki/recognition/text.hpp"

namespace loki {
namespace {

TokenHashes tokens_of(std::string_view text) {
  return token_hashes(normalize(CleanText(text).text()));
}

}  // namespace

TokenSets::TokenSets(const std::vector<std::string_view>& texts, unsigned threads) {
  std::vector<TokenHashes> sets(texts.size());
  in_parallel(texts.size(), threads, 64, [&](std::size_t i) { sets[i] = tokens_of(texts[i]); });
  for (std::uint32_t i = 0; i < sets.size(); ++i) {
    sizes_.push_back(static_cast<std::uint32_t>(sets[i].size()));
    for (const std::uint64_t token : sets[i]) {
      const std::uint32_t number = numbers_.add(token);
      if (number == texts_of_.size()) texts_of_.emplace_back();
      texts_of_[number].push_back(i);
    }
  }
}

std::vector<std::uint32_t> TokenSets::shared(const TokenHashes& tokens) const {
  std::vector<std::uint32_t> counts(sizes_.size(), 0);
  for (const std::uint64_t token : tokens) {
    const std::uint32_t number = numbers_.find(token);
    if (number == TokenNumbers::kUnknown) continue;
    for (const std::uint32_t text : texts_of_[number]) ++counts[text];
  }
  return counts;
}

std::vector<double> TokenSets::overlaps(std::string_view text) const {
  const TokenHashes tokens = tokens_of(text);
  const std::vector<std::uint32_t> counts = shared(tokens);
  std::vector<double> result(sizes_.size());
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    result[i] = overlap(counts[i], tokens.size(), sizes_[i]);
  }
  return result;
}

}  // namespace loki
