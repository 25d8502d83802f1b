"""Signs on disk: of one branch, shared by processes, begun anew where the file is damaged: with processes."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from loki.memory.sign import Signs
from loki.stores.file_store import FileStore, ForgivingStore

TEXT = "FAILED test_login.py::test_redirect - KeyError: 'next'"


def see(folder: Path, number: int) -> None:
    signs = Signs(ForgivingStore(FileStore(folder)), "main")
    for turn in range(10):
        signs.observe(TEXT, "the same everywhere", f"task-{number}")
        own = f"FAILED test_{number}_{turn}.py::test_a - KeyError: 'k{number}x{turn}'"
        signs.observe(own, f"own {number}", f"task-{number}")


def test_processes_do_not_lose_each_others_sightings(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=see, args=(tmp_path, n)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    seen = Signs(FileStore(tmp_path), "main").seen
    (sign,) = seen.signs
    assert (sign.count, set(sign.tasks)) == (30, {"task-0", "task-1", "task-2"})
    assert len(seen.sightings) == 31
    assert "Seen 30 times" in (tmp_path / "run/main/anti-repeat.md").read_text()
