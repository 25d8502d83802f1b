#include "loki/recognition/regex_reader.hpp"

#include <algorithm>

#include "loki/base/unicode.hpp"
#include "loki/recognition/regex_known.hpp"
#include "loki/recognition/regex_rarity.hpp"
#include "loki/recognition/scan.hpp"
#include "loki/recognition/text.hpp"

namespace loki {
namespace {

constexpr std::size_t kMostStrings = 64;  // alternatives that one expression may require
constexpr std::size_t kMostHeads = 24;    // the same, where a line begins
constexpr int kDeepest = 200;             // nested groups; deeper ones count as "anything"

using Strings = RegexNeeds::Strings;

bool begins_blank(const std::string& head) {
  return is_blank(head.front());
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    for (std::size_t i = 0; i + 2 < text.size(); ++i) {
      if (text[i] == '(' && text[i + 1] == '?') {
        for (std::size_t k = i + 2; k < text.size() && text[k] != ':' && text[k] != ')'; ++k) {
          if (text[k] == '<' || text[k] == 'P') break;
          ascii_only_ = ascii_only_ || text[k] == 'i';
          has_lines_ = has_lines_ || text[k] == 'm';
        }
      }
    }
  }

  RegexNeeds read() {
    RegexNeeds needs;
    is_anchored_ = begins_with_anchor();
    Known known = alternation(0);
    if (at_ != text_.size()) return needs;  // unbalanced: RE2 will say so
    if (gave_up_) return needs;
    offer(known, known.exact ? known.strings : Strings{});
    needs.is_anchored = is_anchored_;
    needs.looks_beyond = looks_beyond_;
    if (is_anchored_ && head_.size() <= kMostHeads && shortest(head_) > 0 &&
        !(is_indented_ && std::any_of(head_.begin(), head_.end(), begins_blank))) {
      needs.head = head_;
      needs.is_indented = is_indented_;
    }
    if (!has_lines_ && ends_with_dollar(text_) && last_.size() <= kMostHeads && shortest(last_) > 0)
      needs.last = last_;
    if (is_anchored_ && !known.may_be_empty) {
      needs.is_said = true;
      needs.first = first_of(known);
      needs.skips_blanks = skips_blanks_ && !holds_blank(known.first);
    }
    needs.also = rarest(std::move(known.all), known.best, needs.head);
    needs.required = std::move(known.best);
    std::sort(needs.required.begin(), needs.required.end());
    needs.required.erase(std::unique(needs.required.begin(), needs.required.end()),
                         needs.required.end());
    return needs;
  }

 private:
  bool more() const { return at_ < text_.size(); }
  bool next_is(std::string_view token) const { return text_.substr(at_).starts_with(token); }
  bool next_repeats(std::size_t at) const {
    return at < text_.size() && std::string_view("*+?{").find(text_[at]) != std::string_view::npos;
  }

  bool begins_with_anchor() const {
    constexpr std::string_view kFlag = "(?i)";
    const std::size_t at = next_is(kFlag) ? kFlag.size() : 0;
    return text_.substr(at).starts_with('^') && !next_repeats(at + 1);
  }

  Bytes first_of(const Known& known) const {
    Bytes first = known.first;
    // The Kelvin sign and the long s are letters k and s in other case.
    if (ascii_only_ && (first['k'] || first['s'])) first |= Bytes().set() << 128;
    if (skips_blanks_ && holds_blank(first)) {
      for (std::size_t c = 0; c < first.size(); ++c) {
        if (is_blank(static_cast<char>(c))) first.set(c);
      }
    }
    return first;
  }

  // Nothing, and a repetition behind it is not its own, but of what stands before it: of that
  // nothing is known then.
  Known nothing() {
    gave_up_ = gave_up_ || next_repeats(at_);
    return Known::empty();
  }

  Known alternation(int depth) {
    Known branch = sequence(depth);
    if (!next_is("|")) return branch;
    if (depth == 0) is_anchored_ = false;
    Known result = {true, {}, {}, {}, {}, {}, {}, false};
    bool each_has_one = true, each_has_head = true;
    while (true) {
      finish(branch);
      each_has_one = each_has_one && !branch.best.empty();
      each_has_head = each_has_head && !branch.begins().empty();
      append(result.head, branch.begins());
      append(result.best, std::move(branch.best));
      result.first |= branch.first;
      result.may_be_empty = result.may_be_empty || branch.may_be_empty;
      result.exact = result.exact && branch.exact;
      if (result.exact) append(result.strings, std::move(branch.strings));
      if (!next_is("|")) break;
      ++at_;
      branch = sequence(depth);
    }
    if (depth == 0) last_.clear();
    if (result.strings.size() > kMostStrings) result.exact = false;
    if (!each_has_head || result.head.size() > kMostStrings) result.head.clear();
    if (!result.exact) result.strings.clear();
    if (!each_has_one || result.best.size() > kMostStrings) result.best.clear();
    return result;
  }

