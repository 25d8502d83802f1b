// What every target shares: promises that end the process where they are broken, and the built-in
// rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "loki/recognition/text.hpp"

namespace loki::fuzz {

inline void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

inline std::string_view bytes(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline bool is_utf8(std::string_view text) {
  bool valid = true;
  for (std::size_t at = 0; valid && at < text.size();) at += utf8_step(text, at, valid);
  return valid;
}

// What `python -m loki.recognition.builtin` wrote: the tools, then the patterns, a line each.
// LOKI_BUILTIN says where it is.
enum class Builtin { kTools, kPatterns };
inline std::string builtin(Builtin wanted) {
  const char* path = std::getenv("LOKI_BUILTIN");
  promise(path != nullptr, "LOKI_BUILTIN names the compiled rules");
  std::ifstream file(path, std::ios::binary);
  promise(file.good(), "the file that LOKI_BUILTIN names can be read");
  std::string line;
  std::getline(file, line);
  if (wanted == Builtin::kPatterns) std::getline(file, line);
  promise(!line.empty(), "the file that LOKI_BUILTIN names has the line");
  return line;
}

}  // namespace loki::fuzz
