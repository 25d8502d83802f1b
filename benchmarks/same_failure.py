"""Is the same failure recognized as the same?  Runs real test tools on real packages with planted changes.

    python -m benchmarks.same_failure make pairs              needs the registries; half an hour for all
    python -m benchmarks.same_failure make pairs --only go    one tool
    python -m benchmarks.same_failure measure pairs           precision, recall and F1 for each tool

A change is planted in one line of a package (a comparison turned round, a sum made a difference), its
tests are run twice and in other styles, and again with another change. Two outputs are a pair; the truth
is whether the same tests failed, by the tool's own report (JUnit XML, go test -json, ...), never by the
text. Hard pairs are made of easy ones: one output cut to its last lines, different styles of one run.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import random
import re
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from benchmarks.runners import Run
from benchmarks.suites import SUITES, Suite, source_files

# Left side -> right side, at a random place of a source. Short, and legal in most languages.
CHANGES = (
    (" == ", " != "),
    (" < ", " >= "),
    (" > ", " <= "),
    (" + ", " - "),
    (" and ", " or "),
    (" && ", " || "),
    ("True", "False"),
    ("true", "false"),
    (" 1", " 2"),
    (" 0", " 1"),
    ("return ", "return not "),
    ("[1:]", "[2:]"),
    (" is not ", " is "),
)
CUT = 120  # lines that are left of an output that was cut


def planted(folder: Path, suite: Suite, rng: random.Random) -> str | None:
    """Changes one place of one source; says which, or None where nothing could be changed."""
    files = source_files(folder, suite)
    path = rng.choice(files)
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    left, right = rng.choice(CHANGES)
    places = [
        found.start()
        for found in re.finditer(re.escape(left), text)
        if not text[text.rfind("\n", 0, found.start()) + 1 :].lstrip().startswith(("#", "//", "*"))
    ]
    if not places:
        return None
    at = rng.choice(places)
    path.write_text(
        text[:at] + right + text[at + len(left) :], encoding="utf-8", errors="surrogateescape"
    )
    return f"{path.name}:{text.count(chr(10), 0, at) + 1}: {left!r} -> {right!r}"


@dataclass(frozen=True)
class Planted:
    """A run with a change in the package, called in a style."""

    change: str
    style: tuple[str, ...]
    run: Run


def runs_of(suite: Suite, clean: Path, count: int, seed: int) -> list[Planted]:
    """Runs with `count` changes that make tests fail, each in two styles and one of them twice."""
    rng = random.Random(seed)
    results: list[Planted] = []
    folder = clean.parent / "work"
    for _ in range(count * 6):
        if len({one.change for one in results}) >= count:
            break
        for path in source_files(clean, suite):
            shutil.copy(path, folder / path.relative_to(clean))
        change = planted(folder, suite, rng)
        if change is None:
            continue
        styles = rng.sample(suite.flags, min(2, len(suite.flags)))
        first = suite.run(folder, styles[0])
        if not first.failing or "?" in first.failing:
            continue  # nothing fails, or nothing compiles: no test has a say
        results.append(Planted(change, styles[0], first))
        results.extend(
            Planted(change, style, suite.run(folder, style)) for style in (styles[0], styles[-1])
        )
        print(f"  {change}: {len(first.failing)} failing", file=sys.stderr)
    return results


def pairs_of(suite: Suite, runs: list[Planted], rng: random.Random) -> list[dict[str, object]]:
    """All pairs of equal truth, and as many of different truth; one in three is cut as well."""
    both = [(a, b) for a, b in itertools.combinations(runs, 2) if a.run.output != b.run.output]
    same = [(a, b) for a, b in both if a.run.failing == b.run.failing]
    other = [(a, b) for a, b in both if a.run.failing != b.run.failing]
    rng.shuffle(other)
    # The hardest first: sets of tests that have most in common.
    other.sort(key=lambda pair: -len(pair[0].run.failing & pair[1].run.failing))
    pairs: list[dict[str, object]] = []
    for number, (a, b) in enumerate(same + other[: max(10, len(same))]):
        kind = "another change" if a.change != b.change else "again"
        kind += "" if a.style == b.style else ", another style"
        is_same = a.run.failing == b.run.failing
        pair = {"corpus": suite.name.split("/")[0], "a": a.run.output, "same": is_same}
        name = f"{suite.name}-{number}"
        pairs.append({**pair, "id": name, "kind": kind, "b": b.run.output})
        cut = "\n".join(b.run.output.split("\n")[-CUT:])
        if cut != b.run.output and number % 3 == 0:
            pairs.append({**pair, "id": f"{name}-cut", "kind": "cut", "b": cut})
    return pairs


def make(target: Path, only: str, count: int, seed: int) -> None:
    """Writes `same.jsonl.gz`, which evaluation scripts can read, and one file for each suite."""
    target.mkdir(parents=True, exist_ok=True)
    for suite in SUITES:
        if only not in suite.name:
            continue
        missing = [tool for tool in suite.tools if shutil.which(tool) is None]
        if missing:
            print(f"{suite.name}: skipped, no {', '.join(missing)} here", file=sys.stderr)
            continue
        print(suite.name, file=sys.stderr)
        with tempfile.TemporaryDirectory() as scratch:
            clean, work = Path(scratch) / "clean", Path(scratch) / "work"
            clean.mkdir()
            suite.prepare(clean)
            shutil.copytree(clean, work, symlinks=True)
            runs = runs_of(suite, clean, count, seed)
        pairs = pairs_of(suite, runs, random.Random(seed))
        name = re.sub(r"\W+", "-", suite.name)
        (target / f"{name}.json").write_text(json.dumps(pairs))
        print(f"  {len(pairs)} pairs", file=sys.stderr)
    with gzip.open(target / "same.jsonl.gz", "wt", encoding="utf-8") as file:
        for path in sorted(target.glob("*.json")):
            for pair in json.loads(path.read_text()):
                file.write(json.dumps(pair) + "\n")


def measure(target: Path, show: int) -> None:
    """Prints what `loki.same_failure` says of the pairs."""
    import loki

    counts: dict[str, Counter[tuple[bool, bool]]] = defaultdict(Counter)
    with gzip.open(target / "same.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            pair = json.loads(line)
            said = loki.same_failure(pair["a"], pair["b"])
            for name in (pair["corpus"], f"({pair['kind']})", "all"):
                counts[name][(pair["same"], said)] += 1
            if said != pair["same"] and show > 0:
                show -= 1
                print(f"{pair['id']}: is {pair['same']}, said {said}", file=sys.stderr)
    print(f"{'tool, (kind of pair)':32} {'pairs':>6} {'precision':>9} {'recall':>7} {'F1':>6}")
    for name, count in sorted(counts.items()):
        hits, wrong, missed = count[True, True], count[False, True], count[True, False]
        shares = (hits / max(1, hits + wrong), hits / max(1, hits + missed))
        f1 = 2 * hits / max(1, 2 * hits + wrong + missed)
        print(f"{name:32} {sum(count.values()):6} {shares[0]:9.3f} {shares[1]:7.3f} {f1:6.3f}")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["make", "measure"])
    parser.add_argument("folder", type=Path, help="where the pairs are kept; outside the project")
    parser.add_argument("--only", default="", metavar="TEXT", help="suites whose name holds this")
    parser.add_argument("--changes", type=int, default=12, help="for each suite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="name N mistakes")
    given = parser.parse_args()
    if given.what == "make":
        make(given.folder, given.only, given.changes, given.seed)
    else:
        measure(given.folder, given.show)


if __name__ == "__main__":
    main()
