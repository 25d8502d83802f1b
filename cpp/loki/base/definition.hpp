// Reading definitions (tool rules, patterns) from JSON: typed access that knows where it is, so
// that an error names the place as a JSON pointer. Covered by the tests of the rooms that use it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "loki/base/error.hpp"

namespace loki {

class Definition {
 public:
  Definition(const nlohmann::json& value, std::string where)
      : value_(&value), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  [[noreturn]] void refuse(const std::string& reason) const {
    throw DefinitionError(where_, reason);
  }

  bool has(std::string_view key) const {
    return value_->is_object() && value_->contains(std::string(key));
  }

  Definition at(std::string_view key) const {
    if (!has(key)) refuse("'" + std::string(key) + "' is missing");
    return {(*value_)[std::string(key)], where_ + "/" + std::string(key)};
  }

  std::vector<Definition> items() const {
    if (!value_->is_array()) refuse("expected a list");
    std::vector<Definition> result;
    for (std::size_t i = 0; i < value_->size(); ++i) {
      result.emplace_back((*value_)[i], where_ + "/" + std::to_string(i));
    }
    return result;
  }

  std::vector<Definition> items(std::string_view key) const {
    return has(key) ? at(key).items() : std::vector<Definition>();
  }

  std::string text() const {
    if (!value_->is_string()) refuse("expected text");
    return value_->get<std::string>();
  }

  double number() const {
    if (!value_->is_number()) refuse("expected a number");
    return value_->get<double>();
  }

  bool truth() const {
    if (!value_->is_boolean()) refuse("expected true or false");
    return value_->get<bool>();
  }

  bool is_text() const { return value_->is_string(); }

  std::string text(std::string_view key, std::string otherwise) const {
    return has(key) ? at(key).text() : otherwise;
  }
  bool truth(std::string_view key) const { return has(key) && at(key).truth(); }
  std::size_t count(std::string_view key, std::size_t otherwise) const {
    if (!has(key)) return otherwise;
    const double number = at(key).number();
    if (!(number >= 0 && number <= 1e9)) at(key).refuse("expected a number from 0 to 1000000000");
    return static_cast<std::size_t>(number);
  }

  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> result;
    for (const Definition& item : items(key)) result.push_back(item.text());
    return result;
  }

  const nlohmann::json& json() const { return *value_; }

 private:
  const nlohmann::json* value_;
  std::string where_;
};

// The document in `bytes`. Throws DefinitionError at "" where they are no JSON.
inline nlohmann::json parse_definition(std::string_view bytes) {
  nlohmann::json json = nlohmann::json::parse(bytes, nullptr, false);
  if (json.is_discarded()) throw DefinitionError("", "expected a JSON document");
  return json;
}

}  // namespace loki
