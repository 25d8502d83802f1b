"""Attempts as hypothesis makes them, and whole histories of them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from loki.base.time import isoformat
from loki.memory.attempt import Attempt, CheckRecord
from loki.recognition.failure import Failure

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)

LONG = "Property 'theme' does not exist on type 'Preferences' of the module settings"
FAILURES = (
    Failure.of(f"{LONG} here", error_code="TS2339", path="a.ts", pattern="type-error"),
    Failure.of(f"{LONG} there", error_code="TS2339", path="a.ts", pattern="type-error"),
    Failure.of("'foo' is defined but never used", error_code="no-unused-vars", path="b.js"),
    Failure.of("no module named basket", error_type="ModuleNotFoundError", path="c.py"),
    Failure.of("it broke"),
)
"""The first two are one failure, though their fingerprints differ."""

GATES = ("change_check", "syntax_check", "self_review")
CHECKS = ("lint", "test")
PHASES = ("generate", "validate", "execute", "evaluate")


@st.composite
def attempts(draw: st.DrawFn, most: int = 7) -> list[Attempt]:
    """The attempts of one execution, oldest first."""
    count = draw(st.integers(0, most))
    return [draw(_attempt(number)) for number in range(1, count + 1)]


@st.composite
def _attempt(draw: st.DrawFn, number: int) -> Attempt:
    result = draw(
        st.sampled_from(["failed", "failed", "failed", "success", "unverified", "interrupted"])
    )
    phase = draw(st.sampled_from(PHASES)) if result == "failed" else ""
    said: dict[str, Any] = {}
    if result == "failed":
        failure = draw(st.sampled_from(FAILURES))
        said = {
            "error": failure.message,
            "failure": failure.to_dict(),
            "fingerprint": failure.fingerprint,
            "recognizer_version": failure.recognizer_version,
            "pattern_matched": failure.match.pattern if failure.match else None,
            "strategy_used": draw(st.sampled_from([None, "auto_fix", "context_expand"])),
            "infrastructure": draw(st.integers(0, 5)) == 0,
            "decision": {
                "action": draw(st.sampled_from(["fix", "escalate", "dead_letter", "pause"]))
            },
        }
    return Attempt(
        number,
        isoformat(NOON + timedelta(minutes=number)),
        "tried",
        result,
        phase=phase,
        duration_ms=draw(st.integers(0, 5000)),
        validation=draw(_validations(phase)),
        checks=draw(_checks()) if phase in {"evaluate", ""} else (),
        regression=draw(_regressions),
        files_modified=draw(st.sampled_from([(), ("a.py",), ("b.py", "a.py")])),
        tokens=draw(st.none() | st.integers(0, 9)),
        cost=draw(st.none() | st.integers(0, 4).map(float)),
        agent=draw(st.sampled_from(["", "claude"])),
        delay_ms=draw(st.integers(0, 9)),
        **said,
    )


@st.composite
def _checks(draw: st.DrawFn) -> tuple[CheckRecord, ...]:
    return tuple(
        CheckRecord(name, "test", name, draw(st.booleans()), 1, draw(st.integers(0, 99)))
        for name in draw(st.sampled_from([(), CHECKS, CHECKS[:1]]))
    )


@st.composite
def _validations(draw: st.DrawFn, phase: str) -> dict[str, Any] | None:
    if phase == "generate" or draw(st.booleans()):
        return draw(
            st.sampled_from(
                [None, {"passed": True, "skipped": True, "gates": [], "violations": []}]
            )
        )
    ran = list(GATES[: draw(st.integers(1, 3))])
    passed = phase != "validate"
    violations = [] if passed else [f"a.py:3: wrong [{ran[-1]}]"]
    return {"passed": passed, "skipped": False, "gates": ran, "violations": violations}


_regressions = st.none() | st.fixed_dictionaries(
    {
        "ran": st.booleans(),
        "skipped": st.booleans(),
        "regressions": st.integers(0, 3),
        "fixed": st.booleans(),
    }
)
