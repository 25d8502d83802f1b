// A count of 32 bits that Python passes in; in words where it is out of range.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <limits>
#include <string>

#include "loki/base/error.hpp"

namespace loki::bindings {

struct Count {
  std::uint32_t value = 0;
};

}  // namespace loki::bindings

template <>
struct pybind11::detail::type_caster<loki::bindings::Count> {
  PYBIND11_TYPE_CASTER(loki::bindings::Count, const_name("int"));

  bool load(handle source, bool /*convert*/) {
    if (PyLong_Check(source.ptr())) return take(source);
    const object index = reinterpret_steal<object>(PyNumber_Index(source.ptr()));
    if (!index) PyErr_Clear();
    return index && take(index);  // false: "incompatible function arguments"
  }

  static handle cast(loki::bindings::Count count, return_value_policy, handle) {
    return PyLong_FromUnsignedLong(count.value);
  }

 private:
  bool take(handle number) {
    int overflow = 0;
    const long long found = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0 || found < 0 || found > std::numeric_limits<std::uint32_t>::max()) {
      throw loki::InvalidArgument("found " + std::string(str(number)) +
                                  ": expected a count of failures from 0 to 2**32 - 1");
    }
    value.value = static_cast<std::uint32_t>(found);
    return true;
  }
};
