// Which stretch of an original each stretch of a cleaned text came from, in a few bytes a stretch.
//
// Covered by tests/cpp/recognition/text_map_test.cpp.
//
// Idea: a stretch is kept as the differences to the one before it, in numbers of seven bits a byte;
// blocks of a fixed size hold some dozens, and where a block begins is kept whole. A text with an
// escape sequence every few bytes so costs less than itself, and blocks never move when more come.
//
// Worst case: O(1) to add, O(log n) to find.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace loki {

class TextMap {
 public:
  // `shown` bytes of the cleaned text from `cleaned` on, which stand for `length` of the original
  // from `original` on: one for one where both are equal, else more, for some were replaced.
  struct Stretch {
    std::size_t cleaned = 0;
    std::size_t original = 0;
    std::size_t length = 0;
    std::size_t shown = 0;
    bool is_exact() const { return shown == length; }
  };

  // Goes on behind what was added last.
  void add(std::size_t original, std::size_t length, std::size_t shown);

  bool empty() const { return last_.length == 0; }
  // The stretch that holds this byte of the cleaned text, or the last one; the map is not empty.
  Stretch at(std::size_t cleaned) const;

  template <typename Use>
  void each(Use&& use) const {
    for (const Block& block : blocks_) {
      Reader reader(block);
      while (reader.next()) use(reader.stretch);
    }
    if (!empty()) use(last_);
  }

 private:
  struct Block {
    std::size_t cleaned = 0;   // where its first stretch begins
    std::size_t original = 0;  // where the one before that ended
    std::uint8_t used = 0;
    std::array<std::uint8_t, 111> bytes{};
  };
  // Walks over the stretches of a block.
  struct Reader {
    explicit Reader(const Block& of) : block(of) {
      stretch.cleaned = of.cleaned;
      stretch.original = of.original;
    }
    bool next();
    std::uint64_t number();
    const Block& block;
    Stretch stretch;
    std::size_t at = 0;
  };

  void keep(const Stretch& stretch);

  std::deque<Block> blocks_;
  Stretch last_;                 // not in a block yet: it may still grow
  std::size_t before_last_ = 0;  // where the one before it ended in the original
};

}  // namespace loki
