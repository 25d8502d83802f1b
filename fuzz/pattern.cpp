// The built-in failure patterns on hostile text: confidences, order and spans are as promised.
#include "loki/recognition/pattern.hpp"

#include "promise.hpp"

using namespace loki;
using fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const PatternSet patterns(fuzz::builtin(fuzz::Builtin::kPatterns));
  const CleanText cleaned(fuzz::bytes(data, size));
  const std::string_view text = cleaned.text();
  const std::string_view message = text.substr(0, std::min(text.find('\n'), text.size()));
  for (const PatternSubject& subject :
       {PatternSubject{text, {}, {}, {}, {}, {}},
        PatternSubject{text, message, "pytest", "E1", "test-failure", "python"}}) {
    double best = 1;
    for (const PatternMatch& match : patterns.match(subject)) {
      promise(match.pattern < patterns.size(), "a match names a pattern");
      promise(match.confidence >= 0.30 && match.confidence <= best, "best first, none under 0.30");
      promise(match.coverage > 0 && match.coverage <= 1, "coverage is a share");
      promise(!match.hits.empty(), "a match says what hit");
      best = match.confidence;
      for (const PatternHit& hit : match.hits) {
        promise(hit.span.begin <= hit.span.end && hit.span.end <= text.size(),
                "hits lie inside the text");
      }
    }
  }
  return 0;
}
