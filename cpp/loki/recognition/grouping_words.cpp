#include "loki/recognition/grouping_words.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "loki/recognition/scan.hpp"

namespace loki::grouping {
namespace {

constexpr std::size_t kLongest = 12;  // of the words below

template <std::size_t N>
bool has(const std::array<std::string_view, N>& words, std::string_view word) {
  return word.size() <= kLongest &&
         std::find(words.begin(), words.end(), ascii_folded(word)) != words.end();
}

constexpr std::array<std::string_view, 10> kPrepositions = {"for", "from", "by", "to",   "of",
                                                            "on",  "in",   "at", "with", "as"};
constexpr std::array<std::string_view, 20> kNamingNouns = {
    "user",   "username", "host",    "hostname", "login",  "account", "client",
    "server", "process",  "service", "daemon",   "module", "package", "named",
    "called", "file",     "member",  "thread",   "device", "node"};
constexpr std::array<std::string_view, 54> kGeneric = {
    "use",      "using", "used",       "prefer", "replace",  "replaced",   "instead", "of",
    "rather",   "than",  "over",       "with",   "by",       "should",     "be",      "is",
    "was",      "the",   "a",          "an",     "expected", "unexpected", "got",     "saw",
    "found",    "but",   "and",        "or",     "not",      "no",         "do",      "doe",
    "don",      "can",   "could",      "must",   "may",      "to",         "from",    "for",
    "in",       "on",    "at",         "as",     "it",       "its",        "this",    "that",
    "consider", "avoid", "deprecated", "please", "try",      "has"};
constexpr std::array<std::string_view, 29> kAdvice = {
    "consider", "use",    "try",     "prefer",  "rewrite", "please", "see",   "replace",
    "add",      "remove", "change",  "rename",  "move",    "make",   "check", "ensure",
    "instead",  "did",    "perhaps", "maybe",   "hint",    "note",   "help",  "rephrase",
    "run",      "set",    "specify", "provide", "avoid"};
constexpr std::array<std::string_view, 4> kAdvicePairs = {"you can", "you should", "you may",
                                                          "it is"};
constexpr std::array<std::string_view, 9> kUnits = {"B",  "KB",  "kB",  "MB", "GB",
                                                    "TB", "KiB", "MiB", "GiB"};
constexpr std::array<std::string_view, 10> kConstantValues = {
    "true", "false", "null", "nil", "nan", "undefined", "True", "False", "None", "NULL"};

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_letter(char c) {
  return is_lower(c) || is_upper(c);
}

}  // namespace

bool is_preposition(std::string_view word) {
  return has(kPrepositions, word);
}
bool is_naming_noun(std::string_view word) {
  return has(kNamingNouns, word);
}
bool is_generic(std::string_view word) {
  return has(kGeneric, word);
}
bool is_advice(std::string_view word) {
  return has(kAdvice, word);
}

bool is_advice(std::string_view word, std::string_view next) {
  if (word.size() + next.size() >= kLongest) return false;
  const std::string pair = ascii_folded(word) + ' ' + ascii_folded(next);
  return std::find(kAdvicePairs.begin(), kAdvicePairs.end(), pair) != kAdvicePairs.end();
}

bool is_unit(std::string_view word) {
  return std::find(kUnits.begin(), kUnits.end(), word) != kUnits.end();
}

bool is_constant_value(std::string_view word) {
  return std::find(kConstantValues.begin(), kConstantValues.end(), word) != kConstantValues.end();
}

bool is_code_name(std::string_view word) {
  if (word.empty() || word.front() == '_') return !word.empty();
  bool saw_lower = false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i], next = i + 1 < word.size() ? word[i + 1] : '\0';
    if (c == '/' || c == '\\' || c == '@' || c == '$') return true;
    if (saw_lower && is_upper(c)) return true;
    if (c == '_' && (is_lower(next) || is_lower(word[i - 1]))) return true;
    if (c == '.' && is_letter(next) && i > 0 && is_letter(word[i - 1])) return true;
    saw_lower = saw_lower || is_lower(c);
  }
  return false;
}

std::string_view singular(std::string_view word) {
  if (word == "are") return "is";
  if (word == "were") return "was";
  if (word == "have") return "has";
  const bool plain = word.size() >= 4 && std::all_of(word.begin(), word.end(), is_letter);
  if (!plain || (word.back() != 's' && word.back() != 'S')) return word;
  const char before = word[word.size() - 2];
  const bool is_stem = before == 's' || before == 'u' || before == 'i' || before == 'S';
  return is_stem ? word : word.substr(0, word.size() - 1);
}

}  // namespace loki::grouping
