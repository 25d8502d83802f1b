"""Stores: what was acknowledged is there; what cannot be written is kept and told once."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loki.base.error import StoreError
from loki.memory.store import Rewrite, Store
from loki.stores.file_store import FileStore, ForgivingStore
from loki.testing import MemoryStore


class Broken:
    """A store on a disk that is full until it is mended."""

    def __init__(self) -> None:
        self.mended = False
        self.logs: dict[str, list[dict[str, Any]]] = {}
        self.documents: dict[str, str] = {}

    def _check(self) -> None:
        if not self.mended:
            raise StoreError("no space left on device")

    def append(self, log: str, record: Any, *, durable: bool = True) -> None:  # noqa: ARG002
        self._check()
        self.logs.setdefault(log, []).append(dict(record))

    def records(self, log: str) -> list[dict[str, Any]]:
        return self.logs.get(log, [])

    def scan(self, log: str) -> Iterator[dict[str, Any]]:
        yield from self.records(log)

    def write(self, document: str, text: str) -> None:
        self._check()
        self.documents[document] = text

    def read(self, document: str) -> str | None:
        return self.documents.get(document)

    def update(self, document: str, change: Rewrite, *, durable: bool = True) -> None:  # noqa: ARG002
        self._check()
        text = change(self.documents.pop(document, None))
        if text is not None:
            self.documents[document] = text

    def set_aside(self, document: str) -> None:
        self._check()
        self.documents[f"set-aside/{document}"] = self.documents[document]

    def keys(self, prefix: str) -> list[str]:
        return sorted(name for name in (*self.logs, *self.documents) if name.startswith(prefix))

    def written_at(self, name: str) -> float | None:
        self._check()
        return 1.0 if name in {*self.logs, *self.documents} else None

    def lock(self, name: str) -> Any:
        raise StoreError(f"no space left on device for {name}")


@pytest.fixture(params=["files", "memory", "forgiving-files", "forgiving-memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Every kind of store: the tests that take it are the contract that each keeps."""
    store = FileStore(tmp_path / ".loki") if "files" in request.param else MemoryStore()
    return ForgivingStore(store) if "forgiving" in request.param else store


def test_a_log_gives_back_what_was_appended(store: Store) -> None:
    records = [{"attempt": n, "action": "ü\n\u2028"} for n in range(3)]
    for record in records:
        store.append("tasks/t/attempts.jsonl", record)
    assert (
        store.records("tasks/t/attempts.jsonl")
        == list(store.scan("tasks/t/attempts.jsonl"))
        == records
    )
    assert store.records("tasks/none/attempts.jsonl") == []


def test_a_record_comes_back_in_the_form_of_json(store: Store) -> None:
    """A tuple is a list then: who works on one kind of store works on all."""
    store.append("log.jsonl", {"pair": ("a", 1), "none": None})
    assert store.records("log.jsonl") == [{"pair": ["a", 1], "none": None}]


def test_what_is_set_aside_is_there_twice(store: Store) -> None:
    store.set_aside("none.json")
    store.write("tasks/t/task.json", "{")
    store.set_aside("tasks/t/task.json")
    assert store.read("tasks/t/task.json") == "{"
    (kept,) = store.keys("set-aside/")
    assert store.read(kept) == "{"


