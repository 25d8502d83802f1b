#include "loki/recognition/pattern.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "loki/base/unicode.hpp"
#include "loki/recognition/line_head.hpp"
#include "loki/recognition/pattern_rules.hpp"
#include "loki/recognition/text.hpp"

namespace loki {

using namespace pattern;

namespace {

constexpr std::size_t kLineLimit =
    16 * 1024;  // of longer lines a regex sees what surrounds the literal
constexpr std::size_t kBefore = 4 * 1024;
constexpr std::size_t kMostLiteralBytes = 500'000;  // each may cost 300 bytes; chosen
constexpr std::uint8_t kMostHits = 8;               // spans kept of one signal

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

// The character that begins there; of invalid UTF-8, none that a word holds.
bool is_word_at(std::string_view text, std::size_t at) {
  bool valid = false;
  const std::size_t step = utf8_step(text, at, valid);
  return valid && is_word_character(decoded_utf8(text.substr(at, step)));
}

bool is_word_before(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && end - at < 4 && !begins_character(text[at])) --at;
  return is_word_at(text, at);
}

bool stands_alone(std::string_view text, Span span) {
  const bool left =
      span.begin == 0 || !is_word_at(text, span.begin) || !is_word_before(text, span.begin);
  const bool right =
      span.end >= text.size() || !is_word_before(text, span.end) || !is_word_at(text, span.end);
  return left && right;
}

// Of a very long line a window round a byte, that does not begin or end inside a character.
Span window_around(std::string_view text, Span line, std::size_t at) {
  if (line.size() <= kLineLimit) return line;
  if (at - line.begin > kBefore) {
    line.begin = at - kBefore;
    while (line.begin < at && !begins_character(text[line.begin])) ++line.begin;
  }
  line.end =
      line.begin + utf8_prefix(text.substr(line.begin, line.end - line.begin), kLineLimit).size();
  return line;
}

struct Use {
  std::uint32_t pattern, signal, probe;
};

struct Hit {
  std::uint32_t pattern, signal;
  Scope part;
  Span span;
  std::string_view text;
};

// What is looked for in one part of the subject.
struct Wanted {
  LiteralTable table;
  std::vector<std::vector<Use>> uses;  // by literal
  std::vector<Use> slow;
  std::unique_ptr<LiteralScan> scan;
};

}  // namespace

struct PatternSet::Impl {
  std::vector<PatternRule> patterns;
  std::array<Wanted, kScopes> wanted;                // by scope
  std::vector<std::uint32_t> first_signal;           // by pattern; into flat counters
  std::vector<std::vector<std::uint32_t>> probe_of;  // by pattern: of each signal the first probe
  std::uint32_t signals = 0, probes = 0;
  std::size_t literal_bytes = 0;

  void add(PatternRule rule) {
    const auto index = static_cast<std::uint32_t>(patterns.size());
    first_signal.push_back(signals);
    probe_of.emplace_back();
    for (std::uint32_t s = 0; s < rule.signals.size(); ++s) {
      probe_of.back().push_back(probes);
      for (std::uint32_t p = 0; p < rule.signals[s].probes.size(); ++p) {
        use(rule.signals[s].probes[p], {index, s, p}, of(rule.signals[s].scope));
      }
      probes += static_cast<std::uint32_t>(rule.signals[s].probes.size());
    }
    signals += static_cast<std::uint32_t>(rule.signals.size());
    patterns.push_back(std::move(rule));
  }

  void use(const Probe& probe, Use use, Wanted& by) {
    if (probe.kind != Probe::kRegex) {
      use_literal(probe, probe.text, use, by);
    } else if (probe.regex->required().empty()) {
      by.slow.push_back(use);
    } else {
      for (const std::string& literal : probe.regex->required())
        use_literal(probe, literal, use, by);
    }
  }

  void use_literal(const Probe& probe, std::string_view literal, Use use, Wanted& by) {
    const std::size_t index = by.table.add(literal);
    if (index >= by.uses.size()) {
      by.uses.resize(index + 1);
      literal_bytes += literal.size();
    }
    if (literal_bytes > kMostLiteralBytes) {
      throw DefinitionError(probe.where, "found more than " + std::to_string(kMostLiteralBytes) +
                                             " bytes of literals in one set, expected fewer");
    }
    by.uses[index].push_back(use);
  }

  Wanted& of(Scope scope) { return wanted[static_cast<std::size_t>(scope)]; }
  const Signal& signal(Use use) const { return patterns[use.pattern].signals[use.signal]; }
  const Probe& probe(Use use) const { return signal(use).probes[use.probe]; }
};

namespace {

// One text against all signals.
template <typename Impl>
class Matcher {
 public:
  Matcher(const Impl& set, const PatternSubject& subject)
      : set_(set), subject_(subject), counts_(set.signals, 0), seen_until_(set.probes, 0) {}

