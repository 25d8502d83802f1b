#include "loki/recognition/text_map.hpp"

#include <algorithm>

namespace loki {
namespace {

// A stretch with replaced bytes is walked over when it is looked up: that long at most (chosen).
constexpr std::size_t kLongestInexact = 4096;

constexpr std::size_t kLongestEntry = 30;  // three numbers of 64 bits, seven of them a byte

std::size_t put(std::uint64_t number, std::uint8_t* to) {
  std::size_t size = 0;
  for (; number >= 0x80; number >>= 7) to[size++] = static_cast<std::uint8_t>(number | 0x80);
  to[size++] = static_cast<std::uint8_t>(number);
  return size;
}

}  // namespace

void TextMap::add(std::size_t original, std::size_t length, std::size_t shown) {
  if (length == 0) return;
  const std::size_t end = last_.original + last_.length;
  const bool is_short = last_.length + length <= kLongestInexact;
  if (!empty() && end == original && ((last_.is_exact() && length == shown) || is_short)) {
    last_.length += length;
    last_.shown += shown;
    return;
  }
  if (!empty()) keep(last_);
  last_ = {last_.cleaned + last_.shown, original, length, shown};
}

void TextMap::keep(const Stretch& stretch) {
  std::array<std::uint8_t, kLongestEntry> entry{};
  const std::uint64_t more = stretch.shown - stretch.length;
  std::size_t size = put(stretch.length << 1 | (more != 0 ? 1 : 0), entry.data());
  if (more != 0) size += put(more, entry.data() + size);
  // Forwards even, backwards odd.
  const std::size_t original = stretch.original;
  const std::uint64_t gap = original >= before_last_ ? (original - before_last_) << 1
                                                     : (before_last_ - original) << 1 | 1;
  size += put(gap, entry.data() + size);
  if (blocks_.empty() || blocks_.back().used + size > blocks_.back().bytes.size()) {
    blocks_.push_back({stretch.cleaned, before_last_, 0, {}});
  }
  Block& block = blocks_.back();
  std::copy_n(entry.data(), size, block.bytes.data() + block.used);
  block.used = static_cast<std::uint8_t>(block.used + size);
  before_last_ = original + stretch.length;
}

std::uint64_t TextMap::Reader::number() {
  std::uint64_t result = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = block.bytes[at++];
    result |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return result;
  }
}

bool TextMap::Reader::next() {
  if (at == block.used) return false;
  const std::uint64_t head = number();
  const std::size_t length = head >> 1;
  const std::size_t more = (head & 1) != 0 ? number() : 0;
  const std::uint64_t gap = number();
  const std::size_t end = stretch.original + stretch.length;
  stretch.cleaned += stretch.shown;
  stretch.original = (gap & 1) != 0 ? end - (gap >> 1) : end + (gap >> 1);
  stretch.length = length;
  stretch.shown = length + more;
  return true;
}

TextMap::Stretch TextMap::at(std::size_t cleaned) const {
  if (blocks_.empty() || cleaned >= last_.cleaned) return last_;
  const auto after =
      std::upper_bound(blocks_.begin(), blocks_.end(), cleaned,
                       [](std::size_t place, const Block& block) { return place < block.cleaned; });
  Reader reader(*(after - 1));
  while (reader.next() && cleaned >= reader.stretch.cleaned + reader.stretch.shown) {
  }
  return reader.stretch;
}

}  // namespace loki
