// From an output to a failure: the rooms of this wing in their order.
//
// Covered by tests/py/recognition/test_failure.py on real output.
//
// clean -> site -> normalize -> match patterns -> fingerprint and signature. Nothing is decided
// here.
#pragma once

#include <string>
#include <vector>

#include "loki/recognition/pattern.hpp"
#include "loki/recognition/similarity.hpp"
#include "loki/recognition/site.hpp"
#include "loki/recognition/text.hpp"

namespace loki {

struct Recognized {
  Site site;
  std::string normalized;  // the message, at level volatile
  std::string fingerprint;
  std::string signature;
  std::vector<PatternMatch> matches;  // best first; spans are bytes of the cleaned text
};

Recognized recognize(const CleanText& text, const SiteRules& rules, const PatternSet& patterns,
                     const SiteContext& context);

// What of it is compared with other failures.
FailureSite failure_site(const Recognized& failure, const PatternSet& patterns);

// Names of the frames that take part in the fingerprint.
std::vector<std::string> project_functions(const std::vector<Frame>& frames);

}  // namespace loki
