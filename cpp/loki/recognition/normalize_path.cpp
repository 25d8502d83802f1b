// The rules of normalize for temp and home folders. What lies below them stays.
#include <array>

#include "loki/recognition/normalize.hpp"
#include "loki/recognition/scan.hpp"

namespace loki::normalizing {
namespace {

// A name goes on here; '<' may stand for digits that were glued to it.
bool goes_on(std::string_view text, std::size_t i) {
  return is_path(text, i) || at(text, i) == '<';
}

std::size_t component(std::string_view text, std::size_t from) {
  std::size_t i = from;
  while (is_path(text, i)) ++i;
  return i - from;
}

// One separator: a slash, a backslash, or two of them as string literals and JSON write it.
std::size_t separator(std::string_view text, std::size_t i) {
  if (at(text, i) == '/') return 1;
  if (at(text, i) != '\\') return 0;
  return at(text, i + 1) == '\\' ? 2 : 1;
}

// How many bytes of a file's name are random, as Python's tempfile, mktemp and gcc choose them; its
// extension is not among them.
std::size_t random_name(std::string_view name) {
  const bool by_mktemp = name.starts_with("tmp.");
  std::size_t size = by_mktemp ? 4 : 0;
  while (is_word(at(name, size)) && static_cast<unsigned char>(name[size]) < 0x80) ++size;
  const bool by_python = name.starts_with("tmp") && size == 11;
  const bool by_compiler = name.starts_with("cc") && size == 8 && at(name, size) == '.';
  if (is_path(name, size) && at(name, size) != '.') return 0;
  return by_python || by_compiler || (by_mktemp && size >= 10) ? size : 0;
}

// The same from the separator before the name on, with that.
std::size_t random_file(std::string_view text, std::size_t slash) {
  const std::size_t begin = slash + separator(text, slash);
  const std::size_t size = begin == slash ? 0 : random_name(text.substr(begin));
  return size == 0 ? 0 : begin - slash + size;
}

// One folder below /tmp is random, below /var/folders four; pytest adds two of its own kind.
std::size_t temp_folder(std::string_view text) {
  for (const std::string_view temp :
       {"/tmp", "/var/tmp", "/private/tmp", "/private/var/folders", "/var/folders", "/dev/shm"}) {
    if (!text.starts_with(temp) || goes_on(text, temp.size())) continue;
    std::size_t size = temp.size();
    const int random = temp.ends_with("folders") ? 4 : 1;
    for (int i = 0; i < random && at(text, size) == '/'; ++i) {
      const std::size_t folder = component(text, size + 1);
      if (folder == 0) return size;
      if (at(text, size + 1 + folder) != '/') return size + random_file(text, size);
      size += 1 + folder;
    }
    while (at(text, size) == '/' && text.substr(size + 1).starts_with("pytest-")) {
      const std::size_t folder = component(text, size + 1);
      if (at(text, size + 1 + folder) != '/') return size;
      size += 1 + folder;
    }
    return size;
  }
  return 0;
}

// /home/me, /Users/me, /root; Windows' own as Linux (/mnt/c) and Git's shell (/c) name them.
std::size_t home_folder(std::string_view text) {
  std::size_t drive = text.starts_with("/mnt/") ? 4 : 0;
  drive = at(text, drive + 2) == '/' && !is_digit(at(text, drive + 1)) ? drive + 2 : 0;
  for (const std::string_view home : {"/home/", "/Users/"}) {
    const std::size_t begin = home == "/Users/" ? drive : 0;
    if (!text.substr(begin).starts_with(home)) continue;
    const std::size_t name = component(text, begin + home.size());
    if (name > 0) return begin + home.size() + name;
  }
  if (text.starts_with("/root") && !goes_on(text, 5)) return 5;
  return 0;
}

// A separator and the folder of this name (ASCII letter case ignored).
std::size_t below(std::string_view text, std::size_t i, std::string_view name) {
  const std::size_t size = separator(text, i);
  if (size == 0 || i + size + name.size() > text.size()) return 0;
  if (ascii_folded(text.substr(i + size, name.size())) != name) return 0;
  return goes_on(text, i + size + name.size()) ? 0 : size + name.size();
}

// A separator and any folder; a name with spaces where a backslash ends it.
std::size_t below(std::string_view text, std::size_t i) {
  constexpr std::size_t kLongestName = 64;
  const std::size_t size = separator(text, i);
  if (size == 0) return 0;
  const std::size_t begin = i + size;
  const std::size_t end = begin + component(text, begin);
  if (end == begin) return 0;
  std::size_t spaced = end;
  while (spaced - begin < kLongestName && (is_path(text, spaced) || at(text, spaced) == ' ')) {
    ++spaced;
  }
  return (at(text, spaced) == '\\' ? spaced : end) - i;
}

Found windows_folder(std::string_view text) {
  constexpr std::size_t kDrive = 2;
  std::size_t home = 0;
  std::size_t temp = below(text, kDrive, "windows");
  if (temp > 0) {
    const std::size_t size = below(text, kDrive + temp, "temp");
    temp = size == 0 ? 0 : kDrive + temp + size;
  }
  for (const std::string_view name : {"temp", "tmp"}) {
    const std::size_t size = below(text, kDrive, name);
    if (size > 0) temp = kDrive + size;
  }
  if (const std::size_t users = below(text, kDrive, "users")) {
    const std::size_t name = below(text, kDrive + users);
    if (name == 0) return {};
    home = temp = kDrive + users + name;
    for (const std::string_view folder : {"appdata", "local", "temp"}) {
      const std::size_t size = temp == 0 ? 0 : below(text, temp, folder);
      temp = size == 0 ? 0 : temp + size;
    }
  }
  if (temp == 0) return {home, "<home>"};
  const std::size_t random = temp + below(text, temp);
  if (separator(text, random) > 0) return {random, "<tmp>"};
  return {temp + random_file(text, temp), "<tmp>"};
}

}  // namespace

Found folder(std::string_view text) {
  if (at(text, 0) != '/') return is_digit(at(text, 0)) ? Found() : windows_folder(text);
  if (const std::size_t size = temp_folder(text)) return {size, "<tmp>"};
  return {home_folder(text), "<home>"};
}

std::size_t bracketed_size(std::string_view text) {
  constexpr std::size_t kLongest = 48;
  if (at(text, 0) != '[') return 0;
  std::size_t end = 1;
  while (end < kLongest &&
         (is_hex(at(text, end)) || at(text, end) == ':' || at(text, end) == '.')) {
    ++end;
  }
  return at(text, end) == ']' ? end + 1 : 0;
}

bool is_mailbox(char c) {
  return (is_word(c) && static_cast<unsigned char>(c) < 0x80) || c == '.' || c == '%' || c == '+' ||
         c == '-';
}

}  // namespace loki::normalizing
