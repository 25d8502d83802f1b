// How alike two texts are, and whether two failures are the same.
//
// Covered by tests/cpp/recognition/similarity_test.cpp and, against a slow reference in Python, by
// tests/py/recognition/test_similarity.py.
//
// Idea: sets of tokens, sorted, so that the intersection is one merge. Sources: Jaccard, "Étude
// comparative de la distribution florale" (1901); Dice, "Measures of the amount of ecologic
// association" (1945); Broder, "On the resemblance and containment of documents" (1997). The
// threshold of 0.80 and the order of the rules are SPEC section 2.
//
// Worst case: O(n log n) for tokens, O(a + b) for a comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loki/base/hash.hpp"

namespace loki {

// The distinct tokens of a normalized text, sorted: runs of letters, digits and _, case folded;
// placeholders like <int> are tokens.
using Tokens = std::vector<std::string>;
Tokens tokens(std::string_view normalized);
// The same as hashes (XXH3-64), sorted: where many sets are kept. That two of n tokens have one
// hash has a chance of n * n / 2^65.
using TokenHashes = std::vector<std::uint64_t>;
TokenHashes token_hashes(std::string_view normalized);

// All measures: 0 to 1; both empty 1, one empty 0; where one has under 3 tokens only equality
// counts.
double overlap(const Tokens& a, const Tokens& b);                  // |A and B| / |A or B|
double overlap(std::size_t shared, std::size_t a, std::size_t b);  // the same, from the sizes
double containment(const Tokens& a, const Tokens& b);   // |A and B| / |A|: how much of a is in b
double dice(const Tokens& a, const Tokens& b);          // 2 |A and B| / (|A| + |B|)
double larger_share(const Tokens& a, const Tokens& b);  // |A and B| / max(|A|, |B|)

// What of a failure takes part in the decision.
struct FailureSite {
  std::string error_type;
  std::string error_code;
  std::string normalized;
  std::string path;
  std::vector<std::string> tests;
  std::vector<std::string> functions;  // of frames in the project
  std::string pattern;                 // empty: none matched
  std::size_t line = 0;                // of the path, 1-based; 0: unknown
};

// What is compared of a site: type, code, message, functions and tests.
Tokens site_tokens(const FailureSite& site);
TokenHashes site_token_hashes(const FailureSite& site);
Hash128 site_fingerprint(const FailureSite& site);

// May arm a sign: it has an anchor (exception name, file, test or code) and 24 characters or more
// to compare, or a file or test beside a type, a code or a few words; or a signal ended it.
bool is_specific(const FailureSite& site);

// What decides beside overlap and fingerprint.
struct SiteAnchors {
  std::string error_code;
  std::vector<std::string> tests;  // sorted, each once
  std::string pattern;
  bool is_specific = false;
};
SiteAnchors site_anchors(const FailureSite& site);

// Both name failing tests, or both name codes, and these differ.
bool contradict(const SiteAnchors& a, const SiteAnchors& b);
// They do not contradict each other and overlap above the threshold: is that enough?
bool same_if_alike(const SiteAnchors& a, const SiteAnchors& b);

// SPEC section 2, in its order. A false merge is worse than a false split.
bool same_failure(const FailureSite& a, const FailureSite& b, double threshold);

}  // namespace loki
