// The index as bytes: a head, the tokens, and a line for each group, all JSON. A line is read by
// itself, so that an index of millions needs no second copy in memory.
#include <algorithm>
#include <charconv>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "loki/base/error.hpp"
#include "loki/recognition/grouping_index.hpp"

namespace loki {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "loki failure index";
constexpr int kVersion = 1;

// Texts are valid UTF-8 but where a caller's keys are not: those are kept as near as JSON can.
std::string line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::optional<Hash128> hash_of_hex(std::string_view text) {
  Hash128 hash;
  if (text.size() != 32) return std::nullopt;
  for (auto [part, at] : {std::pair(&hash.high, 0U), std::pair(&hash.low, 16U)}) {
    const char* const begin = text.data() + at;
    const auto [end, error] = std::from_chars(begin, begin + 16, *part, 16);
    if (error != std::errc() || end != begin + 16) return std::nullopt;
  }
  return hash;
}

// Reads lines one by one.
class Lines {
 public:
  explicit Lines(std::string_view bytes) : rest_(bytes) {}

  Json next(const char* expected) {
    ++number_;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) fail("the end", expected);
    Json value = Json::parse(rest_.substr(0, end), nullptr, false);
    if (value.is_discarded()) fail("no JSON", expected);
    rest_.remove_prefix(end + 1);
    return value;
  }
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InvalidArgument("line " + std::to_string(number_) + ": found " + found + ", expected " +
                          expected);
  }
  bool is_done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

}  // namespace

std::string FailureIndex::save() const {
  const std::lock_guard lock(guard_);
  std::vector<std::vector<std::string>> fingerprints(groups_.size());
  for (const auto& [fingerprint, group] : group_of_)
    fingerprints[group].push_back(hex(fingerprint));
  std::string out = line({{"format", kFormat},
                          {"version", kVersion},
                          {"threshold", threshold_},
                          {"groups", groups_.size()}});
  out += line(numbers_.all());
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    std::sort(fingerprints[i].begin(), fingerprints[i].end());
    out += line({{"tokens", group.tokens},
                 {"code", group.anchors.error_code},
                 {"tests", group.anchors.tests},
                 {"pattern", group.anchors.pattern},
                 {"specific", group.anchors.is_specific},
                 {"fingerprints", fingerprints[i]},
                 {"keys", group.keys}});
  }
  return out;
}

namespace {

// Members of one JSON object, each of its type.
class Fields {
 public:
  Fields(const Json& object, const Lines& lines, const char* form)
      : object_(object), lines_(lines), form_(form) {
    if (!object.is_object()) lines.fail(object.type_name(), form);
  }

  const Json& at(const char* name, bool (*is_right)(const Json&)) const {
    const auto found = object_.find(name);
    if (found == object_.end()) lines_.fail(std::string("no '") + name + "'", form_);
    if (!is_right(*found)) {
      lines_.fail(found->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60) +
                      " as '" + name + "'",
                  form_);
    }
    return *found;
  }
  std::string text(const char* name) const {
    return at(name, [](const Json& value) { return value.is_string(); });
  }
  std::vector<std::string> texts(const char* name) const {
    return at(name, [](const Json& value) {
      return value.is_array() && std::all_of(value.begin(), value.end(),
                                             [](const Json& item) { return item.is_string(); });
    });
  }
  // Whole numbers, none twice.
  std::vector<std::uint64_t> numbers(const char* name) const {
    std::vector<std::uint64_t> found = at(name, is_numbers);
    std::vector<std::uint64_t> sorted = found;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      lines_.fail(std::string("one of '") + name + "' twice", form_);
    }
    return found;
  }
  static bool is_numbers(const Json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& item) {
             return item.is_number_unsigned();
           });
  }

 private:
  const Json& object_;
  const Lines& lines_;
  const char* form_;
};

constexpr const char* kHeadForm = "the head of a failure index of version 1";
constexpr const char* kTokensForm = "the list of tokens, whole numbers, each once";
constexpr const char* kGroupForm = "a group of a failure index";

}  // namespace

std::unique_ptr<FailureIndex> FailureIndex::load(std::string_view bytes) {
  Lines lines(bytes);
  const Json head_line = lines.next(kHeadForm);
  const Fields head(head_line, lines, kHeadForm);
  const auto any = [](const Json&) { return true; };
  if (head.at("format", any) != kFormat || head.at("version", any) != kVersion) {
    lines.fail("another head", kHeadForm);
  }
  const double threshold = head.at(
      "threshold", [](const Json& value) { return value.is_number() && value >= 0 && value <= 1; });
  const std::size_t groups =
      head.at("groups", [](const Json& value) { return value.is_number_unsigned(); });
  auto index = std::make_unique<FailureIndex>(threshold);
  const Json tokens = lines.next(kTokensForm);
  if (!Fields::is_numbers(tokens)) lines.fail(tokens.type_name(), kTokensForm);
  for (const Json& token : tokens) index->numbers_.add(token.get<std::uint64_t>());
  if (index->numbers_.size() != tokens.size()) lines.fail("a token twice", kTokensForm);
  for (std::size_t i = 0; i < groups; ++i) {
    const Json group_line = lines.next(kGroupForm);
    const Fields group(group_line, lines, kGroupForm);
    Numbers own;
    for (const std::uint64_t token : group.numbers("tokens")) {
      if (token >= index->numbers_.size()) lines.fail("an unknown token", kGroupForm);
      own.push_back(static_cast<std::uint32_t>(token));
    }
    std::vector<std::string> tests = group.texts("tests");
    if (std::adjacent_find(tests.begin(), tests.end(), std::greater_equal<>()) != tests.end()) {
      lines.fail("'tests' that do not rise", kGroupForm);
    }
    const bool specific =
        group.at("specific", [](const Json& value) { return value.is_boolean(); });
    index->found(std::move(own),
                 {group.text("code"), std::move(tests), group.text("pattern"), specific});
    index->groups_.back().keys = group.texts("keys");
    index->report_.failures += index->groups_.back().keys.size();
    for (const std::string& fingerprint : group.texts("fingerprints")) {
      const auto hash = hash_of_hex(fingerprint);
      if (!hash) lines.fail("a fingerprint that is none", kGroupForm);
      if (!index->group_of_.emplace(*hash, static_cast<std::uint32_t>(i)).second) {
        lines.fail("a fingerprint twice", kGroupForm);
      }
    }
  }
  if (!lines.is_done()) lines.fail("more text", "the end");
  return index;
}

}  // namespace loki
