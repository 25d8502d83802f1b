#include "loki/recognition/regex_bytes.hpp"

#include <array>
#include <cstddef>
#include <string>

#include "loki/recognition/regex_reader.hpp"

namespace loki {
namespace {

constexpr std::size_t kAscii = 128;

bool is_letter(std::size_t byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

bool is_of(char name, std::size_t byte) {
  const bool digit = byte >= '0' && byte <= '9';
  if (name == 'd') return digit;
  if (name == 'w') return digit || byte == '_' || is_letter(byte);
  return is_blank(static_cast<char>(byte));
}

// Of \d, \D and so on among the ASCII characters, letter case as it is; the opposite beyond.
bool exact(char name, Bytes& bytes) {
  const char kind = static_cast<char>(lower(static_cast<unsigned char>(name)));
  if (kind != 'd' && kind != 'w' && kind != 's') return false;
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    const bool is_in = byte < kAscii && is_of(kind, byte);
    if (is_in == (name == kind)) bytes.set(byte);
  }
  return true;
}

Bytes folded(const Bytes& bytes) {
  Bytes result;
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    if (bytes[byte]) result.set(lower(byte));
  }
  return result;
}

// The character in a class at `at`, or what it is hard to tell; moves behind it.
bool character(std::string_view inside, std::size_t& at, std::size_t& byte) {
  if (inside[at] == '\\') {
    if (++at >= inside.size()) return false;
    const auto c = static_cast<unsigned char>(inside[at]);
    if (c == 't' || c == 'n') {
      byte = c == 't' ? '\t' : '\n';
    } else if (is_letter(c) || (c >= '0' && c <= '9')) {
      return false;
    } else {
      byte = c;
    }
  } else {
    byte = static_cast<unsigned char>(inside[at]);
  }
  ++at;
  return true;
}

}  // namespace

Bytes all_bytes() {
  return Bytes().set();
}

Bytes byte_of(char c) {
  Bytes bytes;
  bytes.set(lower(static_cast<unsigned char>(c)));
  return bytes;
}

Bytes bytes_of_escape(char name) {
  static const auto known = [] {
    std::array<Bytes, 256> table;
    for (std::size_t i = 0; i < table.size(); ++i) {
      Bytes bytes;
      table[i] = exact(static_cast<char>(i), bytes) ? folded(bytes) : all_bytes();
    }
    return table;
  }();
  return known[static_cast<unsigned char>(name)];
}

Bytes bytes_of_class(std::string_view inside) {
  const bool is_negated = inside.starts_with('^');
  if (is_negated) inside.remove_prefix(1);
  Bytes bytes;
  for (std::size_t at = 0; at < inside.size();) {
    if (inside[at] == '[') return all_bytes();  // perhaps [:name:]
    if (inside[at] == '\\' && at + 1 < inside.size() && exact(inside[at + 1], bytes)) {
      at += 2;
      continue;
    }
    std::size_t first = 0, last = 0;
    if (!character(inside, at, first)) return all_bytes();
    last = first;
    if (at + 1 < inside.size() && inside[at] == '-') {
      ++at;
      if (!character(inside, at, last)) return all_bytes();
    }
    // Of what is beyond ASCII, the first bytes of other characters may be meant.
    if (first >= kAscii || last >= kAscii) {
      for (std::size_t byte = kAscii; byte < bytes.size(); ++byte) bytes.set(byte);
    }
    for (std::size_t byte = first; byte <= last; ++byte) bytes.set(byte);
  }
  if (!is_negated) return folded(bytes);
  // A character beyond ASCII that is not in the class may begin as one does that is.
  Bytes others = ~bytes;
  for (std::size_t byte = kAscii; byte < bytes.size(); ++byte) others.set(byte);
  return folded(others);
}

}  // namespace loki
