// The index as bytes: a head, the tokens, and a line for each group, all JSON. A line is read by
// itself, so that an index of millions needs no second copy in memory.
#include <algorithm>
#include <charconv>
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

std::unique_ptr<FailureIndex> FailureIndex::load(std::string_view bytes) {
  Lines lines(bytes);
  const char* const head_form = "the head of a failure index of version 1";
  const char* const group_form = "a group of a failure index";
  try {
    const Json head = lines.next(head_form);
    if (head.at("format") != kFormat || head.at("version") != kVersion)
      lines.fail("another head", head_form);
    auto index = std::make_unique<FailureIndex>(head.at("threshold").get<double>());
    const Json tokens_line = lines.next("the list of tokens");
    for (const Json& token : tokens_line) index->numbers_.add(token.get<std::uint64_t>());
    if (index->numbers_.size() != tokens_line.size()) lines.fail("a token twice", "each once");
    const auto groups = head.at("groups").get<std::size_t>();
    for (std::size_t i = 0; i < groups; ++i) {
      const Json group = lines.next(group_form);
      auto tokens = group.at("tokens").get<Numbers>();
      for (const std::uint32_t token : tokens) {
        if (token >= index->numbers_.size()) lines.fail("an unknown token", group_form);
      }
      index->found(
          std::move(tokens),
          {group.at("code").get<std::string>(), group.at("tests").get<std::vector<std::string>>(),
           group.at("pattern").get<std::string>(), group.at("specific").get<bool>()});
      index->groups_.back().keys = group.at("keys").get<std::vector<std::string>>();
      index->report_.failures += index->groups_.back().keys.size();
      for (const Json& fingerprint : group.at("fingerprints")) {
        const auto hash = hash_of_hex(fingerprint.get<std::string>());
        if (!hash) lines.fail("a fingerprint that is none", group_form);
        index->group_of_.emplace(*hash, static_cast<std::uint32_t>(i));
      }
    }
    if (!lines.is_done()) lines.fail("more text", "the end");
    return index;
  } catch (const Json::exception& error) {
    lines.fail(error.what(), group_form);
  }
}

}  // namespace loki
