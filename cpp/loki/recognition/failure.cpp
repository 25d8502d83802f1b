#include "loki/recognition/failure.hpp"

#include "loki/recognition/normalize.hpp"
#include "loki/recognition/signature.hpp"

namespace loki {
namespace {

// What is said of the failure first; the whole text only if they tell nothing.
std::vector<PatternMatch> match(std::string_view cleaned, const Site& site, const SiteRules& rules,
                                const PatternSet& patterns) {
  const std::string message =
      site.error_type.empty() ? site.message : site.error_type + ": " + site.message;
  const auto matched_in = [&](std::string_view text) {
    return patterns.match(
        {text, message, site.tool, site.error_code, site.kind, site.language, &rules.prefix()});
  };
  const std::string_view own = cleaned.substr(site.own_begin, site.own_size);
  std::vector<PatternMatch> matches = matched_in(own);
  for (PatternMatch& found : matches) {
    for (PatternHit& hit : found.hits) {
      if (hit.span.size() == 0) continue;
      hit.span = {hit.span.begin + site.own_begin, hit.span.end + site.own_begin};
    }
  }
  if (!matches.empty() || own.size() == cleaned.size()) return matches;
  return matched_in(cleaned);
}

}  // namespace

std::vector<std::string> project_functions(const std::vector<Frame>& frames) {
  std::vector<std::string> functions;
  for (const Frame& frame : frames) {
    if (frame.in_project && !frame.function.empty()) functions.push_back(frame.function);
  }
  return functions;
}

FailureSite failure_site(const Recognized& failure, const PatternSet& patterns) {
  const Site& site = failure.site;
  const bool is_known = !failure.matches.empty();
  return {site.error_type,
          site.error_code,
          failure.normalized,
          site.path,
          site.tests,
          project_functions(site.frames),
          is_known ? patterns.id(failure.matches.front().pattern) : std::string()};
}

Recognized recognize(const CleanText& text, const SiteRules& rules, const PatternSet& patterns,
                     const SiteContext& context) {
  Recognized result;
  result.site = rules.find(text.text(), context);
  const Site& site = result.site;
  result.normalized = normalize(site.message, Level::kVolatile, context.root);
  result.matches = match(text.text(), site, rules, patterns);
  result.fingerprint = fingerprint({site.error_type, site.error_code, result.normalized, site.tests,
                                    project_functions(site.frames)});
  const std::string_view pattern =
      result.matches.empty() ? std::string_view() : patterns.id(result.matches.front().pattern);
  result.signature = signature(pattern, site.extension, site.error_code, result.normalized);
  return result;
}

}  // namespace loki
