#include "loki/recognition/signature.hpp"

#include <algorithm>
#include <cstdint>

#include "loki/base/hash.hpp"

namespace loki {
namespace {

constexpr std::size_t kSlug = 40;

void frame(std::string& out, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>((number >> (8 * i)) & 0xFF));
}

void frame(std::string& out, std::string_view field) {
  frame(out, field.size());
  out += field;
}

void frame(std::string& out, const std::vector<std::string>& fields) {
  frame(out, fields.size());
  for (const std::string& field : fields) frame(out, std::string_view(field));
}

char slug_letter(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
}

}  // namespace

Hash128 fingerprint_hash(const FingerprintFields& fields) {
  std::string bytes;
  constexpr std::size_t kSmall = 256;  // for what is small
  bytes.reserve(fields.normalized.size() + kSmall);
  frame(bytes, fields.error_type);
  frame(bytes, fields.error_code);
  frame(bytes, fields.normalized);
  std::vector<std::string> tests = fields.tests;
  std::sort(tests.begin(), tests.end());
  tests.erase(std::unique(tests.begin(), tests.end()), tests.end());
  frame(bytes, tests);
  frame(bytes, fields.functions);
  return hash128(bytes);
}

std::string fingerprint(const FingerprintFields& fields) {
  return hex(fingerprint_hash(fields));
}

std::string slug(std::string_view error_code, std::string_view normalized) {
  std::string result;
  for (const char c : error_code.empty() ? normalized : error_code) {
    const char letter = slug_letter(c);
    if (letter == '_' && (result.empty() || result.back() == '_')) continue;
    if (result.size() == kSlug) break;
    result.push_back(letter);
  }
  while (result.ends_with('_')) result.pop_back();
  return result;
}

std::string signature(std::string_view pattern, std::string_view extension,
                      std::string_view error_code, std::string_view normalized) {
  std::string result(pattern.empty() ? "unknown" : pattern);
  result += ':';
  result += extension.empty() ? "none" : extension;
  result += ':';
  result += slug(error_code, normalized);
  return result;
}

}  // namespace loki
