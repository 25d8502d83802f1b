"""How often self-review speaks on good code: consecutive releases of well-kept packages.

``python -m benchmarks.self_review`` downloads source distributions with pip, turns each pair of
releases into a change, and prints what is said of it, with the verdicts of `self_review.yml`.
``python -m benchmarks.self_review OLD NEW`` looks at two folders instead.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates.added_lines import additions
from loki.action.gates.gate import BLOCKING, Violation
from loki.action.gates.self_review import self_review

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DATA = Path(__file__).with_suffix(".yml")


@dataclass
class Tally:
    """What was said of a package's releases.

    Attributes:
        name: the package.
        changes: pairs of releases.
        lines: lines that they add to files which are looked at.
        seconds: time that the reviews took.
        said: release and violation.
    """

    name: str
    changes: int = 0
    lines: int = 0
    seconds: float = 0.0
    said: list[tuple[str, Violation]] = field(default_factory=list)

    def add(self, release: str, old: Path, new: Path) -> None:
        """Review the change from one folder to another."""
        before, after = Tree.scan(old), Tree.scan(new)
        change = Change.between(before, after)
        begin = time.perf_counter()
        found = self_review(change, before)
        self.seconds += time.perf_counter() - begin
        self.changes += 1
        self.lines += sum(len(addition.added) for addition in additions(change, before))
        self.said += [(release, violation) for violation in found]


def releases(package: str, versions: Sequence[str], cache: Path) -> Iterator[tuple[str, Path]]:
    """Each version and the folder of its source distribution, downloaded where it is not there."""
    for version in versions:
        folder = cache / f"{package}-{version}"
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                wanted = ["-d", scratch, f"{package}=={version}"]
                options = ["-q", "--no-deps", "--no-binary", ":all:"]
                pip = [sys.executable, "-m", "pip", "download"]
                subprocess.run([*pip, *options, *wanted], check=True)
                (archive,) = Path(scratch).glob("*.tar.gz")
                with tarfile.open(archive) as file:
                    file.extractall(Path(scratch) / "x", filter="data")
                (inner,) = (Path(scratch) / "x").iterdir()
                inner.rename(folder)
        yield version, folder


def measure(package: str, versions: Sequence[str], cache: Path) -> Tally:
    """Review what each release adds to the one before."""
    tally = Tally(package)
    for (_, old), (version, new) in itertools.pairwise(releases(package, versions, cache)):
        tally.add(version, old, new)
    return tally


def verdict(judged: Iterable[dict[str, Any]], tally: Tally, release: str, said: Violation) -> str:
    """What a person said of a violation: right, wrong, or ? where nobody looked yet."""
    for one in judged:
        place = (one["package"], one["release"], one["file"])
        if place == (tally.name, release, said.file) and one["says"] in said.description:
            return "right" if one["right"] else "wrong"
    return "?"


def show(tallies: Sequence[Tally], judged: Sequence[dict[str, Any]]) -> None:
    """Print the violations, and a table."""
    verdicts: list[str] = []
    for tally in tallies:
        for release, said in tally.said:
            verdicts.append(verdict(judged, tally, release, said))
            print(f"{verdicts[-1]:5} {tally.name} {release} {said.severity}: {said}")
    print(f"\n{'package':20}{'changes':>8}{'lines':>9}{'blocking':>9}{'advisory':>9}", end="")
    print(f"{'per 1,000 lines':>17}{'s':>7}")
    total = Tally("all")
    for tally in tallies:
        total.changes, total.lines = total.changes + tally.changes, total.lines + tally.lines
        total.seconds, total.said = total.seconds + tally.seconds, total.said + tally.said
    for tally in (*tallies, total):
        blocking = sum(said.severity == BLOCKING for _, said in tally.said)
        rate = 1000 * len(tally.said) / max(tally.lines, 1)
        print(f"{tally.name:20}{tally.changes:8}{tally.lines:9}{blocking:9}", end="")
        print(f"{len(tally.said) - blocking:9}{rate:17.3f}{tally.seconds:7.1f}")
    right, wrong = verdicts.count("right"), verdicts.count("wrong")
    print(f"\nprecision {right} of {right + wrong}; {verdicts.count('?')} not judged")


def main() -> None:
    """Measure the packages that are named, all by default, or two folders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="packages of self_review.yml, or OLD NEW")
    parser.add_argument("--cache", type=Path, help="keep what is downloaded in this folder")
    options = parser.parse_args()
    data = yaml.safe_load(DATA.read_text("utf-8"))
    names = options.names
    if len(names) == 2 and all(Path(name).is_dir() for name in names):
        tally = Tally(Path(names[1]).name)
        tally.add("", Path(names[0]), Path(names[1]))
        show([tally], data["judged"])
        return
    known = {**data["developed_on"], **data["kept_back"]}
    with tempfile.TemporaryDirectory() as scratch:
        cache = options.cache or Path(scratch)
        cache.mkdir(parents=True, exist_ok=True)
        show([measure(n, known[n].split(), cache) for n in names or known], data["judged"])


if __name__ == "__main__":
    main()
