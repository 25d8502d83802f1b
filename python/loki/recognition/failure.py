"""What an attempt's first failing check said."""

from __future__ import annotations

import dataclasses
import json
import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loki import _core
from loki.base import codec
from loki.base.argument_checks import listed, thread_count
from loki.base.codec import kept
from loki.base.secret import unnamed
from loki.recognition import site
from loki.recognition.html_repr import failure_html
from loki.recognition.pattern import DEFAULT_STRATEGY, Match, PatternSet
from loki.recognition.text import Text


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a stack.

    Attributes:
        path: relative to the project's root where it is inside.
        line: from 1, or None.
        function: its name, or None.
        in_project: it is the project's own, not a library's.
    """

    path: str
    line: int | None = kept(plain=None)
    function: str | None = kept(plain=None)
    in_project: bool = kept()


RECOGNIZER_VERSION = 1
"""Grows when extraction or normalization changes; stored failures of another version are
fingerprinted anew when they are read."""

_ALWAYS_TEXT = ("message", "excerpt", "normalized", "fingerprint", "signature")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What failed, where, and what kind of failure that is.

    Attributes:
        message: first line of the causing error.
        tool: the tool that reported it, or None.
        tool_kind: the kind of failure that the tool's rules say it is, or None; evidence for
            patterns, which decide.
        language: of the failing source, or None.
        error_type: like ``"TypeError"``, or None.
        error_code: like ``"F401"`` or ``"TS2322"``, or None.
        path: of the failing file, relative to the root where that is known, or None.
        line: in that file, from 1, or None.
        column: in that line, as the tool counts, or None.
        extension: of the path, without the dot, or None.
        tests: ids of all failing tests.
        frames: the stack, innermost last.
        output_line: line of the output that says what failed, from 1; None for blank output.
        excerpt: the lines that a person would quote, cleaned, at most 40.
        excerpt_lines: (first, last) line of the excerpt in the output, from 1, or None.
        site_lines: (first, last) line of what is said of this failure alone, inside the excerpt;
            patterns are matched with it.
        normalized: the message without what varies.
        fingerprint: 32 hex digits; see `loki.fingerprint`.
        signature: ``pattern:extension:slug``.
        match: the pattern that it shows best, or None.
        matches: all patterns that it shows, best first.
        exit_code: of the command, where it is known.
        recognizer_version: the version of loki's recognition that filled the fields.
    """

    message: str
    tool: str | None = None
    tool_kind: str | None = None
    language: str | None = None
    error_type: str | None = None
    error_code: str | None = None
    path: str | None = None
    line: int | None = None
    column: int | None = None
    extension: str | None = None
    tests: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    output_line: int | None = None
    excerpt: str = ""
    excerpt_lines: tuple[int, int] | None = None
    site_lines: tuple[int, int] | None = None
    normalized: str = ""
    fingerprint: str = ""
    signature: str = ""
    match: Match | None = None
    matches: tuple[Match, ...] = ()
    exit_code: int | None = None
    recognizer_version: int = RECOGNIZER_VERSION

    @staticmethod
    def of(
        message: str,
        *,
        tool: str | None = None,
        error_type: str | None = None,
        error_code: str | None = None,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
        tests: Iterable[str] = (),
        excerpt: str = "",
        pattern: str | None = None,
        patterns: PatternSet | None = None,
    ) -> Failure:
        """A failure that loki itself states: a gate, a refusal.

        Args:
            message: what is wrong, one line.
            tool: who says so.
            error_type: its type.
            error_code: its code.
            path: the failing file.
            line: in it, from 1.
            column: in that line.
            tests: failing tests.
            excerpt: lines to quote; the message if empty.
            pattern: id of its pattern, used as it is with confidence 1; else the text is matched.
            patterns: the set to use; the built-in one by default.

        Raises:
            ValueError: the set has no such pattern.

        Example:
            >>> Failure.of("unexpected indent", pattern="syntax-error", path="a.py").signature
            'syntax-error:py:unexpected_indent'
        """
        known = patterns or PatternSet.default()
        if pattern is not None and pattern not in known.patterns:
            raise ValueError(f"unknown pattern {pattern!r}: expected an id of {known!r}")
        if pattern is not None:
            matches = [known.named(pattern)]
        else:
            # Spans would index a text that nobody passed.
            said = "\n".join(part for part in (error_code, error_type, message, excerpt) if part)
            matches = [dataclasses.replace(m, spans=()) for m in known.match(said)]
        bare = Failure(
            message=message,
            tool=tool,
            error_type=error_type,
            error_code=error_code,
            path=path,
            line=line,
            column=column,
            extension=_extension(path),
            tests=tuple(tests),
            excerpt=excerpt or message,
            match=matches[0] if matches else None,
            matches=tuple(matches),
        )
        return bare._fingerprinted()

    def _fingerprinted(self) -> Failure:
        """The same fields with all that is computed from them."""
        normalized = _core.normalize(unnamed(self.message))  # as before it was masked
        return dataclasses.replace(
            self,
            normalized=normalized,
            fingerprint=_core.fingerprint(
                _plain(self.error_type),
                _plain(self.error_code),
                normalized,
                [_plain(test) for test in self.tests],
                [_plain(f.function) for f in self.frames if f.in_project and f.function],
            ),
            signature=_core.signature(
                self.match.pattern if self.match else "",
                _plain(self.extension),
                _plain(self.error_code),
                normalized,
            ),
            recognizer_version=RECOGNIZER_VERSION,
        )

    def at(self, path: str, line: int | None = None) -> Failure:
        """The same failure at a place that its output did not tell, but somebody knows.

        Args:
            path: of the failing file, relative to the root.
            line: in it, from 1.

        Example:
            >>> Failure.of("worker crashed", pattern="infra-lost").at("tests/test_a.py").signature
            'infra-lost:py:worker_crashed'
        """
        known = dataclasses.replace(self, path=path, line=line, extension=_extension(path))
        return known._fingerprinted()

    @property
    def pattern_id(self) -> str:
        """Id of the pattern that it shows best, or ``"unknown"``."""
        return self.match.pattern if self.match else "unknown"

    @property
    def kind(self) -> str:
        """Kind of that pattern, or ``"unknown"``."""
        return self.match.kind if self.match else "unknown"

    @property
    def confidence(self) -> float:
        """Confidence of that pattern, or 0."""
        return self.match.confidence if self.match else 0.0

    @property
    def strategy(self) -> str:
        """What answers it first; ``"analyze_then_fix"`` where no pattern is known."""
        return self.match.strategy if self.match else DEFAULT_STRATEGY

    @property
    def is_specific(self) -> bool:
        """It has an anchor (exception name, file, test or code) and 24 characters or more.

        An unspecific failure arms no sign and triggers no rule about repeated failures.
        """
        return _core.is_specific(self.site())

    def site(self) -> _core.FailureSite:
        """What takes part in `loki.same_failure`."""
        return _core.FailureSite(self)

    def to_dict(self) -> dict[str, Any]:
        """All fields as what JSON can hold; `from_dict` reads it back."""
        return {name: codec.write(getattr(self, name)) for name in _FIELDS}

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> Failure:
        """The failure in what `to_dict` gave, by this or an older version of loki.

        Unknown keys are ignored, missing ones have their defaults. Where `recognizer_version`
        differs, normalized message, fingerprint and signature are computed anew.

        Raises:
            ValueError: there is no message, or an entry has another shape.
        """
        try:
            known = {key: entry for key, entry in value.items() if key in _FIELDS}
            json.dumps(known, ensure_ascii=False).encode()  # half a character is no text
            if known.get("recognizer_version", 0) is None:  # nothing would say by which it was kept
                raise ValueError("no version of recognition")
            failure = codec.parse(Failure, known, "failure")
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"found a failure that cannot be read ({error})") from None
        if failure.matches:
            failure = dataclasses.replace(failure, match=failure.matches[0])
        is_current = failure.recognizer_version == RECOGNIZER_VERSION
        return failure if is_current else failure._fingerprinted()

    @property
    def place(self) -> str:
        """``path:line:column``, as far as it is known."""
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part)

    @property
    def said(self) -> str:
        """The message behind its type: of a ``KeyError`` the message alone may be just ``6``."""
        if not self.error_type or f"{self.error_type}:" in self.message:
            return self.message
        return f"{self.error_type}: {self.message}"

    def __str__(self) -> str:
        said = self.said
        if self.error_code and self.error_code not in said.split():
            said = f"{self.error_code} {said}"
        return f"{self.place}: {said}" if self.place else said

    def __repr__(self) -> str:
        return f"<Failure {self.pattern_id} ({self.confidence:.2f}) {self}>"

    def _repr_html_(self) -> str:
        return failure_html(self)


