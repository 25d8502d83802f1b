#include "loki/recognition/text_utf16.hpp"

namespace loki {
namespace {

void append(std::string& out, unsigned point) {
  const auto put = [&](unsigned byte) { out.push_back(static_cast<char>(byte)); };
  if (point < 0x80) {
    put(point);
    return;
  }
  if (point < 0x800) {
    put(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3F));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3F));
    put(0x80 | (point >> 6 & 0x3F));
  }
  put(0x80 | (point & 0x3F));
}

}  // namespace

bool is_utf16(std::string_view bytes) {
  return bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF");
}

std::string utf8_from_utf16(std::string_view bytes) {
  const bool is_little = bytes.starts_with("\xFF\xFE");
  const auto unit = [&](std::size_t at) {
    const unsigned first = static_cast<unsigned char>(bytes[at]);
    const unsigned second = static_cast<unsigned char>(bytes[at + 1]);
    return is_little ? second << 8 | first : first << 8 | second;
  };
  std::string out;
  out.reserve(bytes.size() / 2 * 3 + 1);  // memory that is not written to costs nothing
  std::size_t at = kUtf16Mark;
  for (; at + 1 < bytes.size(); at += 2) {
    unsigned point = unit(at);
    if (point >= 0xD800 && point < 0xDC00 && at + 3 < bytes.size()) {
      const unsigned low = unit(at + 2);
      if (low >= 0xDC00 && low < 0xE000) {
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
        at += 2;
      }
    }
    append(out, point);
  }
  if (at < bytes.size()) out.push_back('\xFF');
  return out;
}

}  // namespace loki