def test_a_lock_has_one_holder_at_a_time(store: Store) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(10):
            with store.lock("documents-of-one-kind"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result()
    assert most == 1
    with pytest.raises(ZeroDivisionError), store.lock("documents-of-one-kind"):
        1 // 0  # noqa: B018
    with store.lock("documents-of-one-kind"), store.lock("another"):
        store.update("a.json", lambda _: "1")  # a lock is beside what it is about
    assert store.read("a.json") == "1"


def test_a_document_is_replaced(store: Store) -> None:
    assert store.read("run/main/anti-repeat.md") is None
    store.write("run/main/anti-repeat.md", "one")
    store.write("run/main/anti-repeat.md", "two")
    assert store.read("run/main/anti-repeat.md") == "two"


def test_a_document_is_made_rewritten_and_removed_by_an_update(
    store: Store, tmp_path: Path
) -> None:
    store.update("run/main/signs.json", lambda text: "[1]" if text is None else "[0]")
    store.update("run/main/signs.json", lambda text: f"{text}{text}".replace("][", ", "))
    assert store.read("run/main/signs.json") == "[1, 1]"
    with pytest.raises(ZeroDivisionError):
        store.update("run/main/signs.json", lambda _: str(1 // 0))
    assert store.read("run/main/signs.json") == "[1, 1]"
    store.update("run/main/signs.json", lambda _: None)
    store.update("run/main/signs.json", lambda _: None)
    assert [name for name in store.keys("") if name != ".gitignore"] == []
    assert not (tmp_path / ".loki/run").exists(), "no empty folder stays behind"


def test_removing_a_document_leaves_its_neighbours(store: Store) -> None:
    store.write("run/main/page.md", "x")
    store.update("run/main/signs.json", lambda _: "{}")
    store.update("run/main/signs.json", lambda _: None)
    assert store.keys("run/") == ["run/main/page.md"]


def test_names_are_found_by_their_beginning(store: Store) -> None:
    store.write("tasks/a/task.json", "{}")
    store.append("tasks/ab/attempts.jsonl", {})
    store.write("run/x/signs.json", "{}")
    assert store.keys("tasks/a") == ["tasks/a/task.json", "tasks/ab/attempts.jsonl"]
    assert store.keys("tasks/a/") == ["tasks/a/task.json"]
    assert store.keys("nothing/") == []


def test_an_unpaired_surrogate_does_not_stop_a_record(store: Store) -> None:
    store.append("log.jsonl", {"file": "bad\udcff.py"})
    assert len(store.records("log.jsonl")) == 1


def test_a_torn_last_line_is_healed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = FileStore(tmp_path)
    store.append("log.jsonl", {"n": 1})
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b'{"n": 2, "act')
    with caplog.at_level(logging.WARNING):
        assert store.records("log.jsonl") == [{"n": 1}]
    assert "torn" in caplog.text
    store.append("log.jsonl", {"n": 3})
    assert store.records("log.jsonl") == [{"n": 1}, {"n": 3}]


@pytest.mark.parametrize("line", [b"\xff\xfe", b"[1]", b"null", b'{"n": 1} x', b""])
def test_a_damaged_line_spoils_no_other(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"n": 1}\n' + line + b'\n{"n": 2}\n')
    assert FileStore(tmp_path).records("log.jsonl") == [{"n": 1}, {"n": 2}]


def test_what_git_may_see_is_what_a_person_wrote(tmp_path: Path) -> None:
    FileStore(tmp_path / ".loki").append("log.jsonl", {})
    ignored = (tmp_path / ".loki" / ".gitignore").read_text()
    assert "*\n" in ignored
    assert "!config.toml" in ignored


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    store = FileStore(tmp_path / ".loki")
    store.append("tasks/t/attempts.jsonl", {})
    store.write("tasks/t/task.json", "{}")
    for path in (tmp_path / ".loki").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_failing_store_is_told_once_and_what_it_missed_is_written_later() -> None:
    broken = Broken()
    told: list[str] = []
    store = ForgivingStore(broken, told.append)
    store.append("log", {"n": 1})
    store.append("log", {"n": 2})
    store.write("doc", "text")
    assert len(told) == 1
    assert "Could not persist: no space left on device" in told[0]
    assert store.records("log") == [{"n": 1}, {"n": 2}]
    assert store.read("doc") == "text"
    assert store.keys("") == ["doc", "log"]
    broken.mended = True
    store.append("log", {"n": 3})
    assert broken.logs == {"log": [{"n": 1}, {"n": 2}, {"n": 3}]}
    assert store.records("log") == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_whatever_is_written_first_brings_the_rest_with_it() -> None:
    broken = Broken()
    store = ForgivingStore(broken, lambda _: None)
    store.append("one", {"n": 1})
    store.write("doc", "text")
    store.update("other", lambda _: "made")
    broken.mended = True
    store.append("two", {"n": 2})
    assert broken.logs == {"one": [{"n": 1}], "two": [{"n": 2}]}
    assert broken.documents == {"doc": "text", "other": "made"}
    assert store.records("one") == [{"n": 1}]


def test_threads_lose_no_record_of_each_other(tmp_path: Path) -> None:
    store = ForgivingStore(FileStore(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(store.append, "log", {"n": n}) for n in range(64)]:
            done.result()
    assert sorted(record["n"] for record in store.records("log")) == list(range(64))


def test_updates_that_failed_are_kept_and_written_later() -> None:
    broken = Broken()
    broken.documents["doc"] = "a"
    store = ForgivingStore(broken, lambda _: None)
    store.update("doc", lambda text: f"{text}b")
    store.update("doc", lambda text: f"{text}c")
    assert store.read("doc") == "abc"
    broken.mended = True
    store.update("doc", lambda text: f"{text}d")
    assert broken.documents["doc"] == store.read("doc") == "abcd"


def test_secrets_are_masked_before_anything_is_stored(tmp_path: Path) -> None:
    store = ForgivingStore(FileStore(tmp_path))
    secret = "ghp_0123456789abcdefghij0123"
    store.append(
        "log.jsonl", {"output": f"token {secret}", "checks": [{"output": "password=hunter22"}]}
    )
    store.update("new.json", lambda _: json.dumps({"error": f"key {secret}"}))
    store.write("page.md", f"curl -H 'Authorization: Bearer {secret}'")
    store.write(
        "task.json",
        json.dumps({"title": f"use {secret}", "api_key": "x", "seen_failing": [["a", "b"]]}),
    )
    kept = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert secret not in kept
    assert "hunter22" not in kept
    assert json.loads(store.read("task.json") or "")["seen_failing"] == [["a", "b"]]


def test_records_are_one_json_line_each(tmp_path: Path) -> None:
    FileStore(tmp_path).append("log.jsonl", {"text": "a\nb"})
    (line,) = (tmp_path / "log.jsonl").read_text().splitlines()
    assert json.loads(line) == {"text": "a\nb"}


def test_when_a_document_was_written_is_told_as_far_as_it_is_known(
    store: Store, tmp_path: Path
) -> None:
    assert store.written_at("signals/DOCS_NEEDED") is None
    store.write("signals/DOCS_NEEDED", "x")
    file = tmp_path / ".loki/signals/DOCS_NEEDED"
    if file.exists():
        os.utime(file, (1.5e9, 1.5e9))
    assert store.written_at("signals/DOCS_NEEDED") == (1.5e9 if file.exists() else None)
    assert store.written_at("signals/DOCS_NEEDED/x") is None
    broken = ForgivingStore(Broken(), lambda _: None)
    broken.write("a", "x")
    assert broken.written_at("a") is None
    assert broken.written_at("b") is None
