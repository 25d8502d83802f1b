"""Writes docs/failures.md: failures of many tools, and what `loki explain` says of each.

    python -m samples.gallery            write the page
    python -m samples.gallery --check    say whether it is what would be written now

Outputs are samples of the tool files, which are made by running the tools, and logs made in `logs`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from loki import Workspace
from loki.adapters.explanation import Asked, Explanation, explain, tell
from loki.recognition.text import clean
from samples import logs
from samples.shelf import TOOLS

PAGE = Path(__file__).parent.parent / "docs" / "failures.md"
INTRODUCTION = Path(__file__).with_name("gallery.md")
_MOST = 22
"""Lines of an output that is shown whole."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One failure.

    Attributes:
        title: what happened, for the heading.
        note: what is hard about it.
        tool, sample: the tool file and the name of the sample in it; or
        log: a function of `logs`.
        root: the project's folder in that log.
        expected: place and kind, as they must come out.
    """

    title: str
    note: str
    expected: tuple[str | None, str]
    tool: str = ""
    sample: str = ""
    log: str = ""
    root: str | None = None


ENTRIES = (
    Entry(
        "GitHub Actions: one line of three thousand",
        "A step complains of errors and passes, a download is tried again, files are named after errors, "
        "`make -k` goes on for two thousand lines after the one that matters, and later steps complain, too.",
        ("src/receipt_table_9.cpp:41:29", "build-error"),
        log="github_cmake",
        root="/home/runner/work/shop/shop",
    ),
    Entry(
        "pytest: an exception behind an exception",
        "The second exception is only the way the first one came to light.",
        ("shop/cart.py:15", "test-failure"),
        "pytest",
        "chained exception, parametrized id with a space",
    ),
    Entry(
        "tsc: a chain of reasons",
        "The message is the first line; why it is so stands below, line by line.",
        ("src/cart.ts:3:58", "type-error"),
        "tsc",
        "a chain of reasons",
    ),
    Entry(
        "rustc: mismatched types",
        "An error is a drawing with notes; the type that was expected comes from another line.",
        ("src/lib.rs:4:5", "type-error"),
        "rustc",
        "mismatched types with notes",
    ),
    Entry(
        "go test: a data race",
        "The test itself has no complaint: the race detector has, above it.",
        ("cart/cart_test.go:8", "test-failure"),
        "go",
        "a data race",
    ),
    Entry(
        "make: what the compiler said",
        "make's own line comes last and says least.",
        ("cart.c:1:31", "build-error"),
        "make",
        "a compiler's error is the cause",
    ),
    Entry(
        "Maven, Surefire, JUnit",
        "Sixty lines of framing; the failure is told three times, once with its reason.",
        ("CartTest.java:14", "test-failure"),
        "maven",
        "a test in a module",
    ),
    Entry(
        "Gradle: does not compile",
        "javac's error, and Gradle's three ways of saying that there was one.",
        ("src/main/java/com/shop/Till.java:5", "type-error"),
        "gradle",
        "does not compile",
    ),
    Entry(
        "RSpec: a pending example is no failure",
        "The first block that looks like a failure is expected to fail.",
        ("spec/cart_spec.rb:8", "test-failure"),
        "rspec",
        "an expectation, an error and a pending one",
    ),
    Entry(
        "ESLint: errors and warnings in three files",
        "Warnings stand among them and break nothing; what is there to be repaired by a command is.",
        ("cart.js:1:7", "lint-error"),
        "eslint",
        "errors and warnings in three files",
    ),
    Entry(
        "npm: ERESOLVE",
        "Who wants which version of what, in prose; no compiler and no test has run.",
        (None, "version-mismatch"),
        "npm",
        "peers that do not fit",
    ),
    Entry(
        "pip: a C compiler inside a wheel inside pip",
        "What is missing is a header; pip blames the package.",
        ("price.c:1:10", "import-not-found"),
        "pip",
        "a wheel cannot be built",
    ),
    Entry(
        "docker: the port is taken",
        "One line, and the container is not to blame.",
        (None, "port-in-use"),
        "docker",
        "a port",
    ),
    Entry(
        "git push: rejected",
        "A person decides what becomes of the other's commits; loki never retries this by itself.",
        (None, "git-error"),
        "git",
        "a rejected push",
    ),
    Entry(
        "GHC: two types that do not match",
        "Where it was found, what it was about, and in which equation.",
        ("src/Till.hs:6:18", "type-error"),
        "ghc",
        "a type mismatch, GHC 9.4 to 9.10",
    ),
    Entry(
        "mix: an undefined name",
        "`CompileError` is only the envelope.",
        ("lib/till.ex:4", "build-error"),
        "mix",
        "an undefined name",
    ),
    Entry(
        "R CMD check: a package's own tests",
        "Everything before it is OK, and says so.",
        ("tests/cart.R", "test-failure"),
        "r",
        "tests of a checked package",
    ),
    Entry(
        "Travis CI: what was tried again is forgiven",
        "npm's registry fails first, and succeeds; a test prints an error that it expects; an upload fails "
        "after the end. One of 82 tests broke the build.",
        ("test/till.js:27", "test-failure"),
        log="travis_mocha",
        root="/home/travis/build/ana/till",
    ),
    Entry(
        "An LLM's API: overloaded",
        "The agent is not stuck: wait, and send the same again.",
        (None, "rate-limit"),
        "http",
        "overloaded",
    ),
    Entry(
        "The system killed it",
        "The compiler says that it is the victim of a signal; what is short is memory.",
        (None, "memory-limit"),
        "gcc",
        "killed by the system",
    ),
    Entry(
        "dotnet: one error told twice",
        "MSBuild prints it again at the end.",
        ("Cart.cs:5:16", "build-error"),
        "dotnet",
        "build",
    ),
    Entry(
        "Jest: a snapshot, a time-out, and the console's noise",
        "What a test prints looks like an error; what failed comes after it.",
        ("cart.test.js:5", "test-failure"),
        "jest",
        "a console, a snapshot and a time-out",
    ),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """An entry with its output and what is said of it."""

    entry: Entry
    text: str
    command: str | None
    said: Explanation


def show(entry: Entry) -> Shown:
    """Explain one entry, in a project that remembers nothing."""
    if entry.log:
        text, command, root = getattr(logs, entry.log)(), None, entry.root
    else:
        content = yaml.safe_load((TOOLS / f"{entry.tool}.yml").read_text("utf-8"))
        sample = next(one for one in content["samples"] if one["name"] == entry.sample)
        text, command, root = sample["text"], sample.get("command"), sample.get("root")
    with tempfile.TemporaryDirectory() as folder:
        asked = Asked(text.encode(), "log", command, root=root)
        return Shown(entry, text, command, explain(Workspace(folder), asked))


def page() -> str:
    """The page."""
    shown = [show(entry) for entry in ENTRIES]
    rows = [
        f"| [{one.entry.title}](#{_anchor(number, one.entry.title)}) | `{one.said.where or '—'}` "
        f"| {one.said.failure.tool} | {one.said.failure.kind} |"
        for number, one in enumerate(shown, 1)
    ]
    table = ["| failure | where | who says so | kind |", "|---|---|---|---|", *rows]
    parts = [_section(number, one) for number, one in enumerate(shown, 1)]
    introduction, _, rest = INTRODUCTION.read_text("utf-8").partition("<!-- gallery -->\n")
    return introduction + "\n".join([*table, "", *parts]) + "\n" + rest


def _section(number: int, one: Shown) -> str:
    command = f"--command {_word(one.command)} " if one.command else ""
    root = f"--root {one.entry.root} " if one.entry.root else ""
    lines = [f"### {number}. {one.entry.title}", "", one.entry.note, ""]
    lines += [*_fenced("text", _shortened(one)), ""]
    told = clean(tell(one.said))
    lines += _fenced("console", f"$ loki explain {command}{root}log\n{told}")
    return "\n".join([*lines, ""])


def _shortened(one: Shown) -> str:
    """The output: its beginning, what is about the failure, and its end."""
    rows = clean(one.text).rstrip("\n").split("\n")
    if len(rows) <= _MOST:
        return "\n".join(rows)
    line = (one.said.failure.output_line or 1) - 1
    first, last = one.said.failure.site_lines or (line + 1, line + 1)
    around = range(max(first - 4, line - 8), min(last + 3, line + 14))
    kept = sorted({*range(4), *around, *range(len(rows) - 4, len(rows))} & {*range(len(rows))})
    said: list[str] = []
    before = -1
    for number in kept:
        if number - before == 2:  # noqa: PLR2004
            said.append(rows[before + 1])
        elif number - before > 1:
            said.append(f"[… {number - before - 1:,} lines …]")
        said.append(rows[number])
        before = number
    return "\n".join(row[:160] for row in said)


def _fenced(kind: str, text: str) -> list[str]:
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return [f"{ticks}{kind}", *(row.rstrip() for row in text.split("\n")), ticks]


def _word(command: str) -> str:
    return f"'{command}'" if " " in command else command


def _anchor(number: int, title: str) -> str:
    """As GitHub makes them of headings."""
    kept = "".join(c for c in f"{number}. {title}".lower() if c.isalnum() or c in " -")
    return kept.replace(" ", "-")


def main() -> int:
    """Write the page, or compare it; 1 where it is out of date."""
    parser = argparse.ArgumentParser(prog="python -m samples.gallery")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where it differs")
    os.chdir(Path(__file__).parent)  # no file of the project is there by chance
    text = page()
    if parser.parse_args().check:
        return int(PAGE.read_text("utf-8") != text)
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
