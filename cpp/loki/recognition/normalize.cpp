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

// Words behind which "= value" or ": value" is a secret.
constexpr std::array<std::string_view, 14> kSecretNames = {
    "password",   "passwd",     "pwd",           "secret",       "token",
    "apikey",     "api_key",    "api-key",       "access_token", "auth_token",
    "access_key", "secret_key", "client_secret", "authorization"};
// What known kinds of keys begin with; the rest is 16 or more word characters.
constexpr std::array<std::string_view, 16> kSecretPrefixes = {
    "sk-",  "sk_live_", "sk_test_", "pk_live_", "ghp_",   "gho_", "ghs_", "github_pat_",
    "AKIA", "ASIA",     "xoxb-",    "xoxp-",    "glpat-", "AIza", "npm_", "pypi-"};

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_path(char c) {
  return is_word(c) || c == '.' || c == '-' || c == '+' || c == '@' || c == '~' || c == '=';
}

// A name goes on here; '<' may stand for digits that were glued to it.
bool goes_on(char c) {
  return is_path(c) || c == '<';
}

class Normalizer {
 public:
  Normalizer(std::string_view text, Level level, std::string_view root)
      : text_(text), level_(level), root_(root) {
    while (root_.ends_with('/')) root_.remove_suffix(1);
    out_.reserve(text.size());
  }

  std::string run() {
    while (level_ == Level::kSecrets && at_ < text_.size()) {
      if (!masked()) copy(1);
    }
    while (at_ < text_.size()) {
      if (!placeholder() && !path() && !quoted() && !signed_number() && !word()) copy(1);
    }
    return std::move(out_);
  }

 private:
  char ahead(std::size_t i) const { return at_ + i < text_.size() ? text_[at_ + i] : '\0'; }
  char last() const { return out_.empty() ? ' ' : out_.back(); }
  std::string_view rest() const { return text_.substr(at_); }

  void copy(std::size_t size) {
    size = std::min(size, text_.size() - at_);
    out_ += text_.substr(at_, size);
    at_ += size;
  }

  bool put(const Found& found) {
    if (!found) return false;
    out_ += found.placeholder;
    at_ += found.size;
    return true;
  }

