"""The events that ``go test -json`` prints: https://pkg.go.dev/cmd/test2json.

Lines that are no events (of the compiler, of older versions, of the build cache) may stand between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from loki.action.checks.results.suite_results import FAILED, PASSED, SKIPPED, Collected, Results

_OUTCOMES = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}

_FRAME = re.compile(r"^=== (?:RUN|PAUSE|CONT|NAME)\b|^\s*--- (?:PASS|SKIP): ")
"""Lines that only ``go test -v`` prints."""


def read(content: bytes, _root: str) -> Results | None:
    """Outcome by test; ids are ``package.Test/subtest``, a package's that failed itself its path."""
    collected, failing = Collected(), set()
    for event in _events(content):
        package, test = str(event.get("Package", "")), str(event.get("Test", ""))
        outcome = _OUTCOMES.get(str(event.get("Action")))
        if outcome is None or not package:
            continue
        if test:
            collected.add(f"{package}.{test}", outcome, package)
            if outcome == FAILED:
                failing.add(package)
        elif outcome == FAILED and package not in failing:
            collected.add(package, FAILED, package)  # it did not build, or its main failed
    return collected.results()


def plain(content: bytes) -> bytes:
    """What ``go test`` would have printed without ``-json``: what failed, and a line a package."""
    out: list[str] = []
    packages: dict[str, _Package] = {}
    for line in content.decode("utf-8", "replace").splitlines(keepends=True):
        event = _event(line)
        if event is None:
            out.append(line)
            continue
        action, text = event.get("Action"), str(event.get("Output", ""))
        if action == "build-output":
            out.append(text)
        name = event.get("Package")
        if not isinstance(name, str):
            continue
        package = packages.setdefault(name, _Package())
        package.take(str(event.get("Test", "")), str(action), text)
        if package.is_over:
            out += packages.pop(name).lines()
    # A package without an end: its process was killed.
    out += [line for package in packages.values() for line in package.lines()]
    return "".join(out).encode()


@dataclass
class _Package:
    """What one package printed, until its end."""

    printed: dict[str, list[str]] = field(default_factory=lambda: {"": []})
    outcomes: dict[str, str] = field(default_factory=dict)

    def take(self, test: str, action: str, text: str) -> None:
        if action == "output":
            self.printed.setdefault(test, []).append(text)
        elif action in _OUTCOMES:
            self.outcomes[test] = action

    @property
    def is_over(self) -> bool:
        return "" in self.outcomes

    def lines(self) -> list[str]:
        own = [line for line in self.printed[""] if not _FRAME.match(line)]
        if self.outcomes.get("") in {"pass", "skip"}:
            return [line for line in own if line != "PASS\n"]
        tests = [test for test in self.printed if test and "/" not in test]
        return [*(line for test in tests for line in self._of(test, 0)), *own]

    def _of(self, test: str, depth: int) -> Iterator[str]:
        """A test: the line that says that it failed, what it printed, its subtests."""
        printed = [line for line in self.printed[test] if not _FRAME.match(line)]
        is_cut_short = test not in self.outcomes
        heads = [line for line in printed if line.lstrip().startswith("--- FAIL: ")]
        indent = "    " * depth
        for line in heads:
            yield indent + line.lstrip()
        passed = self.outcomes.get(test) in {"pass", "skip"}
        for line in printed:
            # Of what passed, its log is not shown; what it printed by itself is.
            is_log = line.startswith("    ")
            if line not in heads and not (passed and is_log):
                yield indent + line if is_log else line
        if not passed or is_cut_short:
            for other in self.printed:
                if other.rpartition("/")[0] == test:
                    yield from self._of(other, depth + 1)


def _events(content: bytes) -> Iterator[Mapping[str, Any]]:
    for line in content.decode("utf-8", "replace").splitlines():
        if (event := _event(line)) is not None:
            yield event


def _event(line: str) -> Mapping[str, Any] | None:
    if not line.startswith('{"'):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_event = isinstance(event, dict) and "Action" in event
    return event if is_event and ("Package" in event or "ImportPath" in event) else None
