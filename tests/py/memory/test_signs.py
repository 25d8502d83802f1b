"""Signs on disk: of one branch, shared by processes, begun anew where the file is damaged."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from loki.memory.sign import SignRules, Signs, folder_of
from loki.memory.store import Store
from loki.recognition.failure import recognize
from loki.stores.file_store import FileStore, ForgivingStore
from support.loop import MakeFailure

TEXT = "FAILED test_login.py::test_redirect - KeyError: 'next'"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return ForgivingStore(FileStore(tmp_path))


def test_the_second_same_failure_writes_the_page(
    make_failure: MakeFailure, store: Store, tmp_path: Path
) -> None:
    signs = Signs(store, "main")
    assert not signs.observe(make_failure(), "added a type guard", "t").is_sign
    assert not (tmp_path / "run/main/anti-repeat.md").exists()
    assert signs.observe(make_failure(line=9), "added a default value", "t").is_sign
    page = (tmp_path / "run/main/anti-repeat.md").read_text()
    assert page.startswith("# Signs on `main`\n")
    assert "Seen 2 times: `src/preferences.ts:4: TS2339 Property 'theme' does not exist" in page
    assert str(signs) in page
    assert (tmp_path / "run/main/signs.json").stat().st_mode & 0o777 == 0o600


def test_output_is_taken_as_it_is(store: Store) -> None:
    signs = Signs(store, "main")
    assert signs.observe(TEXT, "x").advice.value == "go_on"
    assert signs.observe(TEXT.encode(), "y").advice.value == "avoid"
    assert str(Signs(store, "other")) == ""


def test_signs_survive_a_restart_and_belong_to_their_branch(
    make_failure: MakeFailure, store: Store
) -> None:
    for _ in range(2):
        Signs(store, "feature/login form").observe(make_failure(), "tried", "t")
    assert [s.count for s in Signs(store, "feature/login form").armed] == [2]
    for other in ("main", None, "feature", "feature/login", "feature%2Flogin form", "no-branch"):
        assert Signs(store, other).armed == ()
    assert store.read("run/feature%2Flogin%20form/signs.json") is not None


@pytest.mark.parametrize(
    "branch", ["..", ".", "../../x", "a/../b", "@no-branch", "ü" * 250, "\ud800", "x" * 5000]
)
def test_no_branch_leaves_its_folder(branch: str, store: Store, tmp_path: Path) -> None:
    Signs(store, branch).observe(TEXT, "tried", "t")
    (folder,) = (tmp_path / "run").iterdir()
    assert folder.name in folder_of(branch)
    assert Signs(store, None).seen.sightings == ()
    assert {p.name for p in tmp_path.iterdir()} == {
        ".gitignore",
        "run",
        "signals",
        "documents.lock",
    }


def test_branches_that_begin_alike_do_not_share_a_folder() -> None:
    assert folder_of("x" * 5000 + "a") != folder_of("x" * 5000 + "b")
    assert folder_of(".a") != folder_of("%2Ea")


def test_what_the_rules_ignore_is_not_kept(make_failure: MakeFailure, store: Store) -> None:
    signs = Signs(store, "main", SignRules(exempt=("curl *",)))
    vague = make_failure("failed", path=None, line=None, error_code=None)
    for _ in range(3):
        assert signs.observe(vague, "x", "t").count == 0
        assert signs.observe(TEXT, command="curl -f x").advice.value == "go_on"
    assert store.keys("run/") == []


def test_rules_that_changed_decide_anew_what_is_a_sign(store: Store) -> None:
    for _ in range(3):
        Signs(store, "main").observe(TEXT)
    assert len(Signs(store, "main", SignRules(threshold=3)).armed) == 1
    assert Signs(store, "main", SignRules(threshold=4)).armed == ()


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"sightings": [{}]}', '{"sightings": 3}', '{"sightings": [3]}', "[" * 100_000, ""],
)
def test_a_damaged_file_is_kept_aside_and_begun_anew(
    text: str, store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    FileStore(tmp_path).write("run/main/signs.json", text)
    signs = Signs(store, "main")
    with caplog.at_level(logging.WARNING):
        assert signs.armed == ()
        assert [signs.observe(TEXT).count, signs.observe(TEXT).count] == [1, 2]
    assert caplog.text.count("is damaged") == 1
    (kept,) = (tmp_path / "set-aside/run/main").iterdir()
    assert kept.read_text() == text
    assert len(Signs(store, "main").armed) == 1


def test_a_damaged_sighting_spoils_only_itself(store: Store, tmp_path: Path) -> None:
    for _ in range(2):
        Signs(store, "main").observe(TEXT)
    path = tmp_path / "run/main/signs.json"
    data = json.loads(path.read_text())
    data["sightings"].insert(0, {"failure": 5})
    path.write_text(json.dumps(data))
    damaged = path.read_text()
    signs = Signs(store, "main")
    assert [one.count for one in signs.armed] == [2]
    assert signs.observe(TEXT).count == 3
    assert len(json.loads(path.read_text())["sightings"]) == 1
    (kept,) = (tmp_path / "set-aside/run/main").iterdir()
    assert kept.read_text() == damaged


@pytest.mark.parametrize("text", ["", "\0" * 900, '{"version": 1, "sightings": [{}]}'])
def test_a_machine_that_went_down_costs_what_was_seen_once(
    text: str, store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The signs themselves were brought to the disk."""
    signs = Signs(store, "main")
    for seen in (TEXT, TEXT, "FAILED test_b.py::test_b - KeyError: 'other'"):
        signs.observe(seen)
    (tmp_path / "run/main/waiting.json").write_text(text)
    after = Signs(store, "main")
    with caplog.at_level(logging.WARNING):
        assert [s.count for s in after.seen.sightings] == [2]
    assert "waiting.json is damaged" in caplog.text
    assert after.observe(TEXT).count == 3


