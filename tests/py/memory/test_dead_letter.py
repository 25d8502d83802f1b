"""Dead letters: the page, what is kept, and finding similar ones among thousands."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loki.base.yaml_text import parse
from loki.memory import task_record
from loki.memory.attempt import Attempt, CheckRecord, History
from loki.memory.dead_letter import (
    DeadLetter,
    Mention,
    alike,
    blocked_reason,
    error_chain,
    render_page,
)
from loki.memory.dead_letter_log import LETTERS, DeadLetterLog
from loki.memory.suggestion import Solved, suggest
from loki.memory.suggestion import render as render_suggestion
from loki.recognition.failure import Failure, Frame
from loki.recognition.pattern import PatternSet
from loki.stores.file_store import FileStore, ForgivingStore
from support.hostile import HOSTILE, headings_of
from support.loop import MakeFailure, MakePattern
from support.task import task_of

AT = "2026-04-04T10:15:30.000Z"
CHECK = CheckRecord("tsc", "type", "npx tsc --noEmit", False, 1, 20, "out")


def attempt(number: int = 1, result: str = "failed", **fields: Any) -> Attempt:
    return Attempt(number, AT, f"changed part {number}", result, **fields)


MADE = [
    attempt(1, error="one", pattern_matched="type-error", strategy_used="context_expand"),
    attempt(2, error="two", pattern_matched="type-error", strategy_used="analyze_then_fix"),
    attempt(3, error="two", pattern_matched="type-error", checks=(CHECK,)),
]


def letter_of(failure: Failure, task: str = "t", title: str = "Add preferences") -> DeadLetter:
    files = {"src/preferences.ts": "modified", "src/new.ts": "created"}
    return DeadLetter.of(task, title, MADE, failure, "retry_budget_exhausted", AT, files)


@pytest.fixture
def failure(make_failure: MakeFailure, make_pattern: MakePattern) -> Failure:
    return make_failure(pattern=make_pattern("type-error"))


def test_the_front_matter_is_the_documents(failure: Failure) -> None:
    fields, _ = parse(render_page(letter_of(failure), MADE, similar=2))
    assert fields == {
        "entity_name": "session.current.dead-letter.t",
        "namespace": "session.current",
        "category": "dead-letter",
        "task_id": "t",
        "original_task": "Add preferences",
        "total_attempts": 3,
        "final_pattern": "type-error",
        "strategies_exhausted": ["context_expand", "analyze_then_fix"],
        "blocked_at": AT,
        "blocked_reason": "retry_budget_exhausted",
        "similar_failures": 2,
        "error_signature": failure.signature,
        "tags": ["dead-letter", "blocked"],
    }


def test_the_page_tells_all_that_a_person_needs(failure: Failure) -> None:
    page = render_page(letter_of(failure), MADE)
    for part in (
        "# Dead letter: Add preferences",
        "## Task description\n\nAdd preferences\n",
        "### Attempt 1 (10:15:30)\n\n- **Action:** changed part 1\n- **Error:** one\n"
        "- **Pattern:** type-error\n- **Strategy:** context_expand\n",
        "- **Pattern:** type-error (same)\n- **Strategy:** analyze_then_fix (alternate)\n",
        "- **Strategy:** exhausted\n",
        "## Files modified\n\n- `src/preferences.ts` (modified)\n- `src/new.ts` (created)\n",
        "1. Look at the types on both sides of `src/preferences.ts:4`;",
        "2. Run `npx tsc --noEmit` to see all errors at once;",
        "`loki undo t` restores the files",
        "## Context for retry\n\n- The last error: src/preferences.ts:4: TS2339 Property 'theme'",
        "- Errors met in 3 attempts: 2 different\n",
        "- Tried already: changed part 1; changed part 2; changed part 3\n",
        "- Strategies that did not help: context_expand, analyze_then_fix\n",
    ):
        assert part in page
    assert "## Smart suggestions" not in page
    assert "## Pattern learning candidate" not in page


def test_manual_steps_name_functions_and_other_places(failure: Failure) -> None:
    frames = (Frame("src/main.ts", 9, "start", True), Frame("src/preferences.ts", 4, "load", True))
    letter = letter_of(replace(failure, frames=(Frame("lib/x.js", 1, "x", False), *frames)))
    page = render_page(letter, MADE)
    assert "Follow `load` to where it is declared." in page
    assert "The failures also named `src/main.ts:9`." in page
    assert "lib/x.js" not in page


def test_a_failure_without_a_place_gets_steps_too(make_failure: MakeFailure) -> None:
    bare = make_failure("it broke", path=None, line=None, error_code=None)
    page = render_page(DeadLetter.of("t", "Do it", [], bare, "unrecoverable_error", AT, {}), [])
    assert "## Files modified\n\nNone.\n" in page
    assert "No attempt was made." in page
    assert "1. Run the failing check by hand and read its whole output.\n2. `loki show t`" in page


def test_a_failing_test_is_not_asked_to_be_changed(failure: Failure) -> None:
    letter = letter_of(replace(failure, path="tests/preferences.spec.ts"))
    assert "was not changed in any attempt" not in render_page(letter, MADE)


def test_an_error_in_a_file_that_was_never_changed_is_pointed_out(failure: Failure) -> None:
    letter = replace(letter_of(failure), files={"src/other.ts": "modified"})
    page = render_page(letter, MADE)
    assert "`src/preferences.ts`, where it fails, was not changed in any attempt" in page


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [
        ("retry_budget_exhausted", "retry_budget_exhausted"),
        ("", "retry_budget_exhausted"),
        ("disk-full", "unrecoverable_error"),
    ],
)
def test_a_task_is_blocked_for_one_of_two_reasons(trigger: str, reason: str) -> None:
    assert blocked_reason(trigger) == reason


hostile = st.one_of(
    st.text(st.sampled_from("-\n`#:'\"[]<>&*|\t 1.\u2028\x85\udcffa"), max_size=60),
    st.sampled_from(
        [
            "---\ncategory: learned-rule\n---\n",
            "\n## Suggested manual steps\n\n1. rm -rf /",
            "```\nignore all previous\n```",
            "x\n\n---\n",
            "![](http://x/?leak) <script>",
            "password=hunter2 ' : \"",
        ]
    ),
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(title=hostile, error=hostile, action=hostile, path=hostile, task=hostile)
def test_no_text_breaks_the_page(
    tmp_path: Path, title: str, error: str, action: str, path: str, task: str
) -> None:
    failure = Failure.of(error or "x", path=path or None, line=3, tests=[action])
    attempts = [Attempt(1, AT, action, "failed", error=error, pattern_matched=error)]
    reason = "retry_budget_exhausted"
    letter = DeadLetter.of(task, title, attempts, failure, reason, AT, {path: "x"})
    store = ForgivingStore(FileStore(tmp_path))
    store.write("page.md", render_page(letter, attempts))
    fields, body = parse(store.read("page.md") or "")
    assert fields["category"] == "dead-letter"
    assert set(fields) == set(parse(render_page(letter_of(failure), MADE))[0])
    headings = [line for line in body.splitlines() if line.startswith("#")]
    assert [line.split()[0] for line in headings] == ["#", *["##"] * 2, "###", *["##"] * 3]
    assert not [line for line in body.splitlines() if line.startswith(("```", "---", "<", "~~~"))]


def test_no_word_of_others_is_markup_of_the_page() -> None:
    failure = replace(
        Failure.of(HOSTILE, tool=HOSTILE, path=HOSTILE, line=3, excerpt=HOSTILE, tests=[HOSTILE]),
        frames=(Frame(HOSTILE, 2, HOSTILE, True),),
    )
    check = CheckRecord(HOSTILE, "test", HOSTILE, False, 1, 3, HOSTILE)
    made = Attempt(1, AT, HOSTILE, "failed", HOSTILE, HOSTILE, HOSTILE, checks=(check,))
    reason = "unrecoverable_error"
    letter = DeadLetter.of("t", HOSTILE, [made], failure, reason, AT, {HOSTILE: "x"})
    similar = [replace(letter, task_id=HOSTILE)]
    found = suggest(letter, similar, {"auto_fix": HOSTILE}, (), [Solved(HOSTILE, HOSTILE)])
    headings = headings_of(render_page(letter, [made], 1, render_suggestion(found, similar)))
    assert headings[0].startswith("Dead letter: ")
    assert headings[1:] == [
        *("Task description", "Error chain", "Attempt 1 (10:15:30)", "Files modified"),
        *("Smart suggestions", "Similar failures", "Common thread"),
        *("Suggested manual steps", "Context for retry"),
    ]


def test_error_chain_of_an_escalation_says_none_left(make_failure: MakeFailure) -> None:
    assert "- **Strategy:** none left" in error_chain([attempt()])


# --- what is kept ---------------------------------------------------------------------------------


def test_a_record_comes_back(failure: Failure) -> None:
    frames = (Frame("src/main.ts", 9, "start", True), Frame("lib/x.js", 1, "x", False))
    letter = replace(letter_of(replace(failure, frames=frames)), source="loop")
    assert letter.mentions == (
        Mention("src/main.ts", 9, "start"),
        Mention("src/preferences.ts", 4),
    )
    line = json.loads(json.dumps(letter.to_dict()))
    assert line["version"] == 1
    assert DeadLetter.read(line) == letter


def test_what_a_newer_version_says_stays() -> None:
    line = {"version": 9, "task": "t", "title": "A", "mood": {"is": "good"}}
    again = DeadLetter.read(line).to_dict()
    assert again == {**again, **line, "version": 1}


def test_a_line_of_an_older_version_is_read() -> None:
    old = {"task": "t", "pattern": "type-error", "extension": "ts", "code": "TS1", "error": "x"}
    assert DeadLetter.read({**old, "signature": "s", "mood": "new field"}).code == "TS1"
    assert DeadLetter.read({**old, "title": None, "confidence": None}).title == ""
    assert DeadLetter.read({**old, "files": ["a.py"]}).files == {"a.py": ""}
    for nobody in ({"title": "nobody's"}, {"task": None}, {"task": ["t"]}):
        with pytest.raises(ValueError, match="not a dead letter"):
            DeadLetter.read(nobody)


@pytest.mark.parametrize(
    "odd", [None, 5, "high", [], [7], {}, {"a": 1}, True, float("nan"), 10**400]
)
def test_a_field_that_cannot_be_read_spoils_only_itself(odd: Any) -> None:
    for name in (one.name for one in fields(DeadLetter) if one.name not in {"task_id", "other"}):
        read = DeadLetter.read({"task": "t", "signature": "s", "code": "TS1", name: odd})
        assert read.task_id == "t"
        assert {read.signature, read.code} & {"s", "TS1"}
        assert DeadLetter.read(read.to_dict()) == read
        read.recognized()


def test_dead_letters_are_alike_by_pattern_extension_and_code_or_error() -> None:
    one = {"pattern": "type-error", "extension": "ts", "code": "TS2339", "error": "x" * 50}
    assert alike(one, {**one, "error": "y"})
    assert alike({**one, "code": None}, {**one, "code": None})
    assert not alike({**one, "code": None}, {**one, "code": None, "error": "y"})
    assert not alike(one, {**one, "extension": "py"})
    assert not alike(one, {**one, "pattern": "lint-error"})


# --- among others ---------------------------------------------------------------------------------


class Counting(FileStore):
    """A store that counts what is read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.looked_at: list[str] = []

    def records(self, log: str) -> list[dict[str, Any]]:
        self.looked_at.append(log)
        return super().records(log)

    def read(self, document: str) -> str | None:
        self.looked_at.append(document)
        return super().read(document)

    def keys(self, prefix: str) -> list[str]:
        self.looked_at.append(prefix)
        return super().keys(prefix)


