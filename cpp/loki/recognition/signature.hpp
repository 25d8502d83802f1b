// What makes two failures "the same": the fingerprint, and the signature that people read.
//
// Covered by tests/cpp/recognition/signature_test.cpp (golden values: fields -> hash).
//
// The fingerprint of given fields never changes within a major release: stores keep it. Fields are
// framed by their lengths, so that no two field lists give the same bytes. Source: SPEC
// section 1.4.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loki/base/hash.hpp"

namespace loki {

struct FingerprintFields {
  std::string_view error_type;
  std::string_view error_code;
  std::string_view normalized;         // the message, normalized
  std::vector<std::string> tests;      // ids of failing tests, in any order
  std::vector<std::string> functions;  // names of frames in the project, outermost first
};

// XXH3-128; as 32 hex digits.
Hash128 fingerprint_hash(const FingerprintFields& fields);
std::string fingerprint(const FingerprintFields& fields);

// [a-z0-9_], at most 40 characters, from the code, else from the normalized message; may be empty.
std::string slug(std::string_view error_code, std::string_view normalized);

// {pattern}:{extension}:{slug}; "unknown" and "none" stand for what is not known.
std::string signature(std::string_view pattern, std::string_view extension,
                      std::string_view error_code, std::string_view normalized);

}  // namespace loki