_FIELDS = tuple(entry.name for entry in dataclasses.fields(Failure) if entry.name != "match")


def recognize(
    text: Text,
    command: str | None = None,
    exit_code: int | None = None,
    root: str | os.PathLike[str] | None = None,
    language: str | None = None,
    patterns: PatternSet | None = None,
    *,
    exists: site.Exists | None = None,
) -> Failure:
    """What failed in the output of a tool.

    Nothing here throws on content; time is linear in the text. The interpreter lock is released
    for large texts.

    Args:
        text: the raw output, str or bytes, of any size and encoding.
        command: what was run, as typed: tells tools apart that print alike.
        exit_code: kept with the failure.
        root: the project's folder: paths inside it become relative, others are library code.
        language: of the project, where it is known; else the tool's.
        patterns: the set to match with; the built-in one by default.
        exists: whether a path relative to ``root`` is there: finds folders that the output half names.

    Returns:
        A `Failure`, also for output that no rule knows: its message is then the last line.

    Raises:
        TypeError: ``text`` is neither str nor bytes.

    Example:
        >>> failure = recognize("app.py:1: error: Name 'x' is not defined  [name-defined]")
        >>> failure.path, failure.line, failure.error_code
        ('app.py', 1, 'name-defined')
    """
    known = patterns or PatternSet.default()
    context = _plain(command), _plain(os.fspath(root)) if root else "", _plain(language)
    found: dict[str, Any] = _core.recognize(site.rules(), known.core, text, *context)
    return site.with_folders(described(found, known, exit_code), text, context[1], exists)


