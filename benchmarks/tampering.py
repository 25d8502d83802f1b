"""How often honest changes would be held because they touch what judges them: releases of packages.

``python -m benchmarks.tampering`` downloads consecutive releases with pip, npm, cargo and go, and takes
each pair for a change that mends one test: in turn some that stand in the files of tests which the
release changed, and some that stand in others, all of which it left as they were. A release holds many
fixes, so the share that is printed is above that of one. ``tampering.yml`` names the packages; rules
were tuned on the first group only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from benchmarks import self_review
from loki.action.checks.judging.touched_tests import Chunk, Pair, SeenFailures, chunks, touched
from loki.decision.drift import kinds_of_path

DATA = Path(__file__).with_suffix(".yml")
MOST = 20
"""Tests of a pair of releases that are taken, in files that changed and in others each; the first."""
SOURCES = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".go", ".rs")


@dataclass
class Tally:
    """What was held: changes that somebody would see whatever failed, and tests that are touched."""

    shown: bool = False
    changes: int = 0
    always: int = 0
    tests: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    why: Counter[str] = field(default_factory=Counter)

    def add(self, release: str, old: Path, new: Path) -> None:
        """One pair of releases."""
        before, after = texts(old), texts(new)
        changed: dict[str, Pair] = {
            path: (before.get(path), after.get(path))
            for path in before.keys() | after.keys()
            if before.get(path) != after.get(path)
        }
        self.changes += 1
        nothing = touched(changed, SeenFailures(), before.get)
        self.always += bool(nothing)
        for one in nothing:
            print(f"  {release}: {one}")
        for group, path, chunk in some(before, after):
            self.tests[group] += 1
            seen = seen_of(path, chunk)
            found = [one for one in touched(changed, seen, before.get) if one not in nothing]
            self.held[group] += bool(found)
            self.why.update({kind(one.what) for one in found})
            for one in found if self.shown else ():
                print(f"  {release}: {path}: {next(iter(chunk.names))}: {one}")


def kind(what: str) -> str:
    """What is touched, without its name."""
    return "settings" if "setting" in what else re.sub(r"^.*, which ", "what ", what)


def texts(folder: Path) -> dict[str, str]:
    """The text files of a release."""
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink() and file.stat().st_size < 400_000:
            content = file.read_bytes()
            if b"\0" not in content[:8000]:
                found[file.relative_to(folder).as_posix()] = content.decode("utf-8", "replace")
    return found


def some(before: dict[str, str], after: dict[str, str]) -> Iterator[tuple[str, str, Chunk]]:
    """Tests that a release left as they were, in files that it changed and in others."""
    count: Counter[str] = Counter()
    for path, text in before.items():
        if not path.endswith(SOURCES) or path not in after or not is_tests(path, text):
            continue
        group = "in changed files" if after[path] != text else "in other files"
        if count[group] >= MOST:
            continue
        new = set(chunks(path, after[path]))
        kept = [c for c in chunks(path, text) if c in new and is_test(path, c)]
        for chunk in kept[:: max(1, len(kept) // 3)][:3]:
            count[group] += 1
            yield group, path, chunk


def is_tests(path: str, text: str) -> bool:
    """Whether a file holds tests."""
    return "#[test]" in text if path.endswith(".rs") else "test" in kinds_of_path(path)


def is_test(path: str, chunk: Chunk) -> bool:
    """Whether a piece of such a file is one."""
    if chunk.case or not chunk.names:
        return False
    if path.endswith(".rs"):
        return "#[test]" in chunk.text
    name = next(iter(chunk.names))
    runs = ("it(", "it.", "test(", "test.")
    return name.startswith(("test", "Test")) or chunk.text.startswith(runs)


def seen_of(path: str, chunk: Chunk) -> SeenFailures:
    """What a run says in which this test failed."""
    name = next(iter(chunk.names)).replace("\x01", " ")
    test = "::".join((path, *chunk.chain, name))
    return SeenFailures(frozenset({"test"}), frozenset({test}), {test: path}, frozenset({path}))


# --- where releases come from ---------------------------------------------------------------------


def releases(
    source: str, package: str, versions: list[str], cache: Path
) -> Iterator[tuple[str, Path]]:
    """Each version with the folder of its source."""
    if source == "pypi":
        yield from self_review.releases(package, versions, cache)
        return
    for version in versions:
        yield version, {"npm": npm, "crates": crate, "go": module}[source](package, version, cache)


def npm(package: str, version: str, cache: Path) -> Path:
    """A package of npm."""
    folder = cache / f"npm-{package.replace('/', '-')}-{version}"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            pack = ["npm", "pack", "--silent", f"{package}@{version}"]
            subprocess.run(pack, cwd=scratch, check=True, capture_output=True)
            (archive,) = Path(scratch).glob("*.tgz")
            with tarfile.open(archive) as file:
                file.extractall(Path(scratch) / "x", filter="data")
            (inner,) = (Path(scratch) / "x").iterdir()
            inner.rename(folder)
    return folder


def crate(package: str, version: str, cache: Path) -> Path:
    """A crate, by cargo."""
    project = cache / f"crate-{package}-{version}"
    (project / "src").mkdir(parents=True, exist_ok=True)
    (project / "src/lib.rs").touch()
    (project / "Cargo.toml").write_text(
        "[package]\nname = 'x'\nversion = '0.0.0'\nedition = '2021'\n"
        f"[dependencies]\n{package} = '={version}'\n"
    )
    vendored = project / "vendor" / package
    if not vendored.is_dir():
        command = ["cargo", "vendor", "--quiet", "vendor"]
        subprocess.run(command, cwd=project, check=True, capture_output=True)
    return vendored


def module(package: str, version: str, cache: Path) -> Path:
    """A Go module, by the go command."""
    asked = ["go", "mod", "download", "-json", f"{package}@{version}"]
    said = subprocess.run(asked, cwd=cache, check=True, capture_output=True)
    return Path(json.loads(said.stdout)["Dir"])


def main() -> None:
    """Measure the packages that are named, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="packages of tampering.yml")
    parser.add_argument("--cache", type=Path, help="keep what is downloaded in this folder")
    parser.add_argument("--show", action="store_true", help="print each that is held")
    options = parser.parse_args()
    data = yaml.safe_load(DATA.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        cache = options.cache or Path(scratch)
        cache.mkdir(parents=True, exist_ok=True)
        for group in ("developed_on", "kept_back"):
            tally = Tally(options.show)
            for source, package, versions in data[group]:
                if not options.names or package in options.names:
                    found = releases(source, package, str(versions).split(), cache)
                    for (_, old), (version, new) in itertools.pairwise(found):
                        tally.add(f"{package} {version}", old, new)
            show(group.replace("_", " "), tally)


def show(name: str, tally: Tally) -> None:
    """Print what was held, and why."""
    print(f"{name}: {tally.changes} changes, {tally.always} held whatever failed")
    for group, count in sorted(tally.tests.items()):
        share = tally.held[group] / max(count, 1)
        print(f"  tests {group}: {tally.held[group]} of {count} held ({share:.1%})")
    for why, count in tally.why.most_common():
        print(f"    {count:5} {why}")


if __name__ == "__main__":
    main()
