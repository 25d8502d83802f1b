"""A project whose tasks, agents and tools say everything that could harm who reads of them."""

from __future__ import annotations

import itertools
from pathlib import Path

from markdown_it import MarkdownIt

from loki.base.text_format import INVISIBLE
from loki.memory import task_record
from loki.memory.attempt import Attempt, CheckRecord, History
from loki.stores.file_store import FileStore
from support.task import task_of

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
        store,
        task_of({**record, "checks": [], "outcome": {**outcome, "files_modified": [HOSTILE]}}),
    )
    return "evil"


def headings_of(page: str) -> list[str]:
    """The headings that a Markdown parser sees in a page's body, where nothing else is dangerous.

    Neither a link, an image or HTML, nor a character that no reader sees.
    """
    assert not INVISIBLE.search(page), INVISIBLE.findall(page)
    body = page.split("---\n", 2)[2] if page.startswith("---\n") else page
    tokens = MarkdownIt("commonmark").parse(body)
    kinds = {t.type for t in tokens} | {t.type for one in tokens for t in one.children or ()}
    assert not kinds & {"link_open", "image", "html_inline", "html_block", "hr"}, kinds
    return [after.content for t, after in itertools.pairwise(tokens) if t.type == "heading_open"]
