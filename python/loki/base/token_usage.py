"""How much a call to a model took."""

from __future__ import annotations

from dataclasses import dataclass

MOST = 10**15
"""Tokens, or dollars, that nobody can have used: a larger figure is none. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one call or of several, as their provider counts them.

    Attributes:
        input: of the request, those out of the cache and those put into it included.
        output: of the answer, reasoning included.
        cache_read: those of ``input`` that came out of the provider's cache.
        cache_write: those of ``input`` that were put into it.

    Example:
        >>> (TokenUsage(1200, 300, cache_read=1000) + TokenUsage(100, 20)).total
        1620
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.input + self.output

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


def tokens_said(value: object) -> int | None:
    """A count of tokens as somebody else says it; None: it is none.

    Args:
        value: of any type, out of a service's JSON for instance.

    Example:
        >>> tokens_said(120), tokens_said(-1), tokens_said("many"), tokens_said(True)
        (120, None, None, None)
    """
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 <= value <= MOST else None  # type: ignore[operator,return-value]


def dollars_said(value: object) -> float | None:
    """A sum of US dollars as somebody else says it; None: it is none, so that no budget trusts it.

    Args:
        value: of any type, out of a service's JSON for instance.

    Example:
        >>> dollars_said(0.25), dollars_said(-100), dollars_said(float("nan")), dollars_said("free")
        (0.25, None, None, None)
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # What is not a number is not below anything; an integer may be too large for a float.
    return float(value) if is_number and 0 <= value <= MOST else None  # type: ignore[operator,arg-type]
