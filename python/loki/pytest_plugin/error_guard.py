"""No error of loki's becomes one of the test run: it is one line, and loki is off for this run."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")


class Guard:
    """Calls what may fail, and keeps what is to be said of it.

    Attributes:
        is_off: something failed; nothing is called any more.
        lines: what to tell the person, one line each.

    Example:
        >>> guard = Guard()
        >>> guard(lambda: 1 / 0)
        >>> guard.lines
        ['loki is off for this run: ZeroDivisionError: division by zero']
    """

    def __init__(self) -> None:
        self.is_off = False
        self.lines: list[str] = []

    def __call__(self, call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call it, unless something failed before."""
        if self.is_off:
            return
        try:
            call(*args, **kwargs)
        except Exception as error:
            self.switch_off(error)

    def warn(self, line: str) -> None:
        """Say one line at the end of the run; nothing is switched off."""
        said = f"loki: {_one_line(line)}"
        if said not in self.lines:
            self.lines.append(said)

    def switch_off(self, error: Exception) -> None:
        """Nothing is called from here on; the error is said at the end of the run."""
        from loki.base.error import LokiError

        said = str(error) if isinstance(error, LokiError) else f"{type(error).__name__}: {error}"
        self.is_off = True
        self.lines.append(f"loki is off for this run: {_one_line(said)}")


def _one_line(text: str) -> str:
    from loki.base.secret import mask_secrets

    return mask_secrets(" ".join(text.split()))[:500]
