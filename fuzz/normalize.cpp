// Normalization: UTF-8 stays UTF-8, a second pass finds nothing, no secret's level adds lines.
#include "loki/recognition/normalize.hpp"

#include <algorithm>

#include "loki/recognition/similarity.hpp"
#include "promise.hpp"

using namespace loki;
using fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view raw = fuzz::bytes(data, size);
  const CleanText cleaned(raw);
  for (const Level level : {Level::kVolatile, Level::kTemplate, Level::kSecrets}) {
    for (const std::string_view root : {std::string_view(), std::string_view("/srv/app")}) {
      const std::string once = normalize(cleaned.text(), level, root);
      promise(fuzz::is_utf8(once), "normalized text is UTF-8");
      promise(normalize(once, level, root) == once, "normalization is idempotent");
    }
    normalize(raw, level);  // any bytes give some result
  }
  tokens(normalize(cleaned.text()));
  return 0;
}
