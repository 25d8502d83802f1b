#include "loki/analysis/json_lines.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "loki/base/unicode.hpp"
#include "loki/recognition/text.hpp"

namespace loki {
namespace {

constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
constexpr std::size_t kMostBytes = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t kOnes = 0x0101010101010101U, kHigh = 0x8080808080808080U;

// The high bit of each byte that is zero; above the lowest such byte, bits may be wrong.
std::uint64_t zeros(std::uint64_t word) {
  return (word - kOnes) & ~word & kHigh;
}

// The same for what ends a plain stretch of a string: a quotation mark, a backslash, a control
// character.
std::uint64_t specials(std::uint64_t word) {
  return zeros(word ^ kOnes * '"') | zeros(word ^ kOnes * '\\') |
         ((word - kOnes * 0x20) & ~word & kHigh);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_utf8(std::string_view text) {
  bool valid = true;
  for (std::size_t at = 0; valid && at < text.size();) at += utf8_step(text, at, valid);
  return valid;
}

// What the escapes of a string stand for, which are well-formed one by one; false: half a surrogate
// pair.
bool unescape(std::string_view raw, std::string& out) {
  const auto hex = [raw](std::size_t at) {
    return static_cast<char32_t>(std::stoul(std::string(raw.substr(at, 4)), nullptr, 16));
  };
  for (std::size_t at = 0;;) {
    const std::size_t next = std::min(raw.find('\\', at), raw.size());
    out.append(raw.substr(at, next - at));
    if (next == raw.size()) return true;
    at = next + 2;
    if (raw[next + 1] != 'u') {
      out += kMeanings[kEscapes.find(raw[next + 1])];
      continue;
    }
    char32_t c = hex(at);
    at += 4;
    if (c >= 0xD800 && c < 0xE000) {
      if (c >= 0xDC00 || raw.substr(at, 2) != "\\u") return false;
      const char32_t low = hex(at + 2);
      if (low < 0xDC00 || low >= 0xE000) return false;
      c = 0x10000 + ((c - 0xD800) << 10U) + (low - 0xDC00);
      at += 6;
    }
    append_utf8(out, c);
  }
}

// Walks through one log. Each step says whether what it met was as it must be; after the first that
// says no, nothing counts. A line feed is part of no value and ends the log, so that looking at the
// next byte stays inside it.
class LineReader {
 public:
  explicit LineReader(std::string_view log) : at_(log.data()), end_(at_ + log.size()) {}

  bool is_done() const { return at_ == end_; }

  bool line(JsonColumn& objects) {
    const char* const begin = at_;
    high_ = 0;
    if (*at_ != '{' || !object(objects, 0) || *at_ != '\n') return false;
    ++at_;
    return (high_ & kHigh) == 0 || is_utf8({begin, static_cast<std::size_t>(at_ - begin)});
  }

 private:
  bool value(JsonColumn& column, std::size_t depth) {
    if (*at_ == 'n') {
      column.append_null();
      return word("null");
    }
    const char* const begin = at_;
    bool fits = false;
    switch (column.kind) {
      case JsonColumn::Kind::kObject:
        return *at_ == '{' && object(column, depth);
      case JsonColumn::Kind::kList:
        fits =
            *at_ == '[' && entries(depth, [&] { return value(column.members.front(), depth + 1); });
        break;
      case JsonColumn::Kind::kText:
        fits = text(column.bytes);
        break;
      case JsonColumn::Kind::kTruth:
        fits = word("true") || word("false");
        column.bytes.append(begin, at_);
        break;
      case JsonColumn::Kind::kNumber:
        fits = number();
        column.bytes.append(begin, at_);
        break;
    }
    column.end_entry(true);
    return fits;
  }

  bool object(JsonColumn& column, std::size_t depth) {
    auto expected = column.members.begin();
    const bool fits = entries(depth, [&] {
      const char* const begin = at_ + 1;
      if (!string() || is_escaped_) return false;
      const std::string_view name(begin, static_cast<std::size_t>(at_ - begin) - 1);
      if (!colon()) return false;
      const auto member = find(column.members, name, expected);
      if (member == column.members.end()) return skip(depth + 1);
      expected = member + 1;
      return member->size == column.size && value(*member, depth + 1);  // else: named twice
    });
    for (JsonColumn& member : column.members)
      if (member.size == column.size) member.append_null();
    column.end_entry(true);
    return fits;
  }

  bool text(std::string& out) {
    const char* const begin = at_ + 1;
    if (!string()) return false;
    const std::string_view raw(begin, static_cast<std::size_t>(at_ - begin) - 1);
    if (is_escaped_) return unescape(raw, out);
    out.append(raw);
    return true;
  }

  // Logs name their members in one order: the search begins behind the last that was found.
  using Members = std::vector<JsonColumn>;
  static Members::iterator find(Members& members, std::string_view name,
                                Members::iterator expected) {
    const auto is_it = [name](const JsonColumn& member) { return member.name == name; };
    const auto found = std::find_if(expected, members.end(), is_it);
    if (found != members.end()) return found;
    const auto before = std::find_if(members.begin(), expected, is_it);
    return before == expected ? members.end() : before;
  }

  bool skip(std::size_t depth) {
    switch (*at_) {
      case '"':
        return string();
      case '{':
        return entries(depth, [&] { return string() && colon() && skip(depth + 1); });
      case '[':
        return entries(depth, [&] { return skip(depth + 1); });
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

  // A bracket, what stands behind it with commas between, and the other bracket.
  template <typename Entry>
  bool entries(std::size_t depth, Entry entry) {
    if (depth == kDeepest) return false;
    const char last = *at_++ == '{' ? '}' : ']';
    spaces();
    if (*at_ != last) {
      do {
        spaces();
        if (!entry()) return false;
      } while (comma());
    }
    return *at_++ == last;
  }

  bool string() {
    is_escaped_ = false;
    if (*at_ != '"') return false;
    ++at_;
    while (true) {
      plain();
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '\\') {
        if (!escape()) return false;
        continue;
      }
      if (c < 0x20) return false;
      high_ |= c;
      ++at_;
      if (c == '"') return true;
    }
  }

  // As much of a string as eight bytes at a time tell to be nothing special.
  void plain() {
    std::uint64_t word = 0;
    for (; static_cast<std::size_t>(end_ - at_) >= sizeof word; at_ += sizeof word) {
      std::memcpy(&word, at_, sizeof word);
      high_ |= word;
      const std::uint64_t found = specials(word);
      if (found == 0) continue;
      if constexpr (std::endian::native == std::endian::little) at_ += std::countr_zero(found) / 8;
      return;
    }
  }

  bool escape() {
    is_escaped_ = true;
    ++at_;
    const char kind = *at_;
    if (kind == 'u') {
      for (int digit = 0; digit < 4; ++digit)
        if (!is_hex(*++at_)) return false;
    } else if (kEscapes.find(kind) == std::string_view::npos) {
      return false;
    }
    ++at_;
    return true;
  }

  bool number() {
    const char* const begin = at_;
    if (*at_ == '-') ++at_;
    if (*at_ == '0') {
      ++at_;
    } else if (!digits()) {
      return false;
    }
    if (*at_ == '.' && (++at_, !digits())) return false;
    if (*at_ == 'e' || *at_ == 'E') {
      ++at_;
      if (*at_ == '+' || *at_ == '-') ++at_;
      if (!digits()) return false;
    }
    return static_cast<std::size_t>(at_ - begin) <= kLongestNumber;
  }

  bool digits() {
    const char* const begin = at_;
    while (is_digit(*at_)) ++at_;
    return at_ != begin;
  }

  bool word(std::string_view expected) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(expected))
      return false;
    at_ += expected.size();
    return true;
  }

  void spaces() {
    while (*at_ == ' ') ++at_;
  }

  bool colon() {
    spaces();
    if (*at_ != ':') return false;
    ++at_;
    spaces();
    return true;
  }

  bool comma() {
    spaces();
    if (*at_ != ',') return false;
    ++at_;
    return true;
  }

  const char* at_;
  const char* end_;
  bool is_escaped_ = false;  // the last string has escapes
  std::uint64_t high_ = 0;   // has a byte's high bit where a string of the line is not ASCII
};

}  // namespace

void JsonColumn::end_entry(bool is_valid) {
  if (size % 8 == 0) valid += '\0';
  if (is_valid) valid.back() = static_cast<char>(valid.back() | 1 << size % 8);
  ++size;
  if (kind == Kind::kObject) return;
  const std::size_t end = kind == Kind::kList ? members.front().size : bytes.size();
  offsets.push_back(static_cast<std::int32_t>(end));
}

void JsonColumn::append_null() {
  if (kind == Kind::kObject)
    for (JsonColumn& member : members) member.append_null();
  end_entry(false);
}

bool read_json_lines(std::string_view log, JsonColumn& objects) {
  if (log.empty()) return true;
  if (log.size() > kMostBytes - objects.bytes_read || log.back() != '\n') return false;
  objects.bytes_read += log.size();
  for (LineReader reader(log); !reader.is_done();)
    if (!reader.line(objects)) return false;
  return true;
}

}  // namespace loki
