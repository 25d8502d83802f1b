// The one multi-literal matcher: all literals of all rules and patterns in one pass.
//
// Covered by tests/cpp/recognition/scan_test.cpp, against a slow reference.
//
// Idea: the automaton of Aho and Corasick ("Efficient string matching", CACM 18(6), 1975) as a full
// transition table over byte classes. Letter case is folded in the class table (ASCII), so the text
// is never copied. States that report something are numbered last: the inner loop is one lookup and
// one comparison per byte, whatever the number of literals.
//
// Worst case: O(text + hits); memory states x classes x 4 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace loki {

// ASCII letters in lower case; other bytes as they are.
std::string ascii_folded(std::string_view text);

class LiteralScan {
 public:
  // Literals: 1 byte or more each, else InvalidArgument; letter case (ASCII) does not matter. Equal
  // literals are all reported.
  explicit LiteralScan(const std::vector<std::string>& literals);

  // Calls visit(literal index, end of the hit in bytes) for every occurrence of every literal, by
  // rising end; of hits that end together the longest first.
  template <typename Visit>
  void each(std::string_view text, Visit&& visit) const {
    std::uint32_t state = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      state = next_[state + class_of_[static_cast<unsigned char>(text[at])]];
      if (state < first_reporting_) continue;
      const std::size_t row = (state - first_reporting_) / classes_;
      for (std::uint32_t i = reports_begin_[row]; i < reports_begin_[row + 1]; ++i) {
        visit(reports_[i], at + 1);
      }
    }
  }

  std::size_t states() const { return next_.size() / classes_; }

 private:
  std::array<std::uint8_t, 256> class_of_{};
  std::uint32_t classes_ = 1;
  std::uint32_t first_reporting_ = 0;  // states are stored multiplied by classes_
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> reports_begin_;
  std::vector<std::uint32_t> reports_;
};

// Gives literals their index; the same literal gets the same one.
class LiteralTable {
 public:
  std::size_t add(std::string_view literal);
  const std::vector<std::string>& literals() const { return literals_; }

 private:
  std::vector<std::string> literals_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace loki
