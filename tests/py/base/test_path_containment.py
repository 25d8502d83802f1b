"""Names that lead nowhere else, and removal that stays below a folder of loki's own."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from loki.base import path_containment
from loki.base.error import StoreError

ELSEWHERE = [
    "..",
    ".",
    "",
    "a/../b",
    "/etc/passwd",
    "a//b",
    "a/",
    "../x",
    "a\0b",
    "\ud800",
    "x" * 256,
]


@pytest.mark.parametrize("name", [*ELSEWHERE, None, 7, ["a"], {}, True])
def test_what_leads_elsewhere_is_no_path(name: object) -> None:
    assert not path_containment.is_path(name)
    assert not path_containment.is_part(name)
    with pytest.raises(StoreError, match="expected"):
        path_containment.path("/p/.loki", "tasks", name)
    with pytest.raises(StoreError, match="cannot name a file"):
        path_containment.part(name)
    with pytest.raises(ValueError, match="relative path"):
        path_containment.path_in(name)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / ".loki"
    folder.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("mine")
    return folder


def is_whole(own: Path) -> bool:
    return (own.parent / "outside" / "precious").read_text() == "mine"


def deep(folder: Path, levels: int) -> None:
    """Nested folders, made from handle to handle: no path is that long."""
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)


def test_a_tree_goes_however_deep(own: Path) -> None:
    deep(own / "tree", 1_500)  # recursion ends at 1,000
    path_containment.remove_tree(own, "tree")
    assert os.listdir(own) == []


def test_links_are_removed_never_followed(own: Path) -> None:
    tree = own / "tasks" / "a"
    (tree / "deep" / "er").mkdir(parents=True)
    for place in (tree, tree / "deep", tree / "deep" / "er"):
        (place / "link").symlink_to(own.parent / "outside")
        (place / "file").symlink_to(own.parent / "outside" / "precious")
    path_containment.remove_tree(own, "tasks/a")
    assert not tree.exists()
    assert is_whole(own)
    (own / "only").symlink_to(own.parent / "outside")
    path_containment.remove_tree(own, "only")
    assert not os.path.lexists(own / "only")
    assert is_whole(own)


def test_a_link_on_the_way_is_refused(own: Path) -> None:
    (own / "tasks").symlink_to(own.parent)
    with pytest.raises(StoreError, match="a link or a file is in the way"):
        path_containment.remove_tree(own, "tasks/outside")
    with pytest.raises(StoreError, match="a link or a file is in the way"):
        path_containment.remove(own, "tasks/outside/precious")
    assert is_whole(own)


@pytest.mark.parametrize("name", [*ELSEWHERE, "../outside"])
def test_names_that_lead_elsewhere_are_refused(own: Path, name: str) -> None:
    with pytest.raises(StoreError):
        path_containment.remove_tree(own, name)
    with pytest.raises(StoreError):
        path_containment.remove(own, name)
    assert is_whole(own)


def test_only_folders_of_loki_s_own_lose_trees(own: Path) -> None:
    with pytest.raises(StoreError, match=r"expected a folder of loki's own, \.loki"):
        path_containment.remove_tree(own.parent, "outside")
    assert is_whole(own)


def test_nothing_there_is_nothing_to_remove(own: Path) -> None:
    path_containment.remove_tree(own, "a/b")
    path_containment.remove(own, "a/b")


def test_empty_folders_above_a_file_go_with_it(own: Path) -> None:
    (own / "a" / "b").mkdir(parents=True)
    (own / "a" / "b" / "c").touch()
    (own / "a" / "x").touch()
    path_containment.remove(own, "a/b/c")
    assert sorted(os.listdir(own / "a")) == ["x"]
    path_containment.remove(own, "a/x")
    assert own.is_dir()
    assert os.listdir(own) == []


def test_a_link_swapped_in_meanwhile_is_no_way_out(own: Path) -> None:
    """Somebody who changes folders into links, over and over, while a tree goes."""
    outside, stop = own.parent / "outside", threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):
                for name in os.listdir(own / "tree"):
                    (own / "tree" / name).rename(own / "kept")
                    (own / "tree" / name).symlink_to(outside)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(20):
            for number in range(20):
                with suppress(OSError):  # the folder was just taken away
                    (own / "tree" / str(number)).mkdir(parents=True, exist_ok=True)
                    (own / "tree" / str(number) / "precious").touch()
            try:
                path_containment.remove_tree(own, "tree")
                path_containment.remove_tree(own, "kept")
            except StoreError:
                continue
    finally:
        stop.set()
        swapping.join()
    assert is_whole(own)


def test_sweeping_leaves_what_is_not_half_written_and_what_is_elsewhere(own: Path) -> None:
    (own / "state").mkdir()
    (own / "state" / ".loki-1.tmp").touch()
    (own / "state" / "kept").touch()
    (own.parent / "outside" / ".loki-2.tmp").touch()
    (own / "tasks").symlink_to(own.parent / "outside")
    path_containment.sweep(own)
    assert sorted(os.listdir(own / "state")) == ["kept"]
    assert (own.parent / "outside" / ".loki-2.tmp").exists()


def test_what_nests_deeply_hides_no_file_above_it(own: Path) -> None:
    deep(own / "deep", 1_200)
    (own / "kept").touch()
    assert "kept" in set(path_containment.files(own))
    assert "" in set(path_containment.folders(own))
    path_containment.remove_tree(own, "deep")


def test_what_another_program_has_just_written_is_not_removed(own: Path) -> None:
    """It goes back to where it was, whether it came before the removal or during it."""
    (own / "signals").mkdir()
    path = own / "signals" / "X"
    path.write_text("theirs")
    assert not path_containment.remove_if(own, "signals/X", lambda _: False)
    looks = iter([True, False])
    assert not path_containment.remove_if(own, "signals/X", lambda _: next(looks))
    assert path.read_text() == "theirs"
    assert os.listdir(own / "signals") == ["X"]
    assert path_containment.remove_if(own, "signals/X", lambda _: True, keep="signals")
    assert os.listdir(own / "signals") == []
    assert path_containment.remove_if(own, "signals/X", lambda _: False, keep="signals"), (
        "there is none"
    )
    (own / "signals" / "out").symlink_to(own.parent / "outside")
    with pytest.raises(StoreError, match="link"):
        path_containment.remove_if(own, "signals/out/kept", lambda _: True)
