// The built-in tool rules on hostile output: what is found lies inside the text.
#include "loki/recognition/site.hpp"

#include <algorithm>

#include "promise.hpp"

using namespace loki;
using fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const SiteRules rules(fuzz::builtin(fuzz::Builtin::kTools));
  const CleanText cleaned(fuzz::bytes(data, size));
  const std::string_view text = cleaned.text();
  const Site site = rules.find(text, {"", "/srv/app", ""});
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  promise(site.output_line <= lines, "the output line is a line of the text");
  promise(site.excerpt_first <= site.excerpt_last && site.excerpt_last <= lines,
          "excerpt lines are lines of the text");
  promise(site.excerpt_begin <= text.size() &&
              text.substr(site.excerpt_begin, site.excerpt.size()) == site.excerpt,
          "the excerpt stands where it says");
  promise(fuzz::is_utf8(site.message) && fuzz::is_utf8(site.path) && fuzz::is_utf8(site.excerpt),
          "what is found is UTF-8");
  for (const std::string& test : site.tests) promise(fuzz::is_utf8(test), "test ids are UTF-8");
  const Site again = rules.find(text, {"", "/srv/app", ""});
  promise(again.message == site.message && again.output_line == site.output_line &&
              again.tests == site.tests,
          "the same text gives the same site");
  return 0;
}
