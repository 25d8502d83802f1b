// Cleaning: valid UTF-8, idempotent, lines kept, every byte shown stands where the map says.
#include <algorithm>

#include "promise.hpp"

using namespace loki;
using fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::bytes(data, size);
  const CleanText cleaned(text);
  const std::string_view shown = cleaned.text();
  promise(fuzz::is_utf8(shown), "cleaned text is UTF-8");
  promise(CleanText(shown).text() == shown, "cleaning is idempotent");

  const auto lines = [](std::string_view of, char end) {
    return std::count(of.begin(), of.end(), end);
  };
  const bool by_newline = text.find('\n') != std::string_view::npos;
  promise(lines(shown, '\n') == lines(text, by_newline ? '\n' : '\r'), "lines are kept");

  std::size_t at = 0;
  while (at < shown.size()) {
    bool valid = false;
    const std::size_t step = utf8_step(shown, at, valid);
    const Span span = cleaned.original({at, at + step});
    promise(span.begin < span.end && span.end <= size, "the map stays inside the original");
    const std::string_view from = text.substr(span.begin, span.size());
    const bool replaced = shown.substr(at, step) == "\xEF\xBF\xBD" && !fuzz::is_utf8(from);
    const bool newline = shown[at] == '\n' && from == "\r";
    promise(from == shown.substr(at, step) || replaced || newline, "the map is exact");
    at += step;
  }
  return 0;
}
