"""How much a call to a model took."""

from __future__ import annotations

from dataclasses import dataclass


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
