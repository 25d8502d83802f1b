"""A child of fork that does one thing, and never goes on with its parent's tests."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable


def fork(work: Callable[[], object]) -> int:
    """Do it in a child, whose number this returns; what it raises is printed, and makes its exit code 1."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def exit_code(child: int) -> int:
    """Wait for its end: 0, 1, or less than 0 where a signal killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def exit_codes(children: Iterable[int]) -> list[int]:
    """Wait for all of them."""
    return [exit_code(child) for child in children]