  // Level kSecrets: everything stays but keys, tokens, and the password of a URL.
  bool masked() {
    if (!is_word(ahead(0)) || is_word(last())) return false;
    if (const std::size_t url = url_size()) {
      const std::size_t authority = rest().find("://") + 3;
      const std::size_t end = std::min(url, rest().find('/', authority));
      const std::size_t host = rest().substr(0, end).rfind('@');
      const std::size_t colon = rest().find(':', authority);
      if (host == std::string_view::npos || colon >= host) return false;
      copy(colon + 1);
      return put({host - colon - 1, "<secret>"});
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

  // Absolute paths: the project's root is removed; temp and home folders are named.
  bool path() {
    if (ahead(0) != '/' && ahead(1) != ':') return false;
    const char before = last();
    if (is_path(before) || before == '/' || before == '>' || before == '\\') return false;
    if (ahead(0) != '/') return windows_path();
    if (!root_.empty() && rest().starts_with(root_) && ahead(root_.size()) == '/' &&
        ahead(root_.size() + 1) != '/') {
      // What follows is read as if it stood alone; a root inside the root would change that.
      at_ += root_.size() + 1;
      return true;
    }
    if (const std::size_t size = temp_folder()) return put({size, "<tmp>"});
    if (const std::size_t size = home_folder()) return put({size, "<home>"});
    return false;
  }

  std::size_t component(std::size_t from) const {
    std::size_t i = from;
    while (is_path(ahead(i))) ++i;
    return i - from;
  }

  // One folder below /tmp is random; pytest adds two of its own kind with numbers.
  std::size_t temp_folder() const {
    std::size_t size = 0;
    for (const std::string_view temp :
         {"/tmp", "/var/tmp", "/private/tmp", "/private/var/folders", "/var/folders", "/dev/shm"}) {
      if (!rest().starts_with(temp)) continue;
      if (goes_on(ahead(temp.size()))) continue;
      size = temp.size();
      const int random = temp.ends_with("folders") ? 3 : 1;
      for (int i = 0; i < random && ahead(size) == '/'; ++i) {
        const std::size_t folder = component(size + 1);
        if (folder == 0 || ahead(size + 1 + folder) != '/') return size;
        size += 1 + folder;
      }
      while (ahead(size) == '/' && rest().substr(size + 1).starts_with("pytest-")) {
        const std::size_t folder = component(size + 1);
        if (ahead(size + 1 + folder) != '/') return size;
        size += 1 + folder;
      }
      return size;
    }
    return 0;
  }

  std::size_t home_folder() const {
    for (const std::string_view home : {"/home/", "/Users/"}) {
      if (!rest().starts_with(home)) continue;
      const std::size_t name = component(home.size());
      if (name > 0) return home.size() + name;
    }
    if (rest().starts_with("/root") && !goes_on(ahead(5))) return 5;
    return 0;
  }

  bool windows_path() {
    const char drive = ahead(0);
    if (!is_word(drive) || is_digit(drive) || ahead(2) != '\\') return false;
    const auto folder = [&](std::size_t i) {
      while (is_path(ahead(i)) || (ahead(i) == ' ' && is_path(ahead(i + 1)) && ahead(i + 1) != '-'))
        ++i;
      return i;
    };
    if (!ascii_folded(rest().substr(2, 7)).starts_with("\\users\\")) return false;
    std::size_t end = folder(9);
    if (end == 9) return false;
    if (ascii_folded(rest().substr(end, 20)).starts_with("\\appdata\\local\\temp\\")) {
      const std::size_t random = folder(end + 20);
      end = ahead(random) == '\\' ? random : end + 19;
      return put({end, "<tmp>"});
    }
    return put({end, "<home>"});
  }

  // Template level: 'x', "x" and `x` on one line, not apostrophes inside or behind words.
  bool quoted() {
    const char quote = ahead(0);
    if (level_ != Level::kTemplate || (quote != '\'' && quote != '"' && quote != '`')) return false;
    if (is_word(last()) || last() == '>' || last() == quote) return false;
    std::size_t& closer = closers_[quote == '\'' ? 0 : quote == '"' ? 1 : 2];
    if (closer <= at_) {
      closer = at_ + 1;
      while (closer < text_.size() && text_[closer] != '\n' && !closes(closer, quote)) ++closer;
    }
    // Nothing on this line closes it: `closer` stands at the line's end and is not searched again.
    if (closer >= text_.size() || text_[closer] != quote) return false;
    return put({closer + 1 - at_, kString});
  }

  // A character behind it that a placeholder could replace ('<' stands for those) keeps it open.
  bool closes(std::size_t i, char quote) const {
    const char next = i + 1 < text_.size() ? text_[i + 1] : ' ';
    return text_[i] == quote && !is_word(next) && next != '<' && next != quote && next != '-' &&
           next != '+' && next != '/' && next != '\'' && next != '"' && next != '`';
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

  bool word() {
    const char c = ahead(0);
    if (c == ':' && ahead(1) == ':' && !is_word(last()) && last() != '>' && last() != ':') {
      const Found found = hexadecimal(rest());
      if (found && is_digit(text_[at_ + found.size - 1])) return put(found);
    }
    if (!is_word(c) || is_word(last())) return false;
    // Behind a placeholder that was glued to it, the rest of a word stays the rest of a word.
    if (level_ == Level::kTemplate && last() == '>') {
      plain_word();
      return true;
    }
    if (position()) return true;
    if (const std::size_t size = url_size()) return put({size, "<url>"});
    if (const std::size_t size = mail_size(at_)) return put({size, "<email>"});
    if (put(timestamp(rest())) || put(hexadecimal(rest())) || put(number(rest()))) return true;
    if (secret()) return true;
    plain_word();
    return true;
  }

  // file.py:12:5 and file.py:12: the numbers behind a path are a position.
  bool position() {
    if (!is_digit(ahead(0)) || last() != ':' || out_.size() < 3) return false;
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
      if (!is_word(ahead(end))) size = end;
    }
    if (is_word(ahead(size)) || (ahead(size) == '.' && is_digit(ahead(size + 1)))) return false;
    return put({size, "<pos>"});
  }

  std::size_t url_size() const {
    std::size_t i = 0;
    while (i < 12 && ((ahead(i) >= 'a' && ahead(i) <= 'z') || (i > 0 && ahead(i) == '+'))) ++i;
    if (i < 2 || !rest().substr(i).starts_with("://")) return 0;
    i += 3;
    const std::size_t begin = i;
    while (ahead(i) != '\0' && !is_space(ahead(i)) &&
           std::string_view("\"'<>`|\\^{}()[],;").find(ahead(i)) == std::string_view::npos) {
      ++i;
    }
    while (i > begin && std::string_view(".:!?").find(ahead(i - 1)) != std::string_view::npos) --i;
    return i > begin ? i : 0;
  }

  static bool is_mail(char c) {
    return (is_word(c) && static_cast<unsigned char>(c) < 0x80) || c == '.' || c == '%' ||
           c == '+' || c == '-';
  }

  std::size_t mail_size(std::size_t from) {
    if (from >= mail_from_ && from < mail_to_) return 0;
    std::size_t i = from;
    while (i < text_.size() && is_mail(text_[i])) ++i;
    if (i >= text_.size() || text_[i] != '@') {
      mail_from_ = from;
      mail_to_ = i;
      return 0;
    }
    // A dot or a dash belongs to the domain where a letter follows: what follows otherwise may be
    // a number, which a second pass would not see.
    const auto letter = [&](std::size_t k) {
      return k < text_.size() && is_word(text_[k]) && !is_digit(text_[k]) &&
             static_cast<unsigned char>(text_[k]) < 0x80;
    };
    std::size_t end = i + 1, dots = 0;
    for (; letter(end) || (end > i + 1 && end < text_.size() && is_digit(text_[end])) ||
           (end < text_.size() && (text_[end] == '.' || text_[end] == '-') && letter(end + 1));
         ++end) {
      if (end - i > 255) return 0;
      dots += text_[end] == '.';
    }
    const bool ends = end >= text_.size() || (!is_word(text_[end]) && text_[end] != '<');
    if (dots > 0 && ends) return end - from;
    mail_from_ = from;
    mail_to_ = i;
    return 0;
  }

  bool secret() {
    for (const std::string_view prefix : kSecretPrefixes) {
      if (!rest().starts_with(prefix)) continue;
      std::size_t i = prefix.size();
      while (is_word(ahead(i)) || ahead(i) == '-') ++i;
      if (i - prefix.size() >= 16) return put({i, "<secret>"});
    }
    if (rest().starts_with("eyJ")) {  // a JSON web token
      std::size_t i = 3;
      while (is_word(ahead(i)) || ahead(i) == '-' || ahead(i) == '.') ++i;
      if (i > 36) return put({i, "<secret>"});
    }
    return named_secret();
  }

  bool named_secret() {
    if (ahead(0) == '\0') return false;
    std::size_t name = 0;
    while (name < 40 && (is_word(ahead(name)) || (ahead(name) == '-' && is_word(ahead(name + 1)) &&
                                                  !is_digit(ahead(name + 1))))) {
      ++name;
    }
    const std::string folded = ascii_folded(rest().substr(0, name));
    const bool bearer = folded == "bearer";
    const bool named =
        std::any_of(kSecretNames.begin(), kSecretNames.end(), [&](std::string_view secret) {
          return folded == secret ||
                 (folded.ends_with(secret) && folded[folded.size() - secret.size() - 1] == '_');
        });
    if (!bearer && !named) return false;
    std::size_t i = name;
    if (ahead(i) == '"' || ahead(i) == '\'') ++i;
    while (ahead(i) == ' ') ++i;
    const char separator = ahead(i);
    if (!bearer) {
      if (separator != '=' && separator != ':') return false;
      ++i;
      while (ahead(i) == ' ') ++i;
    }
    const std::size_t begin = i;  // quotes go with the value
    const char quote = ahead(i) == '"' || ahead(i) == '\'' ? ahead(i) : '\0';
    i += quote != '\0';
    const std::size_t value = i;
    std::size_t numerals = 0;
    while (ahead(i) > ' ' &&
           std::string_view("\"'<>,;&)").find(ahead(i)) == std::string_view::npos) {
      numerals += is_digit(ahead(i));
      ++i;
    }
    // "unexpected token: foo" is no secret; "token=abc123de" is one.
    const std::size_t least = separator == '=' && !bearer ? 4 : 8;
    if (i - value < least || (numerals == 0 && (separator != '=' || bearer))) return false;
    if (quote != '\0' && ahead(i) == quote) ++i;
    const std::size_t from = at_ + begin;
    plain_word();  // the name
    copy(from - at_);
    return put({i - begin, "<secret>"});
  }

  void plain_word() {
    std::size_t size = 0;
    while (is_word(ahead(size))) ++size;
    if (level_ != Level::kTemplate) return copy(size);
    const std::size_t end = at_ + size;
    while (at_ < end) {
      std::size_t digits = 0;
      while (at_ + digits < end && is_digit(text_[at_ + digits])) ++digits;
      if (digits != 0) {
        put({digits, "<int>"});
      } else {
        copy(1);
      }
    }
  }

  std::string_view text_;
  Level level_;
  std::string_view root_;
  std::size_t at_ = 0;
  std::string out_;
  std::array<std::size_t, 3> closers_{};
  std::size_t mail_from_ = 0, mail_to_ = 0;
};

}  // namespace

std::string normalize(std::string_view text, Level level, std::string_view root) {
  return Normalizer(text, level, root).run();
}

}  // namespace loki
