// The hot path of the breaker: permits, and the two methods that give them out.
//
// They are written against CPython's own interface: pybind11 needs about ten times as long to make
// an object or to call a method (190 and 80 ns beside 20 and 11 on the machine where this was
// chosen), and a C++ exception, which it raises Python's through, costs 2 us. All else about a
// breaker is bound as usual, in breaker.cpp.
//
// The class of the front (python/loki/decision/breaker.py) is a subclass; these of its methods are
// called, never under the core's lock:
//   _announce()                        there are transitions that nobody has been told of
//   _refuse(retry_after, last_error)   raises BreakerOpen
//   _judge(permit, error)              reports to the permit what an exception means
//   _describe(error) -> str            what is kept of an error
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>

#include "loki/decision/breaker_locked.hpp"

namespace loki::bindings {

// The table behind its lock, and the clock that it is asked with: here is the edge.
struct ClockedBreaker {
  LockedBreaker locked;
  pybind11::object monotonic;  // gives seconds; None: the machine's steady clock

  // Throws what the clock raises, and ValueError where it gives no finite number.
  Nanoseconds now() const;

  // For pybind11, which makes room here, and nothing in it, where a method is called before
  // __init__ or after it has raised: throws. Those who mean it say ::new.
  static void* operator new(std::size_t);
};

// Adds the type of permits to the module, try_acquire and guard to the class of breakers.
void bind_permit(pybind11::module_& module, pybind11::class_<ClockedBreaker>& breaker);

// Lets the front tell of what has changed; throws what it raises.
void announce(const pybind11::handle& breaker, const ClockedBreaker& clocked);

}  // namespace loki::bindings