def test_killed_between_the_two_files_a_sign_is_a_sign_once(store: Store, tmp_path: Path) -> None:
    signs = Signs(store, "main")
    signs.observe(TEXT)
    before = (tmp_path / "run/main/waiting.json").read_text()
    signs.observe(TEXT)
    (tmp_path / "run/main/waiting.json").write_text(before)
    assert [s.count for s in Signs(store, "main").seen.sightings] == [2]


def test_git_is_asked_once_where_a_run_begins(store: Store) -> None:
    asked = []

    def start() -> dict[str, str]:
        asked.append(1)
        return {"commit": "abc"}

    for _ in range(3):
        Signs(store, "main", start=start).observe(TEXT)
    assert len(asked) == 1
    assert json.loads(store.read("run/main/signs.json") or "")["start"] == {"commit": "abc"}


def test_a_store_that_fails_keeps_signs_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    signs = Signs(ForgivingStore(FileStore(tmp_path / "file/.loki")), "main")
    assert [signs.observe(TEXT).count for _ in range(3)] == [1, 2, 3]
    assert len(signs.armed) == 1


def test_the_file_stays_small_and_quick(store: Store, tmp_path: Path) -> None:
    signs = Signs(store, "main")
    for number in range(300):
        signs.observe(f"FAILED test_{number}.py::test_a - KeyError: 'k{number}'", "x" * 999, "t")
    assert (tmp_path / "run/main/signs.json").stat().st_size < 200_000


def test_a_sign_that_is_mended_binds_again_when_the_failure_comes_back(store: Store) -> None:
    signs = Signs(store, "main")
    for approach in ("one", "two"):
        signs.observe(TEXT, approach)
    signs.mend([recognize("FAILED t.py::test_other - ValueError: x")])
    assert len(Signs(store, "main").armed) == 1
    signs.mend([recognize(TEXT)])
    assert Signs(store, "main").armed == ()
    assert str(Signs(store, "main")) == ""
    assert Signs(store, "main").observe(TEXT, "three").count == 3
    assert "led there: `one`" in str(Signs(store, "main"))


def test_who_only_runs_into_what_others_know_repeats_nothing(store: Store) -> None:
    """Also at the same moment: it is looked up under the lock under which it is kept."""
    both = Signs(store, "main"), Signs(store, "main")
    assert [one.observe(TEXT, only_new=True).count for one in both] == [1, 1]
    assert str(both[0]) == ""
    assert both[1].observe(TEXT, "x").count == 2
    assert both[0].observe(TEXT, only_new=True).count == 2
