#include "loki/recognition/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace loki {
namespace {

constexpr char kEscape = '\x1b';
// A line in more pieces is shown in parts, and the cursor does not move back into what was shown:
// memory stays small (chosen; 1.5 MB).
constexpr std::size_t kMostPieces = 65536;
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
          map(at, 1, "\n");
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
    if (!right_.empty() && right_.back().begin == last.end && !last.invalid &&
        !right_.back().invalid) {
      right_.back().begin = cell;
    } else {
      right_.push_back({cell, last.end, last.invalid});
    }
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
    if (left_.size() + right_.size() >= kMostPieces) end_line();
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
    const std::size_t length = piece.end - piece.begin;
    const std::string_view shown = piece.invalid ? kReplacement : in_.substr(piece.begin, length);
    map(piece.begin, length, shown);
  }

  void map(std::size_t original, std::size_t length, std::string_view shown) {
    out_.map_.add(original, length, shown.size());
    std::string& cleaned = out_.cleaned_;
    // At most this many, where all is replaced; memory that is not written to costs nothing.
    if (cleaned.size() + shown.size() > cleaned.capacity()) {
      cleaned.reserve(kReplacement.size() * in_.size());
    }
    cleaned += shown;
  }

  CleanText& out_;
  std::string_view in_;
  bool lines_by_cr_ = false;
  std::vector<Piece> left_;
  std::vector<Piece> right_;
};

CleanText::CleanText(std::string_view original) : original_(original) {
  Cleaner(*this).run();
  if (borrowed_) map_.add(0, original.size(), original.size());
}

std::vector<CleanText::Run> CleanText::runs() const {
  std::vector<Run> runs;
  map_.each([&](const TextMap::Stretch& stretch) {
    if (stretch.is_exact()) {
      runs.push_back({stretch.cleaned, stretch.original, stretch.length});
      return;
    }
    Run run{stretch.cleaned, stretch.original, 0};
    const std::size_t end = stretch.original + stretch.length;
    for (std::size_t at = stretch.original, shown = stretch.cleaned; at < end;) {
      bool valid = false;
      const std::size_t step = utf8_step(original_, at, valid);
      if (!valid) {
        if (run.length > 0) runs.push_back(run);
        runs.push_back({shown, at, step});
        run = {shown + kReplacement.size(), at + step, 0};
      } else {
        run.length += step;
      }
      at += step;
      shown += valid ? step : kReplacement.size();
    }
    if (run.length > 0) runs.push_back(run);
  });
  return runs;
}

// Where the character that holds this byte of the cleaned text stands, and so many bytes behind it,
// but not behind its end: U+FFFD has three bytes where its original has one to three.
std::size_t CleanText::place(const TextMap::Stretch& stretch, std::size_t cleaned,
                             std::size_t more) const {
  const std::size_t end = stretch.original + stretch.length;
  if (stretch.is_exact())
    return std::min(stretch.original + (cleaned + more - stretch.cleaned), end);
  for (std::size_t at = stretch.original, shown = stretch.cleaned; at < end;) {
    bool valid = false;
    const std::size_t step = utf8_step(original_, at, valid);
    const std::size_t width = valid ? step : kReplacement.size();
    if (cleaned < shown + width) return at + std::min(cleaned + more - shown, step);
    at += step;
    shown += width;
  }
  return end;
}

Span CleanText::original(Span cleaned) const {
  if (map_.empty()) return {original_.size(), original_.size()};
  const TextMap::Stretch first = map_.at(cleaned.begin);
  const std::size_t begin = place(first, cleaned.begin, 0);
  if (cleaned.begin >= cleaned.end) return {begin, begin};
  const TextMap::Stretch last = map_.at(cleaned.end - 1);
  const std::size_t end = place(last, cleaned.end - 1, 1);
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
