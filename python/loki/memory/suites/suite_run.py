"""What one run of a test suite showed: which tests failed and how, and which passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from loki.base import codec
from loki.recognition.failure import Failure

Phase: TypeAlias = Literal["setup", "call", "teardown", "collect", "crash", "timeout"]
"""Where a test failed: in its fixtures, itself, or before there was a test; its process died, or was
given up."""

Outcome: TypeAlias = Literal["failed", "error", "crashed", "timeout", "rerun"]
"""What became of it; ``rerun``: it was tried again."""


@dataclass(frozen=True, slots=True)
class SuiteFailure:
    """A test that failed, or one of its tries that did.

    Attributes:
        test: its node id; of a file that could not be collected, the file's.
        phase: where it failed.
        outcome: what became of it.
        failure: what was recognized.
        started_at: when this phase began, ISO 8601 UTC, or "".
        duration_ms: milliseconds that this phase took.
        worker: name of the process that ran it, ``gw0``; "" where there was one process only.
        rerun: number of this try where the test was tried again, from 1; 0: the last try.
    """

    __test__: ClassVar[bool] = False  # no test, though pytest would take its name for one

    test: str
    phase: Phase
    outcome: Outcome
    failure: Failure
    started_at: str = ""
    duration_ms: int = 0
    worker: str = ""
    rerun: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; `from_dict` reads it back."""
        return codec.fields_of(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SuiteFailure:
        """What `to_dict` gave, by this or another version; unknown fields are left out.

        Raises:
            ValueError: it is no record of a failing test.
        """
        return codec.parse(cls, data, "record of a failing test")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """One run of a test suite.

    Attributes:
        id: its name, different from that of every other run.
        started_at: when it began, ISO 8601 UTC.
        duration_ms: milliseconds that it took.
        branch: git branch, or "".
        commit: id of the commit that was checked out, or "".
        tree: a hash of the working tree's state; "": not known. Same commit and same tree: same code.
        environment: what else an outcome may depend on (interpreter, platform); runs with different
            ones are never taken for two runs of the same.
        passed: node ids of the tests that passed, those included that a rerun had to help.
        failures: the tests that failed in the end; a test may have failed in more than one phase.
        reruns: tries that failed and were made again, whatever came of it in the end.
        counts: how many tests came out how, by pytest's words: passed, failed, error, skipped, ….
        interrupted: it ended before all its tests had run (Ctrl-C, ``-x``, ``--maxfail``).
        exit_code: of pytest, as it was before loki.
    """

    __test__: ClassVar[bool] = False

    id: str
    started_at: str = ""
    duration_ms: int = 0
    branch: str = ""
    commit: str = ""
    tree: str = ""
    environment: str = ""
    passed: tuple[str, ...] = ()
    failures: tuple[SuiteFailure, ...] = ()
    reruns: tuple[SuiteFailure, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    interrupted: bool = False
    exit_code: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; `from_dict` reads it back."""
        return codec.fields_of(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SuiteRun:
        """What `to_dict` gave, by this or another version; unknown fields are left out.

        Raises:
            ValueError: it is no record of a run.
        """
        return codec.parse(cls, data, "record of a test run")
