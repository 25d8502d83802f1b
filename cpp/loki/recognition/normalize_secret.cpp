// The rules of normalize for keys, tokens and passwords: known by their shape or by their name.
#include <algorithm>
#include <array>

#include "loki/recognition/normalize.hpp"
#include "loki/recognition/scan.hpp"

namespace loki::normalizing {
namespace {

// Words behind which "= value" or ": value" is a secret.
constexpr std::array<std::string_view, 14> kNames = {
    "password",   "passwd",     "pwd",           "secret",       "token",
    "apikey",     "api_key",    "api-key",       "access_token", "auth_token",
    "access_key", "secret_key", "client_secret", "authorization"};
// What the keys of known providers begin with; behind it come 16 or more letters and digits...
constexpr std::array<std::string_view, 17> kPlainPrefixes = {
    "sk_live_", "sk_test_", "pk_live_", "pk_test_", "rk_live_", "rk_test_", "ghp_", "gho_", "ghs_",
    "ghu_",     "ghr_",     "npm_",     "hf_",      "dop_v1_",  "AKIA",     "ASIA", "dapi"};
// ... or 16 or more of these with '_' and '-' among them.
constexpr std::array<std::string_view, 19> kPrefixes = {
    "sk-",   "github_pat_", "xoxb-",  "xoxp-",     "xoxa-",          "xoxr-", "xoxs-",
    "xapp-", "glpat-",      "gldt-",  "glrt-",     "AIza",           "pypi-", "whsec_",
    "ya29.", "hvs.",        "shpat_", "dckr_pat_", "AGE-SECRET-KEY-"};
constexpr std::size_t kLeastKey = 16;
constexpr std::array<std::string_view, 8> kNoValues = {"none", "null",  "true",      "false",
                                                       "nil",  "empty", "undefined", "redacted"};
constexpr std::size_t kLongestName = 40;
constexpr std::size_t kLongestWord = 128;  // without a digit it is no secret, and not read further

bool is_ascii_word(char c) {
  return is_word(c) && static_cast<unsigned char>(c) < 0x80;
}

bool is_value(char c) {
  return static_cast<unsigned char>(c) > ' ' &&
         std::string_view("\"'<>,;&)").find(c) == std::string_view::npos;
}

bool is_key(char c) {
  return is_word(c) || c == '-' || c == '.';
}

// eyJ....: a JSON web token; SG.<16 or more>.<16 or more>: SendGrid's.
std::size_t dotted_key(std::string_view text) {
  if (!text.starts_with("eyJ") && !text.starts_with("SG.")) return 0;
  std::size_t i = 3, dots = 0;
  for (; is_ascii_word(at(text, i)) || at(text, i) == '-' || at(text, i) == '.'; ++i) {
    dots += text[i] == '.';
  }
  return i > 36 && (dots > 0 || text.starts_with("eyJ")) ? i : 0;
}

// How long a name goes on here; a dash belongs to it where a letter follows.
std::size_t name_size(std::string_view text) {
  std::size_t size = 0;
  const auto dash = [&](std::size_t i) {
    return at(text, i) == '-' && is_word(at(text, i + 1)) && !is_digit(at(text, i + 1));
  };
  while (size < kLongestName && (is_word(at(text, size)) || dash(size))) ++size;
  return size;
}

bool is_secret_name(std::string_view folded) {
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) {
    return folded == name ||
           (folded.ends_with(name) && folded[folded.size() - name.size() - 1] == '_');
  });
}

std::size_t spaces(std::string_view text, std::size_t i) {
  std::size_t size = 0;
  while (at(text, i + size) == ' ') ++size;
  return size;
}

// Behind "Authorization:" a scheme may stand before what is secret.
std::size_t scheme(std::string_view text, std::size_t i) {
  const std::string head = ascii_folded(text.substr(i, 7));
  for (const std::string_view known : {"basic ", "bearer ", "token ", "digest "}) {
    if (head.starts_with(known)) return known.size() + spaces(text, i + known.size());
  }
  return 0;
}

}  // namespace

