"""How well the failures of a test run are grouped by root cause, held against planted causes.

``python -m benchmarks.root_causes`` writes each small project of `root_causes.yml` to a folder, runs
pytest there, and compares the groups with what was planted, pair by pair: precision is the share of
merged pairs that belong together, recall the share of pairs that belong together that were merged.
``-v`` shows what is wrong, ``-k NAME`` runs some.

Biases: whoever wrote the cases wrote the rules, and the projects are small.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from loki.memory.suites.suite_history import SuiteFailure
from loki.pytest_plugin.source.assertion_reader import assertions_of
from loki.recognition.failure import recognize
from loki.recognition.root_cause import root_causes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loki.memory.suites.suite_history import Phase
    from loki.recognition.failure import Failure

DATA = Path(__file__).with_suffix(".yml")
TOLD = "ROOT_CAUSES_FILE"


# --- inside pytest: this module is its plugin, `-p benchmarks.root_causes` ---------------------------


def pytest_runtest_logreport(report: Any) -> None:
    """Note a test that failed, or passed."""
    if report.when == "call" and report.passed:
        _tell([report.nodeid, ""])
    _note(report)


def pytest_collectreport(report: Any) -> None:
    """Note a file that could not be collected."""
    _note(report)


def _note(report: Any) -> None:
    if report.failed:
        head = f"{'_' * 12} {report.head_line or report.nodeid} {'_' * 12}"
        if report.when == "collect":
            head = f"{'_' * 12} ERROR collecting {report.nodeid} {'_' * 12}"
        text = f"{'=' * 12} FAILURES {'=' * 12}\n{head}\n{report.longreprtext}\n"
        _tell([report.nodeid, text, report.when])


def _tell(said: list[str]) -> None:
    with Path(os.environ[TOLD]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(said) + "\n")


# --- outside -----------------------------------------------------------------------------------------


@dataclass
class Result:
    """A case, run.

    Attributes:
        name: of the case.
        planted: the cause of each failure.
        found: the group of each failure.
        tests, failures: what failed.
    """

    name: str
    planted: list[str]
    found: list[int]
    tests: list[str]
    failures: list[Failure]

    def pairs(self) -> tuple[int, int, int]:
        """Pairs merged rightly, merged wrongly, and split wrongly."""
        right = wrong = missed = 0
        for a, b in combinations(range(len(self.planted)), 2):
            together = self.planted[a] == self.planted[b]
            merged = self.found[a] == self.found[b]
            right += together and merged
            wrong += merged and not together
            missed += together and not merged
        return right, wrong, missed


def cases() -> list[dict[str, Any]]:
    """The cases, as written."""
    data: list[dict[str, Any]] = yaml.safe_load(DATA.read_text("utf-8"))
    return data


def run(case: dict[str, Any]) -> Result:
    """Run a case's tests, and group what fails.

    Raises:
        ValueError: a test fails for which no cause was planted, or none for a cause.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "project"
        for name, text in case["files"].items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, "utf-8")
        told = Path(folder) / "told"
        _pytest(root, told, case.get("run", []))
        noted = sorted(json.loads(line) for line in told.read_text("utf-8").splitlines())
        passed = [test for test, *said in noted if said == [""]]
        failing = [_failing(root, *said) for said in noted if len(said) > 2]
        assertions = assertions_of(failing, passed, (), root)
    tests = [one.test for one in failing]
    failures = [one.failure for one in failing]
    planted = [_planted(case, test) for test in tests]
    if set(planted) != set(case["causes"]):
        raise ValueError(f"{case['name']}: failed {sorted(set(planted))}, planted {case['causes']}")
    found = [0] * len(tests)
    for number, cause in enumerate(root_causes(failures, assertions)):
        for member in cause.members:
            found[member] = number
    return Result(case["name"], planted, found, tests, failures)


def _failing(root: Path, test: str, text: str, when: Phase) -> SuiteFailure:
    failure = recognize(text, command="pytest", root=root, language="python")
    return SuiteFailure(test, when, "failed" if when == "call" else "error", failure)


def _pytest(root: Path, told: Path, more: Sequence[str]) -> None:
    environment = {
        **{n: v for n, v in os.environ.items() if not n.startswith("PYTEST_")},
        TOLD: str(told),
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    options = ["-q", "-p", "benchmarks.root_causes", "-p", "no:cacheprovider", f"--rootdir={root}"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, *more],
        cwd=root,
        env=environment,
        capture_output=True,
        check=False,
        timeout=120,
    )


def _planted(case: dict[str, Any], test: str) -> str:
    for cause, patterns in case["causes"].items():
        if any(fnmatchcase(test, pattern) for pattern in patterns):
            return str(cause)
    raise ValueError(f"{case['name']}: {test} fails, and no cause of that was planted")


def main() -> None:
    """Run the cases and print how well they are grouped."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("-v", action="store_true", help="show what is wrong")
    parser.add_argument("-k", default="", help="cases whose name has this in it")
    options = parser.parse_args()
    chosen = [case for case in cases() if options.k in case["name"]]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, chosen))
    for result in results:
        right, wrong, missed = result.pairs()
        says = "" if not wrong + missed else f"  {wrong} merged wrongly, {missed} split wrongly"
        print(f"{len(result.tests):3} failures {len(set(result.planted)):2} causes", end="  ")
        print(f"{len(set(result.found)):2} found  {result.name}{says}")
        if options.v and says:
            for place, test in enumerate(result.tests):
                print(f"      {result.planted[place]:12} → {result.found[place]}  {test}")
                print(f"          {result.failures[place]!r}")
    sums = [sum(counts) for counts in zip(*(result.pairs() for result in results), strict=True)]
    right, wrong, missed = sums
    whole = sum(result.pairs()[1:] == (0, 0) for result in results)
    print(f"\n{len(results)} cases, {sum(len(r.tests) for r in results)} failures, {whole} exact")
    print(f"precision {right / max(1, right + wrong):.3f}  ({wrong} pairs merged wrongly)")
    print(f"recall    {right / max(1, right + missed):.3f}  ({missed} pairs split wrongly)")


if __name__ == "__main__":
    main()
