#include "loki/recognition/normalize.hpp"

#include <algorithm>
#include <array>

#include "loki/recognition/scan.hpp"

namespace loki {
namespace {

using namespace normalizing;

constexpr std::array<std::string_view, 18> kPlaceholders = {
    "<time>",    "<duration>", "<uuid>",    "<hex>",   "<sha>",  "<ip>",
    "<mac>",     "<url>",      "<email>",   "<tmp>",   "<home>", "<pos>",
    "<percent>", "<size>",     "<version>", "<float>", "<int>",  "<secret>"};
constexpr std::string_view kString = "<str>";

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Bytes at which a rule may begin; all others are copied in stretches.
constexpr std::array<bool, 256> kBegins = [] {
  std::array<bool, 256> begins{};
  for (std::size_t c = 0; c < begins.size(); ++c) {
    begins[c] = kWord[c] || c == '<' || c == '/' || c == ':' || c == '-' || c == '+' || c == '\'' ||
                c == '"' || c == '`';
  }
  return begins;
}();

constexpr std::array<bool, 256> kUrl = [] {
  std::array<bool, 256> url{};
  for (std::size_t c = 1; c < url.size(); ++c) {
    url[c] = std::string_view(" \t\n\r\"'<>`|\\^{}()[],;").find(static_cast<char>(c)) ==
             std::string_view::npos;
  }
  return url;
}();

// Whether a path may begin there, behind this byte: not inside another one, nor behind a
// placeholder; but as the value of a flag: --root=/home/me, -I/home/me/include.
bool begins_path(std::string_view text, std::size_t i, char before) {
  if (before == '=') return true;
  if (i >= 2 && text[i] == '/' && text[i - 2] == '-' && (before == 'I' || before == 'L')) {
    return i == 2 || is_space(text[i - 3]) || text[i - 3] == '"' || text[i - 3] == '\'';
  }
  return !is_path(before) && before != '/' && before != '>' && before != '\\';
}

// The text without the project's root before its paths. It goes before all else is read, so that
// what stands behind a root is read as if it always had stood alone.
std::string without_root(std::string_view text, std::string_view root) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t i = text.find(root); i < text.size(); i = text.find(root, i + 1)) {
    const std::size_t behind = i + root.size();
    const bool is_after_symbol = i >= kSymbolSize && is_symbol(text, i - kSymbolSize);
    const char before = i == 0 || is_after_symbol ? ' ' : text[i - 1];
    if (at(text, behind) != '/' || !is_path(text, behind + 1) || !begins_path(text, i, before)) {
      continue;
    }
    out += text.substr(done, i - done);
    done = behind + 1;
  }
  return out += text.substr(done);
}

class Normalizer {
 public:
  Normalizer(std::string_view text, Level level) : text_(text), level_(level) {
    out_.reserve(text.size());
  }

  std::string run() {
    while (at_ < text_.size()) {
      if (!kBegins[static_cast<unsigned char>(text_[at_])]) {
        ++at_;
      } else if (level_ == Level::kSecrets) {
        if (!private_key() && !masked()) ++at_;
      } else if (!begins()) {
        ++at_;
      }
    }
    flush();
    return std::move(out_);
  }

 private:
  char ahead(std::size_t i) const { return at_ + i < text_.size() ? text_[at_ + i] : '\0'; }
  char last() const {
    const std::string_view before = at_ > flushed_ ? text_.substr(0, at_) : std::string_view(out_);
    if (before.empty()) return ' ';
    const bool is_ascii = static_cast<unsigned char>(before.back()) < 0x80;
    if (is_ascii || before.size() < kSymbolSize) return before.back();
    return is_symbol(before, before.size() - kSymbolSize) ? ' ' : before.back();
  }
  std::string_view rest() const { return text_.substr(at_); }

  // What was read since the last placeholder stays as it is.
  void flush() {
    out_ += text_.substr(flushed_, at_ - flushed_);
    flushed_ = at_;
  }

  bool put(const Found& found) {
    if (!found) return false;
    flush();
    out_ += found.placeholder;
    at_ += found.size;
    flushed_ = at_;
    return true;
  }

