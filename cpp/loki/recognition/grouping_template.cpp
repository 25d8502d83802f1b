#include "loki/recognition/grouping_template.hpp"

#include <algorithm>
#include <cstddef>

#include "loki/recognition/grouping_words.hpp"
#include "loki/recognition/normalize.hpp"
#include "loki/recognition/text.hpp"

namespace loki::grouping {
namespace {

constexpr std::size_t kLongestText = 1 << 20;
constexpr std::size_t kLongestQuote = 300;  // bytes; all constants here: chosen, not measured
constexpr std::size_t kLongestValue = 40;   // tokens of a bracketed value after '='

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return normalizing::is_word(c);
}
bool is_one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}
// What may stand inside a name, a path or an address.
bool is_inner(char c) {
  return is_word(c) || is_one_of(c, "$@%~\\/+*#.:!?^&-");
}
bool is_sentence_mark(char c) {
  return is_one_of(c, ".:!?");
}

// Size of <kind> at the front, which normalization wrote; 0 where there is none.
std::size_t placeholder(std::string_view text) {
  if (text.empty() || text.front() != '<') return 0;
  std::size_t i = 1;
  while (i < text.size() && ((text[i] >= 'a' && text[i] <= 'z') || text[i] == '-')) ++i;
  return i > 1 && i < text.size() && text[i] == '>' ? i + 1 : 0;
}

bool is_http_method(std::string_view word) {
  return word == "GET" || word == "POST" || word == "PUT" || word == "DELETE" || word == "HEAD" ||
         word == "PATCH" || word == "OPTIONS";
}

// A path or a qualified name: an argument even where it has no digit.
bool is_path_like(std::string_view text) {
  if (text.empty()) return false;
  if (text.front() == '/' || text.front() == '\\') return true;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (!is_one_of(text[i], "/\\") || !is_word(text[i - 1])) continue;
    const std::size_t next = text[i + 1] == '.' ? i + 2 : i + 1;
    if (next < text.size() && is_word(text[next])) return true;
  }
  return std::count(text.begin(), text.end(), '.') >= 2;
}

using Tokens = std::vector<TemplateToken>;

// Cuts a normalized text into tokens.
class Cutter {
 public:
  explicit Cutter(std::string_view text) : text_(text) {}

