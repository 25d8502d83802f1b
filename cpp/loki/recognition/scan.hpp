// The one multi-literal matcher: all literals of all rules and patterns in one pass.
//
// Covered by tests/cpp/recognition/scan_test.cpp, against a slow reference.
//
// Idea: the automaton of Aho and Corasick ("Efficient string matching", CACM 18(6), 1975) as a full
// transition table over byte classes. ASCII letter case is folded in the class table, so the text
// is not copied; only where a literal and a stretch of the text both have letters beyond ASCII,
// that stretch is. States that report something are numbered last: one comparison finds them. Each
// step waits for the step before it, so four stretches of the text are read side by side, each
// begun as many bytes early as the longest literal is long: what a state knows is never older.
//
// Worst case: O(text + hits); memory states x classes x 4 bytes, and 2 MB while it runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace loki {

// ASCII letters in lower case; other bytes as they are.
std::string ascii_folded(std::string_view text);
void fold_ascii(std::string_view text, std::string& into);

// Letters of any script in lower case where that is as long in UTF-8, so that offsets stay: nearly
// all. The Kelvin sign stays what it is.
std::string utf8_folded(std::string_view text);

class LiteralScan {
 public:
  // Literals: 1 byte or more each, else InvalidArgument; letter case (as in `utf8_folded`) does not
  // matter. Equal literals are all reported.
  explicit LiteralScan(const std::vector<std::string>& literals);

  // Calls visit(literal index, end of the hit in bytes) for every occurrence of every literal, by
  // rising end; of hits that end together the longest first.
  template <typename Visit>
  void each(std::string_view text, Visit&& visit) const {
    if (reports_.empty()) return;
    Progress progress;
    while (progress.at < text.size()) {
      const std::size_t begin = progress.at;
      scan_block(text, progress);
      for (const auto& hits : progress.hits) {
        for (const Hit& hit : hits) {
          for (std::uint32_t i = reports_begin_[hit.row]; i < reports_begin_[hit.row + 1]; ++i) {
            visit(reports_[i], begin + hit.end);
          }
        }
      }
    }
  }

  std::size_t states() const { return states_; }

 private:
  static constexpr std::size_t kLanes = 4;
  struct Hit {
    std::uint32_t row, end;
  };
  struct Progress {
    std::size_t at = 0;
    std::uint32_t state = 0;
    std::array<std::vector<Hit>, kLanes> hits;  // of the block that was read last
    std::string folded;
  };

  void scan_block(std::string_view text, Progress& progress) const;
  void scan_lanes(std::string_view block, Progress& progress) const;
  void scan_on(std::string_view block, std::size_t from, std::uint32_t& state,
               std::vector<Hit>& hits) const;
  std::uint32_t step(std::uint32_t state, char c) const {
    return next_[state + class_of_[static_cast<unsigned char>(c)]];
  }
  std::uint32_t row(std::uint32_t state) const { return (state - first_reporting_) / classes_; }

  std::array<std::uint8_t, 256> class_of_{};
  std::uint32_t classes_ = 1;
  std::uint32_t first_reporting_ = 0;  // states are stored multiplied by classes_
  std::size_t longest_ = 0;            // bytes of the longest literal
  bool has_letters_beyond_ = false;    // some literal has letters beyond ASCII
  std::uint32_t states_ = 0;
  std::unique_ptr<std::uint32_t[]> next_;  // state * classes + class
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