  bool begins() {
    const char c = ahead(0);
    if (is_symbol(text_, at_)) return symbol();
    if (is_word(c)) return ahead(1) == ':' && path() ? true : word();
    if (c == '<') return placeholder();
    if (c == '/') return path();
    if (c == ':') return loopback();
    if (c == '-' || c == '+') return private_key() || signed_number();
    return quoted();
  }

  bool private_key() {
    const bool is_key = ahead(0) == '-' && ahead(1) == '-';
    return is_key && put({private_key_size(rest()), "<secret>"});
  }

  // Level kSecrets: everything stays but keys, tokens, and the password of a URL.
  bool masked() {
    if (!is_word(text_, at_) || is_word(last())) return false;
    if (const std::size_t url = url_size()) {
      if (const std::size_t hook = webhook_size(rest().substr(0, url))) {
        at_ += hook;
        return put({url - hook, "<secret>"});
      }
      const std::size_t authority = rest().find("://") + 3;
      const std::size_t end = std::min(url, rest().find('/', authority));
      const std::size_t host = rest().substr(0, end).rfind('@');
      const std::size_t colon = rest().find(':', authority);
      if (host == std::string_view::npos || colon >= host) return false;
      const std::size_t password = at_ + colon + 1, end_of_it = at_ + host;
      for (at_ += authority; at_ < password;) at_ += masked() ? 0 : 1;  // the user's name
      if (at_ >= end_of_it) return true;
      return put({end_of_it - at_, "<secret>"});
    }
    if (!secret()) plain_word();
    return true;
  }

  bool placeholder() {
    if (ahead(0) != '<') return false;
    if (rest().starts_with(kString)) return put({kString.size(), kString});
    for (const std::string_view known : kPlaceholders) {
      if (rest().starts_with(known)) return put({known.size(), known});
    }
    return false;
  }

  // Absolute paths: temp and home folders are named.
  bool path() {
    const char before = last();
    if (!begins_path(text_, at_, before) && !is_verbatim()) return false;
    return put(folder(rest()));
  }

  // \\?\C:\Users\me.
  bool is_verbatim() const { return text_.substr(0, at_).ends_with("\\\\?\\"); }

  // U+2018 and U+201C quote as ' and " do.
  bool symbol() {
    const std::string_view character = rest().substr(0, kSymbolSize);
    if (level_ == Level::kTemplate && last() != '>' && !is_word(last())) {
      if (character == "\u2018" && put(up_to("\u2019", 3))) return true;
      if (character == "\u201C" && put(up_to("\u201D", 4))) return true;
    }
    at_ += character.size();
    return true;
  }

  // Template level: 'x', "x", `x` and `x' on one line, not apostrophes inside or behind words.
  bool quoted() {
    const char quote = ahead(0);
    if (level_ != Level::kTemplate || (quote != '\'' && quote != '"' && quote != '`')) return false;
    if (is_word(last()) || last() == '>' || last() == quote) return false;
    const std::size_t kind = quote == '\'' ? 0 : quote == '"' ? 1 : 2;
    return put(up_to(kind == 2 ? "`'" : rest().substr(0, 1), kind));
  }

  // Up to one of `closers`, or the one of three bytes. Where nothing on this line closes it, the
  // line's end is remembered and not searched again.
  Found up_to(std::string_view closers, std::size_t kind) {
    const bool is_wide = closers.size() == kSymbolSize;
    const std::size_t width = is_wide ? kSymbolSize : 1;
    const auto is_closer = [&](std::size_t i) {
      return is_wide ? text_.substr(i, width) == closers
                     : closers.find(text_[i]) != std::string_view::npos;
    };
    std::size_t& closer = closers_[kind];
    if (closer <= at_) {
      closer = at_ + width;
      while (closer < text_.size() && text_[closer] != '\n' &&
             !(is_closer(closer) && closes(closer + width))) {
        ++closer;
      }
    }
    if (closer >= text_.size() || !is_closer(closer)) return {};
    return {closer + width - at_, kString};
  }

