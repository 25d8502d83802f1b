#include "loki/recognition/scan.hpp"

#include <algorithm>
#include <numeric>

#include "loki/base/error.hpp"
#include "loki/base/unicode.hpp"
#include "loki/recognition/text.hpp"

namespace loki {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFF;
// Bytes; both chosen. A block's hits are kept until it was read, and short lanes are mostly begun
// early.
constexpr std::size_t kBlock = 64 * 1024;
constexpr std::size_t kShortestLane = 128;

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

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
  std::string result;
  fold_ascii(text, result);
  return result;
}

void fold_ascii(std::string_view text, std::string& into) {
  into.resize(text.size());
  std::transform(text.begin(), text.end(), into.begin(), folded);
}

std::string utf8_folded(std::string_view text) {
  std::string result = ascii_folded(text);
  std::string lower;
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    bool valid = false;
    const std::size_t step = utf8_step(text, at, valid);
    if (valid) {
      lower.clear();
      append_utf8(lower, folded_case(decoded_utf8(text.substr(at, step))));
      if (lower.size() == step) result.replace(at, step, lower);
    }
    at += step;
  }
  return result;
}

LiteralScan::LiteralScan(const std::vector<std::string>& given) {
  std::vector<std::string> literals;
  for (const std::string& literal : given) {
    literals.push_back(utf8_folded(literal));
    longest_ = std::max(longest_, literal.size());
    is_ascii_ = is_ascii_ && is_ascii(literal);
    if (literal.empty()) throw InvalidArgument("a literal must have 1 byte or more");
    for (const char c : literals.back()) {
      std::uint8_t& known = class_of_[static_cast<unsigned char>(c)];
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

void LiteralScan::scan_block(std::string_view text, Progress& progress) const {
  for (auto& hits : progress.hits) hits.clear();
  std::string_view block = utf8_prefix(text.substr(progress.at), kBlock);
  if (block.empty()) block = text.substr(progress.at, kBlock);
  progress.at += block.size();
  if (!is_ascii_ && !is_ascii(block)) {
    progress.folded = utf8_folded(block);
    block = progress.folded;
  }
  if (block.size() / kLanes >= std::max(kShortestLane, longest_)) {
    scan_lanes(block, progress);
  } else {
    scan_on(block, 0, progress.state, progress.hits.front());
  }
}

void LiteralScan::scan_lanes(std::string_view block, Progress& progress) const {
  static_assert(kLanes == 4, "the lanes are written out below");
  const std::size_t lane = block.size() / kLanes;
  std::array<std::uint32_t, kLanes> states = {progress.state, 0, 0, 0};
  const char* const text = block.data();
  for (std::size_t i = lane - (longest_ - 1); i < lane; ++i) {
    for (std::size_t k = 1; k < kLanes; ++k) {
      states[k] = step(states[k], text[(k - 1) * lane + i]);
    }
  }
  auto [a, b, c, d] = states;
  for (std::size_t i = 0; i < lane; ++i) {
    a = step(a, text[i]);
    b = step(b, text[lane + i]);
    c = step(c, text[2 * lane + i]);
    d = step(d, text[3 * lane + i]);
    if (std::max(std::max(a, b), std::max(c, d)) < first_reporting_) continue;
    std::size_t end = i + 1;
    for (std::size_t k = 0; const std::uint32_t state : {a, b, c, d}) {
      if (state >= first_reporting_) {
        progress.hits[k].push_back({row(state), static_cast<std::uint32_t>(end)});
      }
      ++k;
      end += lane;
    }
  }
  progress.state = d;
  scan_on(block, lane * kLanes, progress.state, progress.hits.back());
}

void LiteralScan::scan_on(std::string_view block, std::size_t from, std::uint32_t& state,
                          std::vector<Hit>& hits) const {
  for (std::size_t at = from; at < block.size(); ++at) {
    state = step(state, block[at]);
    if (state >= first_reporting_) {
      hits.push_back({row(state), static_cast<std::uint32_t>(at + 1)});
    }
  }
}

std::size_t LiteralTable::add(std::string_view literal) {
  const auto [entry, is_new] = index_.try_emplace(utf8_folded(literal), literals_.size());
  if (is_new) literals_.push_back(entry->first);
  return entry->second;
}

}  // namespace loki
