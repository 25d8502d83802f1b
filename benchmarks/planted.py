"""Root causes of ``pytest --loki`` beside planted ones, in the test suites of released projects.

    python -m benchmarks.planted [--project jinja2 …] [--json FILE]

What is planted stands in ``planted.yml``. Each project's sdist is fetched once (``build/planted``) and
copied; its suite runs green, then with each plant alone, twice or four times, then with all plants that
always fail together. Which tests belong to a plant is not loki's word: those that failed with it alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CACHE = Path("build") / "planted"
PLANTS = Path(__file__).with_suffix(".yml")
RANDOM, RUNS = "random failure", 4
"""What does not always fail, and how often it is run."""


@dataclass(frozen=True)
class Plant:
    """One cause: an edit of one file."""

    kind: str
    file: str
    find: str
    put: str

    @contextmanager
    def in_place(self, root: Path) -> Iterator[None]:
        """The project with this edit; afterwards without it."""
        path = root / self.file
        before = path.read_text("utf-8")
        if before.count(self.find) != 1:
            raise SystemExit(f"{path}: expected to find once: {self.find!r}")
        path.write_text(before.replace(self.find, self.put), "utf-8")
        try:
            yield
        finally:
            path.write_text(before, "utf-8")


@dataclass
class Suite:
    """A project's tests, run with loki.

    Attributes:
        root: the copy. path: where its package lies in it. libraries: what it needs.
    """

    root: Path
    path: str
    libraries: Path

    def run(self) -> tuple[int, str, Mapping[str, Any]]:
        """The exit code, what was printed, and loki's report."""
        report = self.root.with_suffix(".json")
        report.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--loki", f"--loki-report={report}", "-p", "no:randomly",
             "-p", "no:cacheprovider"],
            cwd=self.root,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(self.root / self.path), str(self.libraries)]),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=900,
            check=False,
        )  # fmt: skip
        said = json.loads(report.read_text("utf-8")) if report.exists() else {"causes": []}
        return done.returncode, done.stdout, said


@dataclass
class Found:
    """What was found of one plant alone, or of all together."""

    project: str
    kind: str
    tests: int
    causes: int
    largest: int
    at: str
    is_there: bool
    labels: tuple[str, ...]
    again: tuple[str, ...] = ()
    pairs: dict[str, float] = field(default_factory=dict)


def fetch(name: str, version: str, requires: Sequence[str]) -> tuple[Path, Path]:
    """The folders of an unpacked sdist and of what it needs."""
    folder = CACHE / f"{name}-{version}"
    libraries = CACHE / f"{name}-libraries"
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    if not folder.exists():
        with tempfile.TemporaryDirectory() as into:
            subprocess.run(
                [*pip, "download", "--no-deps", "--no-binary", name, "-d", into, f"{name}=={version}"],
                check=True,
            )  # fmt: skip
            (archive,) = Path(into).iterdir()
            with tarfile.open(archive) as packed:
                packed.extractall(CACHE, filter="data")
    if not libraries.exists():
        libraries.mkdir(parents=True)
        if requires:
            subprocess.run([*pip, "install", "--target", str(libraries), *requires], check=True)
    return folder, libraries.resolve()


def tests_of(report: Mapping[str, Any]) -> list[set[str]]:
    """The tests of each cause."""
    return [{member["test"] for member in cause["tests"]} for cause in report["causes"]]


def alone(suite: Suite, project: str, plant: Plant) -> tuple[Found, set[str]]:
    """What loki says of one plant, and the tests that fail with it."""
    with plant.in_place(suite.root):
        reports = [suite.run()[2] for _ in range(RUNS if plant.kind == RANDOM else 2)]
    red = [report for report in reports if report["causes"]] or reports
    first = red[0]
    groups = tests_of(first)
    biggest = first["causes"][0] if groups else {}
    at = str(biggest.get("where") or "")
    found = Found(
        project,
        plant.kind,
        len(set().union(*groups)),
        len(groups),
        len(groups[0]) if groups else 0,
        at,
        at.rpartition(":")[0] == plant.file,
        labels(first),
        labels(red[-1]),
    )
    return found, set().union(*groups)


def labels(report: Mapping[str, Any]) -> tuple[str, ...]:
    """The labels of a report's causes, each once."""
    return tuple(sorted({str(cause["label"]) for cause in report["causes"]}))