  // A character behind it that a placeholder could replace ('<' stands for those) keeps it open.
  bool closes(std::size_t i) const {
    const char next = i < text_.size() ? text_[i] : ' ';
    return ends_word(text_, i) && next != '<' && next != '-' && next != '+' && next != '/' &&
           next != '\'' && next != '"' && next != '`';
  }

  bool signed_number() {
    if (ahead(0) != '-' && ahead(0) != '+') return false;
    const char before = last();
    if (is_word(before) || before == '>' || before == '-' || before == '+' || before == '.' ||
        before == ')' || before == '/') {
      return false;
    }
    if (!is_digit(ahead(1))) return false;
    const std::string_view behind = text_.substr(at_ + 1);
    if (timestamp(behind) || hexadecimal(behind) || mail_size(at_ + 1) != 0) return false;
    const Found found = number(behind);
    return found && put({found.size + 1, found.placeholder});
  }

  // ::1 and ::ffff:1, but not what Type::method has.
  bool loopback() {
    if (ahead(1) != ':' || is_word(last()) || last() == '>' || last() == ':') return false;
    const Found found = hexadecimal(rest());
    return found && is_digit(text_[at_ + found.size - 1]) && put(found);
  }

  bool word() {
    const char c = ahead(0);
    if (is_word(last())) return false;
    // Behind a placeholder that was glued to it, the rest of a word stays the rest of a word.
    if (level_ == Level::kTemplate && last() == '>') {
      plain_word();
      return true;
    }
    if (position()) return true;
    if (const std::size_t size = url_size()) return put({size, "<url>"});
    if (const std::size_t size = mail_size(at_)) return put({size, "<email>"});
    const bool is_number = is_digit(c);
    const bool is_upper = c >= 'A' && c <= 'Z';
    if ((is_number || is_upper) && put(timestamp(rest()))) return true;
    if (is_upper && log_time(rest().substr(1))) {
      ++at_;  // the level's letter stays
      return put(log_time(rest()));
    }
    if (is_hex(c) && put(hexadecimal(rest()))) return true;
    if ((is_number || c == 'v' || c == 'V') && put(number(rest()))) return true;
    if (!secret()) plain_word();
    return true;
  }

  // file.py:12:5 and file.py:12: the numbers behind a path are a position.
  bool position() {
    if (!is_digit(ahead(0)) || last() != ':') return false;
    flush();
    if (out_.size() < 3) return false;
    std::size_t dot = out_.size() - 1;
    while (dot > 0 && out_.size() - dot < 8 && is_word(out_[dot - 1])) --dot;
    if (dot == out_.size() - 1 || dot < 2 || out_[dot - 1] != '.' || is_digit(out_[dot]))
      return false;
    if (!is_word(out_[dot - 2])) return false;
    std::size_t size = 0;
    while (is_digit(ahead(size))) ++size;
    if (ahead(size) == ':' && is_digit(ahead(size + 1))) {
      std::size_t end = size + 1;
      while (is_digit(ahead(end))) ++end;
      if (ends_word(text_, at_ + end)) size = end;
    }
    if (!ends_word(text_, at_ + size) || (ahead(size) == '.' && is_digit(ahead(size + 1))))
      return false;
    return put({size, "<pos>"});
  }

  // The next place of `what` from `from` on; `known` keeps it, so that no stretch is searched
  // twice.
  std::size_t next(std::string_view what, std::size_t from, std::size_t& known) const {
    if (known < from || known == 0) known = std::min(text_.find(what, from), text_.size());
    return known;
  }

  std::size_t url_size() {
    constexpr std::size_t kLongestScheme = 12;
    const std::size_t scheme = next("://", at_, next_scheme_) - at_;
    if (scheme < 2 || scheme > kLongestScheme || is_digit(ahead(0))) return 0;
    if (next_scheme_ == text_.size()) return 0;  // there is none
    for (std::size_t k = 0; k < scheme; ++k) {
      if (!is_word(ahead(k)) && ahead(k) != '+') return 0;
      if (ahead(k) == '_' || static_cast<unsigned char>(ahead(k)) >= 0x80) return 0;
    }
    const std::size_t begin = scheme + 3;
    std::size_t i = begin + bracketed_size(rest().substr(begin));
    if (at_ + i < url_end_) i = url_end_ - at_;  // of an address in one that was read
    while (kUrl[static_cast<unsigned char>(ahead(i))] && !is_symbol(text_, at_ + i)) ++i;
    url_end_ = at_ + i;
    while (i > begin && std::string_view(".:!?").find(ahead(i - 1)) != std::string_view::npos) --i;
    return i > begin ? i : 0;
  }

