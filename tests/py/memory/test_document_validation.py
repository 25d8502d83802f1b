"""The validator of documents: what does not fit spoils only itself, and is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.checks import judge
from loki.action.checks.judging import touched_tests
from loki.action.checks.results import suite_results
from loki.action.loop import human_review_check, recorder
from loki.action.pipelines import pipeline_record
from loki.base import codec, documents
from loki.jobs.signals import signal_handling
from loki.memory import store, task_record
from loki.memory.task_record import TaskRecord
from loki.people import request, signals
from loki.stores.file_store import FileStore
from support.wrong_types import changed

TASK = "tasks/a/task.json"
RECORD = {
    "title": "mend it", "checks": [{"kind": "test", "command": ["pytest"], "name": "pytest", "timeout": 5.0}],
    "budget": {"tokens": 5}, "interventions": [{"at": "2026-04-04T12:00:00Z", "kind": "resume", "context": "x"}],
    "seen_failing": [["pytest", "t"]], "outcome": {"status": "failed", "reason": "why", "files_modified": ["a.py"]},
    "newer": {"kept": [1]},
}  # fmt: skip


def validated(name: str, text: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    form = documents.form_of(name)
    assert form is not None
    value, flaws = documents.read_document(form, text)
    return None if value is None else codec.write(value), flaws


def test_what_fits_comes_as_it_is() -> None:
    data, flaws = validated(TASK, json.dumps(RECORD))
    assert flaws == ()
    assert data is not None
    assert {name: data[name] for name in ("title", "newer")} == {
        "title": "mend it",
        "newer": {"kept": [1]},
    }
    assert data["outcome"]["status"] == "failed"


def test_what_does_not_fit_spoils_only_itself() -> None:
    damaged: dict[str, Any] = {**RECORD, "outcome": {**RECORD["outcome"], "attempts": "many"}}  # type: ignore[dict-item]
    data, flaws = validated(TASK, json.dumps({**damaged, "title": 5}))
    assert data is not None
    assert flaws == (
        "title: found 5, expected text",
        "outcome.attempts: found 'many', expected a whole number",
    )
    assert (data["outcome"]["reason"], data["outcome"]["attempts"]) == ("why", 0)
    assert data["interventions"][0]["context"] == "x"


OWNERS = (
    task_record, suite_results, touched_tests, judge, recorder, human_review_check,
    pipeline_record, signals, signals, signal_handling, request,
)  # fmt: skip
"""Each says the form of its document where it is imported."""

NAMES = [
    *(f"tasks/a/{name}.json" for name in ("task", "baseline", "judged", "before", "refused", "withheld")),
    *("pipelines/a-1/pipeline.json", "state/signals.json", "state/signals-seen.json",
      "state/merging.json", "state/waiting.json"),
]  # fmt: skip


def test_each_document_has_a_form_of_its_owner_s() -> None:
    forms = [documents.form_of(name) for name in NAMES]
    owners = [form.__module__ for form in forms if form is not None]
    assert sorted(owners) == sorted(owner.__name__ for owner in OWNERS)


@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_another_form_is_told_and_fits_afterwards(name: str) -> None:
    for value in changed(RECORD):
        data, flaws = validated(name, json.dumps(value))
        assert data is None or all(isinstance(flaw, str) for flaw in flaws)
        if data is not None:
            assert validated(name, json.dumps(data))[1] == (), "what was made of it fits"


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "[" * 5_000, '{"a":' * 5_000, "9" * 5_000, '"\\ud800"', "NaN", "\0"]
)
def test_what_is_no_object_is_none_with_a_sentence(text: str) -> None:
    data, flaws = validated(TASK, text)
    assert data is None
    assert len(flaws) == 1


def test_a_damaged_document_is_kept_before_another_takes_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = FileStore(tmp_path / ".loki")
    files.write(TASK, json.dumps(RECORD))
    files.write(TASK, '{"title": 5}')
    assert not (tmp_path / ".loki" / store.ASIDE).exists(), "what fits is not kept"
    for _ in range(3):
        damaged = documents.load_as(TaskRecord, files, TASK)
    assert damaged is not None
    assert damaged.flaws == ("title: found 5, expected text",)
    assert caplog.text.count("is damaged: title: found 5") == 1, "told once"
    files.write(TASK, json.dumps(RECORD))
    (kept,) = (tmp_path / ".loki" / store.ASIDE / "tasks" / "a").iterdir()
    assert kept.read_text() == '{"title": 5}'
    assert f"kept as .loki/{kept.relative_to(tmp_path / '.loki')}" in caplog.text


def test_a_folder_in_the_place_of_a_document_is_set_aside(tmp_path: Path) -> None:
    files = FileStore(tmp_path / ".loki")
    (tmp_path / ".loki" / TASK / "mine").mkdir(parents=True)
    files.write(TASK, json.dumps(RECORD))
    (kept,) = (tmp_path / ".loki" / store.ASIDE / "tasks" / "a").iterdir()
    assert [one.name for one in kept.iterdir()] == ["mine"]
    assert files.read(TASK) == json.dumps(RECORD)


def test_of_a_table_only_what_does_not_fit_goes() -> None:
    """A number that was shown never comes to mean something else, whatever stands beside it."""
    text = '{"next": 3, "given": {"a": [1, "x"], "b": 5, "c": [true, "x"]}, "left": ["a", 5]}'
    data, flaws = validated("state/waiting.json", text)
    assert data == {"given": {"a": [1, "x"]}, "left": ["a"]}
    assert len(flaws) == 3


def test_what_a_reader_finds_damaged_is_kept_once_byte_by_byte(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = FileStore(tmp_path / ".loki")
    files.write("state/sessions/s.json", "{}")
    (tmp_path / ".loki" / "state" / "sessions" / "s.json").write_bytes(b"\xff{")
    for _ in range(3):
        files.set_aside("state/sessions/s.json")
    files.set_aside("state/sessions/none.json")
    (kept,) = (tmp_path / ".loki" / store.ASIDE / "state" / "sessions").iterdir()
    assert kept.read_bytes() == b"\xff{"
    assert caplog.text.count(kept.name) == 1, "told once"


def test_a_damaged_document_that_is_removed_is_kept(tmp_path: Path) -> None:
    files = FileStore(tmp_path / ".loki")
    files.write(TASK, '{"title": 5}')
    files.update(TASK, lambda _: None)
    assert files.read(TASK) is None
    (kept,) = (tmp_path / ".loki" / store.ASIDE / "tasks" / "a").iterdir()
    assert kept.read_text() == '{"title": 5}'


def test_a_link_on_the_way_to_a_damaged_document_moves_nothing(tmp_path: Path) -> None:
    files, away = FileStore(tmp_path / ".loki"), tmp_path / "away"
    (away / "task.json" / "mine").mkdir(parents=True)
    files.write("tasks/b/task.json", "{}")
    (tmp_path / ".loki" / "tasks" / "a").symlink_to(away)
    with pytest.raises(loki.StoreError, match="cannot set aside"):
        files.write(TASK, json.dumps(RECORD))
    assert (away / "task.json" / "mine").is_dir()
