"""The benchmarks: data by a seed, references that agree with loki, cases that hold together."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import loki
from benchmarks import (
    corpus,
    decision,
    decision_cases,
    floors,
    history,
    loop,
    masker,
    queue,
    recognition,
    references,
    replay,
    report,
)
from benchmarks.cases import FAMILIES, cases
from benchmarks.data_loss import read
from benchmarks.job import Case, Data
from benchmarks.pattern_families import document, generated
from benchmarks.scoring import Definition, required, score
from loki import Workspace

PEERS = ("ahocorasick_rs", "hyperscan", "matplotlib", "re2")
LOGS = corpus.logs(7, 60_000)


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert corpus.log(3) == corpus.log(3) != corpus.log(4)
    assert list(corpus.failures(1, 50)) == list(corpus.failures(1, 50))
    # The first numbers of SplitMix64 as published, for its seed 1234567.
    mix = corpus.Mix(1234567)
    assert [mix.below(1 << 64) for _ in range(2)] == [6457827717110365317, 3203168211198807973]


def test_failures_of_one_kind_differ_in_what_varies_only() -> None:
    by_kind: dict[int, list[str]] = {}
    for text, kind in corpus.failures(2, 300, kinds=0.1):
        by_kind.setdefault(kind, []).append(text)
    several = [texts for texts in by_kind.values() if len(texts) > 1]
    assert len(several) > 10
    for texts in several:
        assert len({references.tokens(loki.normalize(text)) for text in texts}) == 1
    firsts = {references.tokens(loki.normalize(texts[0])) for texts in by_kind.values()}
    assert len(firsts) == len(by_kind)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_logs_are_read_from_json_lines(tmp_path: Path, name: str) -> None:
    content = "\n".join(json.dumps(record) for record in [{"log": "one\u2028"}, {"text": "two"}])
    raw = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    assert corpus.read(tmp_path / name) == ["one\u2028", "two"]


def test_records_without_a_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"name": 1}\n', "utf-8")
    with pytest.raises(ValueError, match="under 'log' or 'text'"):
        corpus.read(tmp_path / "a.jsonl")


@pytest.mark.parametrize("normalize", [masker.normalize, masker.normalize_quickly])
def test_the_masker_replaces_what_loki_replaces(normalize: Any) -> None:
    texts = [text for text, _ in corpus.failures(4, 60)] + LOGS[:1]
    mine = [loki.normalize(text).split("\n") for text in texts]
    other = [normalize(text).split("\n") for text in texts]
    assert FAMILIES["normalize"].agree(mine, other) > 0.98


def test_plain_overlap_is_lokis() -> None:
    texts = [text for text, _ in corpus.failures(5, 40, kinds=0.5)] + ["", "one two", "one  two"]
    sets = [references.tokens(loki.normalize(text)) for text in texts]
    for text, tokens in zip(texts, sets, strict=True):
        assert references.overlaps(tokens, sets) == pytest.approx(
            [loki.overlap(text, other) for other in texts]
        )


def test_measures_of_groupings() -> None:
    assert references.pairs([0, 0, 1, 1], [0, 0, 0, 0]) == (1.0, 2 / 6)
    assert references.pairs([0, 0, 0, 0], [0, 0, 1, 1]) == (2 / 6, 1.0)
    assert references.grouping_accuracy([5, 5, 6, 7], [0, 0, 1, 1]) == 0.5


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        (r"failed with \d+", ["failed with "]),
        (r"(?i)Cannot (?:find|open) it", ["cannot "]),
        (r"\b(?:lost|gone away)\b", ["lost", "gone away"]),
        (r"a?b*\d+", []),
        (r"(?:abc)?\d (?:xyz)+", ["xyz"]),
    ],
)
def test_required_literals(regex: str, expected: list[str]) -> None:
    assert required(regex) == expected


def test_the_plain_score_is_lokis() -> None:
    patterns = {
        "version": 2,
        "patterns": [
            {"id": "a", "signals": [{"literal": "disk full"}, {"word": "disk", "w": 0.5}]},
            {"id": "b", "signals": [{"literal": "node"}, {"literal": "17", "w": "weak"}]},
            {"id": "c", "signals": [{"literal": "on"}, {"not": {"literal": "full"}}]},
        ],
    }
    for pattern in patterns["patterns"]:  # type: ignore[attr-defined]
        pattern.update(strategy="escalate", description="a test's")
    text = "disk full on node 17"
    hits = [(0, 0, 9), (1, 0, 4), (2, 13, 17), (3, 18, 20), (4, 10, 12), (5, 5, 9)]
    expected = sorted(
        (m.pattern, m.confidence, m.coverage) for m in loki.PatternSet(patterns).match(text)
    )
    assert score(Definition.of(patterns), hits) == expected
    assert [name for name, _, _ in expected] == ["a", "b"]


def test_generated_patterns_are_patterns(tmp_path: Path) -> None:
    made = generated(40, LOGS, 1)
    assert made == generated(40, LOGS, 1)
    assert len(loki.PatternSet(made).patterns) == 40
    data = Data(tmp_path)
    assert len(document({"patterns": "sixty"}, data)["patterns"]) == 60
    assert document({"patterns": "built-in"}, data)["patterns"]


def test_cases_name_what_is_there() -> None:
    for case in [*cases(quick=False), *cases(quick=True)]:
        rivals = FAMILIES[case.family].rivals
        assert "loki" in rivals
        assert {*case.rivals, *(rival for rival, _ in case.targets)} <= set(rivals)
    for case in [*decision_cases.cases(quick=False), *decision_cases.cases(quick=True)]:
        rivals = decision_cases.FAMILIES[case.family].rivals
        assert {*case.rivals, *(rival for rival, _ in case.targets)} <= set(rivals)


def test_a_wrong_answer_is_not_sound() -> None:
    case = next(case for case in cases(quick=True) if case.family == "match")
    right = {"seconds": 1.0, "amount": 100, "items": 10, "memory": 0, "cpu": 1.0, "agrees": 1.0}
    other = {**right, "seconds": 3.0}
    judged = report.judged(case, FAMILIES["match"], {"loki": right, "hyperscan": other})
    assert judged["sound"]
    assert [(t["rival"], t["ratio"], t["met"]) for t in judged["targets"]] == [
        ("hyperscan", 3.0, True)
    ]
    wrong = {"loki": right, "hyperscan": {**other, "agrees": 0.5}}
    assert not report.judged(case, FAMILIES["match"], wrong)["sound"]


def test_what_is_asked_for_must_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        recognition.arguments(["--only", "telepathy"])
    assert "'telepathy'" in capsys.readouterr().err


@pytest.mark.skipif(
    not all(importlib.util.find_spec(peer) for peer in PEERS),
    reason="make bench installs the peers",
)
def test_a_run_on_tiny_data_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recognition, "QUICK", 20_000)
    monkeypatch.setattr(recognition, "BUDGET", {True: 0.0})
    few = [
        Case("sixty", "match", {"patterns": "sixty", "data": "texts"}, (("hyperscan", 1.0),)),
        Case("mask", "normalize", {"data": "texts"}, least=0.95, rivals=("loki", "re")),
        *(
            Case("sizes", "recognize", {"data": n}, rivals=("loki",), series=("recognize", n))
            for n in (100, 1000)
        ),
    ]
    monkeypatch.setattr(recognition, "cases", lambda _: few)
    assert recognition.main(["--quick", "--out", str(tmp_path)]) == 0
    whole = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert [case["name"] for case in whole["cases"]] == [case.name for case in few]
    assert all(case["sound"] for case in whole["cases"])
    assert "<svg" in (tmp_path / "recognize.svg").read_text("utf-8")
    page = capsys.readouterr().out
    assert page == (tmp_path / "report.md").read_text("utf-8")
    assert "| hyperscan |" in page


@pytest.mark.skipif(
    not any(floors.BUILT.glob("_native*"))
    or not all(importlib.util.find_spec(peer) for peer in decision_cases.PEERS),
    reason="make bench-decision builds the floors and installs the peers",
)
def test_a_quick_run_of_decisions_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(decision, "BUDGET", {True: 0.0})
    assert decision.main(["--quick", "--out", str(tmp_path)]) == 0
    whole = json.loads((tmp_path / "decision.json").read_text("utf-8"))
    assert [case["name"] for case in whole["cases"]] == [
        case.name for case in decision_cases.cases(quick=True)
    ]
    page = capsys.readouterr().out
    assert page == (tmp_path / "decision.md").read_text("utf-8")
    assert "ns a call" in page


def test_the_histories_that_are_measured_are_as_the_loop_writes_them(tmp_path: Path) -> None:
    """Every record can be read, each task has one or two executions, each ended."""
    tasks = history.make(tmp_path, 60)
    executions = list(Workspace(tmp_path).executions())
    assert len({execution.task for execution, _ in executions}) == tasks
    assert sum(len(attempts) for _, attempts in executions) >= 60
    assert all(execution.has_ended for execution, _ in executions)
    again = tmp_path / "again"
    history.make(again, 60)
    files = sorted(path.relative_to(again) for path in again.rglob("*.json*"))
    assert all((again / f).read_bytes() == (tmp_path / f).read_bytes() for f in files)


def test_what_is_measured_runs(tmp_path: Path) -> None:
    rows = list(history.rows(tmp_path, 12))
    assert len(rows) == len(history.COMMANDS)
    assert (tmp_path / "report.html").exists()


def test_processes_that_share_a_queue_are_measured(tmp_path: Path) -> None:
    found = list(queue.measured([12], [3], 8, str(tmp_path)))
    assert [one["who"] for one in found] == ["loki", "sqlite by hand"]
    for one in found:
        assert (one["tasks"], one["processes"], one["ended"]) == (12, 3, 8)
        assert one["longest_ms"] > 0


def test_the_loop_is_measured_effect_by_effect(tmp_path: Path) -> None:
    found = loop.measure(tmp_path, 12, 5, git=False)
    assert {"Briefing", "Execute", "Keep", "Observe", "Validate"} <= found["by_effect_ms"].keys()
    assert found["attempts"] == 12
    assert len(found["memory_mb"]) == 12
    assert "an attempt, median" in loop.told(found)


def test_recorded_runs_are_replayed_beside_other_detectors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = {"tool": "bash", "args": {"command": "pytest -q"}, "exit_code": 1}
    failing["result"] = "FAILED test_app.py::test_next - KeyError: 'next'\n1 failed in 0.02s\n"
    reads = [
        {"tool": "read", "args": {"path": f"{name}.py"}, "result": f"import {name}\n", "ok": True}
        for name in ("one", "two", "three")
    ]
    stuck = [{"from": 0, "to": 8, "label": "stuck"}]
    going = [{"from": 0, "to": 2, "label": "progress"}]
    runs = [
        {"id": "a", "agent": "x", "resolved": False, "steps": [failing] * 9, "windows": stuck},
        {"id": "b", "agent": "y", "resolved": True, "steps": reads, "final": "It reads three files.",
         "windows": going},
    ]  # fmt: skip
    file = tmp_path / "runs.jsonl"
    file.write_text("\n".join(map(json.dumps, runs)), "utf-8")
    assert replay.main([str(file), "--agents", "--show", "stops"]) == 0
    said = capsys.readouterr().out
    rows = {line.split(" | ")[0]: line.strip(" |").split(" | ")[1:] for line in said.splitlines()}
    assert said.startswith("2 runs (all), 12 calls; 1 solved, 1 failed, 0 unknown; 1 windows stuck")
    assert rows["| `failed_stopped`"] == ["1 of 1 (100.0%)"] * 6
    assert [cell.split()[0] for cell in rows["| `failed_saved`"][1:]] == ["5", "5", "3", "4", "5"]
    assert rows["| `stuck_heard`"] == ["1 of 1 (100.0%)"] * 6
    assert rows["| `solved_spoken`"] == rows["| `progress_disturbed`"] == ["0 of 1 (0.0%)"] * 6
    assert "a (failed) step" in said
    assert replay.is_in("tuned", "a") is not replay.is_in("kept", "a")


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        ("op.drop_column('users', 'nick')", (True, False)),
        ("op.execute('DELETE FROM users')", (True, False)),
        ("op.rename_table('users', 'members')", (False, True)),
        ("op.alter_column('users', 'a', new_column_name='b')", (False, True)),
        ("op.add_column('users', column)", (False, False)),
    ],
)
def test_a_migration_is_labelled_by_its_code(body: str, labels: tuple[bool, bool]) -> None:
    undone = "def downgrade():\n    op.drop_table('users')\n"
    found = read("a", f'"""Change users.\n\nMore."""\ndef upgrade():\n    {body}\n{undone}')
    assert found is not None
    assert (found.title, (found.loses, found.moves)) == ("Change users.", labels)
    assert read("a", '"""0.1.0"""\ndef upgrade(): pass') is None