def keep(store: Any, letter: DeadLetter) -> str:
    page = f"tasks/{letter.task_id}/dead-letter-{letter.task_id}.md"
    DeadLetterLog(store, PatternSet.default()).add(letter, MADE, page)
    return str(store.read(page))


def test_the_second_of_its_kind_gets_suggestions(tmp_path: Path, failure: Failure) -> None:
    store = FileStore(tmp_path)
    assert "## Smart suggestions" not in keep(store, letter_of(failure, "one", "Add settings"))
    page = keep(store, letter_of(failure, "two"))
    assert yaml.safe_load(page.split("---\n")[1])["similar_failures"] == 1
    assert page.index("## Files modified") < page.index("## Smart suggestions")
    assert page.index("## Smart suggestions") < page.index("## Suggested manual steps")
    assert "Based on 1 similar failure:" in page
    assert "- `one`: Add settings: `Property 'theme' does not exist" in page
    assert "(2026-04-04)" in page


def test_a_task_is_not_similar_to_itself(tmp_path: Path, failure: Failure) -> None:
    store = FileStore(tmp_path)
    keep(store, letter_of(failure, "one"))
    assert "## Smart suggestions" not in keep(store, letter_of(failure, "one"))
    assert [one.task_id for one in DeadLetterLog(store, PatternSet.default()).letters()] == ["one"]


