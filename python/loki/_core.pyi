"""
The C++ core of loki. Private: use the names in `loki`.
"""
from __future__ import annotations
import collections.abc
import typing
__all__: list[str] = ['Backoff', 'Breaker', 'BreakerConfig', 'BreakerEventKind', 'BreakerMoment', 'BreakerPermit', 'BreakerReply', 'BreakerView', 'BreakersFile', 'DefinitionError', 'FailureIndex', 'FailureSite', 'JsonColumns', 'PatternSet', 'Permit', 'RetryBudget', 'SharedBreaker', 'SiteRules', 'TokenSets', 'clean', 'clean_with_runs', 'containment', 'dice', 'fingerprint', 'format_duration', 'group', 'is_specific', 'larger_share', 'mask_secrets', 'normalize', 'overlap', 'parse_duration', 'parse_retry_after', 'parse_retry_after_ms', 'recognize', 'recognize_many', 'regex_error', 'regex_errors', 'same_failure', 'signature', 'tokens']
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
    def __init__(self, base_ns: typing.SupportsInt | typing.SupportsIndex, multiplier: typing.SupportsFloat | typing.SupportsIndex, cap_ns: typing.SupportsInt | typing.SupportsIndex, jitter: typing.SupportsFloat | typing.SupportsIndex, mode: str, seed: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def arguments(self) -> tuple[int, float, int, float, str, int]:
        ...
    def delay(self, failures: int, key: str, offset: int) -> float:
        ...
    def preview(self, count: int, key: str, offset: int) -> list[float]:
        ...
    def wait(self, failures: int, key: str, offset: int, asked_ns: typing.SupportsInt | typing.SupportsIndex | None, left_ns: typing.SupportsInt | typing.SupportsIndex | None) -> float | None:
        ...
class BreakerConfig:
    def __init__(self) -> None:
        ...
    @property
    def cooldown_cap_ns(self) -> int:
        ...
    @cooldown_cap_ns.setter
    def cooldown_cap_ns(self, arg1: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def cooldown_multiplier(self) -> float:
        ...
    @cooldown_multiplier.setter
    def cooldown_multiplier(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None:
        ...
    @property
    def cooldown_ns(self) -> int:
        ...
    @cooldown_ns.setter
    def cooldown_ns(self, arg1: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def failure_rate(self) -> float:
        ...
    @failure_rate.setter
    def failure_rate(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None:
        ...
    @property
    def half_open_interval_ns(self) -> int:
        ...
    @half_open_interval_ns.setter
    def half_open_interval_ns(self, arg1: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def minimum_calls(self) -> int:
        ...
    @minimum_calls.setter
    def minimum_calls(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def mode(self) -> int:
        ...
    @mode.setter
    def mode(self, arg1: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def probe_lease_ns(self) -> int:
        ...
    @probe_lease_ns.setter
    def probe_lease_ns(self, arg1: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def recovery_threshold(self) -> int:
        ...
    @recovery_threshold.setter
    def recovery_threshold(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def slow_call_duration_ns(self) -> int:
        ...
    @slow_call_duration_ns.setter
    def slow_call_duration_ns(self, arg1: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def slow_call_rate(self) -> float:
        ...
    @slow_call_rate.setter
    def slow_call_rate(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None:
        ...
    @property
    def threshold(self) -> int:
        ...
    @threshold.setter
    def threshold(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def window_calls(self) -> int:
        ...
    @window_calls.setter
    def window_calls(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def window_ns(self) -> int:
        ...
    @window_ns.setter
    def window_ns(self, arg1: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
class BreakerView:
    @property
    def cooldown_until_ns(self) -> int | None:
        ...
    @property
    def failure_count(self) -> int:
        ...
    @property
    def generation(self) -> int:
        ...
    @property
    def is_isolated(self) -> bool:
        ...
    @property
    def is_probing(self) -> bool:
        ...
    @property
    def last_change_ns(self) -> int | None:
        ...
    @property
    def last_error(self) -> str:
        ...
    @property
    def last_failure_ns(self) -> int | None:
        ...
    @property
    def retry_at_ns(self) -> int | None:
        ...
    @property
    def state(self) -> int:
        ...
    @property
    def success_count(self) -> int:
        ...
    @property
    def trips(self) -> int:
        ...
    @property
    def window_start_ns(self) -> int | None:
        ...
class Breaker:
    def __init__(self, config: BreakerConfig, monotonic: typing.Any) -> None:
        ...
    def _counts(self) -> tuple[int, int, int, int, int, int, int]:
        ...
    def _has_news(self) -> bool:
        ...
    def _now_ns(self) -> int:
        ...
    def _take_news(self) -> list[tuple[int, int, int]]:
        ...
    def _view(self) -> tuple[BreakerView, int]:
        ...
    def close(self) -> None:
        """
        Let calls go out, as after a recovery; a closed breaker is left as it is.
        """
    def expire(self) -> None:
        """
        Let time do its part now, not at the next call: an open breaker whose cooldown is over becomes half open.
        """
    def guard(self) -> Permit:
        """
        Leave for one call, for `with` and `async with`; raises BreakerOpen where it is refused.
        """
    def isolate(self) -> None:
        """
        Refuse calls until somebody closes, resets or opens it.
        """
    def open(self) -> None:
        """
        Refuse calls for one cooldown from now, as if it had tripped.
        """
    def reset(self) -> None:
        """
        Close it and forget all failures, also those of a closed one.
        """
    def try_acquire(self) -> Permit | None:
        """
        Leave for one call; None: refused. Report what came of it to the permit.
        """
class Permit:
    """
    Leave for one call: report success(), failure(error) or ignore(), once.
    
    As a context manager it does so by itself. Of an earlier time of the breaker, or as a probe
    out of its lease, it is void: its outcome counts nothing.
    """
    def __aenter__(self) -> collections.abc.Awaitable[Permit]:
        ...
    def __aexit__(self, kind: typing.Any, error: typing.Any, traceback: typing.Any) -> collections.abc.Awaitable[typing.Literal[False]]:
        ...
    def __enter__(self) -> Permit:
        ...
    def __exit__(self, kind: typing.Any, error: typing.Any, traceback: typing.Any) -> typing.Literal[False]:
        ...
    def failure(self, error: typing.Any = None, retry_after: typing.Any = None) -> None:
        """
        The call failed; the error, an exception or a text, is shown to those that are refused. Where it
        trips the breaker, `retry_after` is for how long: what the service asked for.
        """
    def ignore(self) -> None:
        """
        Neither: cancelled, or an error that says nothing. A permit that is dropped does the same.
        """
    def success(self) -> None:
        """
        The call went well. What is reported second counts nothing.
        """
    @property
    def is_probe(self) -> bool:
        """
        Whether this call finds out if the other side is back.
        """
class BreakerEventKind:
    """
    Members:
    
      NONE
    
      ACQUIRE
    
      SUCCESS
    
      FAILURE
    
      IGNORE
    
      OPEN
    
      CLOSE
    
      RESET
    
      ISOLATE
    
      EXPIRE
    """
    ACQUIRE: typing.ClassVar[BreakerEventKind]
    CLOSE: typing.ClassVar[BreakerEventKind]
    EXPIRE: typing.ClassVar[BreakerEventKind]
    FAILURE: typing.ClassVar[BreakerEventKind]
    IGNORE: typing.ClassVar[BreakerEventKind]
    ISOLATE: typing.ClassVar[BreakerEventKind]
    NONE: typing.ClassVar[BreakerEventKind]
    OPEN: typing.ClassVar[BreakerEventKind]
    RESET: typing.ClassVar[BreakerEventKind]
    SUCCESS: typing.ClassVar[BreakerEventKind]
    __members__: typing.ClassVar[dict[str, BreakerEventKind]]
    @typing.overload
    def __eq__(self, other: BreakerEventKind) -> bool:
        ...
    @typing.overload
    def __eq__(self, other: typing.Any) -> bool:
        ...
    def __getstate__(self) -> int:
        ...
    def __hash__(self) -> int:
        ...
    def __index__(self) -> int:
        ...
    def __init__(self, value: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def __int__(self) -> int:
        ...
    @typing.overload
    def __ne__(self, other: BreakerEventKind) -> bool:
        ...
    @typing.overload
    def __ne__(self, other: typing.Any) -> bool:
        ...
    def __repr__(self) -> str:
        ...
    def __setstate__(self, state: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def __str__(self) -> str:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def value(self) -> int:
        ...
class BreakerPermit:
    @property
    def is_probe(self) -> bool:
        ...
class BreakerReply:
    @property
    def change(self) -> tuple[int, int, int] | None:
        ...
    @property
    def is_counted(self) -> bool:
        ...
    @property
    def is_to_write(self) -> bool:
        ...
    @property
    def learned(self) -> tuple[int, int, int] | None:
        ...
    @property
    def permit(self) -> BreakerPermit | None:
        ...
    @property
    def retry_at_ns(self) -> int | None:
        ...
class BreakerMoment:
    def __init__(self, now_ns: typing.SupportsInt | typing.SupportsIndex, since_1970_ns: typing.SupportsInt | typing.SupportsIndex, boot_id: str) -> None:
        ...
class BreakersFile:
    @typing.overload
    def __init__(self) -> None:
        ...
    @typing.overload
    def __init__(self, data: bytes) -> None:
        ...
    def bytes(self) -> bytes:
        ...
    def names(self) -> list[str]:
        ...
    def remove(self, name: str) -> None:
        ...
class SharedBreaker:
    def __init__(self, name: str, config: BreakerConfig) -> None:
        ...
    def acquire_closed(self, now_ns: typing.SupportsInt | typing.SupportsIndex) -> BreakerPermit | None:
        """
        The hot path of `locally`; None: ask that.
        """
    def alone(self, kind: BreakerEventKind, permit: BreakerPermit | None, error: str, now_ns: typing.SupportsInt | typing.SupportsIndex, asked_ns: typing.SupportsInt | typing.SupportsIndex | None = None) -> BreakerReply:
        ...
    def check(self, file: BreakersFile, moment: BreakerMoment) -> None:
        """
        ValueError where the file's entry cannot be read.
        """
    def counts(self) -> tuple[int, int, int, int, int, int, int]:
        ...
    def locally(self, kind: BreakerEventKind, permit: BreakerPermit | None, error: str, now_ns: typing.SupportsInt | typing.SupportsIndex, asked_ns: typing.SupportsInt | typing.SupportsIndex | None = None) -> BreakerReply | None:
        ...
    def look(self, file: BreakersFile, moment: BreakerMoment) -> tuple[tuple[int, int, int] | None, bool]:
        ...
    def note_unwritten(self) -> None:
        ...
    def success_closed(self, permit: BreakerPermit) -> bool:
        """
        The hot path of `locally`; False: ask that.
        """
    def together(self, kind: BreakerEventKind, permit: BreakerPermit | None, error: str, file: BreakersFile, moment: BreakerMoment, owner: str, asked_ns: typing.SupportsInt | typing.SupportsIndex | None = None) -> BreakerReply:
        ...
    def view(self, now_ns: typing.SupportsInt | typing.SupportsIndex) -> BreakerView:
        ...
class RetryBudget:
    def __init__(self, share: typing.SupportsFloat | typing.SupportsIndex, per_second: typing.SupportsFloat | typing.SupportsIndex, capacity: typing.SupportsFloat | typing.SupportsIndex, now_ns: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def balance(self, now_ns: typing.SupportsInt | typing.SupportsIndex) -> float:
        ...
    def deposit(self) -> None:
        ...
    def try_withdraw(self, now_ns: typing.SupportsInt | typing.SupportsIndex) -> bool:
        ...
class JsonColumns:
    """
    Columns of logs of JSON lines.
    """
    def __init__(self, asked: dict[str, typing.Any]) -> None:
        ...
    def read(self, logs: collections.abc.Sequence[bytes]) -> typing.Any:
        """
        How many entries each log has, and (entries, which of them are there, offsets, bytes, members) of each column; None: a line is not as it should be.
        """
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
def format_duration(count: typing.SupportsInt | typing.SupportsIndex) -> str:
    """
    The text of so many nanoseconds, 0 or more, like '1h30m'.
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
def parse_retry_after(value: str, now_us: typing.SupportsInt | typing.SupportsIndex) -> int | None:
    """
    Nanoseconds that Retry-After asks for, or None.
    """
def parse_retry_after_ms(value: str) -> int | None:
    """
    The same for a header in milliseconds.
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
