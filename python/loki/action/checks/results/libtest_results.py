"""What Rust's libtest prints by way of cargo, as text or as JSON, and which binary printed it.

https://doc.rust-lang.org/rustc/tests/index.html; JSON is unstable and printed where it was asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from loki.action.checks.results.suite_results import FAILED, PASSED, SKIPPED, Collected, Results

_BINARY = re.compile(
    r"^\s+Running (?:unittests )?(\S+) \(\S*?([\w-]+?)(?:-[0-9a-f]{16})?(?:\.exe)?\)$"
)
_DOCUMENTATION = re.compile(r"^\s+Doc-tests (\S+)$")
_TEST = re.compile(r"^test (\S.*?) \.\.\. (?:(ok|FAILED|ignored)\b|.* (ok|FAILED)$)?")
_LATER = re.compile(r"^(ok|FAILED)$")
_LINE = re.compile(r" \(line \d+\)")
_OUTCOMES = {"ok": PASSED, "FAILED": FAILED, "failed": FAILED, "ignored": SKIPPED}


def read(content: bytes, _root: str) -> Results | None:
    """Outcome by test; ids are ``binary file::path::of::test``.

    A documentation test is called after its item, without its line, which moves. ``should panic``
    stays part of a name: a test that is expected to fail now is another one.
    """
    collected = Collected()
    binary = file = pending = ""
    for line in content.decode("utf-8", "replace").splitlines():
        if found := _BINARY.match(line):
            file, binary, pending = found[1], found[2], ""
        elif found := _DOCUMENTATION.match(line):
            file, binary, pending = "", f"doc {found[1]}", ""
        elif found := _TEST.match(line):
            name = _LINE.sub("", found[1])
            outcome = found[2] or found[3]
            pending = "" if outcome else name
            if outcome:
                _add(collected, binary, file, name, outcome)
        elif pending and (found := _LATER.match(line)):  # with --nocapture its output came between
            _add(collected, binary, file, pending, found[1])
            pending = ""
        elif (event := _event(line)) is not None:
            name = _LINE.sub("", str(event["name"]))
            _add(collected, binary, file, name, str(event["event"]))
    return collected.results()


def plain(content: bytes) -> bytes:
    """What libtest would have printed without JSON; text stays as it is."""
    lines = content.decode("utf-8", "replace").splitlines(keepends=True)
    return "".join(_shown(line) for line in lines).encode()


def _add(collected: Collected, binary: str, file: str, name: str, outcome: str) -> None:
    if outcome in _OUTCOMES:
        # Documentation tests begin with their file: "src/lib.rs - add".
        own = file or name.partition(" - ")[0]
        source = f"{binary} {file}".strip()
        collected.add(f"{source}::{name}" if source else name, _OUTCOMES[outcome], own)


def _shown(line: str) -> str:
    event = _event(line)
    if event is None:
        return "" if line.startswith('{ "type": ') else line
    name, what = event["name"], str(event["event"])
    if what not in _OUTCOMES:
        return ""
    head = f"test {name} ... {'FAILED' if what == 'failed' else what}\n"
    printed = str(event.get("stdout", ""))
    return f"{head}---- {name} stdout ----\n{printed}\n" if what == "failed" else head


def _event(line: str) -> Mapping[str, Any] | None:
    if not line.startswith('{ "type": "test"'):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and {"name", "event"} <= event.keys() else None
