"""What nobody can go below: a call into C++ that does nothing, a context manager, an exception."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.job import Data, Job

BUILT = Path(__file__).resolve().parents[1] / "build" / "bench"
"""Where `make bench-decision` builds native.cpp."""

EMPTY = "empty pybind11 call"
"""Name of the floor that most aims are multiples of."""

Rival = Callable[[dict[str, Any], Data], Job]


def native() -> Any:
    """The module of native.cpp.

    Raises:
        ImportError: it has not been built.
    """
    file = next(BUILT.glob("_native*"), None)
    if file is None:
        raise ImportError("make bench-decision builds it", name="benchmarks._native")
    spec = importlib.util.spec_from_file_location("_native", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def count(parameters: dict[str, Any]) -> int:
    """Calls in one run."""
    calls: int = parameters["calls"]
    return calls


def loop(call: Callable[[], Any], calls: int, answer: Callable[[Any], Any] = lambda _: None) -> Job:
    """A job that calls as often; the loop is on the clock, for everybody the same."""

    def run() -> None:
        for _ in range(calls):
            call()

    return Job(run, calls, answer, calls)


def loop_over(
    call: Callable[[Any], Any],
    arguments: Iterable[Any],
    calls: int,
    answer: Callable[[Any], Any] = lambda _: None,
) -> Job:
    """The same with an argument: each of them in turn."""
    each = list(arguments)
    given = (each * (calls // len(each) + 1))[:calls]

    def run() -> None:
        for argument in given:
            call(argument)

    return Job(run, calls, answer, calls)


def empty_pybind11(parameters: dict[str, Any], _: Data) -> Job:
    """A method without arguments of a class in C++."""
    return loop(native().Empty().nothing, count(parameters))


def empty_python(parameters: dict[str, Any], _: Data) -> Job:
    """A function of Python."""

    def nothing() -> None:
        pass

    return loop(nothing, count(parameters))


def empty_with(parameters: dict[str, Any], _: Data) -> Job:
    """A context manager of Python, made before."""

    class Nothing:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    nothing, calls = Nothing(), count(parameters)

    def run() -> None:
        for _ in range(calls):
            with nothing:
                pass

    return Job(run, calls, lambda _: None, calls)


def raised(parameters: dict[str, Any], _: Data) -> Job:
    """An exception, raised and caught."""
    calls = count(parameters)

    def run() -> None:
        for _ in range(calls):
            try:
                raise ValueError("no")
            except ValueError:
                pass

    return Job(run, calls, lambda _: None, calls)


FLOORS: dict[str, Rival] = {
    EMPTY: empty_pybind11,
    "empty Python call": empty_python,
    "empty with": empty_with,
    "raise and catch": raised,
}
