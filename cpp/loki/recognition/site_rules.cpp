#include "loki/recognition/site_rules.hpp"

#include <algorithm>

#include "loki/base/parallel.hpp"
#include "loki/recognition/text.hpp"

namespace loki {
namespace site {
namespace {

LineRule line_rule(const Definition& definition) {
  return {Regex(definition.text()), definition.where()};
}

std::vector<LineRule> line_rules(const Definition& definition, std::string_view key) {
  std::vector<LineRule> rules;
  for (const Definition& item : definition.items(key)) rules.push_back(line_rule(item));
  return rules;
}

Field field_named(const Definition& where, std::string_view name) {
  for (std::size_t i = 0; i < kFields; ++i) {
    if (kFieldNames[i] == name) return static_cast<Field>(i);
  }
  where.refuse("found field '" + std::string(name) +
               "', expected error_type, error_code, message, path, line, column, function, test, "
               "test_name or command");
}

Role read_role(const Definition& definition) {
  const std::string role = definition.at("role").text();
  if (role == "cause") return Role::kCause;
  if (role == "summary") return Role::kSummary;
  if (role == "echo") return Role::kEcho;
  if (role == "warning") return Role::kWarning;
  if (role == "retry") return Role::kRetry;
  definition.at("role").refuse("found '" + role +
                               "', expected cause, summary, echo, warning or retry");
}

FieldRule read_field(const Definition& definition) {
  FieldRule rule{line_rule(definition.at("match"))};
  const std::string take = definition.text("take", "first");
  if (take != "first" && take != "last" && take != "each") {
    definition.at("take").refuse("found '" + take + "', expected first, last or each");
  }
  rule.take = take == "first" ? Take::kFirst : take == "last" ? Take::kLast : Take::kEach;
  rule.frame = definition.truth("frame");
  rule.join = definition.text("join", "");
  return rule;
}

BlockRule read_block(const Definition& definition) {
  BlockRule rule;
  rule.id = definition.at("id").text();
  rule.kind = definition.text("kind", "");
  rule.role = read_role(definition);
  rule.start = line_rules(definition, "start");
  if (rule.start.empty()) definition.refuse("expected 1 start or more");
  rule.go_on = line_rules(definition, "continue");
  rule.until = line_rules(definition, "until");
  rule.through = line_rules(definition, "through");
  rule.acquit = line_rules(definition, "acquit");
  rule.lead = definition.count("lead", 0);
  rule.max_lines = definition.count("max_lines", rule.max_lines);
  rule.rank = definition.count("rank", rule.rank);
  rule.reach = definition.count("reach", rule.reach);
  rule.detected = definition.truth("detected");
  rule.closes = definition.truth("closes");
  for (const Definition& field : definition.items("fields"))
    rule.fields.push_back(read_field(field));
  for (const Definition& field : definition.items("requires")) {
    rule.requires_fields.push_back(field_named(field, field.text()));
  }
  if (definition.has("set")) {
    const Definition constants = definition.at("set");
    for (const auto& [key, value] : constants.json().items()) {
      rule.constants[field_named(constants, key)] = constants.at(key).text();
    }
  }
  rule.nests = definition.texts("nests");
  rule.opens = definition.texts("opens");
  return rule;
}

LinkRule read_link(const Definition& definition) {
  LinkRule rule{line_rule(definition.at("match"))};
  const std::string echo = definition.at("echo").text();
  if (echo != "next" && echo != "previous") {
    definition.at("echo").refuse("found '" + echo + "', expected previous or next");
  }
  rule.echo_next = echo == "next";
  return rule;
}

}  // namespace

bool LineRule::matches(const LineView& line) const {
  if (!regex.may_match(line.text, line.folded)) return false;
  const RE2& compiled = regex.compiled();
  const re2::StringPiece text(line.text.data(), line.text.size());
  return compiled.ok() && compiled.Match(text, 0, text.size(), RE2::UNANCHORED, nullptr, 0);
}

bool LineRule::capture(const LineView& line, Captures& captures) const {
  const RE2& compiled = regex.compiled();
  if (compiled.NamedCapturingGroups().empty()) return true;
  std::array<re2::StringPiece, 24> groups;
  const int count = std::min(compiled.NumberOfCapturingGroups() + 1, 24);
  const re2::StringPiece text(line.text.data(), line.text.size());
  if (!compiled.Match(text, 0, text.size(), RE2::UNANCHORED, groups.data(), count)) return false;
  for (const auto& [name, group] : compiled.NamedCapturingGroups()) {
    if (group >= count || groups[static_cast<std::size_t>(group)].data() == nullptr) continue;
    const auto& found = groups[static_cast<std::size_t>(group)];
    for (std::size_t i = 0; i < kFields; ++i) {
      if (kFieldNames[i] == name) captures[i] = std::string_view(found.data(), found.size());
    }
  }
  return true;
}

ToolRules read_tool(const Definition& definition) {
  ToolRules tool;
  tool.name = definition.at("tool").text();
  tool.language = definition.text("language", "");
  tool.kind = definition.text("kind", "");
  tool.fallback = definition.truth("fallback");
  tool.innermost_first = definition.text("innermost", "last") == "first";
  for (const std::string& command : definition.texts("commands")) {
    tool.commands.push_back(words_of(command));
  }
  for (const Definition& detect : definition.items("detect")) {
    if (detect.has("regex")) tool.detect.push_back(line_rule(detect.at("regex")));
  }
  tool.over = definition.texts("over");
  tool.library = line_rules(definition, "library");
  tool.prefixes = line_rules(definition, "prefixes");
  for (const Definition& block : definition.items("blocks"))
    tool.blocks.push_back(read_block(block));
  for (const Definition& link : definition.items("links")) tool.links.push_back(read_link(link));
  return tool;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0';
  };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace site

using namespace site;

// Bytes of a literal that the scan looks for; the regex knows the rest. Thus the scan's table is a
// third as large, and more of it stays in the processor's caches. Chosen by measuring.
constexpr std::size_t kScanned = 12;

// From so many references of a literal on they are noted as a set. Chosen: a set takes as long.
constexpr std::size_t kMany = 32;

struct SiteRules::Impl : Rules {
  LiteralTable table;
  std::vector<std::vector<Reference>> by_literal;
  std::vector<std::pair<std::string, Reference>> by_head;

