"""How well escalation by data loss hears the words of those who wrote migrations of released projects.

``python -m benchmarks.data_loss`` fetches releases with migrations of their databases (``build/migrations``),
takes the first line of each migration's docstring as a task's title, and looks in its ``upgrade`` whether
rows are lost: a table or a column dropped, rows deleted. Nobody here wrote the words or the labels. A
title that has no word of removing at all, of a migration that loses rows, says it to nobody: it is silent.
What moves or renames rows and loses none is left out: to ask about it is right, not to ask is no mistake.
``--wrong`` prints what is judged wrongly. What the figures are worth: ``docs/design/dead-letters.md``.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.honesty import Score
from loki.people.escalation import DATA_LOSS, Case, triggers

CACHE = Path("build/migrations")

SEEN = ("apache-airflow==2.10.5", "mlflow==2.20.3", "zenml==0.74.0")
"""Wheels with migrations by Alembic, that the rules were mended with."""

NEVER_USED = ("prefect==3.9.1", "dagster==1.13.29")
"""And others, whose words no rule was made from."""

_REMOVES = re.compile(
    r"\b(?:drop|remove|delete|purge|truncate|clear|clean|wipe|prune)", re.IGNORECASE
)
_WRITES = re.compile(r"\s*(?:update|insert\s+into)\b", re.IGNORECASE)
_LOSES = {"drop_table", "drop_column"}
_DELETES = re.compile(r"\s*(?:delete\s+from|truncate)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Migration:
    """A migration: whose, what it says that it does, whether it loses rows, or moves or renames them."""

    place: str
    title: str
    loses: bool
    moves: bool

    @property
    def is_silent(self) -> bool:
        """Whether its words say nothing of what it loses."""
        return self.loses and not _REMOVES.search(self.title)


def fetched(release: str) -> Path:
    """A release's wheel, fetched once."""
    name, _, version = release.partition("==")
    there = CACHE / f"{name}-{version}.whl"
    if not there.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as into:
            pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download"]
            subprocess.run(
                [*pip, "--no-deps", "--only-binary", ":all:", "-d", into, release], check=True
            )
            (wheel,) = Path(into).iterdir()
            wheel.replace(there)
    return there


def migrations(release: str) -> Iterator[Migration]:
    """The migrations of a release that say what they do in words."""
    with zipfile.ZipFile(fetched(release)) as wheel:
        for name in sorted(wheel.namelist()):
            if re.search(r"(?:migrations|alembic)/versions/(?:postgresql/)?[^/]+\.py$", name):
                found = read(f"{release}/{name.rpartition('/')[2]}", wheel.read(name).decode())
                if found is not None:
                    yield found


def read(place: str, source: str) -> Migration | None:
    """A migration from its source; None: it says nothing, or its title is a version's number.

    Example:
        >>> read("a", '"Drop the old users table."\\ndef upgrade(): op.drop_table("users")')
        Migration(place='a', title='Drop the old users table.', loses=True, moves=False)
    """
    tree = ast.parse(source)
    title = (ast.get_docstring(tree) or "").partition("\n")[0].strip()
    upgrade = next(
        (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "upgrade"), None
    )
    if upgrade is None or len(re.findall(r"[A-Za-z]{2,}", title)) < 2:
        return None
    nodes = list(ast.walk(upgrade))
    return Migration(place, title, any(map(_loses, nodes)), any(map(_moves, nodes)))


def _loses(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(_DELETES.match(node.value))
    if isinstance(node, ast.Attribute):
        return node.attr in _LOSES
    return False


def _moves(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(_WRITES.match(node.value))
    if isinstance(node, ast.keyword):
        return node.arg == "new_column_name"
    return isinstance(node, ast.Attribute) and node.attr in {"rename_table", "bulk_insert"}


def score(given: Iterable[Migration]) -> Score:
    """What is found in titles alone: the paths of migrations would give each of them away."""
    found = Score()
    for one in given:
        if one.is_silent or (one.moves and not one.loses):
            continue  # nobody could tell; a trigger of its own: "deletion or migration"
        is_found = DATA_LOSS in {trigger.name for trigger in triggers(Case("t", one.title))}
        found.add_one(one.place, one.title, expected=one.loses, found=is_found)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="show what is judged wrongly")
    options = parser.parse_args()
    print(
        "| | migrations | silent | lose rows | found rightly | wrongly | missed | precision | recall |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    wrong = []
    for name, releases in (("Seen", SEEN), ("Never used", NEVER_USED)):
        given = [one for release in releases for one in migrations(release)]
        found = score(given)
        print(found.row(f"{name} | {len(given)} | {sum(one.is_silent for one in given)}"))
        wrong += found.wrong
    if options.wrong:
        print("\n".join(wrong))


if __name__ == "__main__":
    main()
