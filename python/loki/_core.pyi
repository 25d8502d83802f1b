"""
The C++ core of loki. Private: use the names in `loki`.
"""
from __future__ import annotations
import collections.abc
import typing
__all__: list[str] = ['Backoff', 'DefinitionError', 'FailureIndex', 'FailureSite', 'PatternSet', 'SiteRules', 'TokenSets', 'clean', 'clean_with_runs', 'containment', 'dice', 'fingerprint', 'group', 'is_specific', 'larger_share', 'mask_secrets', 'normalize', 'overlap', 'parse_duration', 'recognize', 'recognize_many', 'regex_error', 'regex_errors', 'same_failure', 'signature', 'tokens']
class DefinitionError(ValueError):
    pass
class TokenSets:
    def __init__(self, texts: list[typing.Any], threads: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def __len__(self) -> int:
        ...
    def overlaps(self, text: typing.Any) -> bytes:
        """
        Overlap with each, as the bytes of doubles.
        """
class FailureSite:
    def __init__(self, failure: typing.Any) -> None:
        """
        What takes part in same_failure of a loki.Failure.
        """
class SiteRules:
    def __init__(self, json: str) -> None:
        ...
    def check(self) -> None:
        """
        Compiles every regex; DefinitionError for the first bad one.
        """
class PatternSet:
    def __init__(self, json: str) -> None:
        ...
    def check(self) -> None:
        """
        Compiles every regex; DefinitionError for the first bad one.
        """
    def match(self, text: typing.Any, language: str) -> list[tuple[int, float, float, list[tuple[int, int, int]]]]:
        """
        (pattern, confidence, coverage, [(signal, begin, end)]), best first.
        """
    def match_site(self, text: typing.Any, language: str, message: str, tool: str, code: str, kind: str, rules: SiteRules) -> list[tuple[int, float, float, list[tuple[int, int, int]]]]:
        """
        The same for a part of a text of which more is known; no regex sees the prefixes that the rules name.
        """
class FailureIndex:
    @staticmethod
    def load(bytes: bytes) -> FailureIndex:
        ...
    def __init__(self, threshold: typing.SupportsFloat | typing.SupportsIndex) -> None:
        ...
    def add(self, site: FailureSite, key: str) -> int:
        ...
    def add_failures(self, failures: list[typing.Any], keys: collections.abc.Sequence[str], threads: typing.SupportsInt | typing.SupportsIndex) -> list[int]:
        ...
    def add_texts(self, rules: SiteRules, patterns: PatternSet, texts: list[typing.Any], keys: collections.abc.Sequence[str], threads: typing.SupportsInt | typing.SupportsIndex) -> list[int]:
        ...
    def keys(self, group: typing.SupportsInt | typing.SupportsIndex) -> list[str]:
        ...
    def nearest(self, site: FailureSite, most: typing.SupportsInt | typing.SupportsIndex) -> list[tuple[int, float, bool]]:
        """
        Group, overlap and whether it is the same failure; nearest first.
        """
    def report(self) -> tuple[int, int, int, int, int]:
        ...
    def save(self) -> bytes:
        ...
    @property
    def threshold(self) -> float:
        ...
class Backoff:
    def __init__(self, base_ns: typing.SupportsInt | typing.SupportsIndex, multiplier: typing.SupportsFloat | typing.SupportsIndex, cap_ns: typing.SupportsInt | typing.SupportsIndex, jitter: typing.SupportsFloat | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def delay_ns(self, failures: typing.SupportsInt | typing.SupportsIndex, key: str, offset: typing.SupportsInt | typing.SupportsIndex) -> int:
        ...
def clean(text: typing.Any) -> str:
    """
    The text as a terminal would show it.
    """
def clean_with_runs(text: typing.Any) -> tuple[str, list[tuple[int, int, int]]]:
    """
    The same, with runs of (position in it, position in the argument, length there).
    """
def containment(a: typing.Any, b: typing.Any) -> float:
    """
    Share of a's tokens that b has.
    """
def dice(a: typing.Any, b: typing.Any) -> float:
    """
    Twice the shared tokens over the sum of both.
    """
def fingerprint(error_type: str, error_code: str, normalized: str, tests: collections.abc.Sequence[str], functions: collections.abc.Sequence[str]) -> str:
    """
    XXH3-128 of the fields as 32 hex digits.
    """
def group(texts: list[typing.Any], threads: typing.SupportsInt | typing.SupportsIndex) -> list[int]:
    """
    One number for each text, equal for one template.
    """
def is_specific(site: FailureSite) -> bool:
    """
    It may arm a sign.
    """
def larger_share(a: typing.Any, b: typing.Any) -> float:
    """
    Shared tokens over those of the larger.
    """
def mask_secrets(text: bytes) -> bytes:
    """
    The same bytes with placeholders for secrets.
    """
def normalize(text: typing.Any, is_template: bool = False, root: str = '') -> str:
    """
    The cleaned text with placeholders for what varies.
    """
def overlap(a: typing.Any, b: typing.Any) -> float:
    """
    Shared tokens over all tokens.
    """
def parse_duration(text: str) -> int:
    """
    Nanoseconds in a duration like '1h30m'; ValueError where it is none.
    """
def recognize(rules: SiteRules, patterns: PatternSet, text: typing.Any, command: str, root: str, language: str) -> dict[str, typing.Any]:
    """
    The failure as a dict of plain values; 0 and '' for what is not known.
    """
def recognize_many(rules: SiteRules, patterns: PatternSet, texts: list[typing.Any], command: str, root: str, language: str, threads: typing.SupportsInt | typing.SupportsIndex) -> list[dict[str, typing.Any]]:
    """
    The same for each text, on several threads.
    """
def regex_error(expression: str) -> tuple[str, str] | None:
    """
    (what RE2 says, the part of the expression that it says it of); None where it is fine.
    """
def regex_errors(expressions: collections.abc.Sequence[str], most: typing.SupportsInt | typing.SupportsIndex) -> list[tuple[int, str, str]]:
    """
    (index, what RE2 says, the part of the expression that it says it of) of those refused.
    """
def same_failure(a: FailureSite, b: FailureSite, threshold: typing.SupportsFloat | typing.SupportsIndex) -> bool:
    """
    Both sites are one failure.
    """
def signature(pattern: str, extension: str, error_code: str, normalized: str) -> str:
    """
    pattern:extension:slug.
    """
def tokens(normalized: str) -> list[str]:
    """
    The distinct tokens of a normalized text, sorted.
    """
