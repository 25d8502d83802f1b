"""Whatever an agent calls, prints or says: the monitor answers, and raises nothing."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki import Monitor, ToolCall
from loki.decision.monitor.tool_call import known
from loki.decision.monitor.tool_result import any_repr, any_text, short
from support.examples import examples

ODD = "ab/.-'\" \n\\\0\ud800\udcff€:;|&$(=1"
TEXT = st.one_of(st.text(st.characters(), max_size=60), st.text(ODD, max_size=60))
PATHS = TEXT.map(lambda text: f"/tmp/{text}")
COMMANDS = st.tuples(
    st.sampled_from(
        ["sed -i s/a/b/ '{}'", "pytest {}", "echo x > {}", "git stash {}", "curl {}", "{}"]
    ),
    st.one_of(TEXT, PATHS),
).map(lambda pair: pair[0].replace("{}", pair[1]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT, PATHS, st.binary()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXT, inner)),
    max_leaves=8,
)
ARGUMENTS = st.one_of(
    st.fixed_dictionaries({"file_path": PATHS, "old_string": TEXT, "new_string": TEXT}),
    st.fixed_dictionaries({"command": COMMANDS}),
    st.dictionaries(
        st.one_of(TEXT, st.sampled_from(["command", "path", "file_path", "input"])), VALUES
    ),
)
CALLS = st.builds(
    ToolCall, st.one_of(st.sampled_from(["Edit", "Bash", "Read", "write_file"]), TEXT), ARGUMENTS
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@settings(max_examples=examples(100), deadline=None)
@given(
    CALLS,
    st.one_of(TEXT, st.binary(), TEXT.map(ValueError)),
    st.sampled_from([True, False, None]),
    st.sampled_from([None, 0, 1, -9, 2**40]),
    TEXT,
)
def test_a_monitor_is_total(
    project: Path,
    call: ToolCall,
    output: Any,
    ok: bool | None,
    exit_code: int | None,
    message: str,
) -> None:
    for monitor in (Monitor(project, mapped={"/tmp/a": "."}), Monitor(project, session="s")):
        monitor.before(call)
        monitor.after(call, output, ok=ok, exit_code=exit_code)
        monitor.started(call, message)
        monitor.finished(message, str(output), exit_code=exit_code)
        monitor.ending(message, turn=message)


@pytest.mark.parametrize("path", ["/tmp/\ud800x", "/tmp/a\0b", "\0", "/\0", "/tmp/" + "x" * 9999])
def test_a_path_that_no_file_can_have_is_a_path(tmp_path: Path, path: str) -> None:
    monitor = Monitor(tmp_path)
    edit = ToolCall("Edit", {"file_path": path, "new_string": "x"})
    assert not monitor.after(edit, "ok", ok=True)
    assert not monitor.after(
        ToolCall("Bash", {"command": f"sed -i s/a/b/ '{path}.py'"}), "", ok=True
    )


def nested(levels: int, inner: object = 1) -> Any:
    value: Any = inner
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [500, 990, 4_000])
def test_arguments_of_any_depth(tmp_path: Path, levels: int) -> None:
    calls = [ToolCall("lookup", {"a": nested(levels, inner)}) for inner in (1, 1, 2)]
    keys = [known(call).key for call in calls]
    assert keys[0] == keys[1] != keys[2]
    assert not Monitor(tmp_path).after(calls[0], "no", ok=False)


def test_arguments_are_read_on_a_deep_stack() -> None:
    call = ToolCall("lookup", {"a": nested(300)})

    def down(levels: int) -> str:
        return known(call).key if levels == 0 else down(levels - 1)

    assert down(sys.getrecursionlimit() - 200) == known(call).key


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_any_value_is_text() -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    wide: list[Any] = []
    wide += [wide] * 2_000
    for value in (Rude(), {1: Rude(), "a": 2}, circle, wide, 10**5000, {1, "a"}, threading.Lock()):
        assert any_text(value)
        assert any_repr(value)


def test_what_is_cut_differs_still() -> None:
    one, other = short("a" * 999 + "b" + "c" * 999, 200), short("a" * 999 + "d" + "c" * 999, 200)
    assert one != other
    assert len(one) == len(other) == 200
    assert len(short("\ud800" * 999, 61)) == 61
