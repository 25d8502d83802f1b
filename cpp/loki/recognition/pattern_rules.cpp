#include "loki/recognition/pattern_rules.hpp"

#include <cmath>

namespace loki::pattern {
namespace {

bool is_class_letter(char c) {
  return std::string_view("dDwWsSbB").find(c) != std::string_view::npos;
}

bool is_quantifier(char c) {
  return c == '*' || c == '+' || c == '?' || c == '{';
}

// [a-z], [^x] or [x]+: a bracket that is more than two words in brackets.
bool has_class_bracket(std::string_view text) {
  for (std::size_t open = text.find('['); open != std::string_view::npos;
       open = text.find('[', open + 1)) {
    const std::size_t close = text.find(']', open + 1);
    if (close == std::string_view::npos) return false;
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    if (inside.starts_with('^')) return true;
    const std::size_t dash = inside.find('-', 1);
    if (dash != std::string_view::npos && dash + 1 < inside.size()) return true;
    if (close + 1 < text.size() && is_quantifier(text[close + 1])) return true;
  }
  return false;
}

bool has_alternation(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return false;
  const std::size_t bar = text.find('|', open);
  return bar != std::string_view::npos && text.find(')', bar) != std::string_view::npos;
}

Probe regex_probe(std::string expression, const Definition& at, bool slow) {
  Probe probe;
  probe.kind = Probe::kRegex;
  probe.where = at.where();
  probe.regex = std::make_unique<Regex>(std::move(expression));
  if (probe.regex->required().empty() && !slow) {
    if (const std::string error = probe.regex->check(); !error.empty()) {
      at.refuse("found a regex that RE2 refuses (" + error + ")");
    }
    at.refuse(
        "found a regex without a literal of 3 bytes that every match must hold, expected one, or "
        "'slow: true' beside it");
  }
  return probe;
}

Probe text_probe(Probe::Kind kind, const Definition& at) {
  Probe probe;
  probe.kind = kind;
  probe.text = at.text();
  probe.where = at.where();
  if (probe.text.empty()) at.refuse("found empty text, expected 1 character or more");
  return probe;
}

Probe version1_probe(const Definition& at) {
  const std::string text = at.text();
  if (!is_version1_regex(text)) return text_probe(Probe::kLiteral, at);
  // Files of version 1 were written for an engine without a literal rule.
  return regex_probe("(?i)" + text, at, true);
}

void read_probes(const Definition& definition, bool slow, std::vector<Probe>& probes) {
  if (definition.has("literal")) {
    probes.push_back(text_probe(Probe::kLiteral, definition.at("literal")));
  } else if (definition.has("word")) {
    probes.push_back(text_probe(Probe::kWord, definition.at("word")));
  } else if (definition.has("regex")) {
    const Definition regex = definition.at("regex");
    probes.push_back(regex_probe(regex.text(), regex, slow || definition.truth("slow")));
  } else if (definition.has("any")) {
    for (const Definition& item : definition.items("any")) {
      read_probes(item, slow || definition.truth("slow"), probes);
    }
    if (probes.empty()) definition.at("any").refuse("expected 1 alternative or more");
  } else {
    definition.refuse("expected one of literal, word, regex, any, not");
  }
}

double read_weight(const Definition& definition) {
  if (!definition.has("w")) return kStrong;
  const Definition weight = definition.at("w");
  if (weight.is_text()) {
    if (weight.text() == "strong") return kStrong;
    if (weight.text() == "weak") return kWeak;
    weight.refuse("found '" + weight.text() + "', expected strong, weak or a number from 0 to 1");
  }
  const double number = weight.number();
  if (!(number > 0 && number <= 1)) weight.refuse("expected strong, weak or a number from 0 to 1");
  return number;
}

Scope read_scope(const Definition& definition) {
  const std::string scope = definition.text("in", "anywhere");
  if (scope == "anywhere") return Scope::kAnywhere;
  if (scope == "message") return Scope::kMessage;
  if (scope == "tool") return Scope::kTool;
  if (scope == "code") return Scope::kCode;
  if (scope == "kind") return Scope::kKind;
  definition.at("in").refuse("found '" + scope +
                             "', expected anywhere, message, tool, code or kind");
}

Signal read_signal(const Definition& definition, int version) {
  Signal signal;
  if (version == 1) {
    signal.probes.push_back(version1_probe(definition));
    return signal;
  }
  signal.excludes = definition.has("not");
  const Definition inner = signal.excludes ? definition.at("not") : definition;
  read_probes(inner, definition.truth("slow"), signal.probes);
  signal.weight = read_weight(definition);
  signal.scope = read_scope(definition);
  return signal;
}

}  // namespace

bool is_version1_regex(std::string_view signal) {
  if (signal.find(".*") != std::string_view::npos || signal.find(".+") != std::string_view::npos) {
    return true;
  }
  for (std::size_t i = 0; i + 1 < signal.size(); ++i) {
    if (signal[i] == '\\' && is_class_letter(signal[i + 1])) return true;
  }
  return has_class_bracket(signal) || has_alternation(signal) || signal.starts_with('^') ||
         (signal.size() > 1 && signal.ends_with('$'));
}

PatternRule read_pattern(const Definition& definition, int version) {
  PatternRule rule;
  rule.id = definition.at("id").text();
  rule.language = definition.text("language", "");
  rule.non_retryable = definition.truth("non_retryable");
  version = static_cast<int>(definition.count("version", static_cast<std::size_t>(version)));
  rule.ratio = version == 1;
  bool finds = false;
  for (const Definition& signal : definition.at("signals").items()) {
    rule.signals.push_back(read_signal(signal, version));
    finds = finds || !rule.signals.back().excludes;
  }
  if (!finds) definition.at("signals").refuse("expected 1 signal or more that is not a 'not'");
  return rule;
}

}  // namespace loki::pattern
