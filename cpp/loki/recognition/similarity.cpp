#include "loki/recognition/similarity.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "loki/base/unicode.hpp"
#include "loki/recognition/grouping_template.hpp"
#include "loki/recognition/signature.hpp"
#include "loki/recognition/text.hpp"

namespace loki {
namespace {

constexpr std::size_t kFewest = 3;
constexpr std::size_t kSpecific = 24;
constexpr std::size_t kFewLetters = 8;  // of a message beside a place; chosen, not measured
constexpr std::array<std::string_view, 4> kStatus = {"FAIL", "ERROR", "SUBFAIL",
                                                     "UNEXPECTED SUCCESS"};

// Size of <letters> at the front; 0 where there is none.
std::size_t placeholder(std::string_view text) {
  if (text.empty() || text.front() != '<') return 0;
  std::size_t i = 1;
  while (i < text.size() && i < 12 && text[i] >= 'a' && text[i] <= 'z') ++i;
  return i > 1 && i < text.size() && text[i] == '>' ? i + 1 : 0;
}

// Calls take(token) for each token, in the order of the text.
template <typename Take>
void each_token(std::string_view text, Take&& take) {
  std::string token;
  const auto finish = [&] {
    if (!token.empty()) take(std::string_view(token));
    token.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t size = placeholder(text.substr(at))) {
      finish();
      take(text.substr(at, size));
      at += size;
      continue;
    }
    if (const char c = text[at]; static_cast<unsigned char>(c) < 0x80) {  // most of any text
      const bool is_upper = c >= 'A' && c <= 'Z';
      if (is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
        token.push_back(is_upper ? static_cast<char>(c - 'A' + 'a') : c);
      } else {
        finish();
      }
      ++at;
      continue;
    }
    bool valid = false;
    const std::size_t step = utf8_step(text, at, valid);
    const char32_t c = valid ? decoded_utf8(text.substr(at, step)) : 0;
    if (valid && is_word_character(c)) {
      append_utf8(token, folded_case(c));
    } else {
      finish();
    }
    at += step;
  }
  finish();
}

// Sorted, each once.
template <typename List>
List set_of(List list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

std::size_t common(const Tokens& a, const Tokens& b) {
  std::size_t count = 0;
  for (auto i = a.begin(), k = b.begin(); i != a.end() && k != b.end();) {
    const int order = i->compare(*k);
    count += order == 0;
    if (order <= 0) ++i;
    if (order >= 0) ++k;
  }
  return count;
}

// The part that all measures share; `of` is the denominator.
double measure(const Tokens& a, const Tokens& b, double numerator_weight, std::size_t of) {
  if (a.size() < kFewest || b.size() < kFewest) return a == b ? 1 : 0;
  return numerator_weight * static_cast<double>(common(a, b)) / static_cast<double>(of);
}

std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  }));
}

std::string joined(const FailureSite& site) {
  std::string text = site.error_type + ' ' + site.error_code + ' ' + site.normalized;
  for (const std::string& function : site.functions) text += ' ' + function;
  for (const std::string& test : site.tests) text += ' ' + test;
  return text;
}

}  // namespace

Tokens tokens(std::string_view text) {
  Tokens result;
  each_token(text, [&](std::string_view token) { result.emplace_back(token); });
  return set_of(std::move(result));
}

TokenHashes token_hashes(std::string_view text) {
  TokenHashes result;
  each_token(text, [&](std::string_view token) { result.push_back(hash64(token)); });
  return set_of(std::move(result));
}

double overlap(std::size_t shared, std::size_t a, std::size_t b) {
  if (a < kFewest || b < kFewest) return shared == a && shared == b ? 1 : 0;
  return static_cast<double>(shared) / static_cast<double>(a + b - shared);
}

double overlap(const Tokens& a, const Tokens& b) {
  return overlap(common(a, b), a.size(), b.size());
}

double containment(const Tokens& a, const Tokens& b) {
  return measure(a, b, 1, a.size());
}

double dice(const Tokens& a, const Tokens& b) {
  return measure(a, b, 2, a.size() + b.size());
}

double larger_share(const Tokens& a, const Tokens& b) {
  return measure(a, b, 1, std::max(a.size(), b.size()));
}

bool is_specific(const FailureSite& site) {
  if (site.error_code.starts_with("SIG")) return true;  // the shortest outputs of all: "Killed"
  const bool typed = !site.error_type.empty() || !site.error_code.empty();
  const bool placed = !site.path.empty() || !site.tests.empty();
  if (placed && (typed || letters(site.normalized) >= kFewLetters)) return true;
  std::size_t shown = 0;
  const auto count = [&](std::string_view text) {
    for (std::size_t i = 0; i < text.size() && shown < kSpecific; ++i) shown += text[i] != ' ';
  };
  for (const auto* field : {&site.error_type, &site.error_code, &site.normalized}) count(*field);
  for (const auto* fields : {&site.functions, &site.tests}) {
    for (const std::string& field : *fields) count(field);
  }
  return (typed || placed) && shown >= kSpecific;
}

Tokens site_tokens(const FailureSite& site) {
  return tokens(joined(site));
}

TokenHashes site_token_hashes(const FailureSite& site) {
  return token_hashes(joined(site));
}

Hash128 site_fingerprint(const FailureSite& site) {
  return fingerprint_hash(
      {site.error_type, site.error_code, site.normalized, site.tests, site.functions});
}