def together(
    suite: Suite, project: str, plants: Sequence[Plant], truth: Sequence[set[str]]
) -> Found:
    """What loki makes of several plants at once: pairs of tests that it rightly holds together."""
    with _all(suite.root, plants):
        _, _, report = suite.run()
    groups = tests_of(report)
    owner: dict[str, int] = {}
    for index, tests in enumerate(truth):
        for test in tests:
            owner[test] = -1 if test in owner else index  # of two plants: nobody can say
    seen = {test: index for index, tests in enumerate(groups) for test in tests}
    known = [test for test in seen if owner.get(test, -1) >= 0]
    same = {pair for pair in itertools.combinations(known, 2) if owner[pair[0]] == owner[pair[1]]}
    said = {pair for pair in itertools.combinations(known, 2) if seen[pair[0]] == seen[pair[1]]}
    pairs = {
        "precision": len(same & said) / len(said) if said else 1.0,
        "recall": len(same & said) / len(same) if same else 1.0,
    }
    return Found(project, "all together", len(seen), len(groups), max(map(len, groups), default=0), "", False,
                 labels(report), (), pairs)  # fmt: skip


@contextmanager
def _all(root: Path, plants: Sequence[Plant]) -> Iterator[None]:
    if not plants:
        yield
        return
    with plants[0].in_place(root), _all(root, plants[1:]):
        yield


def measure(said: Mapping[str, Any]) -> Iterator[Found]:
    """All that is found in one project.

    Raises:
        SystemExit: its suite is not green as it is, or loki says something of a green one.
    """
    name = str(said["name"])
    folder, libraries = fetch(name, str(said["version"]), said["requires"])
    plants = [Plant(**plant) for plant in said["plants"]]
    with tempfile.TemporaryDirectory() as into:
        root = Path(into) / name
        shutil.copytree(folder, root)
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "as released"]):
            subprocess.run([*git, *words], cwd=root, check=True)
        suite = Suite(root, str(said["path"]), libraries)
        code, printed, _ = suite.run()
        if code != 0 or "loki" in printed.lower():
            raise SystemExit(
                f"{name}: expected a green suite and no word of loki:\n{printed[-3000:]}"
            )
        truth: list[set[str]] = []
        always = [plant for plant in plants if plant.kind != RANDOM]
        for plant in plants:
            found, tests = alone(suite, name, plant)
            if plant.kind != RANDOM:
                truth.append(tests)
            yield found
        # What ends the collection hides all others.
        both = [
            (p, t) for p, t in zip(always, truth, strict=True) if p.kind != "missing dependency"
        ]
        yield together(suite, name, [p for p, _ in both], [t for _, t in both])


def main() -> None:
    """Print what loki makes of each plant, a line each, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--project", action="append", help="only this one; may be said again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the same as data")
    arguments = parser.parse_args()
    everything = yaml.safe_load(PLANTS.read_text("utf-8"))["projects"]
    chosen = [
        one for one in everything if not arguments.project or one["name"] in arguments.project
    ]
    found: list[Found] = []
    row = "{:<15}{:<31}{:>6}{:>8}{:>9}  {:<7}{:<18}{:<24}{}"
    print(
        row.format(
            "project",
            "planted",
            "tests",
            "causes",
            "largest",
            "there",
            "at first",
            "again",
            "shown at",
        )
    )
    for project in chosen:
        for one in measure(project):
            found.append(one)
            place = (
                f"precision {one.pairs['precision']:.2f} recall {one.pairs['recall']:.2f}"
                if one.pairs
                else one.at
            )
            there = "" if one.pairs else "yes" if one.is_there else "no"
            print(row.format(one.project, one.kind, one.tests, one.causes, one.largest, there,
                             ", ".join(one.labels), ", ".join(one.again), place), flush=True)  # fmt: skip
    single = [one for one in found if not one.pairs]
    shown, failing = sum(one.is_there for one in single), sum(one.tests for one in single)
    print(
        f"\n{len(single)} plants: {shown} shown at the planted file; {failing} failing tests, of them"
    )
    print(f"{sum(one.largest for one in single)} in the largest cause")
    if arguments.json:
        arguments.json.write_text(
            json.dumps([vars(one) for one in found], indent=1) + "\n", "utf-8"
        )


if __name__ == "__main__":
    main()
