"""verification-gates.yml: which gates run when; what is wrong in it is said with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki import Workspace
from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates import gate
from loki.action.gates.gate import (
    ADVISORY,
    BLOCKING,
    NAMES,
    Gates,
    Validation,
    default,
    load_gates,
    read_gates,
    validate,
)
from loki.base.error import ConfigError


def local(text: str) -> Gates:
    return read_gates("version: 1\nextends: global\n" + text)


def test_the_built_in_configuration() -> None:
    gates = default()
    assert gates.for_task("feature", "high") == NAMES
    assert gates.for_task("feature", "medium") == NAMES
    assert gates.for_task("feature", "low") == ("syntax_check", "schema_check", "self_review")
    assert gates.build_checks.enabled_for_complexity == ("medium", "high")
    assert gates.regression_detection.enabled_for_complexity == ("medium", "high")
    assert gates.regression_detection.search_depth == 2
    assert gates.regression_detection.exclude_patterns == ()
    assert gates.setting("syntax_check").timeout == 30.0


def test_what_a_project_says_wins_and_the_rest_stays() -> None:
    gates = local(
        "gates:\n  import_check: {complexity: [high], severity: advisory, timeout: 2m}\n"
        "  self_review: {task_types: [security]}\n"
        "regression_detection: {search_depth: 3, exclude_patterns: ['**/mocks/**']}\n"
        "commands: {lint: make style, test: [pytest, -q]}\n"
    )
    assert gates.for_task("feature", "medium") == ("syntax_check", "schema_check")
    assert gates.for_task("security", "high") == NAMES
    setting = gates.setting("import_check")
    assert (setting.severity, setting.timeout) == ("advisory", 120.0)
    assert setting.advisory_in == default().setting("import_check").advisory_in
    assert gates.regression_detection.search_depth == 3
    assert gates.regression_detection.enabled_for_complexity == ("medium", "high")
    assert gates.commands == {"lint": ("make", "style"), "test": ("pytest", "-q")}


def test_the_order_can_be_said_and_lists_are_replaced() -> None:
    gates = local("order: [self_review, syntax_check]\ngates: {syntax_check: {advisory_in: []}}\n")
    assert gates.for_task("bug_fix", "high") == ("self_review", "syntax_check")
    assert gates.setting("syntax_check").advisory_in == ()


def test_without_extends_a_file_stands_alone() -> None:
    assert read_gates("version: 1\ngates: {syntax_check: {}}").for_task("bug_fix", "high") == (
        "syntax_check",
    )


def test_a_project_without_the_file_has_the_defaults(tmp_path: Path) -> None:
    assert load_gates(tmp_path / "verification-gates.yml") is default()


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("version: 2\n", (1, 10), "found 2, expected 1"),
        ("version: 1\nextend: global\n", (2, 1), "did you mean 'extends'?"),
        ("version: 1\nextends: world\n", (2, 10), "found 'world', expected global"),
        ("version: 1\ngates:\n  syntax_chek: {}\n", (3, 3), "did you mean 'syntax_check'?"),
        ("version: 1\ngates: {syntax_check: {severity: loud}}\n", (2, 34), "found 'loud'"),
        ("version: 1\ngates: {self_review: {enable: no}}\n", (2, 23), "did you mean 'enabled'?"),
        ("version: 1\ngates: {syntax_check: {timeout: 30}}\n", (2, 33), "found 30, expected a duration like '30s'"),
        ("version: 1\norder: [syntax_check, syntax_check]\n", (2, 8), "expected each gate once"),
        ("version: 1\nregression_detection:\n  search_depth: two\n", (3, 17), "found 'two', expected a whole number"),
        ("version: 1\nregression_detection:\n  search_depth: 0\n", (3, 17), "found 0"),
        ("version: 1\nregression_detection:\n  enabled_for_complexity: [all]\n", (3, 28), "found 'all'"),
        ("version: 1\ncommands: {lint: ruff | cat}\n", (2, 18), "needs a shell"),
        ("version: 1\ncommands: {deploy: make}\n", (2, 12), "found 'deploy'"),
        ("version: 1\ngates: {a: {}, a: {}}\n", (2, 16), "a second time"),
        ("gates: {}\n", (1, 1), "found no key 'version'"),
        ("- 1\n", (1, 1), "expected a mapping"),
        ("version: [\n", (2, 1), "expected"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(
    text: str, place: tuple[int, int], found: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_gates(text)
    assert (caught.value.line, caught.value.column) == place
    assert found in caught.value.reason


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]",
        "[" * 5000,
        "a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"c{i}: &c{i} [*{'b' if i == 0 else f'c{i - 1}'}, *b]\n" for i in range(40)),
        "x" * (5 * 1024 * 1024),
        "version: !!python/object:os.system 1",
        "version: 1\x00",
        b"\xff\xfe\x00",
    ],
)  # fmt: skip
def test_hostile_files_are_refused(text: str | bytes) -> None:
    with pytest.raises(ConfigError):
        read_gates(text)


@given(st.text(max_size=60).map("version: 1\n".__add__))
def test_any_text_that_is_wrong_is_an_error_with_a_place(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_gates(text + "\nversion: 1")  # at the latest, a key stands there twice
    assert caught.value.line >= 1


def test_a_broken_file_is_said_when_the_project_is_opened(tmp_path: Path) -> None:
    (tmp_path / ".loki").mkdir()
    (tmp_path / ".loki" / gate.GATES_FILE).write_text("version: 1\ngates: []\n")
    with pytest.raises(ConfigError, match=r"verification-gates.yml:2:8: found an empty list"):
        Workspace(tmp_path)


# --- what it does to a validation ------------------------------------------------------------------------


def judge(project: Path, path: str, gates: Gates) -> Validation:
    tree = Tree.scan(project)
    return validate(Change.write({path: "{"}).based_on(tree), project, tree, config=gates)


@pytest.mark.parametrize(
    ("said", "path", "severities"),
    [
        ("{}", "a.json", [BLOCKING]),
        ("{severity: advisory}", "a.json", [ADVISORY]),
        ("{exclude: ['data/**']}", "data/x/a.json", []),
        ("{exclude: ['data/**']}", "a.json", [BLOCKING]),
        ("{advisory_in: ['*.json']}", "deep/a.json", [ADVISORY]),
        ("{enabled: false}", "a.json", []),
        ("{}", "tests/fixtures/a.json", [ADVISORY]),
        ("{task_types: [feature]}", "a.json", []),
    ],
)
def test_settings_weigh_what_a_gate_finds(
    project: Path, said: str, path: str, severities: list[str]
) -> None:
    gates = local(f"order: [syntax_check]\ngates: {{syntax_check: {said}}}\n")
    assert [v.severity for v in judge(project, path, gates).violations] == severities


def test_nothing_switches_the_check_of_the_change_off(project: Path) -> None:
    gates = read_gates("version: 1\n")
    validation = judge(project, "../a.json", gates)
    assert validation.gates == ("change_check",)
    assert not validation.passed


def test_each_gates_time_is_kept(project: Path) -> None:
    record = judge(project, "a.json", default()).record()
    assert set(record["durations_ms"]) == set(record["gates"]) == {"change_check", "syntax_check"}
    assert all(isinstance(took, int) for took in record["durations_ms"].values())
