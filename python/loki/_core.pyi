"""
The C++ core of loki. Private: use the names in `loki`.
"""
from __future__ import annotations
import typing
__all__: list[str] = ['Backoff', 'DefinitionError', 'parse_duration']
class DefinitionError(ValueError):
    pass
class Backoff:
    def __init__(self, base_ns: typing.SupportsInt | typing.SupportsIndex, multiplier: typing.SupportsFloat | typing.SupportsIndex, cap_ns: typing.SupportsInt | typing.SupportsIndex, jitter: typing.SupportsFloat | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def delay_ns(self, failures: typing.SupportsInt | typing.SupportsIndex, key: str, offset: typing.SupportsInt | typing.SupportsIndex) -> int:
        ...
def parse_duration(text: str) -> int:
    """
    Nanoseconds in a duration like '1h30m'; ValueError where it is none.
    """