  std::vector<Hit> run() {
    part(subject_.anywhere, Scope::kAnywhere, Scope::kAnywhere);
    if (subject_.message.empty()) {
      part(subject_.anywhere, Scope::kMessage, Scope::kAnywhere);
    } else {
      part(subject_.message, Scope::kMessage, Scope::kMessage);
    }
    part(subject_.tool, Scope::kTool, Scope::kTool);
    part(subject_.code, Scope::kCode, Scope::kCode);
    part(subject_.kind, Scope::kKind, Scope::kKind);
    return std::move(hits_);
  }

 private:
  bool has_enough(Use use) const {
    return counts_[set_.first_signal[use.pattern] + use.signal] >= kMostHits;
  }

  // The line round a byte. Hits come in the order of the text: a long line is measured once.
  Span line_around(std::string_view text, std::size_t at) {
    if (at < line_.begin || at > line_.end) {
      const std::size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
      line_ = {newline == std::string_view::npos ? 0 : newline + 1,
               std::min(text.find('\n', at), text.size())};
    }
    return line_;
  }

  // text: the part named `part`, in which the signals of `scope` look for theirs.
  void part(std::string_view text, Scope scope, Scope part) {
    const Wanted& wanted = set_.wanted[static_cast<std::size_t>(scope)];
    line_ = {1, 0};  // of the text before
    wanted.scan->each(text, [&](std::size_t literal, std::size_t end) {
      const Span span{end - wanted.table.literals()[literal].size(), end};
      for (const Use& use : wanted.uses[literal]) {
        if (has_enough(use)) continue;
        const Probe& probe = set_.probe(use);
        if (probe.kind == Probe::kRegex) {
          regex(text, use, part, span);
        } else if (probe.kind == Probe::kLiteral || stands_alone(text, span)) {
          hit(text, use, part, span);
        }
      }
    });
    for (const Use& use : wanted.slow) {
      for (std::size_t at = 0; at < text.size() && !has_enough(use);) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        regex(text, use, part, {at, at});
        at = end + 1;
      }
    }
  }

  // Once per line and regex, whatever the number of its literals on the line.
  void regex(std::string_view text, Use use, Scope part, Span near) {
    std::size_t& seen_until = seen_until_[set_.probe_of[use.pattern][use.signal] + use.probe];
    if (near.end != 0 && near.end <= seen_until && near.begin < seen_until) return;
    const Span whole = line_around(text, near.begin);
    const Span line = window_around(text, whole, near.begin);
    seen_until = line.end;
    const Regex& expression = *set_.probe(use).regex;
    const bool is_whole = part == Scope::kAnywhere && line.begin == whole.begin;
    const std::string_view shown = read(text.substr(line.begin, line.size()), is_whole);
    if (!expression.may_match(shown, folded_)) return;
    const RE2& compiled = expression.compiled();
    re2::StringPiece found;
    if (!compiled.ok() || !compiled.Match(re2::StringPiece(shown.data(), shown.size()), 0,
                                          shown.size(), RE2::UNANCHORED, &found, 1)) {
      return;
    }
    const auto begin = static_cast<std::size_t>(found.data() - text.data());
    hit(text, use, part, {begin, begin + found.size()});
  }

  // A line as regexes see it; in lower case it is `folded_`. Several ask for one and the same.
  std::string_view read(std::string_view line, bool is_whole) {
    const bool is_cut = is_whole && subject_.prefix != nullptr;
    const auto now = std::tuple(line.data(), line.size(), is_cut);
    if (std::exchange(read_, now) == now) return shown_;
    shown_ = line;
    if (is_cut) {
      shown_ = subject_.prefix->removed(line, folded_);
    } else {
      folded_.assign(line);
    }
    return shown_;
  }

  void hit(std::string_view text, Use use, Scope part, Span span) {
    ++counts_[set_.first_signal[use.pattern] + use.signal];
    hits_.push_back({use.pattern, use.signal, part, span, text.substr(span.begin, span.size())});
  }

  const Impl& set_;
  const PatternSubject& subject_;
  std::vector<std::uint8_t> counts_;                   // by signal
  std::vector<std::size_t> seen_until_;                // by probe
  std::tuple<const char*, std::size_t, bool> read_{};  // the line that was read last, and how
  std::string_view shown_;                             // what is shown of it
  FoldedLine folded_;                                  // that in lower case
  Span line_{1, 0};
  std::vector<Hit> hits_;
};

// A pattern's score, with what decides ties.
struct Scored {
  PatternMatch match;
  bool non_retryable = false, language_fits = false;
  std::size_t strong = 0, matched_text = 0;
};

// The message stands in the excerpt, too: what hits in both is one piece of text.
bool is_inside(const Hit& inner, const Hit& outer) {
  if (inner.part == outer.part) return outer.span.contains(inner.span);
  const auto is_prose = [](Scope part) {
    return part == Scope::kAnywhere || part == Scope::kMessage;
  };
  return is_prose(inner.part) && is_prose(outer.part) &&
         outer.text.find(inner.text) != std::string_view::npos;
}

