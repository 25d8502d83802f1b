#include "loki/recognition/line_head.hpp"

#include <algorithm>
#include <map>

#include "loki/recognition/regex_known.hpp"
#include "loki/recognition/regex_rarity.hpp"
#include "loki/recognition/regex_reader.hpp"

namespace loki {

bool HeadTable::serves(const std::vector<std::string>& heads,
                       const std::vector<std::string>& literals) {
  return shortest(heads) >= kShortest && (literals.empty() || rarity(heads) >= rarity(literals));
}

namespace {

// The one text that an expression matches, where it is plain characters alone.
std::optional<std::string> literal_of(std::string_view expression) {
  std::string literal;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const bool is_escaped = expression[i] == '\\' && i + 1 < expression.size();
    const char c = expression[is_escaped ? ++i : i];
    const bool is_mark = std::string_view("\\^$.[]|()*+?{}").find(c) != std::string_view::npos;
    if (is_mark != is_escaped) return std::nullopt;
    literal += c;
  }
  return literal.empty() ? std::nullopt : std::optional(literal);
}

}  // namespace

void HeadTable::add(std::string_view head, std::uint32_t number) {
  seen_.set(slot(key(head, kShortest)));
  auto& bucket = buckets_[key(head, head.size() < kLong ? kShortest : kLong)];
  bucket.emplace_back(head, number);
}

FirstBytes::FirstBytes(const std::vector<std::optional<Regex::FirstByte>>& first)
    : by_first_(256, NumberSet(first.size())),
      by_said_(by_first_),
      by_both_(by_first_),
      all_(first.size()) {
  for (std::uint32_t number = 0; number < first.size(); ++number) {
    all_.add(number);
    const auto& known = first[number];
    for (std::size_t byte = 0; byte < by_first_.size(); ++byte) {
      const bool may = !known || known->bytes[byte];
      const bool is_behind_blanks = known && known->is_behind_blanks;
      if (may || is_behind_blanks) by_first_[byte].add(number);
      if (may || !is_behind_blanks) by_said_[byte].add(number);
    }
  }
  for (std::size_t byte = 0; byte < by_both_.size(); ++byte) {
    by_both_[byte].add_common(by_first_[byte], by_said_[byte]);
  }
}

const NumberSet& FirstBytes::of(const FoldedLine& line, NumberSet& room) const {
  const std::string_view text = line.text(), said = line.unindented();
  if (text.empty()) return all_;
  const auto first = static_cast<unsigned char>(text.front());
  if (said.size() == text.size()) return by_both_[first];
  room.clear();
  const NumberSet& by_said =
      said.empty() ? all_ : by_said_[static_cast<unsigned char>(said.front())];
  room.add_common(by_first_[first], by_said);
  return room;
}

LinePrefix::LinePrefix(const std::vector<std::string>& expressions) {
  // What stands for itself is compared, which is cheaper.
  std::vector<std::string> others;
  for (const std::string& expression : expressions) {
    if (const auto literal = literal_of(expression)) {
      literals_[static_cast<unsigned char>(literal->front())].push_back(*literal);
    } else {
      others.push_back(expression);
    }
  }
  std::vector<std::bitset<256>> first;
  for (const std::string& expression : others) {
    auto known = Regex("^" + expression).first_byte();
    if (!known) known = Regex("^(?:" + expression + ")").first_byte();
    first.push_back(known ? known->bytes : std::bitset<256>().set());
    if (known && known->is_behind_blanks) {
      behind_blanks_ |= known->bytes;
      for (std::size_t byte = 0; byte < 256; ++byte) {
        if (is_blank(static_cast<char>(byte))) first.back().set(byte);
      }
    } else if (holds_blank(first.back())) {
      behind_blanks_.set();  // it tells of its first blank, not of what stands behind
    }
  }
  std::map<std::string, const Regex*> together;
  for (std::size_t byte = 0; byte < by_first_.size(); ++byte) {
    std::string fitting;
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (!first[i][lower(byte)]) continue;
      fitting += (fitting.empty() ? "(?:" : "|(?:") + others[i] + ")";
    }
    if (fitting.empty()) continue;
    const auto [entry, is_new] = together.try_emplace(fitting, nullptr);
    if (is_new) {
      prefixes_.push_back(std::make_unique<Regex>("^(?:" + fitting + ")"));
      entry->second = prefixes_.back().get();
    }
    by_first_[byte] = entry->second;
  }
}

std::string_view LinePrefix::removed(std::string_view line, FoldedLine& folded,
                                     std::string_view* marked) const {
  folded.assign(line);
  if (marked != nullptr) *marked = line;
  for (int nested = 0; nested < 3 && !line.empty(); ++nested) {
    const std::size_t size = size_of_one(line, folded);
    if (size == 0) break;
    if (marked != nullptr) *marked = line;
    line.remove_prefix(size);
    folded.remove_prefix(size);
  }
  return line;
}

std::size_t LinePrefix::size_of_one(std::string_view line, const FoldedLine& folded) const {
  const auto first = static_cast<unsigned char>(line.front());
  for (const std::string& literal : literals_[first]) {
    if (line.starts_with(literal)) return literal.size();
  }
  const Regex* const prefix = by_first_[first];
  if (is_blank(line.front())) {
    const std::string_view said = folded.unindented();
    if (said.empty() || !behind_blanks_[static_cast<unsigned char>(said.front())]) return 0;
  }
  if (prefix == nullptr || !prefix->may_match(line, folded) || !prefix->compiled().ok()) return 0;
  re2::StringPiece found;
  const re2::StringPiece text(line.data(), line.size());
  const bool is_found =
      prefix->compiled().Match(text, 0, text.size(), RE2::ANCHOR_START, &found, 1);
  return is_found ? found.size() : 0;
}

std::string_view LinePrefix::removed(std::string_view line) const {
  FoldedLine folded;
  return removed(line, folded);
}

}  // namespace loki
