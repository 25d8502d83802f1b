"""Signals as data: which kinds there are, how files are named, and what any bytes in them say."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki.base.error import UsageError
from loki.people.signal import (
    KINDS,
    LONGEST_NAME,
    MAX_SIZE,
    documents,
    encoded,
    file_of,
    named,
    parse,
    render,
)

NOON = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
NAMED = [kind.name for kind in KINDS.values() if kind.named]


def test_every_kind_of_the_specification_is_there() -> None:
    assert {kind.pattern for kind in KINDS.values()} == {
        "DRIFT_DETECTED",
        "CONTEXT_CLEAR_REQUESTED",
        "HUMAN_REVIEW_NEEDED",
        "HUMAN_APPROVED",
        "FEATURE_READY_{name}",
        "TESTS_PASSED_{name}",
        "TESTS_FAILED_{name}",
        "MERGE_REQUESTED_{branch}",
        "DOCS_NEEDED",
        "BLOG_POST_QUEUED",
        "PLAN_APPROVED",
    }


def test_agents_can_neither_approve_nor_vouch_for_tests() -> None:
    theirs = {kind.name for kind in KINDS.values() if kind.by_agents}
    assert theirs == {
        "DRIFT_DETECTED",
        "CONTEXT_CLEAR_REQUESTED",
        "HUMAN_REVIEW_NEEDED",
        "FEATURE_READY",
        "DOCS_NEEDED",
        "BLOG_POST_QUEUED",
    }


@pytest.mark.parametrize("kind", NAMED)
@settings(deadline=None)  # the first of them imports pydantic
@given(name=st.text(min_size=1, max_size=300))
def test_a_name_comes_back_from_its_file(kind: str, name: str) -> None:
    file = file_of(kind, name)
    *folders, last = file.split("/")
    assert folders == ["signals"]
    assert len(last) <= len(kind) + 1 + LONGEST_NAME
    assert not last.endswith((".lock", ".json", ".d"))
    assert "\0" not in last
    field = KINDS[kind].named
    (found,) = parse(file, render({field: name}))
    assert (found.kind, found.name) == (kind, name)


def test_long_names_that_begin_alike_are_told_apart() -> None:
    assert file_of("FEATURE_READY", "x" * 500) != file_of("FEATURE_READY", "x" * 501)
    (forged,) = parse(file_of("FEATURE_READY", "x" * 500), '{"name": "other"}')
    assert forged.name != "other"


@pytest.mark.parametrize(
    ("kind", "name"), [("NONSENSE", ""), ("FEATURE_READY", ""), ("DOCS_NEEDED", "x"), ("", "")]
)
def test_no_file_for_what_is_no_signal(kind: str, name: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        file_of(kind, name)


@pytest.mark.parametrize(
    "file",
    [
        "signals/README.md",
        "signals/FEATURE_READY",
        "signals/FEATURE_READY_",
        "signals/HUMAN_APPROVED2",
        "signals/DOCS_NEEDED.d/a/b",
        "signals/FEATURE_READY_a/b",
        "signals/CONTEXT_CLEAR_REQUESTED.d/a.json",
        "state/DOCS_NEEDED",
        "",
    ],
)
def test_other_files_are_no_signals(file: str) -> None:
    assert named(file) is None
    assert parse(file, "{}") == ()


@settings(deadline=None)  # the first of them imports pydantic
@given(
    file=st.one_of(st.text(), st.sampled_from([f"signals/{k.pattern}" for k in KINDS.values()])),
    data=st.one_of(st.binary(), st.text().map(lambda t: json.dumps({"timestamp": t}).encode())),
)
def test_any_bytes_are_a_value(file: str, data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for one in parse(file, text, NOON):
        assert (one.standing == "unreadable") == bool(one.problem)
        assert one.id
        assert json.loads(json.dumps(one.to_dict()))["kind"] == one.kind


@pytest.mark.parametrize("kind", ["DRIFT_DETECTED", "HUMAN_REVIEW_NEEDED", "HUMAN_APPROVED"])
@settings(deadline=None)  # the first of them imports pydantic
@given(
    data=st.dictionaries(
        st.sampled_from(
            ["task_id", "reason", "severity", "detected_drift", "approved", "decision", "id", "x"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        ),
    )
)
def test_any_json_is_a_value(kind: str, data: dict[str, object]) -> None:
    for one in parse(f"signals/{kind}", json.dumps(data)):
        assert kind != "HUMAN_REVIEW_NEEDED" or not one.problem
        assert set(data) <= set(one.data)


def test_nesting_and_size_without_end_are_values() -> None:
    (deep,) = parse("signals/HUMAN_APPROVED", "[" * 50_000)
    (long,) = parse("signals/DOCS_NEEDED", "x" * (MAX_SIZE + 1))
    assert deep.problem == "is no JSON object"
    assert "too large" in long.problem


def test_drift_is_read_as_the_shortest_writer_writes_it_and_unknown_fields_stay() -> None:
    lines = (
        '{"timestamp":"2026-01-25T10:30:00Z","task_id":"task-042","severity":"HIGH",'
        '"detected_drift":"description","mood":"odd"}\n\n{"torn": \nnot json\n'
    )
    first, *rest = parse("signals/DRIFT_DETECTED", lines, NOON)
    assert first.given_at == datetime(2026, 1, 25, 10, 30, tzinfo=timezone.utc)
    assert first.data["severity"] == "high"
    assert first.data["drift_distance"] == 1
    assert first.data["mood"] == "odd"
    assert [one.standing for one in rest] == ["unreadable", "unreadable"]
    assert [one.line for one in rest] == [2, 3]


@pytest.mark.parametrize("word", ["approved", "Approve", True])
def test_a_decision_is_read_in_the_forms_people_write(word: object) -> None:
    (found,) = parse(
        "signals/HUMAN_APPROVED", json.dumps({"request_id": "r1", "decision": word, "by": "ann"})
    )
    assert (found.data["approved"], found.data["by"]) == (True, "ann")


def test_presence_is_enough_and_text_is_a_description() -> None:
    (empty,) = parse("signals/CONTEXT_CLEAR_REQUESTED", "", NOON)
    (said,) = parse("signals/BLOG_POST_QUEUED", "Login is faster now\n")
    assert (empty.standing, empty.given_at, dict(empty.data)) == ("pending", NOON, {})
    assert said.data == {"description": "Login is faster now"}


def test_an_encoded_name_means_nothing_to_a_file_system() -> None:
    assert encoded("../..") == "%2E%2E%2F%2E%2E"
    assert encoded("a.lock") == "a%2Elock"


@pytest.mark.parametrize(
    "text", ["", "please look", '{"reason": "keys", "severity": "URGENT"}', "[1]"]
)
def test_a_request_for_a_person_always_comes_through(text: str) -> None:
    (found,) = parse("signals/HUMAN_REVIEW_NEEDED", text)
    assert (found.standing, found.data["severity"], found.data["blocking"]) == (
        "pending",
        "high",
        True,
    )
    assert text in {found.data["context"], text if text.startswith("{") else ""}


def test_objects_that_were_appended_are_told_apart() -> None:
    many = [f'{{"a": {n}}}' for n in range(300)]
    assert documents(" \n" + "\n\n ".join(many) + "\n") == many
    assert documents("".join([*many, *many])) == many
    assert documents("".join([*many, "5"])) == ["".join([*many, "5"])]
    assert documents("") == [""]


@pytest.mark.parametrize("piece", ["{}", "{}\n", "{}" + " " * 100, "{} [", '{} "'])
def test_a_megabyte_that_was_appended_is_read_at_once(piece: str) -> None:
    """What takes more than linear time does not end while anybody waits."""
    text = piece * (2**20 // len(piece))
    assert documents(text) == (["{}"] if piece.strip() == "{}" else [text])
