#include "loki/recognition/regex_rarity.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace loki {
namespace {

constexpr std::size_t kShortest = 3;  // bytes; shorter literals are everywhere
constexpr std::size_t kMostSets = 3;  // of alternatives, that are looked for; chosen

// What stands on many lines of any output says little, long as it is. Chosen from what tools print.
constexpr auto kCommon = std::to_array<std::string_view>(
    {"a",      "and",      "are",     "as",        "at",    "be",      "build",    "by",
     "check",  "checking", "config",  "could",     "debug", "default", "done",     "e",
     "err",    "error",    "errors",  "exception", "fail",  "failed",  "failure",  "failures",
     "fatal",  "file",     "files",   "for",       "found", "from",    "function", "has",
     "have",   "http",     "https",   "if",        "in",    "info",    "invalid",  "is",
     "it",     "line",     "local",   "make",      "must",  "name",    "no",       "not",
     "note",   "of",       "ok",      "on",        "or",    "package", "packages", "pass",
     "passed", "property", "running", "sec",       "see",   "set",     "setting",  "test",
     "tests",  "that",     "the",     "this",      "time",  "to",      "total",    "type",
     "unable", "use",      "using",   "version",   "w",     "warn",    "warning",  "warnings",
     "was",    "with",     "you"});
static_assert(std::is_sorted(kCommon.begin(), kCommon.end()));

constexpr std::size_t kRarest = 8;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

bool is_mark(char c) {
  return !is_word(c) && c != ' ' && c != '\t';
}

// Longer literals are rarer, up to a point; common words are everywhere, less so in punctuation,
// and mere punctuation is, too, blanks above all.
std::size_t rarity(const std::string& literal) {
  const auto first = std::find_if(literal.begin(), literal.end(), is_word);
  if (first == literal.end()) {
    const auto marks = std::count_if(literal.begin(), literal.end(), is_mark);
    return std::min(static_cast<std::size_t>(marks), kShortest - 1);
  }
  const auto last = std::find_if(literal.rbegin(), literal.rend(), is_word).base();
  const auto core = std::string_view(literal).substr(
      static_cast<std::size_t>(first - literal.begin()), static_cast<std::size_t>(last - first));
  if (!std::binary_search(kCommon.begin(), kCommon.end(), core)) {
    return std::min(literal.size(), kRarest);
  }
  // "error:" stands where "error" does.
  const auto around =
      std::count_if(literal.begin(), literal.end(), [](char c) { return is_mark(c) && c != ':'; });
  return kShortest + std::min<std::size_t>(static_cast<std::size_t>(around), 2);
}

// Two marks will do where there is nothing better: "::" is rarer than blanks.
bool is_too_short(const std::string& literal) {
  return literal.size() < kShortest &&
         !(literal.size() == 2 && std::all_of(literal.begin(), literal.end(), is_mark));
}

}  // namespace

std::size_t shortest(const std::vector<std::string>& strings) {
  std::size_t size = strings.empty() ? 0 : strings.front().size();
  for (const std::string& string : strings) size = std::min(size, string.size());
  return size;
}

std::size_t rarity(const std::vector<std::string>& strings) {
  std::size_t least = kRarest;
  for (const std::string& string : strings) least = std::min(least, rarity(string));
  return least;
}

// Rare literals are better, fewer are cheaper.
bool better(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.empty() || std::any_of(a.begin(), a.end(), is_too_short)) return false;
  if (b.empty()) return true;
  const std::size_t of_a = rarity(a), of_b = rarity(b);
  if (of_a != of_b) return of_a > of_b;
  return a.size() != b.size() ? a.size() < b.size() : shortest(a) > shortest(b);
}

std::vector<std::vector<std::string>> rarest(std::vector<std::vector<std::string>> all,
                                             const std::vector<std::string>& scanned,
                                             const std::vector<std::string>& head) {
  std::erase(all, scanned);
  std::erase(all, head);
  std::stable_sort(all.begin(), all.end(),
                   [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
                     return rarity(a) != rarity(b) ? rarity(a) > rarity(b) : a.size() < b.size();
                   });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() > kMostSets) all.resize(kMostSets);
  return all;
}

}  // namespace loki
