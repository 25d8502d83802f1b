#include "loki/recognition/scan.hpp"

#include <algorithm>
#include <numeric>

#include "loki/base/error.hpp"

namespace loki {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFF;

char folded(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The trie and its failure links, before states are renumbered.
struct Trie {
  std::uint32_t classes;
  std::vector<std::uint32_t> next;                  // state * classes + class
  std::vector<std::vector<std::uint32_t>> reports;  // literal indices, longest first

  std::uint32_t grow() {
    next.resize(next.size() + classes, kNone);
    reports.emplace_back();
    return static_cast<std::uint32_t>(reports.size() - 1);
  }

  void insert(std::string_view literal, std::uint32_t index,
              const std::array<std::uint8_t, 256>& of) {
    std::uint32_t state = 0;
    for (const char c : literal) {
      const std::size_t edge = std::size_t{state} * classes + of[static_cast<unsigned char>(c)];
      if (next[edge] == kNone) {
        const std::uint32_t grown = grow();
        next[edge] = grown;
      }
      state = next[edge];
    }
    reports[state].push_back(index);
  }

  // Breadth first: completes every state's transitions from those of its longest proper suffix.
  void complete() {
    std::vector<std::uint32_t> queue, suffix(reports.size(), 0);
    for (std::uint32_t c = 0; c < classes; ++c) {
      if (next[c] == kNone) {
        next[c] = 0;
      } else {
        queue.push_back(next[c]);
      }
    }
    for (std::size_t at = 0; at < queue.size(); ++at) {
      const std::uint32_t state = queue[at], back = suffix[state];
      reports[state].insert(reports[state].end(), reports[back].begin(), reports[back].end());
      for (std::uint32_t c = 0; c < classes; ++c) {
        std::uint32_t& to = next[std::size_t{state} * classes + c];
        const std::uint32_t from_suffix = next[std::size_t{back} * classes + c];
        if (to == kNone) {
          to = from_suffix;
        } else {
          suffix[to] = from_suffix;
          queue.push_back(to);
        }
      }
    }
  }
};

}  // namespace

std::string ascii_folded(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), folded);
  return result;
}

LiteralScan::LiteralScan(const std::vector<std::string>& literals) {
  for (const std::string& literal : literals) {
    if (literal.empty()) throw InvalidArgument("a literal must have 1 byte or more");
    for (const char c : literal) {
      std::uint8_t& known = class_of_[static_cast<unsigned char>(folded(c))];
      if (known == 0) known = static_cast<std::uint8_t>(classes_++);
    }
  }
  for (char c = 'A'; c <= 'Z'; ++c) {
    class_of_[static_cast<unsigned char>(c)] = class_of_[static_cast<unsigned char>(folded(c))];
  }
  Trie trie{classes_, {}, {}};
  trie.grow();
  for (std::size_t i = 0; i < literals.size(); ++i) {
    trie.insert(literals[i], static_cast<std::uint32_t>(i), class_of_);
  }
  trie.complete();

  std::vector<std::uint32_t> order(trie.reports.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto reporting = std::stable_partition(
      order.begin(), order.end(), [&](std::uint32_t state) { return trie.reports[state].empty(); });
  first_reporting_ = static_cast<std::uint32_t>(reporting - order.begin()) * classes_;
  std::vector<std::uint32_t> renumbered(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) renumbered[order[i]] = i * classes_;
  next_.reserve(trie.next.size());
  for (const std::uint32_t state : order) {
    for (std::uint32_t c = 0; c < classes_; ++c) {
      next_.push_back(renumbered[trie.next[std::size_t{state} * classes_ + c]]);
    }
  }
  reports_begin_.push_back(0);
  for (auto state = reporting; state != order.end(); ++state) {
    const auto& reports = trie.reports[*state];
    reports_.insert(reports_.end(), reports.begin(), reports.end());
    reports_begin_.push_back(static_cast<std::uint32_t>(reports_.size()));
  }
}

std::size_t LiteralTable::add(std::string_view literal) {
  const auto [entry, is_new] = index_.try_emplace(ascii_folded(literal), literals_.size());
  if (is_new) literals_.push_back(entry->first);
  return entry->second;
}

}  // namespace loki
