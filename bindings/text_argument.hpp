// Text that Python passes in: borrowed, never copied, unless it holds lone surrogates, is UTF-16 or
// can be written to.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "loki/recognition/text_utf16.hpp"

namespace loki::bindings {

// Holds a str or a bytes-like object and its bytes. Keep it alive, on the stack below any
// gil_scoped_release, while the view is used.
class TextArgument {
 public:
  explicit TextArgument(const pybind11::handle& object)
      : object_(pybind11::reinterpret_borrow<pybind11::object>(object)) {
    if (PyUnicode_Check(object.ptr())) {
      is_str_ = true;
      Py_ssize_t size = 0;
      const char* data = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
      if (data == nullptr) {
        PyErr_Clear();
        object_ = pybind11::reinterpret_steal<pybind11::object>(
            PyUnicode_AsEncodedString(object.ptr(), "utf-8", "surrogatepass"));
        if (!object_) throw pybind11::error_already_set();
        data = PyBytes_AS_STRING(object_.ptr());
        size = PyBytes_GET_SIZE(object_.ptr());
      }
      view_ = {data, static_cast<std::size_t>(size)};
      is_ascii_ = PyUnicode_GET_LENGTH(object.ptr()) == size;
    } else if (PyObject_CheckBuffer(object.ptr())) {
      if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0)
        throw pybind11::error_already_set();
      view_ = {static_cast<const char*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
      is_utf16_ = is_utf16(view_);
      if (is_utf16_) {
        view_ = own_ = utf8_from_utf16(view_);
      } else if (buffer_.readonly == 0) {
        view_ = own_ = std::string(view_);  // others may write while the lock is released
      }
    } else {
      throw pybind11::type_error("expected str or a bytes-like object, found " +
                                 std::string(Py_TYPE(object.ptr())->tp_name));
    }
  }
  ~TextArgument() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }
  TextArgument(const TextArgument&) = delete;
  TextArgument& operator=(const TextArgument&) = delete;

  std::string_view view() const { return view_; }

  // Byte offsets to what indexes the object that was passed: code points of a str, bytes of UTF-16.
  // One pass.
  void to_positions(std::vector<std::size_t*> offsets) const {
    if ((!is_str_ || is_ascii_) && !is_utf16_) return;
    std::sort(offsets.begin(), offsets.end(), [](auto* a, auto* b) { return *a < *b; });
    std::size_t at = 0, count = is_utf16_ ? kUtf16Mark : 0;
    for (std::size_t* offset : offsets) {
      for (; at < std::min(*offset, view_.size()); ++at) {
        if ((static_cast<unsigned char>(view_[at]) & 0xC0U) == 0x80U) continue;
        count += is_utf16_ ? utf16_width(view_[at]) : 1;
      }
      // Half a unit at the end is less wide than it looks.
      *offset = is_utf16_ ? std::min(count, static_cast<std::size_t>(buffer_.len)) : count;
    }
  }

 private:
  pybind11::object object_;
  Py_buffer buffer_{};
  std::string_view view_;
  std::string own_;  // of UTF-16, and of what others can write
  bool is_str_ = false, is_ascii_ = false, is_utf16_ = false;
};

using TextList = pybind11::typing::List<pybind11::object>;

// The texts of a list. Their bytes stay while it lives; the list itself may change meanwhile.
class TextArguments {
 public:
  explicit TextArguments(const TextList& texts) {
    for (const pybind11::handle& text : texts) views_.push_back(held_.emplace_back(text).view());
  }
  std::size_t size() const { return held_.size(); }
  const TextArgument& operator[](std::size_t i) const { return held_[i]; }
  const std::vector<std::string_view>& views() const { return views_; }

 private:
  std::deque<TextArgument> held_;  // never moved
  std::vector<std::string_view> views_;
};

// Work on this much text takes about 50 microseconds (chosen, not measured): worth letting others
// in.
inline constexpr std::size_t kReleaseAbove = 4096;

// Runs `work` without the interpreter lock where the text is large.
template <typename Work>
auto unlocked(std::size_t size, Work&& work) {
  if (size <= kReleaseAbove) return work();
  const pybind11::gil_scoped_release release;
  return work();
}

}  // namespace loki::bindings