  Tokens tokens() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_space(c)) {
        ++at_;
        is_spaced_ = true;
      } else if (is_one_of(c, "`\"'") && quoted(c)) {
      } else if (is_inner(c) || placeholder(text_.substr(at_)) != 0 || is_bound(at_)) {
        chunk();
      } else {
        add(TokenKind::kMark, at_, at_ + 1);
        ++at_;
      }
    }
    return std::move(tokens_);
  }

 private:
  void add(TokenKind kind, std::size_t begin, std::size_t end) {
    if (begin == end) return;
    tokens_.push_back(
        {kind, is_spaced_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    is_spaced_ = false;
  }

  // An argument in quotes; what stands in the quotes of a request begins with its method, a word.
  bool quoted(char quote) {
    if (at_ > 0 && (is_word(text_[at_ - 1]) || is_one_of(text_[at_ - 1], ")]"))) return false;
    const std::size_t limit = std::min(text_.size(), at_ + kLongestQuote);
    std::size_t end = at_ + 1;
    while (end < limit && text_[end] != quote && text_[end] != '\n') ++end;
    if (end >= limit || text_[end] != quote) return false;
    if (quote == '\'' && end + 1 < text_.size() && is_word(text_[end + 1])) return false;
    const std::size_t space = text_.substr(at_ + 1, end - at_ - 1).find(' ');
    if (space != std::string_view::npos && is_http_method(text_.substr(at_ + 1, space))) {
      add(TokenKind::kMark, at_, at_ + 1);
      add(TokenKind::kWord, at_ + 1, at_ + 1 + space);
      add(TokenKind::kHole, at_ + 2 + space, end);
    } else {
      add(TokenKind::kQuoted, at_ + 1, end);
      if (end == at_ + 1) add(TokenKind::kMark, at_, at_ + 1);  // "": a mark, nothing is quoted
    }
    at_ = end + 1;
    return true;
  }

  // "<1 sec", ">5": how a number compares belongs to it.
  bool is_bound(std::size_t at) const {
    const std::string_view rest = text_.substr(at + 1);
    return is_one_of(text_[at], "<>") && !rest.empty() &&
           (normalizing::is_digit(rest.front()) || placeholder(rest) != 0);
  }

  // A run of characters that belong together: words, names, paths, numbers.
  void chunk() {
    const std::size_t begin = at_;
    bool is_variable = is_bound(at_), is_word_like = false;
    at_ += is_variable && placeholder(text_.substr(at_)) == 0;
    std::size_t last_placeholder = begin;
    while (at_ < text_.size()) {
      if (const std::size_t size = placeholder(text_.substr(at_))) {
        at_ += size;
        last_placeholder = at_;
        is_variable = true;
      } else if (is_inner(text_[at_])) {
        is_variable = is_variable || normalizing::is_digit(text_[at_]);
        is_word_like = is_word_like || is_word(text_[at_]);
        ++at_;
      } else {
        break;
      }
    }
    std::size_t end = at_;
    const std::string_view all = text_.substr(begin, end - begin);
    // "****": an argument that somebody masked.
    is_variable = is_variable || (all.size() > 1 && all.find_first_not_of('*') == all.npos);
    if (is_word_like || is_variable) {
      while (end > last_placeholder && is_sentence_mark(text_[end - 1])) --end;
    }
    if (is_variable) {
      label(begin, end);
    } else if (is_word_like) {
      names(begin, end);
    } else {
      end = begin;
    }
    add(TokenKind::kMark, end, at_);
  }

  // "name:<int>": the name is a word, the rest an argument.
  void label(std::size_t begin, std::size_t end) {
    std::size_t colon = begin, dots = 0;
    for (; colon < end && (is_letter(text_[colon]) || is_one_of(text_[colon], "_.-")); ++colon) {
      dots += text_[colon] == '.';
    }
    if (colon > begin && colon + 1 < end && text_[colon] == ':' && dots < 2) {
      add(TokenKind::kWord, begin, colon);
      add(TokenKind::kMark, colon, colon + 1);
      begin = colon + 1;
    }
    add(TokenKind::kHole, begin, end);
  }

  // Words joined by ':' are words of their own, but not in `Type::name` and `scheme://host`.
  void names(std::size_t begin, std::size_t end) {
    const std::string_view all = text_.substr(begin, end - begin);
    const bool is_whole = all.find("::") != std::string_view::npos ||
                          all.find("//") != std::string_view::npos ||
                          all.find('\\') != std::string_view::npos;
    for (std::size_t at = begin; at < end;) {
      const std::size_t found = is_whole ? all.npos : all.find(':', at - begin);
      const std::size_t colon = found == all.npos ? end : begin + found;
      const std::string_view name = text_.substr(at, colon - at);
      const bool has_word = std::any_of(name.begin(), name.end(), is_word);
      const bool is_hole = is_constant_value(name) || is_path_like(name);
      add(!has_word ? TokenKind::kMark : is_hole ? TokenKind::kHole : TokenKind::kWord, at, colon);
      if (colon < end) add(TokenKind::kMark, colon, colon + 1);
      at = colon + 1;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool is_spaced_ = false;
  Tokens tokens_;
};

// The steps from a text's tokens to its template, each over the whole list.
class Shaper {
 public:
  Shaper(std::string_view text, Tokens tokens) : text_(text), tokens_(std::move(tokens)) {}

  Tokens shaped() {
    fill_values();
    while (!tokens_.empty() && is_mark(tokens_.back(), ".!")) tokens_.pop_back();
    join_lists();
    drop_advice();
    return std::move(tokens_);
  }

 private:
  std::string_view said(const TemplateToken& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }
  static bool is_hole(const TemplateToken& token) {
    return token.kind == TokenKind::kHole || token.kind == TokenKind::kQuoted;
  }
  bool is_mark(const TemplateToken& token, std::string_view of) const {
    if (token.kind != TokenKind::kMark) return false;
    const std::string_view text = said(token);
    return std::all_of(text.begin(), text.end(), [&](char c) { return is_one_of(c, of); });
  }

  // key=value: the value is an argument, with the brackets that follow it at once. It may be empty.
  void fill_values() {
    Tokens out;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      out.push_back(tokens_[i]);
      if (!is_mark(tokens_[i], "=") || is_line(i)) continue;
      if (!has_value(i)) {
        const bool is_key = i > 0 && tokens_[i - 1].kind == TokenKind::kWord &&
                            !(i + 1 < tokens_.size() && is_mark(tokens_[i + 1], "="));
        if (is_key) out.push_back({TokenKind::kHole, false, tokens_[i].end, tokens_[i].end});
        continue;
      }
      TemplateToken value = tokens_[++i];
      if (value.kind == TokenKind::kWord) {
        i = bracketed(i);
        value.kind = TokenKind::kHole;
        value.end = tokens_[i].end;
      }
      out.push_back(value);
    }
    tokens_ = std::move(out);
  }

  // "===" draws a line. Asked from left to right.
  bool is_line(std::size_t i) {
    if (i >= run_end_) {
      run_end_ = i + 1;
      while (run_end_ < tokens_.size() && is_mark(tokens_[run_end_], "=")) ++run_end_;
      run_is_line_ = run_end_ - i > 2;
    }
    return run_is_line_;
  }

  // Behind the '=' at i stands a value, and not the next key.
  bool has_value(std::size_t i) const {
    if (i + 1 >= tokens_.size() || tokens_[i + 1].kind == TokenKind::kMark) return false;
    return !(tokens_[i + 1].kind == TokenKind::kWord && tokens_[i + 1].is_spaced &&
             i + 2 < tokens_.size() && is_mark(tokens_[i + 2], "="));
  }

  // Index of the bracket that closes the one right behind token i; i where there is none.
  std::size_t bracketed(std::size_t i) const {
    if (i + 1 >= tokens_.size() || tokens_[i + 1].is_spaced) return i;
    const std::string_view open = said(tokens_[i + 1]);
    const std::string_view close = open == "{" ? "}" : open == "[" ? "]" : open == "(" ? ")" : "";
    if (close.empty()) return i;
    std::size_t depth = 0;
    for (std::size_t k = i + 1; k < std::min(tokens_.size(), i + 1 + kLongestValue); ++k) {
      if (said(tokens_[k]) == open) ++depth;
      if (said(tokens_[k]) == close && --depth == 0) return k;
    }
    return i;
  }

  // "1, 2 and 3" has as many arguments as it likes: one hole. A unit belongs to its number.
  void join_lists() {
    Tokens out;
    for (const TemplateToken& token : tokens_) {
      if (is_hole(token)) {
        if (TemplateToken* first = list_before(out)) {
          first->kind = first->kind == token.kind ? token.kind : TokenKind::kHole;
          first->end = token.end;
          out.resize(static_cast<std::size_t>(first - out.data()) + 1);
          continue;
        }
      } else if (token.kind == TokenKind::kWord && token.is_spaced && !out.empty() &&
                 is_hole(out.back()) && is_unit(said(token))) {
        continue;
      }
      out.push_back(token);
    }
    tokens_ = std::move(out);
  }

  // The hole that ends `out` but for up to two separators; nullptr where there is none. A full
  // stop ends a list.
  TemplateToken* list_before(Tokens& out) const {
    if (out.empty() || (!is_hole(out.back()) && said(out.back()).front() == '.')) return nullptr;
    const std::size_t most = std::min<std::size_t>(3, out.size());
    for (std::size_t back = 1; back <= most; ++back) {
      TemplateToken& token = out[out.size() - back];
      if (is_hole(token)) return &token;
      const bool is_joint =
          token.kind == TokenKind::kWord && (said(token) == "and" || said(token) == "or");
      if (!is_joint && !is_mark(token, ",;:|/-.+")) return nullptr;
    }
    return nullptr;
  }

  // "unused; consider removing it": the advice may be there or not, the message is the same.
  void drop_advice() {
    std::size_t content = 0;
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
      const TemplateToken& token = tokens_[i];
      content += token.kind == TokenKind::kWord && !is_generic(singular(said(token)));
      if (content < 2 || token.kind != TokenKind::kMark || !is_one_of(said(token).back(), ".;(!"))
        continue;
      const TemplateToken& next = tokens_[i + 1];
      if (next.kind != TokenKind::kWord) continue;
      const bool has_second = i + 2 < tokens_.size() && tokens_[i + 2].kind == TokenKind::kWord;
      if (is_advice(said(next)) || (has_second && is_advice(said(next), said(tokens_[i + 2])))) {
        tokens_.resize(i);
      }
    }
  }

  std::string_view text_;
  Tokens tokens_;
  std::size_t run_end_ = 0;  // of the equal signs that were looked at last
  bool run_is_line_ = false;
};

}  // namespace

MessageTemplate::MessageTemplate(std::string_view text)
    : normalized_(normalize(CleanText(text.substr(0, kLongestText)).text())) {
  tokens_ = Shaper(normalized_, Cutter(normalized_).tokens()).shaped();
  const bool has_word = std::any_of(tokens_.begin(), tokens_.end(), [](const auto& token) {
    return token.kind == TokenKind::kWord;
  });
  if (!has_word) {
    const auto size = static_cast<std::uint32_t>(normalized_.size());
    tokens_ = {{TokenKind::kMark, false, 0, size}};
  }
}

std::string_view MessageTemplate::text(const TemplateToken& token) const {
  const auto said = std::string_view(normalized_).substr(token.begin, token.end - token.begin);
  return token.kind == TokenKind::kWord ? singular(said) : said;
}

}  // namespace loki::grouping
