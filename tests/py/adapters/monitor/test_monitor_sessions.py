"""Sessions that processes share: real processes, crashes, torn files, bounded in number and size."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from loki import Monitor, ToolCall, Workspace
from loki.adapters.monitor.monitor import (
    LARGEST,
    MOST_SESSIONS,
    SharedSession,
    document_of,
    dumped,
    known_call,
    received_call,
)
from loki.decision.monitor.monitor_policy import step
from loki.decision.monitor.monitor_state import (
    Ended,
    Finished,
    Inspection,
    MonitorRules,
    MonitorState,
    Passed,
)
from loki.memory.sign import Seen, Sighting
from loki.recognition.failure import Failure
from loki.stores.file_store import FileStore
from support.tool_calls import bash, edit, pytest_fails
from support.wrong_types import changed


def state(project: Path) -> MonitorState:
    text = (project / ".loki" / document_of("shared")).read_text("utf-8")
    return MonitorState.from_dict(json.loads(text))


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"version": 1', "[]", "null", '{"sightings": 3}', "\ud800", "[" * 100_000, "{}" * 2],
)
def test_a_torn_session_is_begun_anew(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".loki" / document_of("torn")
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    monitor = Monitor(tmp_path, session="torn")
    made = edit("app.py")
    assert not monitor.after(made.call, "ok", ok=True)
    assert json.loads(path.read_bytes())["change"] == 1


def test_a_session_of_another_version_is_begun_anew(tmp_path: Path) -> None:
    good = json.loads(dumped(MonitorState()))
    for wrong in ({**good, "looks": []}, {**good, "again": [[1]]}, {**good, "change": "x"}):
        with pytest.raises(ValueError, match="Error"):
            MonitorState.from_dict(wrong)


@pytest.mark.parametrize("name", ["../../etc/x", "a/b", "", ".", "x" * 5000, "\ud800", "é\n"])
def test_any_session_name_is_a_file_of_the_folder(tmp_path: Path, name: str) -> None:
    monitor = Monitor(tmp_path, session=name)
    monitor.after(edit("app.py").call, "ok", ok=True)
    folder = tmp_path / ".loki/state/sessions"
    assert len([p for p in folder.iterdir() if p.suffix == ".json"]) == 1


def test_sessions_are_bounded_in_number_the_oldest_go(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for number in range(MOST_SESSIONS + 5):
        document = document_of(f"s{number}")
        store.write(document, dumped(MonitorState()))
        os.utime(tmp_path / document, (number, number))
    session = SharedSession(store, "new", MonitorRules())
    session.change(lambda state: (state, None))
    names = store.keys("state/sessions/")
    assert len(names) == MOST_SESSIONS
    assert document_of("s5") not in names
    assert document_of("new") in names


def test_a_session_is_bounded_in_size() -> None:
    sightings = tuple(
        Sighting(Failure.of(f"KeyError: 'k{n}' in place {n}" + "y" * 5000, path=f"p{n}.py"))
        for n in range(200)
    )
    text = dumped(MonitorState(Seen(sightings)))
    assert len(text) <= LARGEST + 1
    kept = MonitorState.from_dict(json.loads(text)).seen.sightings
    assert kept[-1].failure.path == "p199.py"


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, session="s")
    for made in (bash("pytest -q", pytest_fails(), 1), edit("app.py"), bash("rg x", "no", 127)):
        monitor.after(made.call, made.output, **made.how)
    text = (tmp_path / ".loki" / document_of("s")).read_text("utf-8")
    assert dumped(MonitorState.from_dict(json.loads(text))) == text


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, session="s")
    (tmp_path / ".loki").write_text("not a folder", "utf-8")
    call = ToolCall("Bash", {"command": "pytest -q"})
    kinds = []
    for number in range(3):
        kinds.append(monitor.after(call, pytest_fails(), exit_code=1).kind)
        monitor.after(edit("app.py", str(number)).call, "ok", ok=True)
    assert kinds == ["none", "none", "nudge"]


def test_a_session_of_which_anything_is_something_else_is_begun_anew_or_goes_on(
    tmp_path: Path,
) -> None:
    monitor = Monitor(tmp_path, session="s")
    check = bash("pytest -q", pytest_fails(), 1)
    for made in (check, edit("app.py"), bash("rg x", "no", 127)):
        monitor.after(made.call, made.output, **made.how)
    monitor.started(ToolCall("Bash", {"command": "mypy ."}), "task")
    good = json.loads((tmp_path / ".loki" / document_of("s")).read_text("utf-8"))
    assert good["looks"]
    assert good["background"]
    known = received_call(Workspace(tmp_path), known_call(check.call), check.output, False, 1)
    claims = Ended("All tests pass.")
    for wrong in changed(good):
        text = json.dumps(wrong)
        try:
            state = MonitorState.from_dict(json.loads(text))
        except ValueError:
            continue
        for event in (known, Passed(known.call), claims, Finished("task")):
            step(state, event)
        json.loads(dumped(state))


@pytest.mark.parametrize("value", ["Infinity", "NaN", "-Infinity", "1e999"])
def test_an_infinite_count_is_begun_anew_with_a_warning(
    tmp_path: Path, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    Monitor(tmp_path, session="s").after(edit("app.py").call, "ok", ok=True)
    path = tmp_path / ".loki" / document_of("s")
    path.write_text(path.read_text("utf-8").replace('"moved": 1', f'"moved": {value}'), "utf-8")
    Monitor(tmp_path, session="s").after(edit("b.py").call, "ok", ok=True)
    assert json.loads(path.read_text("utf-8"))["change"] == 1
    assert "begun anew" in caplog.text


def test_where_the_oldest_looks_are_dropped_the_newest_sightings_stay() -> None:
    sightings = tuple(
        Sighting(Failure.of(f"KeyError: 'k{n}' in place {n}", path=f"p{n}.py")) for n in range(40)
    )
    calls = (("python", "x" * 20_000),)
    looks = {one.failure.fingerprint: Inspection(1, ("k",), calls) for one in sightings}
    text = dumped(MonitorState(Seen(sightings), looks))
    assert len(text) <= LARGEST + 1
    kept = MonitorState.from_dict(json.loads(text))
    assert len(kept.seen.sightings) == len(kept.looks) > 5
    assert kept.seen.sightings[-1].failure.path == "p39.py"


def test_long_names_and_paths_do_not_make_a_long_state(tmp_path: Path) -> None:
    name = "n" * 1_000_000
    for number in range(30):
        monitor = Monitor(tmp_path, session="s")
        call = ToolCall(f"{name}{number}", {"path": f"/x/{name}"}, fits=number % 2 == 0)
        monitor.after(call, f"invalid input {number}", ok=False)
        monitor.started(ToolCall(f"{name}{number}", {"command": "pytest"}), name)
        monitor.after(bash(f"sed -i s/a/b/ {name}{number}.py").call, "", ok=True)
    assert (tmp_path / ".loki" / document_of("s")).stat().st_size < LARGEST
