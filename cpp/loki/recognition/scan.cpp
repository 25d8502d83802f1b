#include "loki/recognition/scan.hpp"

#include <algorithm>
#include <numeric>

#include "loki/base/error.hpp"
#include "loki/base/unicode.hpp"
#include "loki/recognition/text.hpp"

namespace loki {
namespace {

// Bytes; both chosen. A block's hits are kept until it was read, and short lanes are mostly begun
// early.
constexpr std::size_t kBlock = 64 * 1024;
constexpr std::size_t kShortestLane = 128;

// Without a branch: many bytes at once.
bool is_ascii(std::string_view text) {
  unsigned char any = 0;
  const char* const bytes = text.data();
  const std::size_t size = text.size();
  for (std::size_t i = 0; i < size; ++i) any |= static_cast<unsigned char>(bytes[i]);
  return any < 0x80;
}

// Others have no letter case.
bool has_letter_beyond_ascii(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    bool valid = false;
    const std::size_t step = utf8_step(text, at, valid);
    if (step > 1 && valid && is_word_character(decoded_utf8(text.substr(at, step)))) return true;
    at += step;
  }
  return false;
}

char folded(char c) {
  const auto byte = static_cast<unsigned char>(c);
  const bool is_capital = static_cast<unsigned char>(byte - 'A') < 26;
  return static_cast<char>(byte | (is_capital ? 0x20 : 0));  // without a branch: many at once
}

// The literals as a tree. The children of a node are linked, each to the next.
struct Trie {
  struct Node {
    std::uint32_t child = 0, last_child = 0, next = 0;  // 0: none
    std::uint32_t suffix = 0;  // the longest proper suffix of what leads here that is in the tree
    std::uint32_t number = 0;  // of its state
    std::uint8_t byte_class = 0;
    bool reports = false;
  };
  std::vector<Node> nodes = std::vector<Node>(1);
  std::vector<std::vector<std::uint32_t>> own;  // by node: the literals that end there

  Trie(const std::vector<std::string>& literals, const std::array<std::uint8_t, 256>& class_of) {
    std::vector<std::uint32_t> order(literals.size()), path = {0};
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return literals[a] < literals[b]; });
    std::string_view before;
    for (const std::uint32_t index : order) {
      // What it has in common with the literal before it is in the tree, and nothing else of it.
      const std::string_view literal = literals[index];
      const auto apart =
          std::mismatch(literal.begin(), literal.end(), before.begin(), before.end()).first;
      path.resize(static_cast<std::size_t>(apart - literal.begin()) + 1);
      for (auto c = apart; c != literal.end(); ++c) {
        path.push_back(grow(path.back(), class_of[static_cast<unsigned char>(*c)]));
      }
      own.resize(nodes.size());
      own[path.back()].push_back(index);
      nodes[path.back()].reports = true;
      before = literal;
    }
  }

  std::uint32_t grow(std::uint32_t parent, std::uint8_t byte_class) {
    const auto grown = static_cast<std::uint32_t>(nodes.size());
    Node& up = nodes[parent];
    (up.child == 0 ? up.child : nodes[up.last_child].next) = grown;
    up.last_child = grown;
    nodes.emplace_back().byte_class = byte_class;
    return grown;
  }
};

// Fills the table of transitions and numbers the states: those that report nothing from the first
// on, the others from the last. Returns the least number of these. Breadth first: what follows a
// state is what follows its suffix, but for its own children.
std::uint32_t complete(std::vector<Trie::Node>& nodes, std::uint32_t classes,
                       std::uint32_t* table) {
  const auto row_of = [&](std::uint32_t i) {
    return table + std::size_t{nodes[i].number} * classes;
  };
  std::vector<std::uint32_t> queue = {0}, node_of(nodes.size());  // by number
  queue.reserve(nodes.size());
  std::fill_n(row_of(0), classes, 0U);
  std::uint32_t silent = 1, first_reporting = static_cast<std::uint32_t>(nodes.size());
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const std::uint32_t state = queue[at];
    std::uint32_t* const row = row_of(state);
    if (state != 0) std::copy_n(row_of(nodes[state].suffix), classes, row);
    for (std::uint32_t child = nodes[state].child; child != 0; child = nodes[child].next) {
      Trie::Node& node = nodes[child];
      std::uint32_t& edge = row[node.byte_class];
      node.suffix = state == 0 ? 0 : node_of[edge / classes];
      node.reports = node.reports || nodes[node.suffix].reports;
      node.number = node.reports ? --first_reporting : silent++;
      node_of[node.number] = child;
      edge = node.number * classes;
      queue.push_back(child);
    }
  }
  return first_reporting;
}

}  // namespace

std::string ascii_folded(std::string_view text) {
  std::string result;
  fold_ascii(text, result);
  return result;
}

void fold_ascii(std::string_view text, std::string& into) {
  into.assign(text);
  char* const bytes = into.data();
  const std::size_t size = into.size();
  for (std::size_t i = 0; i < size; ++i) bytes[i] = folded(bytes[i]);  // many at once
}

std::string utf8_folded(std::string_view text) {
  std::string result = ascii_folded(text);
  std::string lower;
  for (std::size_t at = 0; at < text.size();) {
    constexpr std::size_t kStretch = 64;  // bytes; most are ASCII
    if (is_ascii(text.substr(at, kStretch))) {
      at += kStretch;
      continue;
    }
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
    has_letters_beyond_ = has_letters_beyond_ || has_letter_beyond_ascii(literal);
    if (literal.empty()) throw InvalidArgument("a literal must have 1 byte or more");
    for (const char c : literals.back()) {
      std::uint8_t& known = class_of_[static_cast<unsigned char>(c)];
      if (known == 0) known = static_cast<std::uint8_t>(classes_++);
    }
  }
  for (char c = 'A'; c <= 'Z'; ++c) {
    class_of_[static_cast<unsigned char>(c)] = class_of_[static_cast<unsigned char>(folded(c))];
  }
  Trie trie(literals, class_of_);
  states_ = static_cast<std::uint32_t>(trie.nodes.size());
  next_ = std::make_unique_for_overwrite<std::uint32_t[]>(std::size_t{states_} * classes_);
  const std::uint32_t first = complete(trie.nodes, classes_, next_.get());
  first_reporting_ = first * classes_;
  std::vector<std::uint32_t> reporting(states_ - first);  // nodes, by number
  for (std::uint32_t i = 0; i < states_; ++i) {
    if (trie.nodes[i].reports) reporting[trie.nodes[i].number - first] = i;
  }
  reports_begin_.push_back(0);
  for (const std::uint32_t state : reporting) {
    for (std::uint32_t i = state; trie.nodes[i].reports; i = trie.nodes[i].suffix) {
      reports_.insert(reports_.end(), trie.own[i].begin(), trie.own[i].end());
    }
    reports_begin_.push_back(static_cast<std::uint32_t>(reports_.size()));
  }
}

void LiteralScan::scan_block(std::string_view text, Progress& progress) const {
  for (auto& hits : progress.hits) hits.clear();
  std::string_view block = utf8_prefix(text.substr(progress.at), kBlock);
  if (block.empty()) block = text.substr(progress.at, kBlock);
  progress.at += block.size();
  if (has_letters_beyond_ && !is_ascii(block)) {
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
