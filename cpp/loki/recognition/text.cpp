#include "loki/recognition/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace loki {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

bool is_special(char c) {
  return c == kEscape || c == '\r' || c == '\b';
}

// True where none of eight bytes is a control character or outside ASCII.
bool eight_plain(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  constexpr std::uint64_t kHigh = 0x8080808080808080U;
  // A byte below 0x20 has none of the bits 0x60: adding 0x60 then does not carry into bit 7.
  const std::uint64_t printable = (word & 0x6060606060606060U) + 0x6060606060606060U;
  return (word & kHigh) == 0 && (printable & kHigh) == kHigh;
}

// The first position from `at` on that needs cleaning, else the size.
std::size_t skip_plain(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (text.size() - at >= 8 && eight_plain(text.data() + at)) {
      at += 8;
      continue;
    }
    const char c = text[at];
    if (static_cast<unsigned char>(c) < 0x80) {
      if (is_special(c)) return at;
      ++at;
      continue;
    }
    bool valid = false;
    const std::size_t step = utf8_step(text, at, valid);
    if (!valid) return at;
    at += step;
  }
  return at;
}

struct Piece {
  std::size_t begin;
  std::size_t end;
  bool invalid;
};

// Takes up to `cells` characters off the front of a piece; returns how many.
std::size_t drop_front(std::string_view text, Piece& piece, std::size_t cells) {
  if (piece.invalid) {
    piece.begin = piece.end;
    return 1;
  }
  std::size_t taken = 0;
  for (; taken < cells && piece.begin < piece.end; ++taken) {
    do ++piece.begin;
    while (piece.begin < piece.end && is_continuation(text[piece.begin]));
  }
  return taken;
}

}  // namespace

// Replays the lines that hold control characters.
class Cleaner {
 public:
  explicit Cleaner(CleanText& out) : out_(out), in_(out.original_) {
    lines_by_cr_ = in_.find('\n') == std::string_view::npos;
  }

  void run() {
    std::size_t at = skip_plain(in_, 0);
    if (at == in_.size()) return;
    out_.borrowed_ = false;
    out_.cleaned_.reserve(in_.size());
    std::size_t done = 0;
    while (at < in_.size()) {
      const std::size_t newline = in_.substr(done, at - done).rfind('\n');
      const std::size_t line = newline == std::string_view::npos ? done : done + newline + 1;
      emit({done, line, false});
      write({line, at, false});
      done = at = replay(at);
      at = skip_plain(in_, at);
    }
    emit({done, in_.size(), false});
  }

 private:
  // From the first special byte of a line to behind its newline.
  std::size_t replay(std::size_t at) {
    while (at < in_.size()) {
      const char c = in_[at];
      if (c == '\n' || (c == '\r' && lines_by_cr_)) {
        end_line();
        if (c == '\n') {
          emit({at, at + 1, false});
        } else {
          map(at, 1);
          out_.cleaned_.push_back('\n');
        }
        return at + 1;
      }
      if (c == '\r') {
        at = carriage_return(at);
      } else if (c == '\b') {
        backspace();
        ++at;
      } else if (c == kEscape) {
        at = escape(at);
      } else {
        at = characters(at);
      }
    }
    end_line();
    return at;
  }

  std::size_t characters(std::size_t at) {
    const std::size_t begin = at;
    while (at < in_.size() && !is_special(in_[at]) && in_[at] != '\n') {
      bool valid = true;
      const std::size_t step =
          static_cast<unsigned char>(in_[at]) < 0x80 ? 1 : utf8_step(in_, at, valid);
      if (!valid) {
        write({begin, at, false});
        write({at, at + step, true});
        return at + step;
      }
      at += step;
    }
    write({begin, at, false});
    return at;
  }

  std::size_t carriage_return(std::size_t at) {
    while (at < in_.size() && in_[at] == '\r') ++at;
    if (at == in_.size() || in_[at] == '\n') return at;
    to_first_column();
    return at;
  }

  void to_first_column() {
    while (!left_.empty()) {
      right_.push_back(left_.back());
      left_.pop_back();
    }
  }

  void backspace() {
    if (left_.empty()) return;
    Piece& last = left_.back();
    std::size_t cell = last.end - 1;
    if (last.invalid) cell = last.begin;
    while (cell > last.begin && is_continuation(in_[cell])) --cell;
    right_.push_back({cell, last.end, last.invalid});
    last.end = cell;
    if (last.begin == last.end) left_.pop_back();
  }

  std::size_t escape(std::size_t at) {
    const std::size_t kind = at + 1;
    if (kind >= in_.size()) return kind;
    const char c = in_[kind];
    if (c == '[') return control_sequence(kind + 1);
    if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_') return control_string(kind + 1);
    std::size_t end = kind;
    while (end < in_.size() && in_[end] >= 0x20 && in_[end] <= 0x2F) ++end;
    return end < in_.size() && in_[end] >= 0x30 && in_[end] <= 0x7E ? end + 1 : end;
  }

