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

unsigned char hash_of(char first, char second) {
  return static_cast<unsigned char>(static_cast<unsigned char>(first) * 37U +
                                    static_cast<unsigned char>(second));
}

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
  RegexNeeds needs;
  std::vector<std::vector<FoldedLine::Needle>> also;
  std::string expression;
  std::optional<RE2> compiled;
  // Of an anchored one: all matches begin with `prefix` and a byte from `next`.
  std::string prefix;
  std::pair<unsigned char, unsigned char> next = {0, 0xFF};
  bool is_longer = false;  // there is such a byte in each match

  void read();
  void bound();
  bool begins(const FoldedLine& folded) const;
  bool ends(const FoldedLine& folded) const;
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
  for (const auto& alternatives : needs.also) {
    also.emplace_back();
    for (const std::string& one : alternatives) also.back().emplace_back(one);
  }
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

const std::vector<std::string>& Regex::required() const {
  state_->reading.run([&] { state_->read(); });
  return state_->needs.required;
}

std::vector<std::string> Regex::heads() const {
  state_->reading.run([&] { state_->read(); });
  std::vector<std::string> heads = state_->needs.head;
  for (std::string& head : heads) {
    head.erase(head.begin(), std::find_if_not(head.begin(), head.end(), is_blank));
  }
  return heads;
}

std::optional<Regex::FirstByte> Regex::first_byte() const {
  state_->reading.run([&] { state_->read(); });
  const RegexNeeds& needs = state_->needs;
  if (!needs.is_said) return std::nullopt;
  return FirstByte{needs.first, needs.skips_blanks};
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
  asked_ = 0;
  begin_ = 0;
  remove_prefix(0);
}

void FoldedLine::remove_prefix(std::size_t bytes) {
  begin_ += bytes;
  const auto said =
      std::find_if_not(text_.begin() + static_cast<std::ptrdiff_t>(begin_), text_.end(), is_blank);
  said_ = static_cast<std::size_t>(said - text_.begin());
}

std::string_view FoldedLine::marked(std::size_t bytes) const {
  std::string_view text = std::string_view(text_).substr(text_.size() - bytes);
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

FoldedLine::Needle::Needle(std::string text) : text_(std::move(text)) {
  for (std::size_t i = 1; i < text_.size(); ++i) {
    pairs_ += static_cast<char>(hash_of(text_[i - 1], text_[i]));
  }
}

bool FoldedLine::holds(const Needle& needle) const {
  constexpr int kPatience = 5;  // questions after which the pairs are worth their reading; chosen
  if (asked_ < kPatience) {
    ++asked_;
    return text().find(needle.text_) != std::string_view::npos;
  }
  if (asked_ == kPatience) {
    ++asked_;
    pairs_.fill(false);
    const std::string_view line = text();
    for (std::size_t i = 1; i < line.size(); ++i) pairs_[hash_of(line[i - 1], line[i])] = true;
  }
  const auto is_held = [this](char pair) { return pairs_[static_cast<unsigned char>(pair)]; };
  return std::all_of(needle.pairs_.begin(), needle.pairs_.end(), is_held) &&
         text().find(needle.text_) != std::string_view::npos;
}

bool Regex::State::begins(const FoldedLine& folded) const {
  if (needs.is_said) {
    const std::string_view said = needs.skips_blanks ? folded.unindented() : folded.text();
    if (said.empty() || !needs.first[static_cast<unsigned char>(said.front())]) return false;
  }
  if (needs.head.empty()) return true;
  const std::string_view text = needs.is_indented ? folded.unindented() : folded.text();
  return std::any_of(needs.head.begin(), needs.head.end(),
                     [text](const std::string& one) { return text.starts_with(one); });
}

bool Regex::State::ends(const FoldedLine& folded) const {
  if (needs.last.empty()) return true;
  const std::string_view text = folded.text();
  return std::any_of(needs.last.begin(), needs.last.end(),
                     [text](const std::string& one) { return text.ends_with(one); });
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
  if (!state_->begins(folded) || !state_->ends(folded)) return false;
  // The cheaper look first, but nothing is compiled for it.
  const bool was_compiled = state_->compiling.is_done();
  if (was_compiled && !state_->is_bounded(line)) return false;
  const auto is_in = [&folded](const FoldedLine::Needle& one) { return folded.holds(one); };
  for (const auto& alternatives : state_->also) {
    if (std::none_of(alternatives.begin(), alternatives.end(), is_in)) return false;
  }
  if (was_compiled) return true;
  compiled();
  return state_->is_bounded(line);
}

std::string Regex::check() const {
  return compiled().ok() ? std::string() : compiled().error();
}

std::string RegexBudget::spend(const Regex& regex) {
  if (std::string error = regex.check(); !error.empty()) return error;
  spent_ += regex.compiled().ProgramSize();
  if (spent_ <= kMost) return {};
  return "too large together: more than " + std::to_string(kMost) + " instructions";
}

}  // namespace loki