  void refer(const LineRule& rule, Reference reference) {
    const std::vector<std::string> begins = rule.regex.heads();
    if (HeadTable::serves(begins, rule.regex.required())) {
      for (const std::string& head : begins) by_head.emplace_back(head, reference);
      return;
    }
    for (const std::string& literal : rule.regex.required()) {
      refer(utf8_prefix(literal, kScanned), reference);
    }
    if (rule.regex.required().empty()) {
      throw DefinitionError(rule.where,
                            "this regex has no literal of 3 bytes that every match must hold");
    }
  }

  void refer(std::string_view literal, Reference reference) {
    const std::size_t index = table.add(literal);
    if (index >= by_literal.size()) by_literal.resize(index + 1);
    by_literal[index].push_back(reference);
  }

  // Most of the time that it takes to read the rules; several threads share it.
  void read_what_starts() const {
    std::vector<const Regex*> regexes;
    for (const ToolRules& tool : tools) {
      for (const LineRule& rule : tool.detect) regexes.push_back(&rule.regex);
      for (const LinkRule& rule : tool.links) regexes.push_back(&rule.match.regex);
      for (const BlockRule& block : tool.blocks) {
        for (const LineRule& rule : block.start) regexes.push_back(&rule.regex);
      }
    }
    in_parallel(regexes.size(), 0, 64, [&](std::size_t i) { regexes[i]->required(); });
  }

  // Null: the literal says it all.
  const LineRule* rule_of(const Reference& reference) const {
    const ToolRules& tool = tools[reference.tool];
    if (reference.kind == Reference::kDetected) return nullptr;
    if (reference.kind == Reference::kDetect) return &tool.detect[reference.index];
    if (reference.kind == Reference::kLink) return &tool.links[reference.index].match;
    return &tool.blocks[reference.index].start[reference.which];
  }

  std::uint32_t number_of(const Reference& reference) const {
    const auto at = std::lower_bound(references.begin(), references.end(), reference);
    return static_cast<std::uint32_t>(at - references.begin());
  }

  // Numbers the references in their order, so that those of a line are sorted as numbers.
  void number_references() {
    for (const auto& some : by_literal) {
      references.insert(references.end(), some.begin(), some.end());
    }
    for (const auto& [head, reference] : by_head) references.push_back(reference);
    std::sort(references.begin(), references.end());
    references.erase(std::unique(references.begin(), references.end()), references.end());
    std::set<std::uint32_t> numbers;
    for (const auto& some : by_literal) {
      numbers.clear();
      for (const Reference& reference : some) numbers.insert(number_of(reference));
      referred_begin.push_back(static_cast<std::uint32_t>(referred.size()));
      referred.insert(referred.end(), numbers.begin(), numbers.end());
      many_of.push_back(numbers.size() < kMany ? -1 : static_cast<std::int32_t>(many.size()));
      if (numbers.size() < kMany) continue;
      many.emplace_back(references.size());
      for (const std::uint32_t number : numbers) many.back().add(number);
    }
    referred_begin.push_back(static_cast<std::uint32_t>(referred.size()));
    by_literal.clear();
    for (const auto& [head, reference] : by_head) heads.add(head, number_of(reference));
    by_head.clear();
    of_fallbacks = NumberSet(references.size());
    std::vector<std::optional<Regex::FirstByte>> first;
    for (std::uint32_t i = 0; i < references.size(); ++i) {
      const LineRule* rule = rule_of(references[i]);
      first.push_back(rule == nullptr ? std::nullopt : rule->regex.first_byte());
      if (tools[references[i].tool].fallback) of_fallbacks.add(i);
    }
    first_bytes = FirstBytes(first);
  }

