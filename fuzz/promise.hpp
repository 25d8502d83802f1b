// What every target shares: promises that end the process where they are broken, and the built-in
// rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
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

// The document that `python -m loki.recognition.builtin` wrote; LOKI_BUILTIN says where it is.
inline nlohmann::json builtin() {
  const char* path = std::getenv("LOKI_BUILTIN");
  promise(path != nullptr, "LOKI_BUILTIN names the compiled rules");
  std::ifstream file(path, std::ios::binary);
  promise(file.good(), "the file that LOKI_BUILTIN names can be read");
  return nlohmann::json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace loki::fuzz