// hits: of one pattern. A hit inside a stronger one of another signal is the same evidence.
Scored score(const PatternRule& rule, std::size_t index, std::vector<Hit> hits,
             std::string_view language) {
  // In an order of their own, whatever the order in which the scan met them.
  std::sort(hits.begin(), hits.end(), [&](const Hit& a, const Hit& b) {
    const auto order = [&](const Hit& hit) {
      return std::tuple(-rule.signals[hit.signal].weight, -static_cast<double>(hit.span.size()),
                        hit.part, hit.span.begin, hit.signal);
    };
    return order(a) < order(b);
  });
  Scored result{
      {index, 0, 0, {}}, rule.non_retryable, !language.empty() && rule.language == language};
  std::vector<bool> counted(rule.signals.size(), false), hit(rule.signals.size(), false);
  std::vector<Hit> accepted;
  double doubt = 1;
  for (const Hit& one : hits) {
    if (rule.signals[one.signal].excludes) return {};
    hit[one.signal] = true;
    const bool same_evidence = std::any_of(accepted.begin(), accepted.end(), [&](const Hit& other) {
      return other.signal != one.signal && is_inside(one, other);
    });
    if (counted[one.signal] || same_evidence) continue;
    counted[one.signal] = true;
    accepted.push_back(one);
    doubt *= 1 - rule.signals[one.signal].weight;
    result.strong += rule.signals[one.signal].weight >= kIsStrong;
    result.matched_text += one.span.size();
    result.match.hits.push_back({one.signal, one.part == Scope::kAnywhere ? one.span : Span{}});
  }
  const auto total = static_cast<double>(std::count_if(
      rule.signals.begin(), rule.signals.end(), [](const Signal& s) { return !s.excludes; }));
  result.match.coverage = static_cast<double>(std::count(hit.begin(), hit.end(), true)) / total;
  result.match.confidence = rule.ratio ? result.match.coverage : 1 - doubt;
  if (!rule.ratio && result.strong == 0) {
    result.match.confidence = std::min(result.match.confidence, kWeakAlone);
  }
  return result;
}

bool goes_before(const Scored& a, const Scored& b) {
  constexpr double kEqual = 1e-9;
  if (std::abs(a.match.confidence - b.match.confidence) > kEqual) {
    return a.match.confidence > b.match.confidence;
  }
  if (a.non_retryable != b.non_retryable) return a.non_retryable;
  if (a.strong != b.strong) return a.strong > b.strong;
  if (a.matched_text != b.matched_text) return a.matched_text > b.matched_text;
  if (a.language_fits != b.language_fits) return a.language_fits;
  return a.match.pattern < b.match.pattern;
}

}  // namespace

PatternSet::PatternSet(std::string_view json) : impl_(std::make_unique<Impl>()) {
  const nlohmann::json document = parse_definition(json);
  const Definition root(document, "");
  const int version = static_cast<int>(root.count("version", 2));
  if (version != 1 && version != 2) root.at("version").refuse("expected 1 or 2");
  for (const Definition& pattern : root.at("patterns").items()) {
    impl_->add(read_pattern(pattern, version));
  }
  for (Wanted& wanted : impl_->wanted) {
    wanted.scan = std::make_unique<LiteralScan>(wanted.table.literals());
  }
}

PatternSet::~PatternSet() = default;
PatternSet::PatternSet(PatternSet&&) noexcept = default;
PatternSet& PatternSet::operator=(PatternSet&&) noexcept = default;

void PatternSet::check() const {
  RegexBudget budget;
  for (const PatternRule& rule : impl_->patterns) {
    for (const Signal& signal : rule.signals) {
      for (const Probe& probe : signal.probes) {
        if (probe.kind != Probe::kRegex) continue;
        if (const std::string error = budget.spend(*probe.regex); !error.empty()) {
          throw DefinitionError(probe.where, "found a regex that RE2 refuses (" + error + ")");
        }
      }
    }
  }
}

std::size_t PatternSet::size() const {
  return impl_->patterns.size();
}

const std::string& PatternSet::id(std::size_t pattern) const {
  return impl_->patterns.at(pattern).id;
}

std::vector<PatternMatch> PatternSet::match(const PatternSubject& subject) const {
  std::vector<Hit> hits = Matcher<Impl>(*impl_, subject).run();
  std::stable_sort(hits.begin(), hits.end(),
                   [](const Hit& a, const Hit& b) { return a.pattern < b.pattern; });
  std::vector<Scored> scored;
  for (auto first = hits.begin(); first != hits.end();) {
    const auto last = std::find_if(first, hits.end(),
                                   [&](const Hit& hit) { return hit.pattern != first->pattern; });
    const PatternRule& rule = impl_->patterns[first->pattern];
    const bool competes =
        rule.language.empty() || subject.language.empty() || rule.language == subject.language;
    if (competes) {
      scored.push_back(score(rule, first->pattern, {first, last}, subject.language));
      if (scored.back().match.confidence < kLeast) scored.pop_back();
    }
    first = last;
  }
  std::sort(scored.begin(), scored.end(), goes_before);
  std::vector<PatternMatch> result;
  for (Scored& one : scored) result.push_back(std::move(one.match));
  return result;
}

}  // namespace loki