SiteAnchors site_anchors(const FailureSite& site) {
  return {site.error_code, set_of(site.tests), site.pattern, is_specific(site)};
}

bool contradict(const SiteAnchors& a, const SiteAnchors& b) {
  const bool both_tests = !a.tests.empty() && !b.tests.empty();
  const bool both_codes = !a.error_code.empty() && !b.error_code.empty();
  return (both_tests && a.tests != b.tests) || (both_codes && a.error_code != b.error_code);
}

bool same_if_alike(const SiteAnchors& a, const SiteAnchors& b) {
  const bool both_tests = !a.tests.empty() && !b.tests.empty();
  const bool both_codes = !a.error_code.empty() && !b.error_code.empty();
  if (both_tests || both_codes) return true;  // the same ones: they do not contradict
  return !a.pattern.empty() && a.pattern == b.pattern && a.is_specific && b.is_specific;
}

namespace {

// What a message says before a tool cut it off; all of it where none did.
std::string_view uncut(std::string_view message) {
  for (const std::string_view end : {"...", "\u2026"}) {
    if (message.ends_with(end)) return message.substr(0, message.size() - end.size());
  }
  return message;
}

// "FAILED t.py::f", "--- FAIL: TestF (0.01s)": the line that names the test in the place of a
// message.
bool is_name_of(std::string_view message, std::string_view test) {
  if (const std::size_t rule = message.find_first_not_of("- "); rule != message.npos) {
    message.remove_prefix(rule);
  }
  const bool is_status = std::any_of(kStatus.begin(), kStatus.end(), [&](std::string_view word) {
    return message.starts_with(word);
  });
  const std::size_t at = message.rfind(test);
  if (!is_status || at == message.npos || at == 0 || message[at - 1] != ' ') return false;
  const std::string_view behind = message.substr(at + test.size());
  return behind.empty() || (behind.starts_with(" (") && behind.ends_with(')'));
}

bool says_nothing(const FailureSite& site) {
  return site.normalized.empty() ||
         std::any_of(site.tests.begin(), site.tests.end(),
                     [&](const std::string& test) { return is_name_of(site.normalized, test); });
}

// A message without its arguments, as `group` sees it: what a test got varies with each attempt.
std::string without_arguments(std::string_view message) {
  const grouping::MessageTemplate shape(message);
  std::string result;
  for (const auto& token : shape.tokens()) {
    const bool is_argument =
        token.kind == grouping::TokenKind::kHole || token.kind == grouping::TokenKind::kQuoted;
    result += ' ';
    result += is_argument ? std::string_view("_") : shape.text(token);
  }
  return result;
}

// Two outputs of one failure in different styles: one may leave out the frames or the message, or
// cut the message off. What one does not say is no difference.
void keep_what_both_say(FailureSite& a, FailureSite& b) {
  if (a.functions.empty() || b.functions.empty()) a.functions = b.functions = {};
  if (says_nothing(a) || says_nothing(b)) a.normalized = b.normalized = "";
  for (auto [cut, whole] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const std::string_view said = uncut(cut->normalized);
    if (said.size() == cut->normalized.size()) continue;
    if (cut->error_type.empty() &&
        (whole->error_type + ": " + whole->normalized).starts_with(said)) {
      a.normalized = b.normalized = "";
    } else if (whole->normalized.starts_with(said)) {
      a.normalized = b.normalized = said;
    }
  }
  if (a.error_type == b.error_type &&
      without_arguments(a.normalized) == without_arguments(b.normalized)) {
    a.normalized = b.normalized = "";
  }
  if (a.error_type.empty() || b.error_type.empty()) a.error_type = b.error_type = "";
}

}  // namespace

namespace {

// "assert 0", "assert False": it tells nothing but where it stands.
bool is_bare(std::string_view message) {
  constexpr std::array<std::string_view, 5> kNothing = {"assert <int>", "assert False",
                                                        "assert True", "assert None", "assert"};
  return std::find(kNothing.begin(), kNothing.end(), message) != kNothing.end();
}

bool stand_elsewhere(const FailureSite& a, const FailureSite& b) {
  return a.line != 0 && b.line != 0 && a.line != b.line && is_bare(a.normalized) &&
         is_bare(b.normalized);
}

}  // namespace

bool same_failure(const FailureSite& a, const FailureSite& b, double threshold) {
  if (stand_elsewhere(a, b)) return false;
  const SiteAnchors anchors_a = site_anchors(a), anchors_b = site_anchors(b);
  if (contradict(anchors_a, anchors_b)) return false;
  if (site_fingerprint(a) == site_fingerprint(b)) return true;
  if (!same_if_alike(anchors_a, anchors_b)) return false;
  if (overlap(site_tokens(a), site_tokens(b)) > threshold) return true;
  if (anchors_a.tests.empty() || anchors_b.tests.empty()) return false;
  // Of several failing tests the site is that of one, which depends on the order in which they ran.
  const bool same_kind = a.pattern.empty() || b.pattern.empty() || a.pattern == b.pattern;
  if (anchors_a.tests.size() > 1) return same_kind;
  FailureSite said_by_a = a, said_by_b = b;
  keep_what_both_say(said_by_a, said_by_b);
  return overlap(site_tokens(said_by_a), site_tokens(said_by_b)) > threshold;
}

}  // namespace loki
