#include "decision/breaker_permit.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <new>
#include <stdexcept>
#include <string>

namespace py = pybind11;

namespace loki::bindings {
namespace {

struct Permit {
  PyObject_HEAD PyObject* breaker;  // owned: keeps `clocked` alive
  ClockedBreaker* clocked;
  BreakerPermit value;
  std::atomic<bool> is_reported;
};

// What `await` gets of something that is there already.
struct Ready {
  PyObject_HEAD PyObject* value;
};

PyTypeObject* permit_type = nullptr;
PyTypeObject* ready_type = nullptr;
PyObject* judge_name = nullptr;
PyObject* refuse_name = nullptr;

Permit& permit_of(PyObject* self) {
  return *reinterpret_cast<Permit*>(self);
}

// CPython's side knows no C++ exceptions.
template <typename Work>
PyObject* caught(Work&& work) noexcept {
  try {
    return work();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// --- giving permits out --------------------------------------------------------------------------

PyObject* make_permit(PyObject* breaker, ClockedBreaker& clocked, const BreakerPermit& value) {
  auto* permit = PyObject_GC_New(Permit, permit_type);
  if (permit == nullptr) throw py::error_already_set();
  permit->breaker = Py_NewRef(breaker);
  permit->clocked = &clocked;
  permit->value = value;
  new (&permit->is_reported) std::atomic<bool>(false);
  PyObject_GC_Track(permit);
  return reinterpret_cast<PyObject*>(permit);
}

// Raises, without a C++ exception on the way.
PyObject* refuse(PyObject* breaker, const BreakerRefusal& refusal) {
  py::object retry_after = py::none();
  if (refusal.retry_after) {
    retry_after = py::float_(std::chrono::duration<double>(*refusal.retry_after).count());
  }
  const py::str last_error(refusal.last_error);
  return PyObject_CallMethodObjArgs(breaker, refuse_name, retry_after.ptr(), last_error.ptr(),
                                    nullptr);
}

template <bool raises>
PyObject* acquire(PyObject* self, PyObject*) noexcept {
  return caught([&]() -> PyObject* {
    auto& clocked = py::handle(self).cast<ClockedBreaker&>();
    if (const auto permit = clocked.locked.acquire_closed()) {
      return make_permit(self, clocked, *permit);
    }
    BreakerRefusal refusal;
    const auto permit = clocked.locked.acquire(clocked.now(), raises ? &refusal : nullptr);
    py::object result = py::none();
    if (permit) result = py::reinterpret_steal<py::object>(make_permit(self, clocked, *permit));
    announce(self, clocked);
    if (!permit && raises) return refuse(self, refusal);
    return result.release().ptr();
  });
}

// --- taking outcomes -----------------------------------------------------------------------------

bool claim(Permit& permit) {
  return !permit.is_reported.exchange(true, std::memory_order_relaxed);
}

// The time of a report; where the clock fails, the slot is freed all the same.
Nanoseconds report_time(const Permit& permit) {
  try {
    return permit.clocked->now();
  } catch (...) {
    permit.clocked->locked.ignore(permit.value);
    throw;
  }
}

void succeed(Permit& permit) {
  if (!claim(permit) || permit.clocked->locked.success_closed(permit.value)) return;
  permit.clocked->locked.success(permit.value, report_time(permit));
  announce(permit.breaker, *permit.clocked);
}

PyObject* permit_success(PyObject* self, PyObject*) noexcept {
  return caught([&] {
    succeed(permit_of(self));
    return Py_NewRef(Py_None);
  });
}

PyObject* permit_failure(PyObject* self, PyObject* args, PyObject* kwargs) noexcept {
  static const char* names[] = {"error", "retry_after", nullptr};
  PyObject *error = Py_None, *retry_after = Py_None;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:failure", const_cast<char**>(names), &error,
                                  &retry_after) == 0) {
    return nullptr;
  }
  return caught([&] {
    Permit& permit = permit_of(self);
    const py::handle breaker(permit.breaker);
    const auto text = breaker.attr("_describe")(py::handle(error)).cast<std::string>();
    std::optional<Nanoseconds> asked;
    if (retry_after != Py_None) {
      asked = Nanoseconds(breaker.attr("_asked")(py::handle(retry_after)).cast<std::int64_t>());
    }
    if (claim(permit)) {
      permit.clocked->locked.failure(permit.value, report_time(permit), text, asked);
      announce(breaker, *permit.clocked);
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* permit_ignore(PyObject* self, PyObject*) noexcept {
  Permit& permit = permit_of(self);
  if (claim(permit)) permit.clocked->locked.ignore(permit.value);
  return Py_NewRef(Py_None);
}

void permit_dealloc(PyObject* self) noexcept {
  PyObject_GC_UnTrack(self);
  Permit& permit = permit_of(self);
  if (claim(permit)) permit.clocked->locked.ignore(permit.value);
  Py_DECREF(permit.breaker);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

// Nothing is cleared, as with a tuple: a ring through a permit also passes what its breaker holds.
int permit_traverse(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(permit_of(self).breaker);
  return 0;
}

// --- with and async with -------------------------------------------------------------------------

PyObject* permit_enter(PyObject* self, PyObject*) noexcept {
  return Py_NewRef(self);
}

// (type, error, traceback) -> whether all went well with reporting; Python's error is set if not.
bool leave(PyObject* self, PyObject* const* args, Py_ssize_t count) noexcept {
  if (count != 3) {
    PyErr_Format(PyExc_TypeError, "expected 3 arguments, found %zd", count);
    return false;
  }
  if (args[1] != Py_None) {
    const auto told = py::reinterpret_steal<py::object>(
        PyObject_CallMethodObjArgs(permit_of(self).breaker, judge_name, self, args[1], nullptr));
    return static_cast<bool>(told);
  }
  const auto done = py::reinterpret_steal<py::object>(permit_success(self, nullptr));
  return static_cast<bool>(done);
}

PyObject* permit_exit(PyObject* self, PyObject* const* args, Py_ssize_t count) noexcept {
  return leave(self, args, count) ? Py_NewRef(Py_False) : nullptr;
}

PyObject* make_ready(PyObject* value) noexcept {
  auto* ready = PyObject_New(Ready, ready_type);
  if (ready != nullptr) ready->value = Py_NewRef(value);
  return reinterpret_cast<PyObject*>(ready);
}

PyObject* permit_aenter(PyObject* self, PyObject*) noexcept {
  return make_ready(self);
}

PyObject* permit_aexit(PyObject* self, PyObject* const* args, Py_ssize_t count) noexcept {
  return leave(self, args, count) ? make_ready(Py_False) : nullptr;
}

void ready_dealloc(PyObject* self) noexcept {
  Py_DECREF(reinterpret_cast<Ready*>(self)->value);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* ready_next(PyObject* self) noexcept {
  PyErr_SetObject(PyExc_StopIteration, reinterpret_cast<Ready*>(self)->value);
  return nullptr;
}

// The same without an exception, which is what the interpreter asks for first.
PySendResult ready_send(PyObject* self, PyObject*, PyObject** result) noexcept {
  *result = Py_NewRef(reinterpret_cast<Ready*>(self)->value);
  return PYGEN_RETURN;
}

// --- types ---------------------------------------------------------------------------------------

template <typename Function>
PyCFunction c_function(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// First lines in the form that stubs are made from.
PyMethodDef permit_methods[] = {
    {"success", permit_success, METH_NOARGS,
     "success(self) -> None\n\nThe call went well. What is reported second counts nothing."},
    {"failure", c_function(permit_failure), METH_VARARGS | METH_KEYWORDS,
     "failure(self, error: object = None, retry_after: object = None) -> None\n\n"
     "The call failed; the error, an exception or a text, is shown to those that are refused. "
     "Where "
     "it\n"
     "trips the breaker, `retry_after` is for how long: what the service asked for."},
    {"ignore", permit_ignore, METH_NOARGS,
     "ignore(self) -> None\n\n"
     "Neither: cancelled, or an error that says nothing. A permit that is dropped does the same."},
    {"__enter__", permit_enter, METH_NOARGS, "__enter__(self) -> Permit"},
    {"__exit__", c_function(permit_exit), METH_FASTCALL,
     "__exit__(self, kind: object, error: object, traceback: object) -> typing.Literal[False]"},
    {"__aenter__", permit_aenter, METH_NOARGS,
     "__aenter__(self) -> collections.abc.Awaitable[Permit]"},
    {"__aexit__", c_function(permit_aexit), METH_FASTCALL,
     "__aexit__(self, kind: object, error: object, traceback: object) -> "
     "collections.abc.Awaitable[typing.Literal[False]]"},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef breaker_methods[] = {
    {"try_acquire", acquire<false>, METH_NOARGS,
     "try_acquire(self) -> typing.Optional[Permit]\n\n"
     "Leave for one call; None: refused. Report what came of it to the permit."},
    {"guard", acquire<true>, METH_NOARGS,
     "guard(self) -> Permit\n\n"
     "Leave for one call, for `with` and `async with`; raises BreakerOpen where it is refused."}};

template <typename Function>
void* slot(Function function) {
  return reinterpret_cast<void*>(function);
}

PyTypeObject* make_type(const char* name, std::size_t size, unsigned int flags,
                        PyType_Slot* slots) {
  flags |= Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  PyType_Spec spec{name, static_cast<int>(size), 0, flags, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  return reinterpret_cast<PyTypeObject*>(type);
}

PyTypeObject* make_permit_type() {
  static constexpr const char* kDoc =
      "Leave for one call: report success(), failure(error) or ignore(), once.\n\n"
      "As a context manager it does so by itself. Of an earlier time of the breaker, or as a "
      "probe\n"
      "out of its lease, it is void: its outcome counts nothing.";
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(kDoc)},
                         {Py_tp_dealloc, slot(permit_dealloc)},
                         {Py_tp_traverse, slot(permit_traverse)},
                         {Py_tp_methods, permit_methods},
                         {0, nullptr}};
  return make_type("loki._core.Permit", sizeof(Permit), Py_TPFLAGS_HAVE_GC, slots);
}

PyTypeObject* make_ready_type() {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, slot(ready_dealloc)}, {Py_tp_iter, slot(PyObject_SelfIter)},
      {Py_tp_iternext, slot(ready_next)},   {Py_am_await, slot(PyObject_SelfIter)},
      {Py_am_send, slot(ready_send)},       {0, nullptr}};
  return make_type("loki._core.Ready", sizeof(Ready), 0, slots);
}

}  // namespace

void* ClockedBreaker::operator new(std::size_t) {
  throw std::runtime_error(
      "a breaker is used that is not made: its __init__ has not run or raised");
}

Nanoseconds ClockedBreaker::now() const {
  if (monotonic.is_none()) return std::chrono::steady_clock::now().time_since_epoch();
  const double seconds = monotonic().cast<double>();
  if (!std::isfinite(seconds) || std::abs(seconds) > 9e9) {  // 64 bits hold 292 years
    throw py::value_error("the clock gives " + std::to_string(seconds) +
                          " s: expected a finite number below 9e9");
  }
  return Nanoseconds(std::llround(seconds * 1e9));
}

void announce(const py::handle& breaker, const ClockedBreaker& clocked) {
  if (clocked.locked.has_news()) breaker.attr("_announce")();
}

void bind_permit(py::module_& module, py::class_<ClockedBreaker>& breaker) {
  judge_name = PyUnicode_InternFromString("_judge");
  refuse_name = PyUnicode_InternFromString("_refuse");
  permit_type = make_permit_type();
  ready_type = make_ready_type();
  const py::object permit =
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(permit_type));
  permit.attr("is_probe") =
      py::module_::import("builtins")
          .attr("property")(py::cpp_function(
              [](const py::handle& self) { return permit_of(self.ptr()).value.is_probe(); },
              py::is_method(permit), "Whether this call finds out if the other side is back."));
  module.attr("Permit") = permit;
  for (PyMethodDef& method : breaker_methods) {
    auto* type = reinterpret_cast<PyTypeObject*>(breaker.ptr());
    breaker.attr(method.ml_name) =
        py::reinterpret_steal<py::object>(PyDescr_NewMethod(type, &method));
  }
}

}  // namespace loki::bindings