  std::size_t mail_size(std::size_t from) {
    const std::size_t at_sign = next("@", from, next_mail_);
    if (at_sign == text_.size() || at_sign == no_mail_) return 0;
    if (at_sign != mail_at_) {
      mail_at_ = mail_from_ = at_sign;
      while (mail_from_ > from && is_mailbox(text_[mail_from_ - 1])) --mail_from_;
    }
    if (from < mail_from_ || from == at_sign) return 0;
    // A dot or a dash belongs to the domain where a letter follows: what follows otherwise may be
    // a number, which a second pass would not see.
    const auto letter = [&](std::size_t k) {
      return k < text_.size() && is_word(text_[k]) && !is_digit(text_[k]) &&
             static_cast<unsigned char>(text_[k]) < 0x80;
    };
    const std::size_t begin = at_sign + 1;
    std::size_t end = begin, dots = 0;
    for (; letter(end) || (end > begin && end < text_.size() && is_digit(text_[end])) ||
           (end < text_.size() && (text_[end] == '.' || text_[end] == '-') && letter(end + 1));
         ++end) {
      if (end - at_sign > 255) break;
      dots += text_[end] == '.';
    }
    const bool ends = ends_word(text_, end) && at(text_, end) != '<' && at(text_, end) != '-';
    if (dots > 0 && ends && end - at_sign <= 255) return end - from;
    no_mail_ = at_sign;  // whatever stands before it
    return 0;
  }

  bool secret() {
    if (may_be_key(ahead(0), ahead(1))) {
      std::size_t plain = plain_end_ > at_ ? plain_end_ - at_ : 0;
      const std::size_t begin = at_;
      if (put({key_size(rest(), plain), "<secret>"})) return true;
      plain_end_ = begin + plain;
    }
    if (!may_name_secret(rest())) return false;
    const bool is_flag = at_ >= 2 && last() == '-' && text_[at_ - 2] == '-';
    const NamedSecret found = named_secret(rest(), is_flag);
    if (found.size == 0) return false;
    const std::size_t name = at_ + found.name, begin = at_ + found.begin;
    plain_word();
    // The other words of the name are read as they would be behind no secret.
    while (at_ < name) {
      if (!is_word(text_, at_) || !(level_ == Level::kSecrets ? masked() : word())) ++at_;
    }
    if (at_ >= begin) return true;  // one of them found it too
    at_ = begin;
    return put({found.size, "<secret>"});
  }

  void plain_word() {
    std::size_t size = 0;
    while (is_word(text_, at_ + size)) ++size;
    const std::size_t end = at_ + size;
    while (level_ == Level::kTemplate && at_ < end) {
      const std::size_t numerals = digits(text_, at_, end - at_);
      if (!put({numerals, "<int>"})) ++at_;
    }
    at_ = end;
  }

  std::string_view text_;
  Level level_;
  std::size_t at_ = 0;
  std::size_t flushed_ = 0;  // text before it is in out_, as it was or replaced
  std::string out_;
  std::array<std::size_t, 5> closers_{};  // by the kind of quote
  // The next '@' that was looked at, where what may stand before it begins, and one that is in no
  // address.
  std::size_t mail_at_ = std::string_view::npos, mail_from_ = 0;
  std::size_t no_mail_ = std::string_view::npos;
  std::size_t plain_end_ = 0, url_end_ = 0;
  std::size_t next_scheme_ = 0, next_mail_ = 0;
};

}  // namespace

std::string normalize(std::string_view text, Level level, std::string_view root) {
  while (root.ends_with('/')) root.remove_suffix(1);
  if (root.empty() || level == Level::kSecrets || text.find(root) == std::string_view::npos) {
    return Normalizer(text, level).run();
  }
  return Normalizer(without_root(text, root), level).run();
}

}  // namespace loki
