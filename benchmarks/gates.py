"""How often gates are wrong about good code: every file of well-kept projects as if newly written.

    python -m benchmarks.gates FOLDER...

Each folder is a project: an unpacked sdist, an npm package. Nothing in it is run. What is found is
printed, as a person has to look at it: some of it is really broken.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

from loki.action.changes.change import Change, Edit
from loki.action.changes.tree import Tree
from loki.action.gates.gate import NAMES, Validation, read_gates, validate

MAX_BYTES = 2_000_000


def judge(folder: Path, gates: list[str]) -> tuple[int, Validation]:
    """The number of files, and what gates say of them all in a project that was empty before."""
    tree = Tree.scan(folder)
    paths = [
        path
        for path, entry in tree.entries.items()
        if not entry.is_symlink and entry.size <= MAX_BYTES
    ]
    change = Change(tuple(Edit(path, tree.read(path)) for path in paths))
    order = ", ".join(gates)
    config = read_gates(f"version: 1\nextends: global\norder: [{order}]\n")
    empty = Tree(tree.root, {})
    return len(paths), validate(change, tree.root, empty, complexity="high", config=config)


def main() -> None:
    """Print what each gate finds in each project, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--gates", default=",".join(NAMES), help="which, with commas between")
    arguments = parser.parse_args()
    files, found = 0, Counter[tuple[str, str]]()
    for folder in arguments.folders:
        start = time.perf_counter()
        number, validation = judge(folder, arguments.gates.split(","))
        files += number
        found.update((v.gate, v.severity) for v in validation.violations)
        seconds = time.perf_counter() - start
        print(
            f"{folder.name}: {number} files, {len(validation.violations)} violations, {seconds:.1f} s"
        )
        for violation in validation.violations:
            print(f"  {violation.severity} {violation}")
        for warning in validation.warnings:
            print(f"  {warning}")
    print(f"{files} files")
    for (gate, severity), number in sorted(found.items()):
        print(f"  {gate} {severity}: {number}")


if __name__ == "__main__":
    main()