  std::size_t control_sequence(std::size_t at) {
    const std::size_t begin = at;
    while (at < in_.size() && in_[at] >= 0x20 && in_[at] <= 0x3F) ++at;
    if (at == in_.size() || in_[at] < 0x40 || in_[at] > 0x7E) return at;
    const std::string_view parameter = in_.substr(begin, at - begin);
    if (in_[at] == 'K') erase(parameter);
    if (in_[at] == 'D') back(parameter);
    if (in_[at] == 'G' && (parameter.empty() || parameter == "1")) to_first_column();
    return at + 1;
  }

  // Cursor back, in cells: 1 where no number is given.
  void back(std::string_view parameter) {
    std::size_t cells = 0;
    for (const char c : parameter) {
      if (c < '0' || c > '9') return;
      cells = std::min(cells * 10 + static_cast<std::size_t>(c - '0'), in_.size());
    }
    for (cells = std::max<std::size_t>(cells, 1); cells > 0 && !left_.empty(); --cells) backspace();
  }

  void erase(std::string_view parameter) {
    const bool before = parameter == "1" || parameter == "2";
    if (before) left_.clear();
    if (parameter != "1") right_.clear();
  }

  // Up to BEL or ESC backslash. One that is not closed on its line loses only its introducer: what
  // follows may well be the message.
  std::size_t control_string(std::size_t begin) {
    std::size_t at = begin;
    const char line_end = lines_by_cr_ ? '\r' : '\n';
    while (at < in_.size() && in_[at] != '\a' && in_[at] != kEscape && in_[at] != line_end) ++at;
    if (at < in_.size() && in_[at] == '\a') return at + 1;
    if (at + 1 < in_.size() && in_[at] == kEscape && in_[at + 1] == '\\') return at + 2;
    return begin;
  }

  void write(Piece piece) {
    if (piece.begin == piece.end) return;
    left_.push_back(piece);
    while (piece.begin < piece.end && !right_.empty()) {
      const std::size_t dropped = drop_front(in_, right_.back(), 1);
      if (right_.back().begin == right_.back().end) right_.pop_back();
      drop_front(in_, piece, dropped);
    }
  }

  void end_line() {
    for (const Piece& piece : left_) emit(piece);
    for (auto piece = right_.rbegin(); piece != right_.rend(); ++piece) emit(*piece);
    left_.clear();
    right_.clear();
  }

  void emit(Piece piece) {
    if (piece.begin == piece.end) return;
    map(piece.begin, piece.end - piece.begin, piece.invalid);
    out_.cleaned_ +=
        piece.invalid ? kReplacement : in_.substr(piece.begin, piece.end - piece.begin);
  }

  void map(std::size_t original, std::size_t length, bool invalid = true) {
    auto& runs = out_.runs_;
    if (!runs.empty() && !invalid && !last_invalid_ &&
        runs.back().original + runs.back().length == original) {
      runs.back().length += length;
    } else {
      runs.push_back({out_.cleaned_.size(), original, length});
    }
    last_invalid_ = invalid;
  }

  CleanText& out_;
  std::string_view in_;
  bool lines_by_cr_ = false;
  bool last_invalid_ = false;
  std::vector<Piece> left_;
  std::vector<Piece> right_;
};

CleanText::CleanText(std::string_view original) : original_(original) {
  Cleaner(*this).run();
  if (borrowed_) runs_.push_back({0, 0, original.size()});
}

const CleanText::Run& CleanText::run_at(std::size_t cleaned) const {
  const auto after =
      std::upper_bound(runs_.begin(), runs_.end(), cleaned,
                       [](std::size_t at, const Run& run) { return at < run.cleaned; });
  return *(after - 1);
}

Span CleanText::original(Span cleaned) const {
  if (runs_.empty()) return {original_.size(), original_.size()};
  const Run& first = run_at(cleaned.begin);
  const std::size_t begin = first.original + std::min(cleaned.begin - first.cleaned, first.length);
  if (cleaned.begin >= cleaned.end) return {begin, begin};
  const Run& last = run_at(cleaned.end - 1);
  const std::size_t end = last.original + std::min(cleaned.end - last.cleaned, last.length);
  // U+FFFD has three bytes where its original has one to three: `min` above ends at the original's.
  return begin <= end ? Span{begin, end} : Span{last.original, first.original + first.length};
}

std::size_t utf8_step(std::string_view text, std::size_t at, bool& valid) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const unsigned lead = byte(0);
  valid = lead < 0x80;
  if (valid) return 1;
  std::size_t size = 0;
  unsigned low = 0x80, high = 0xBF;  // bounds of the second byte
  if (lead >= 0xC2 && lead <= 0xDF) size = 2;
  if (lead >= 0xE0 && lead <= 0xEF) size = 3;
  if (lead >= 0xF0 && lead <= 0xF4) size = 4;
  if (size == 0) return 1;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  if (byte(1) < low || byte(1) > high) return 1;
  for (std::size_t i = 2; i < size; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return i;
  }
  valid = !(lead == 0xED && byte(1) > 0x9F);
  return size;
}

std::size_t code_points_before(std::string_view text, std::size_t at) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(at, text.size()); ++i) count += !is_continuation(text[i]);
  return count;
}

std::string_view utf8_prefix(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && is_continuation(text[limit])) --limit;
  return text.substr(0, limit);
}

}  // namespace loki