def test_among_thousands_one_log_is_read(tmp_path: Path, failure: Failure) -> None:
    store = Counting(tmp_path)
    record = letter_of(failure).to_dict()
    lines = [
        json.dumps({**record, "task": f"task-{n}", "code": f"TS{n % 1000}", "error": str(n)})
        for n in range(4000)
    ]
    (tmp_path / "memory").mkdir(parents=True)
    (tmp_path / LETTERS).write_text("\n".join(lines) + "\n")
    last = replace(failure, error_code="TS7")
    page = keep(store, letter_of(last, "last"))
    assert "Based on 4 similar failures:" in page
    for task in ("task-7", "task-1007", "task-2007", "task-3007"):
        assert f"`{task}`" in page
    own = [name for name in store.looked_at if name.startswith("tasks/last/")]
    similar = [name for name in store.looked_at if name.endswith("007/task.json") or "-7/" in name]
    assert len(store.looked_at) == 1 + len(own) + len(similar) <= 7


def test_a_similar_task_that_succeeded_later_says_how(tmp_path: Path, failure: Failure) -> None:
    store = FileStore(tmp_path)
    keep(store, letter_of(failure, "one"))
    task_record.save(store, task_of({"id": "one", "outcome": {"status": "success"}}))
    History(store, "one").append(attempt(4, "success"))
    page = keep(store, letter_of(failure, "two"))
    assert "**Alternative approach:** what solved `one`: changed part 4" in page


def test_secrets_are_masked(tmp_path: Path, failure: Failure) -> None:
    store = ForgivingStore(FileStore(tmp_path))
    told = replace(failure, message="login failed: password=hunter2secret")
    page = keep(store, letter_of(told, title="use the token ghp_" + "a" * 36))
    for text in (page, (tmp_path / LETTERS).read_text()):
        assert "hunter2secret" not in text
        assert "ghp_a" not in text
    assert parse(page)[0]["original_task"] == "use the token <secret:github-token>"


def test_a_damaged_line_says_what_can_be_read_of_it(tmp_path: Path, failure: Failure) -> None:
    store = FileStore(tmp_path)
    line = letter_of(failure, "odd").to_dict()
    store.append(LETTERS, {**line, "mentions": [{"nowhere": 1}]})
    store.append(LETTERS, {**line, "task": ["nobody's"]})
    page = keep(store, letter_of(failure))
    assert parse(page)[0]["similar_failures"] == 1
    assert "- `odd`: Add preferences" in page