  Known sequence(int depth) {
    std::string text = plain();
    const auto is_over = [this] { return !more() || text_[at_] == '|' || text_[at_] == ')'; };
    if (depth > 0 && is_over()) return Known::one(std::move(text));
    Known run = Known::one(std::move(text));  // the exact strings that the last items spell
    Known result = Known::empty();
    result.then(run.first, run.may_be_empty);
    bool whole = true;
    bool heading = true;  // what `run` spells is what a match begins with, but for blanks
    while (!is_over()) {
      const std::size_t begin = at_;
      Known item = repeated(atom(depth));
      const bool is_indent = depth == 0 && whole && run.strings == Strings{""} &&
                             is_any_blanks(text_.substr(begin, at_ - begin));
      if (is_indent) {
        skips_blanks_ = true;
      } else {
        result.then(item.first, item.may_be_empty);
      }
      if (!item.best.empty()) offer(result, item.best);
      std::move(item.all.begin(), item.all.end(), std::back_inserter(result.all));
      if (item.exact && run.strings.size() * item.strings.size() <= kMostStrings) {
        run.strings = product(run.strings, item.strings);
      } else {
        const Strings& next = item.begins();
        if (!next.empty() && run.strings.size() * next.size() <= kMostStrings) {
          run.strings = product(run.strings, next);
        }
        offer(result, run.strings);
        is_indented_ = is_indented_ || is_indent;
        if (heading) result.head = std::move(run.strings);
        heading = is_indent;
        whole = false;
        run = Known::empty();
        Strings& last = item.exact ? item.strings : item.tail;
        if (!last.empty()) run.strings = std::move(last);
      }
      if (text = plain(); !text.empty()) {
        for (std::string& one : run.strings) one += text;
        result.then(byte_of(text.front()), false);
      }
    }
    offer(result, run.strings);
    if (depth == 0) head_ = heading ? run.strings : result.head;
    if (depth == 0) last_ = run.strings;
    result.exact = whole;
    result.strings = whole ? run.strings : Strings{};
    result.tail = whole ? Strings{} : run.strings;
    return result;
  }

  // Reads what stands for itself alone: most characters do. In lower case.
  std::string plain() {
    std::string text;
    while (more()) {
      const std::size_t at = at_ + (text_[at_] == '\\' ? 1U : 0U);
      if (at >= text_.size() || next_repeats(at + 1)) break;
      const char c = text_[at];
      const bool is_anchor = at == at_ && (c == '^' || c == '$');
      if (is_anchor || (at == at_ ? is_ordinary(c) : is_escaped_mark(c))) {
        if (!is_anchor) text += c;
        at_ = at + 1;
      } else {
        break;
      }
    }
    fold_ascii(text, text);
    return text;
  }

  Known repeated(Known item) {
    while (more()) {
      const char c = text_[at_];
      int least = 0;
      bool optional = false;
      if (c == '*') {
        ++at_;
      } else if (c == '+') {
        least = 1;
        ++at_;
      } else if (c == '?') {
        optional = true;
        ++at_;
      } else if (c == '{' && counted(least)) {
        // `counted` moved on
      } else {
        return item;
      }
      if (more() && text_[at_] == '?') ++at_;  // not greedy
      if (least > 0) {
        finish(item);
        // x{3,} holds xxx.
        if (item.exact && item.strings.size() == 1 &&
            item.strings.front().size() * static_cast<std::size_t>(least) <= 64) {
          std::string all;
          for (int i = 0; i < least; ++i) all += item.strings.front();
          offer(item, {all});
        }
        item.head = item.begins();
        item.exact = false;
        item.strings.clear();
        item.tail.clear();
      } else if (optional && item.exact && item.strings.size() < kMostStrings) {
        item.strings.push_back("");
        item.best.clear();
        item.all.clear();
        item.may_be_empty = true;
      } else {
        const Bytes first = item.first;
        item = Known::anything();
        item.first = first;
      }
    }
    return item;
  }

  // {n}, {n,}, {n,m}; anything else is a literal brace.
  bool counted(int& least) {
    std::size_t at = at_ + 1;
    int number = 0;
    bool digits = false;
    for (; at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; ++at) {
      number = std::min(number * 10 + (text_[at] - '0'), 100000);
      digits = true;
    }
    if (!digits) return false;
    if (at < text_.size() && text_[at] == ',') {
      for (++at; at < text_.size() && text_[at] >= '0' && text_[at] <= '9';) ++at;
    }
    if (at >= text_.size() || text_[at] != '}') return false;
    at_ = at + 1;
    least = number;
    return true;
  }

