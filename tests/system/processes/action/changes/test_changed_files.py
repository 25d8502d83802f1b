"""Files that differ from a commit, as git says it."""

from __future__ import annotations

from pathlib import Path

from loki.action.changes.git import files_since, git
from support.suite import Suite


def test_committed_or_not(tmp_path: Path) -> None:
    """Changed, added, removed and renamed files since a commit, below the folder that is asked for."""
    suite = Suite(tmp_path).write(old="1", gone="2", shop__cart="3", other__x="4")
    suite.git("init", "-q")
    suite.git("add", "-A")
    suite.git("commit", "-qm", "first")
    first = (git(str(tmp_path), "rev-parse", "HEAD") or b"").decode().strip()
    assert files_since(str(tmp_path), first) == ()
    suite.write(shop__cart="30").git("mv", "old.py", "new.py")
    suite.git("commit", "-qam", "second")
    (tmp_path / "gone.py").unlink()
    suite.put("shop/a b\n.py", "5").put("untold.py", "6")
    suite.git("add", "shop")
    assert files_since(str(tmp_path), first) == (
        "gone.py",
        "new.py",
        "old.py",
        "shop/a b\n.py",
        "shop/cart.py",
    )
    assert files_since(str(tmp_path / "shop"), first) == ("a b\n.py", "cart.py")
    assert files_since(str(tmp_path / "other"), first) == ()


def test_what_git_does_not_know(tmp_path: Path) -> None:
    """No repository, another commit, something that is none: nobody knows."""
    assert files_since(str(tmp_path), "1" * 40) is None
    suite = Suite(tmp_path).write(a="1")
    suite.git("init", "-q")
    assert files_since(str(tmp_path), "1" * 40) is None
    assert files_since(str(tmp_path), "--output=x") is None
    assert files_since(str(tmp_path), "") is None
    assert not (tmp_path / "x").exists()
