// A half-open stretch of bytes (or lines, or code points: the user says which).
#pragma once

#include <cstddef>

namespace loki {

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  bool contains(const Span& other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const Span&) const = default;
};

}  // namespace loki