std::size_t key_size(std::string_view text) {
  // Most words are too short: no prefix has less than three bytes.
  std::size_t size = 0;
  while (size < kLeastKey + 3 && is_key(at(text, size))) ++size;
  if (size < kLeastKey + 3) return 0;
  for (const std::string_view prefix : kPlainPrefixes) {
    if (!text.starts_with(prefix)) continue;
    std::size_t i = prefix.size();
    while (is_ascii_word(at(text, i)) && text[i] != '_') ++i;
    if (i - prefix.size() >= kLeastKey && ends_word(text, i)) return i;
  }
  for (const std::string_view prefix : kPrefixes) {
    if (!text.starts_with(prefix)) continue;
    std::size_t i = prefix.size();
    while (is_word(at(text, i)) || at(text, i) == '-') ++i;
    if (i - prefix.size() >= kLeastKey) return i;
  }
  return dotted_key(text);
}

NamedSecret named_secret(std::string_view text, bool is_flag) {
  const std::size_t name = name_size(text);
  // The last two letters of the names above, and of "bearer": most words end otherwise.
  if (name < 3 || std::string_view("dtnyrDTNYR").find(text[name - 1]) == std::string_view::npos ||
      std::string_view("rweonRWEON").find(text[name - 2]) == std::string_view::npos) {
    return {};
  }
  const char next = at(text, name);
  if (next != '=' && next != ':' && next != ' ' && next != '"' && next != '\'') return {};
  const std::string folded = ascii_folded(text.substr(0, name));
  const bool is_bearer = folded == "bearer";
  if (!is_bearer && !is_secret_name(folded)) return {};
  std::size_t i = name + (next == '"' || next == '\'' ? 1 : 0);
  i += spaces(text, i);
  const char separator = at(text, i);
  const bool is_assigned = separator == '=' || separator == ':';
  if (!is_bearer && !is_assigned && !(is_flag && next == ' ')) return {};
  if (!is_bearer && is_assigned) i += 1 + spaces(text, i + 1);
  const std::size_t scheme_size = folded == "authorization" ? scheme(text, i) : 0;
  i += scheme_size;
  const std::size_t begin = i;  // quotes go with the value
  const char quote = at(text, i) == '"' || at(text, i) == '\'' ? at(text, i) : '\0';
  i += quote != '\0';
  const std::size_t value = i;
  std::size_t numerals = 0;
  // "unexpected token: foo" is no secret; "token=abc123de" is one.
  const bool is_sure = scheme_size > 0 || (separator == '=' && !is_bearer);
  for (; is_value(at(text, i)); ++i) {
    numerals += is_digit(text[i]);
    if (numerals == 0 && !is_sure && i - value > kLongestWord) return {};
  }
  const bool is_short_flag = is_flag && !is_assigned;
  if (i - value < (is_sure || is_short_flag ? 4U : 8U) || (numerals == 0 && !is_sure)) return {};
  const std::string shown = ascii_folded(text.substr(value, std::min<std::size_t>(i - value, 10)));
  if (std::find(kNoValues.begin(), kNoValues.end(), shown) != kNoValues.end()) return {};
  if (quote != '\0' && at(text, i) == quote) ++i;
  return {begin, i - begin};
}

std::size_t private_key_size(std::string_view text) {
  constexpr std::size_t kLongestTitle = 64, kLongestKey = 16384;
  constexpr std::string_view kClose = "PRIVATE KEY-----";
  if (!text.starts_with("-----BEGIN ")) return 0;
  const std::size_t title = text.substr(0, kLongestTitle).find(kClose);
  if (title == std::string_view::npos) return 0;
  const std::size_t body = title + kClose.size();
  const std::size_t end = text.substr(0, kLongestKey).find("-----", body);
  if (end == std::string_view::npos || !text.substr(end).starts_with("-----END ")) return 0;
  const std::size_t close = text.substr(0, end + kLongestTitle).find(kClose, end);
  return close == std::string_view::npos ? 0 : close + kClose.size();
}

}  // namespace loki::normalizing