  void refer_tool(const Definition& definition, std::uint32_t index) {
    const ToolRules& tool = tools[index];
    for (const Definition& detect : definition.items("detect")) {
      if (detect.has("literal")) {
        refer(detect.at("literal").text(), {Reference::kDetected, index, 0, 0});
      }
    }
    for (std::uint32_t i = 0; i < tool.detect.size(); ++i) {
      refer(tool.detect[i], {Reference::kDetect, index, i, 0});
    }
    for (std::uint32_t i = 0; i < tool.blocks.size(); ++i) {
      const std::vector<LineRule>& starts = tool.blocks[i].start;
      for (std::uint32_t which = 0; which < starts.size(); ++which) {
        refer(starts[which], {Reference::kStart, index, i, which});
      }
    }
    for (std::uint32_t i = 0; i < tool.links.size(); ++i) {
      refer(tool.links[i].match, {Reference::kLink, index, i, 0});
    }
  }
};

SiteRules::SiteRules(std::string_view json) : impl_(std::make_unique<Impl>()) {
  const nlohmann::json document = parse_definition(json);
  const std::vector<Definition> tools = Definition(document, "").at("tools").items();
  std::vector<std::string> prefixes;
  for (const Definition& definition : tools) impl_->tools.push_back(read_tool(definition));
  impl_->read_what_starts();
  for (std::uint32_t index = 0; index < tools.size(); ++index) {
    impl_->refer_tool(tools[index], index);
    impl_->commands.add(index, impl_->tools[index].commands);
    for (const LineRule& prefix : impl_->tools[index].prefixes) {
      prefixes.push_back(prefix.regex.expression());
    }
  }
  impl_->prefix = std::make_unique<LinePrefix>(prefixes);
  impl_->number_references();
  impl_->scan = std::make_unique<LiteralScan>(impl_->table.literals());
}

SiteRules::~SiteRules() = default;
SiteRules::SiteRules(SiteRules&&) noexcept = default;
SiteRules& SiteRules::operator=(SiteRules&&) noexcept = default;

const LinePrefix& SiteRules::prefix() const {
  return *impl_->prefix;
}

void SiteRules::check() const {
  RegexBudget budget;
  const auto each = [&budget](const std::vector<LineRule>& rules) {
    for (const LineRule& rule : rules) {
      if (const std::string error = budget.spend(rule.regex); !error.empty()) {
        throw DefinitionError(rule.where, "found a regex that RE2 refuses (" + error + ")");
      }
      for (const auto& [name, group] : rule.regex.compiled().NamedCapturingGroups()) {
        if (std::find(kFieldNames.begin(), kFieldNames.end(), name) == kFieldNames.end()) {
          throw DefinitionError(rule.where,
                                "found group '" + name + "', expected the name of a field");
        }
      }
    }
  };
  const auto one = [&](const LineRule& rule) {
    std::vector<LineRule> copy;
    copy.push_back({Regex(rule.regex.expression()), rule.where});
    each(copy);
  };
  for (const ToolRules& tool : impl_->tools) {
    for (const auto* rules : {&tool.detect, &tool.library, &tool.prefixes}) each(*rules);
    for (const LineRule& prefix : tool.prefixes) {
      if (RE2::FullMatch("", prefix.regex.compiled())) {
        throw DefinitionError(prefix.where,
                              "found a prefix that may be empty, expected one that "
                              "takes a character or more");
      }
    }
    for (const LinkRule& link : tool.links) one(link.match);
    for (const BlockRule& block : tool.blocks) {
      for (const auto* rules :
           {&block.start, &block.go_on, &block.until, &block.through, &block.acquit})
        each(*rules);
      for (const FieldRule& field : block.fields) one(field.match);
    }
  }
}

Site SiteRules::find(std::string_view cleaned, const SiteContext& context) const {
  return choose(*impl_, cleaned, find_blocks(*impl_, cleaned), context);
}

}  // namespace loki
