"""Checks of arguments that several rooms take, in words instead of a binding's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def called(function: F) -> F:
    """The same, where it is something that can be called.

    Raises:
        TypeError: it is not.

    Example:
        >>> called(len)("abc")
        3
    """
    if not callable(function):
        raise TypeError(f"found {function!r}, expected something that can be called")
    return function


def listed(many: Iterable[T]) -> list[T]:
    """A list of them, where many are meant: one text is no list of its characters.

    Raises:
        TypeError: it is one text, or nothing that has items.

    Example:
        >>> listed(("a", "b"))
        ['a', 'b']
    """
    if isinstance(many, str | bytes | bytearray | memoryview) or not isinstance(many, Iterable):
        raise TypeError(
            f"found {type(many).__name__}, expected a list or another iterable of texts"
        )
    return list(many)


def thread_count(threads: int) -> int:
    """How many threads to use; 0 for as many as the machine has.

    Raises:
        ValueError: it is below 0.

    Example:
        >>> thread_count(0)
        0
    """
    if threads < 0:
        raise ValueError(f"found {threads} threads, expected 0 or more")
    return threads
