#include "loki/recognition/regex.hpp"

#include <algorithm>
#include <atomic>
#include <bitset>
#include <mutex>
#include <optional>
#include <utility>

#include "loki/recognition/regex_reader.hpp"
#include "loki/recognition/scan.hpp"

namespace loki {
namespace {

constexpr int kMemory = 2 << 20;  // bytes for one compiled expression; chosen

using Pairs = FoldedLine::Pairs;

void add_pair(Pairs& pairs, char first, char second) {
  const unsigned hash =
      (static_cast<unsigned char>(first) * 37U + static_cast<unsigned char>(second)) % 256;
  pairs[hash / 64] |= std::uint64_t{1} << (hash % 64);
}

Pairs pairs_of(std::string_view text) {
  Pairs pairs{};
  for (std::size_t i = 1; i < text.size(); ++i) add_pair(pairs, text[i - 1], text[i]);
  return pairs;
}

// A literal with the pairs of its bytes, which are looked for first.
struct Needle {
  std::string text;
  Pairs pairs;

  bool is_in(const FoldedLine& line) const {
    const Pairs& held = line.pairs();
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if ((pairs[i] & ~held[i]) != 0) return false;
    }
    return line.text().find(text) != std::string::npos;
  }
};

RE2::Options options() {
  RE2::Options result;
  result.set_log_errors(false);
  result.set_never_nl(false);
  result.set_max_mem(kMemory);
  return result;
}

}  // namespace

// Done once, by whoever comes first; from then on one look says so.
class Once {
 public:
  template <typename Work>
  void run(Work&& work) {
    if (is_done_.load(std::memory_order_acquire)) return;
    std::call_once(flag_, [&] {
      work();
      is_done_.store(true, std::memory_order_release);
    });
  }
  bool is_done() const { return is_done_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> is_done_ = false;
  std::once_flag flag_;
};

// Of thousands of expressions most are never asked for anything: each is read when it is first
// asked what it needs, and compiled when that was seen.
struct Regex::State {
  Once reading, compiling;
  std::bitset<256> first;  // bytes: what `needs.head` begins with
  RegexNeeds needs;
  std::vector<std::vector<Needle>> also;
  std::string expression;
  std::optional<RE2> compiled;
  // Of an anchored one: all matches begin with `prefix` and a byte from `next`.
  std::string prefix;
  std::pair<unsigned char, unsigned char> next = {0, 0xFF};
  bool is_longer = false;  // there is such a byte in each match

  void read();
  void bound();
  bool begins(const FoldedLine& folded) const;
  bool is_bounded(std::string_view line) const;
};

std::vector<std::string> required_literals(std::string_view expression) {
  return Regex(std::string(expression)).required();
}

Regex::Regex(std::string expression) : state_(std::make_unique<State>()) {
  state_->expression = std::move(expression);
}

void Regex::State::read() {
  needs = regex_needs(expression);
  for (const std::string& head : needs.head) first.set(static_cast<unsigned char>(head.front()));
  for (const auto& alternatives : needs.also) {
    also.emplace_back();
    for (const std::string& one : alternatives) also.back().push_back({one, pairs_of(one)});
  }
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

const std::vector<std::string>& Regex::required() const {
  state_->reading.run([&] { state_->read(); });
  return state_->needs.required;
}

const std::string& Regex::expression() const {
  return state_->expression;
}

const RE2& Regex::compiled() const {
  state_->compiling.run([&] {
    state_->reading.run([&] { state_->read(); });
    state_->compiled.emplace(state_->expression, options());
    const RegexNeeds& needs = state_->needs;
    // RE2 tells between which texts a match lies that has nothing behind it.
    if (needs.is_anchored && !needs.looks_beyond && state_->compiled->ok()) state_->bound();
  });
  return *state_->compiled;
}

// Every match lies between two texts: it begins with what they begin with, and goes on between
// them.
void Regex::State::bound() {
  constexpr int kPrefix = 8;  // bytes; chosen
  std::string least, most;
  if (!compiled->PossibleMatchRange(&least, &most, kPrefix)) return;
  const auto [low, high] = std::mismatch(least.begin(), least.end(), most.begin(), most.end());
  prefix.assign(least.begin(), low);
  is_longer = low != least.end() && high != most.end();
  if (is_longer) next = {static_cast<unsigned char>(*low), static_cast<unsigned char>(*high)};
}

void FoldedLine::assign(std::string_view line) {
  fold_ascii(line, text_);
  const auto said = std::find_if_not(text_.begin(), text_.end(), is_blank);
  indent_ = static_cast<std::size_t>(said - text_.begin());
  is_read_ = false;
}

const FoldedLine::Pairs& FoldedLine::pairs() const {
  if (!is_read_) pairs_ = pairs_of(text_);
  is_read_ = true;
  return pairs_;
}

bool Regex::State::begins(const FoldedLine& folded) const {
  if (needs.head.empty()) return true;
  const std::string_view text = needs.is_indented ? folded.unindented() : folded.text();
  if (text.empty() || !first[static_cast<unsigned char>(text.front())]) return false;
  return std::any_of(needs.head.begin(), needs.head.end(),
                     [text](const std::string& one) { return text.starts_with(one); });
}

// The line is one of those between which all matches lie.
bool Regex::State::is_bounded(std::string_view line) const {
  if (!line.starts_with(prefix)) return false;
  if (!is_longer) return true;
  if (line.size() == prefix.size()) return false;
  const auto byte = static_cast<unsigned char>(line[prefix.size()]);
  return next.first <= byte && byte <= next.second;
}

bool Regex::may_match(std::string_view line, const FoldedLine& folded) const {
  state_->reading.run([&] { state_->read(); });
  if (!state_->begins(folded)) return false;
  // The cheaper look first, but nothing is compiled for it.
  const bool was_compiled = state_->compiling.is_done();
  if (was_compiled && !state_->is_bounded(line)) return false;
  const auto is_in = [&folded](const Needle& one) { return one.is_in(folded); };
  for (const std::vector<Needle>& alternatives : state_->also) {
    if (std::none_of(alternatives.begin(), alternatives.end(), is_in)) return false;
  }
  if (was_compiled) return true;
  compiled();
  return state_->is_bounded(line);
}

std::string Regex::check() const {
  return compiled().ok() ? std::string() : compiled().error();
}

std::string_view without_prefix(const Regex* prefix, std::string_view line,
                                std::string_view* marked) {
  if (marked != nullptr) *marked = line;
  if (prefix == nullptr || line.empty()) return line;
  re2::StringPiece rest(line.data(), line.size());
  const RE2& compiled = prefix->compiled();
  for (int nested = 0; nested < 3 && compiled.ok(); ++nested) {
    const re2::StringPiece before = rest;
    if (!RE2::Consume(&rest, compiled)) break;
    if (marked != nullptr) *marked = {before.data(), before.size()};
  }
  return {rest.data(), rest.size()};
}

std::string RegexBudget::spend(const Regex& regex) {
  if (std::string error = regex.check(); !error.empty()) return error;
  spent_ += regex.compiled().ProgramSize();
  if (spent_ <= kMost) return {};
  return "too large together: more than " + std::to_string(kMost) + " instructions";
}

}  // namespace loki
