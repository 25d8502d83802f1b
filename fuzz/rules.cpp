// Rule files from strangers: either they load and run, or one DefinitionError says where.
#include "loki/base/error.hpp"
#include "loki/recognition/pattern.hpp"
#include "loki/recognition/site.hpp"
#include "promise.hpp"

using namespace loki;
using fuzz::promise;

namespace {

constexpr std::string_view kText =
    "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: error here\n";

template <typename Load>
void load(Load&& load_and_use) {
  try {
    load_and_use();
  } catch (const DefinitionError& error) {
    promise(!error.reason().empty(), "an error says what is wrong");
    promise(error.where().empty() || error.where().front() == '/', "an error says where");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json = fuzz::bytes(data, size);
  load([&] {
    const SiteRules rules(json);
    rules.check();
    const Site site = rules.find(kText, {});
    promise(site.excerpt_begin + site.excerpt.size() <= kText.size(), "excerpts lie inside");
  });
  load([&] {
    const PatternSet patterns(json);
    patterns.check();
    for (const PatternMatch& match : patterns.match({kText, "error here", "", "", "", ""})) {
      promise(match.pattern < patterns.size(), "a match names a pattern");
    }
  });
  return 0;
}
