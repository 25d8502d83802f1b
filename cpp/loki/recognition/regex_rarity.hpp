// Which literals are worth a look: what stands on few lines. Private to `regex`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace loki {

// Bytes of the shortest; 0 where there is none.
std::size_t shortest(const std::vector<std::string>& strings);

// Of the most common of them; larger is rarer. In lower case.
std::size_t rarity(const std::vector<std::string>& strings);

// To look for one of `a` is worth more than to look for one of `b`; false where `a` will not do.
bool better(const std::vector<std::string>& a, const std::vector<std::string>& b);

// The sets of alternatives that are worth a look, besides those that are looked for anyway.
std::vector<std::vector<std::string>> rarest(std::vector<std::vector<std::string>> all,
                                             const std::vector<std::string>& scanned,
                                             const std::vector<std::string>& head);

}  // namespace loki
