// The errors that the core throws. Ordinary outcomes (no match, nothing found) are values; only a
// broken precondition throws. bindings/base/error.cpp maps each to Python once.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace loki {

// The caller passed something outside the documented range. Python: ValueError.
class InvalidArgument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// A definition (a tool rule or a pattern) cannot be used. `where` is a JSON pointer into the
// definition ("/tools/0/blocks/1/start"), which the front end turns into file:line:column.
// Python: loki._core.DefinitionError with attributes `where` and `reason`.
class DefinitionError : public std::runtime_error {
 public:
  DefinitionError(std::string where, std::string reason)
      : std::runtime_error(where + ": " + reason),
        where_(std::move(where)),
        reason_(std::move(reason)) {}

  const std::string& where() const noexcept { return where_; }
  const std::string& reason() const noexcept { return reason_; }

 private:
  std::string where_;
  std::string reason_;
};

}  // namespace loki
