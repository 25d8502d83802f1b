"""A project whose tasks, agents and tools say everything that could harm who reads of them."""

from __future__ import annotations

from pathlib import Path

from loki.memory import task_record
from loki.memory.attempt import Attempt, CheckRecord
from loki.memory.history import History
from loki.stores.files import FileStore

HOSTILE = (
    "<script>alert(1)</script> \"quoted\" 'single' &amp; | pipe `tick` [x](javascript:alert(1)) "
    "]]> --> \x1b[2J\x1b]0;title\x07 \x00 \u202e \ud800 ```\n---\n# Heading\n![i](http://example.org/x.png)"
)


def make_hostile(project: Path) -> str:
    """Make it; the id of its task."""
    store = FileStore(project / ".loki")
    history = History(store, "evil")
    checks = (CheckRecord(HOSTILE, "test", HOSTILE, False, 1, 1200, HOSTILE),)
    for number, strategy in ((1, HOSTILE), (2, "auto_fix"), (3, None)):
        history.append(
            Attempt(
                number,
                f"2026-04-04T1{number}:00:00.000Z",
                HOSTILE,
                "failed",
                error=HOSTILE,
                pattern_matched=HOSTILE,
                strategy_used=strategy,
                files_modified=(HOSTILE,),
                phase="evaluate",
                failure={"message": HOSTILE},
                fingerprint=str(number),
                signature=HOSTILE,
                decision={"action": "fix", "reason": HOSTILE},
                checks=checks,
                validation={"passed": False, "gates": [HOSTILE], "violations": [HOSTILE]},
                commands=({"command": HOSTILE, "exit_code": 1, "stdout": HOSTILE, "stderr": ""},),
                agent=HOSTILE,
                model=HOSTILE,
                tokens=1000,
                cost=0.25,
                branch=HOSTILE,
                commit=HOSTILE,
            )
        )
    outcome = {"status": "failed", "reason": HOSTILE, "page": "../../../etc/passwd.md"}
    history.end(1, outcome, title=HOSTILE, at="2026-04-04T14:00:00.000Z")
    history.end(
        2,
        {**outcome, "page": "javascript:alert(1)//.md"},
        title=HOSTILE,
        at="2026-04-04T15:00:00.000Z",
    )
    store.append("tasks/evil/reflections.jsonl", {"attempt": 1, "tried": HOSTILE})
    record = {
        "id": "evil",
        "title": HOSTILE,
        "kind": "bug_fix",
        "complexity": "low",
        "execution": 2,
    }
    task_record.save(
        store, {**record, "checks": [], "outcome": {**outcome, "files_modified": [HOSTILE]}}
    )
    return "evil"