def recognize_many(
    texts: Iterable[Text],
    command: str | None = None,
    root: str | os.PathLike[str] | None = None,
    language: str | None = None,
    patterns: PatternSet | None = None,
    *,
    threads: int = 0,
) -> list[Failure]:
    """What failed in each of many outputs: `recognize` for each, on several threads.

    The interpreter lock is released. The result does not depend on the number of threads.

    Args:
        texts: raw outputs, str or bytes.
        command: what was run, the same for all.
        root: the project's folder, the same for all.
        language: of the project, where it is known.
        patterns: the set to match with; the built-in one by default.
        threads: how many to use; 0 for as many as the machine has.

    Returns:
        One `Failure` for each text, in their order.

    Raises:
        TypeError: one of the texts is neither str nor bytes.

    Example:
        >>> [f.error_type for f in recognize_many(["KeyError: 'a'", "ValueError: b"])]
        ['KeyError', 'ValueError']
    """
    known = patterns or PatternSet.default()
    context = _plain(command), _plain(os.fspath(root)) if root else "", _plain(language)
    texts = listed(texts)
    found = _core.recognize_many(site.rules(), known.core, texts, *context, thread_count(threads))
    read = zip(found, texts, strict=True)
    return [
        site.with_folders(described(one, known, None), text, context[1], None) for one, text in read
    ]


def described(found: dict[str, Any], known: PatternSet, exit_code: int | None) -> Failure:
    """The failure in what the core found."""
    matches = tuple(known.described(match) for match in found.pop("matches"))
    between = {key: found.pop(key) for key in ("excerpt_lines", "site_lines")}
    lines = {key: value if value[0] else None for key, value in between.items()}
    frames = tuple(
        Frame(path, line or None, function or None, in_project)
        for path, line, function, in_project in found.pop("frames")
    )
    texts = {key: found.pop(key) for key in _ALWAYS_TEXT}
    fields: dict[str, Any] = {key: value or None for key, value in found.items()}
    failure = Failure(
        **texts,
        **{**fields, "tests": tuple(fields["tests"] or ())},
        frames=frames,
        excerpt_lines=lines["excerpt_lines"],
        site_lines=lines["site_lines"],
        match=matches[0] if matches else None,
        matches=matches,
        exit_code=exit_code,
    )
    return failure._fingerprinted() if "<secret:" in failure.message else failure


def as_failure(value: Text | Failure) -> Failure:
    """The failure itself, or the one in a text."""
    return value if isinstance(value, Failure) else recognize(value)


def _plain(text: str | None) -> str:
    """Text as the core takes it: lone surrogates, which file names may hold, become "?"."""
    return (text or "").encode("utf-8", "replace").decode("utf-8")


def _extension(path: str | None) -> str | None:
    extension = os.path.splitext(path or "")[1][1:].lower()
    return extension if extension.isalnum() else None


_TEST_PATH = re.compile(
    r"(?i:(?:^|/)(?:tests?|testing|specs?|__tests__)/"
    r"|(?:^|/)(?:test_[^/]*|(?:[^/]*[._-])?(?:tests?|spec)|conftest)\.\w+$)"
    r"|[a-z0-9]Tests?\.\w+$"
)


def is_test_path(path: str) -> bool:
    """Whether a path is a test's, or of what only tests use, by its name.

    Example:
        >>> is_test_path("tests/unit/helpers.py"), is_test_path("src/cart.test.ts")
        (True, True)
        >>> is_test_path("app/money.py"), is_test_path("src/latest.ts")
        (False, False)
    """
    return _TEST_PATH.search(posixpath.normpath(path.replace("\\", "/"))) is not None