  Known atom(int depth) {
    const char c = text_[at_];
    if (c == '(') return group(depth);
    if (c == '[') return character_class();
    if (c == '\\') return escape();
    if (c == '^' || c == '$' || c == '.') {
      ++at_;
      return c == '.' ? Known::one_of(all_bytes()) : Known::empty();
    }
    return literal();
  }

  // The character that is next.
  Known literal() {
    bool valid = false;
    const std::size_t size = utf8_step(text_, at_, valid);
    const std::string_view character = text_.substr(at_, size);
    at_ += size;
    if (static_cast<unsigned char>(character.front()) >= 0x80 && ascii_only_) {
      return Known::anything();
    }
    return Known::one(ascii_folded(character));
  }

  Known group(int depth) {
    ++at_;
    if (next_is("?")) {
      if (next_is("?P<") || next_is("?<")) {
        at_ = std::min(text_.find('>', at_), text_.size() - 1) + 1;
      } else {
        while (more() && text_[at_] != ':' && text_[at_] != ')') ++at_;
        if (more() && text_[at_] == ')') {
          ++at_;
          return nothing();
        }
        if (more()) ++at_;
      }
    }
    Known inside = depth < kDeepest ? alternation(depth + 1) : skip_group();
    if (more() && text_[at_] == ')') ++at_;
    return inside;
  }

  Known skip_group() {
    at_ = text_.size();
    return Known::anything();
  }

  Known character_class() {
    const std::size_t begin = ++at_;
    if (next_is("^")) ++at_;
    if (next_is("]")) ++at_;
    while (more() && text_[at_] != ']') {
      if (text_[at_] == '\\') {
        at_ += 2;
      } else if (next_is("[:") && text_.find(":]", at_ + 2) != std::string_view::npos) {
        at_ = text_.find(":]", at_ + 2) + 2;
      } else {
        ++at_;
      }
    }
    at_ = std::min(at_, text_.size());
    const std::string_view inside = text_.substr(begin, at_ - begin);
    if (more()) ++at_;
    const bool plain = !inside.empty() && inside.size() <= 4 &&
                       std::all_of(inside.begin(), inside.end(), [](char c) {
                         return static_cast<unsigned char>(c) < 0x80 && c != '\\' && c != '-' &&
                                c != '^' && c != '[';
                       });
    if (!plain) return Known::one_of(bytes_of_class(inside));
    Known result = Known::one_of(bytes_of_class(inside));
    result.exact = true;
    for (const char c : inside) result.strings.push_back(ascii_folded(std::string_view(&c, 1)));
    return result;
  }

  Known escape() {
    ++at_;
    if (!more()) return Known::anything();
    const char c = text_[at_++];
    looks_beyond_ = looks_beyond_ || c == 'b' || c == 'B';
    if (c == 'b' || c == 'B' || c == 'A' || c == 'z') return Known::empty();
    if (c == 't') return Known::one("\t");
    if (c == 'n') return Known::one("\n");
    if (c == 'Q') return quoted();
    if (c == 'p' || c == 'P' || c == 'x') {
      if (next_is("{")) {
        at_ = std::min(text_.find('}', at_), text_.size() - 1) + 1;
      } else {
        at_ = std::min(at_ + (c == 'x' ? 2U : 1U), text_.size());
      }
      return Known::anything();
    }
    if (c >= '0' && c <= '7') {  // in octal digits, three at most
      for (int more_digits = 0; more_digits < 2 && next_is_octal(); ++more_digits) ++at_;
    }
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (word) return Known::one_of(bytes_of_escape(c));
    --at_;
    return literal();
  }

  bool next_is_octal() const { return more() && text_[at_] >= '0' && text_[at_] <= '7'; }

  Known quoted() {
    const std::size_t end = std::min(text_.find("\\E", at_), text_.size());
    const std::string_view inside = text_.substr(at_, end - at_);
    at_ = std::min(end + 2, text_.size());
    if (inside.empty()) return nothing();
    // A repetition after \E binds to the last character only; to say nothing is always right.
    if (inside.size() != 1) return Known::anything();
    return Known::one(ascii_folded(inside));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Strings head_, last_;
  // Beyond ASCII the scan compares bytes, so a literal in ignored letter case proves nothing.
  bool ascii_only_ = false;
  bool has_lines_ = false;  // (?m)
  bool is_anchored_ = false;
  bool looks_beyond_ = false;
  bool gave_up_ = false;
  bool is_indented_ = false;   // `head_` stands behind blanks
  bool skips_blanks_ = false;  // it begins with any number of them
};

}  // namespace

RegexNeeds regex_needs(std::string_view expression) {
  return Reader(expression).read();
}

}  // namespace loki
