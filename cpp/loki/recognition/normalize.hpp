// Replaces what varies between two runs of the same failure by typed placeholders like <int>.
//
// Covered by tests/cpp/recognition/normalize_test.cpp, normalize_kinds_test.cpp (a table for every
// kind), normalize_secret_test.cpp and fuzz/normalize.cpp.
//
// Idea: one pass over the bytes, left to right; at each position the first rule that fits takes its
// stretch. Whether a rule may begin is decided by the last byte *written*, and no rule reads over a
// placeholder, so a second pass finds nothing new: the result is a fixed point. Where a rule has to
// look ahead for something that may not come (an '@', a closing quote), how far it looked is
// remembered, so that no stretch is searched twice. Source: SPEC section 1.3; the kinds and their
// limits are ours, and each is pinned by a test.
//
// Worst case: O(n).
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace loki {

enum class Level {
  kVolatile,  // times, numbers, addresses, paths outside the project, secrets
  kTemplate,  // also quoted strings and numbers glued to identifiers
  kSecrets,   // nothing but secrets, and passwords in URLs: for what is stored, shown or sent
};

// text: valid UTF-8 (see CleanText); any bytes give some result. root: the project's folder, whose
// prefix is removed from paths; empty where it is not known.
std::string normalize(std::string_view text, Level level = Level::kVolatile,
                      std::string_view root = {});

namespace normalizing {

// What a rule found: that many bytes stand for this placeholder. 0 bytes: nothing.
struct Found {
  std::size_t size = 0;
  std::string_view placeholder;
  explicit operator bool() const { return size != 0; }
};

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Letters, digits, _, and every byte beyond ASCII.
inline constexpr std::array<bool, 256> kWord = [] {
  std::array<bool, 256> word{};
  for (std::size_t c = 0; c < word.size(); ++c) {
    word[c] = c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
              (c >= 'A' && c <= 'Z') || c == '_';
  }
  return word;
}();
inline bool is_word(char c) {
  return kWord[static_cast<unsigned char>(c)];
}

// The byte there; '\0' behind the end.
inline char at(std::string_view text, std::size_t i) {
  return i < text.size() ? text[i] : '\0';
}

// U+2000 to U+2BFF: quotes, dashes, arrows, boxes, marks. They part words as a space does.
inline constexpr std::size_t kSymbolSize = 3;
inline bool is_symbol(std::string_view text, std::size_t i) {
  return at(text, i) == '\xE2' && static_cast<unsigned char>(at(text, i + 1)) >= 0x80 &&
         static_cast<unsigned char>(at(text, i + 1)) <= 0xAF;
}
inline bool is_word(std::string_view text, std::size_t i) {
  return is_word(at(text, i)) && !is_symbol(text, i);
}
inline bool ends_word(std::string_view text, std::size_t i) {
  return !is_word(text, i);
}

// What a folder's name is made of.
inline bool is_path(char c) {
  return is_word(c) || c == '.' || c == '-' || c == '+' || c == '@' || c == '~' || c == '=';
}
inline bool is_path(std::string_view text, std::size_t i) {
  return is_path(at(text, i)) && !is_symbol(text, i);
}

// How many digits stand there, up to `most`.
inline std::size_t digits(std::string_view text, std::size_t from,
                          std::size_t most = std::string_view::npos) {
  std::size_t i = from;
  while (i < text.size() && i - from < most && is_digit(text[i])) ++i;
  return i - from;
}

// The rules for stretches that begin with a digit or a month's or weekday's name: dates and times.
Found timestamp(std::string_view text);
// Month, day and time as glog writes them behind the letter of a level: 0102 15:04:05.123456.
Found log_time(std::string_view text);
// Numbers with what belongs to them: addresses, versions, durations, sizes, shares, plain numbers.
Found number(std::string_view text);
// UUIDs, hashes, addresses in hex, MAC and IPv6 addresses.
Found hexadecimal(std::string_view text);
// Temp and home folders of Unix and Windows.
Found folder(std::string_view text);

// An IPv6 address in brackets, as URLs have it. 0: none.
std::size_t bracketed_size(std::string_view text);
bool is_mailbox(char c);  // whether it may stand before the '@' of a mail address

// Keys of known shape; and a PEM private key from its BEGIN to its END. 0: none.
// plain: how far there are small letters and dashes alone, of which no key of many words is made;
// kept between calls, and given as what is left of it, it makes the reading of such a text linear.
std::size_t key_size(std::string_view text, std::size_t& plain);
bool may_be_key(char first, char second);  // whether a key may begin so: most words do not
std::size_t private_key_size(std::string_view text);
// What stands before the secret path of a URL that lets anyone post. 0: none of them.
std::size_t webhook_size(std::string_view url);

// password=... and the like: where the value stands. is_flag: two dashes stand before the name.
struct NamedSecret {
  std::size_t name = 0;  // bytes of the name
  std::size_t begin = 0;
  std::size_t size = 0;
};
// Whether the word there may be such a name, or begin one.
bool may_name_secret(std::string_view text);
NamedSecret named_secret(std::string_view text, bool is_flag);

}  // namespace normalizing
}  // namespace loki
