// The rules of normalize for keys, tokens and passwords: known by their shape or by their name.
#include <algorithm>
#include <array>

#include "loki/recognition/normalize.hpp"
#include "loki/recognition/scan.hpp"

namespace loki::normalizing {
namespace {

// Words behind which "= value" or ": value" is a secret.
constexpr std::array<std::string_view, 14> kNames = {
    "password",    "passwd",          "passphrase", "pwd",          "secret",
    "api_key",     "token",           "apikey",     "access_key",   "secret_key",
    "private_key", "secret_key_base", "cookie",     "authorization"};
// Their last two letters, and those of "bearer": most words end otherwise.
constexpr std::string_view kEnds = "rd wd se et en ey ie on er";
// What the keys of known providers begin with; behind it come 16 or more letters and digits...
constexpr std::array<std::string_view, 17> kPlainPrefixes = {
    "sk_live_", "sk_test_", "pk_live_", "pk_test_", "rk_live_", "rk_test_", "ghp_", "gho_", "ghs_",
    "ghu_",     "ghr_",     "npm_",     "hf_",      "dop_v1_",  "AKIA",     "ASIA", "dapi"};
// ... or 16 or more of these with '_' and '-' among them, and a digit or a capital letter.
constexpr std::array<std::string_view, 20> kPrefixes = {
    "sk-",    "github_pat_", "xoxb-", "xoxp-",  "xoxa-",     "xoxr-",          "xoxs-",
    "xapp-",  "glpat-",      "gldt-", "glsa_",  "glrt-",     "AIza",           "pypi-",
    "whsec_", "ya29.",       "hvs.",  "shpat_", "dckr_pat_", "AGE-SECRET-KEY-"};
constexpr std::size_t kLeastKey = 16;
constexpr std::array<std::string_view, 8> kNoValues = {"none", "null",  "true",      "false",
                                                       "nil",  "empty", "undefined", "redacted"};
constexpr std::size_t kLongestName = 40;
constexpr std::size_t kLongestWord = 128;  // without a digit it is no secret, and not read further
constexpr std::size_t kLeastSure = 4, kLeastUnsure = 8;  // letters of a value

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

// folded: in lower case, '_' for '-'. Behind the start of a word (db_token, dbToken), and the long
// names behind anything (PGPASSWORD).
bool is_secret_name(std::string_view name, std::string_view folded) {
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view known) {
    if (!folded.ends_with(known)) return false;
    const std::size_t begin = folded.size() - known.size();
    if (begin == 0 || folded[begin - 1] == '_' || known.starts_with("passw")) return true;
    return name[begin] >= 'A' && name[begin] <= 'Z' && name[begin - 1] >= 'a';
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

bool may_be_key(char first, char second) {
  static constexpr auto kBegins = [] {
    std::array<std::array<bool, 128>, 128> begins{};
    const auto mark = [&](std::string_view prefix) {
      begins[static_cast<std::size_t>(prefix[0])][static_cast<std::size_t>(prefix[1])] = true;
    };
    for (const std::string_view prefix : kPlainPrefixes) mark(prefix);
    for (const std::string_view prefix : kPrefixes) mark(prefix);
    mark("eyJ");
    mark("SG.");
    return begins;
  }();
  const auto i = static_cast<unsigned char>(first), k = static_cast<unsigned char>(second);
  return i < 128 && k < 128 && kBegins[i][k];
}

std::size_t key_size(std::string_view text, std::size_t& plain) {
  // Most words are too short: no prefix has less than three bytes.
  std::size_t size = 0;
  while (size < kLeastKey + 3 && is_key(at(text, size))) ++size;
  if (size < kLeastKey + 3) return 0;
  for (const std::string_view prefix : kPlainPrefixes) {
    if (!text.starts_with(prefix)) continue;
    std::size_t i = prefix.size();
    bool has_digit = false;
    for (; is_ascii_word(at(text, i)) && text[i] != '_'; ++i) {
      has_digit = has_digit || is_digit(text[i]);
    }
    // Words alone, with '_' between them, are a name.
    if (i - prefix.size() >= kLeastKey && (has_digit || at(text, i) != '_')) return i;
  }
  for (const std::string_view prefix : kPrefixes) {
    if (plain > prefix.size() || !text.starts_with(prefix)) continue;
    std::size_t i = prefix.size();
    bool is_random = false;
    for (; is_word(text, i) || at(text, i) == '-'; ++i) {
      is_random = is_random || is_digit(text[i]) || (text[i] >= 'A' && text[i] <= 'Z');
    }
    if (i - prefix.size() >= kLeastKey && is_random) return i;
    if (!is_random) plain = i;
  }
  return dotted_key(text);
}

namespace {

// A quote, and the backslashes before it that a string inside a string has. 0: none.
std::size_t quote_size(std::string_view text, std::size_t i) {
  std::size_t size = 0;
  while (size < 3 && at(text, i + size) == '\\') ++size;
  return at(text, i + size) == '"' || at(text, i + size) == '\'' ? size + 1 : 0;
}

// Whether a name of a secret may end with these two letters: most words do not.
bool may_end_name(char before, char last) {
  static constexpr auto kMayEnd = [] {
    std::array<std::array<bool, 128>, 128> ends{};
    for (std::size_t i = 0; i + 1 < kEnds.size(); i += 3) {
      const auto a = static_cast<std::size_t>(kEnds[i]), b = static_cast<std::size_t>(kEnds[i + 1]);
      constexpr std::size_t kUpper = 'a' - 'A';
      ends[a][b] = ends[a - kUpper][b] = ends[a][b - kUpper] = ends[a - kUpper][b - kUpper] = true;
    }
    return ends;
  }();
  const auto i = static_cast<unsigned char>(before), k = static_cast<unsigned char>(last);
  return i < 128 && k < 128 && kMayEnd[i][k];
}

// How far a value goes: in quotes that this line closes up to them, else to the next space. 0: no
// secret, by how much it takes to be one.
std::size_t value_size(std::string_view text, std::size_t begin, std::size_t least, bool is_sure) {
  const std::size_t open = quote_size(text, begin);
  const std::size_t value = begin + open;
  const char quote = open > 0 ? text[value - 1] : '\0';
  std::size_t i = value, numerals = 0;
  for (; is_value(at(text, i)); ++i) {
    numerals += is_digit(text[i]);
    if (numerals == 0 && !is_sure && i - value > kLongestWord) return 0;
  }
  while (open > 1 && i > value && text[i - 1] == '\\') --i;
  if (open == 1 && at(text, i) != quote && is_sure) {
    // A placeholder may stand for what did not belong to it when it was read first.
    const char ends[] = {quote, '<', '\n'};
    const std::size_t close = text.find_first_of(std::string_view(ends, 3), i);
    if (at(text, close) == quote) i = close;
  }
  if (i - value < least || (numerals == 0 && !is_sure)) return 0;
  const std::string shown = ascii_folded(text.substr(value, std::min<std::size_t>(i - value, 10)));
  if (std::find(kNoValues.begin(), kNoValues.end(), shown) != kNoValues.end()) return 0;
  if (open > 0 && quote_size(text, i) == open) i += open;
  return i - begin;
}

}  // namespace

bool may_name_secret(std::string_view text) {
  std::size_t size = 0;
  while (is_word(at(text, size))) ++size;
  const char next = at(text, size);
  if (next == '-') return true;
  if (size < 3 ||
      (next != '=' && next != ':' && next != ' ' && next != '"' && next != '\'' && next != '\\')) {
    return false;
  }
  return may_end_name(text[size - 2], text[size - 1]);
}

NamedSecret named_secret(std::string_view text, bool is_flag) {
  const std::size_t name = name_size(text);
  if (name < 3) return {};
  const char next = at(text, name);
  if (next != '=' && next != ':' && next != ' ' && next != '"' && next != '\'' && next != '\\') {
    return {};
  }
  if (!may_end_name(text[name - 2], text[name - 1])) return {};
  std::string folded = ascii_folded(text.substr(0, name));
  std::replace(folded.begin(), folded.end(), '-', '_');
  const bool is_bearer = folded == "bearer";
  if (!is_bearer && !is_secret_name(text, folded)) return {};
  std::size_t i = name + quote_size(text, name);
  i += spaces(text, i);
  const char separator = at(text, i);
  const bool is_assigned = separator == '=' || separator == ':';
  if (!is_bearer && !is_assigned && !(is_flag && next == ' ')) return {};
  if (!is_bearer && is_assigned) i += 1 + spaces(text, i + 1);
  const std::size_t scheme_size = folded == "authorization" ? scheme(text, i) : 0;
  i += scheme_size;
  // "unexpected token: foo" is no secret; "token=abc123de" and "password: hunter2" are.
  const bool is_sure = scheme_size > 0 || (separator == '=' && !is_bearer);
  const bool is_short = is_sure || (is_flag && !is_assigned) || folded.ends_with("word");
  return {name, i, value_size(text, i, is_short ? kLeastSure : kLeastUnsure, is_sure)};
}

namespace {

// -----BEGIN and -----END lines of a private key. 0: none.
std::size_t title_size(std::string_view text, std::string_view head) {
  constexpr std::string_view kTail = "PRIVATE KEY-----";
  if (!text.starts_with(head)) return 0;
  std::size_t i = head.size();
  while ((at(text, i) >= 'A' && at(text, i) <= 'Z') || at(text, i) == ' ') ++i;
  const std::size_t size = std::min(i + 5, text.size());
  return text.substr(head.size(), size - head.size()).ends_with(kTail) ? size : 0;
}

bool is_key_body(char c) {
  return is_ascii_word(c) ||
         (c != '\0' && std::string_view("+/=\\\r\n ,:-").find(c) != std::string_view::npos);
}

}  // namespace

std::size_t webhook_size(std::string_view url) {
  const std::size_t scheme = url.find("://");
  for (const std::string_view hook :
       {"://hooks.slack.com/services/", "://discord.com/api/webhooks/"}) {
    const std::size_t size = scheme + hook.size();
    if (url.substr(scheme).starts_with(hook) && size < url.size()) return size;
  }
  return 0;
}

std::size_t private_key_size(std::string_view text) {
  constexpr std::size_t kLeastLine = 40;  // base64 is written in lines of 64 or more
  const std::size_t body = title_size(text, "-----BEGIN ");
  if (body == 0) return 0;
  // One that is cut off ends with its last line of base64.
  std::size_t kept = body, line = body, i = body;
  bool is_base64 = true;
  for (; is_key_body(at(text, i)); ++i) {
    if (text[i] == '-' && text.substr(i).starts_with("-----")) {
      const std::size_t close = title_size(text.substr(i), "-----END ");
      return close == 0 ? kept : i + close;
    }
    if (text[i] == '\n') {
      if (is_base64 && i - line >= kLeastLine) kept = i;
      line = i + 1;
    }
    is_base64 = text[i] == '\n' || (is_base64 && text[i] != ' ');
  }
  return is_base64 && i == text.size() && i - line >= kLeastLine ? i : kept;
}

}  // namespace loki::normalizing
