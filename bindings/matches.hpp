// Pattern matches as plain numbers, with positions that index the object that was passed.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "loki/recognition/pattern.hpp"
#include "loki/recognition/text.hpp"
#include "text_argument.hpp"

namespace loki::bindings {

using PlainHit = std::tuple<std::size_t, std::size_t, std::size_t>;  // signal, begin, end
using PlainMatch = std::tuple<std::size_t, double, double, std::vector<PlainHit>>;

// matches: with spans of the cleaned text. Needs no interpreter lock.
inline std::vector<PlainMatch> to_plain(std::vector<PatternMatch>& matches,
                                        const CleanText& cleaned, const TextArgument& argument) {
  std::vector<std::size_t*> offsets;
  for (PatternMatch& match : matches) {
    for (PatternHit& hit : match.hits) {
      if (hit.span.size() != 0) hit.span = cleaned.original(hit.span);
      offsets.insert(offsets.end(), {&hit.span.begin, &hit.span.end});
    }
  }
  argument.to_positions(std::move(offsets));
  std::vector<PlainMatch> result;
  for (const PatternMatch& match : matches) {
    std::vector<PlainHit> hits;
    for (const PatternHit& hit : match.hits)
      hits.emplace_back(hit.signal, hit.span.begin, hit.span.end);
    result.emplace_back(match.pattern, match.confidence, match.coverage, std::move(hits));
  }
  return result;
}

}  // namespace loki::bindings
