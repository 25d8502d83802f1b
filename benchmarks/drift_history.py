"""How often drift is seen in real commits: each with its own message as the task, and with another's.

``python -m benchmarks.drift_history [FOLDER] [--most N]`` looks at the last commits of a git repository.
What a commit does under its own first line should interrupt nobody (a false alarm where it does); under
the first line of a commit that shares no file with it, it should. The message is all that is known: no
failing test, no scope. Messages were written after the change and name what is in it, so this says more
about false alarms of titles alone than about tasks with a failure. Merges are left out.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.drift import interrupts
from loki.decision.drift.drift import Proposed, detect, worst
from loki.decision.drift.task_relation import Goal, Kind, Touched, defined_in, imported_in, names_in

ELSEWHERE = 37
"""How many commits on the other message is taken from; a prime, chosen."""


@dataclass(frozen=True)
class Commit:
    """A commit: its first line, what it does, and the paths that there were."""

    id: str
    title: str
    files: tuple[Touched, ...]
    project: frozenset[str]


def git(folder: Path, *words: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def commits(folder: Path, most: int) -> Iterator[Commit]:
    """The last commits, newest first."""
    for line in git(folder, "log", "--no-merges", f"-{most}", "--format=%H %s").splitlines():
        commit, _, title = line.partition(" ")
        shown = git(folder, "show", "-M", "-U0", "--format=", "--no-color", commit)
        paths = git(folder, "ls-tree", "-r", "--name-only", f"{commit}^").splitlines()
        yield Commit(commit, title, tuple(touched(shown)), frozenset(paths))


def touched(shown: str) -> Iterator[Touched]:
    """What a difference without context does to each file."""
    for part in re.split(r"^diff --git ", shown, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n@@")
        path = re.search(r"^(?:\+\+\+ b/|rename to )(.+)$", head, re.MULTILINE)
        old = re.search(r"^(?:--- a/|rename from )(.+)$", head, re.MULTILINE)
        named = path or old or re.match(r"a/(\S+)", head)
        if named is None:
            continue
        kind: Kind = "changed"
        kind = (
            "created" if "\nnew file" in head else "deleted" if "\ndeleted file" in head else kind
        )
        kind = "renamed" if "\nrename to" in head else kind
        plus = re.findall(r"^\+(.*)$", body, re.MULTILINE)
        minus = re.findall(r"^-(.*)$", body, re.MULTILINE)
        text = "\n".join((*plus, *minus))
        names = names_in(text), defined_in(text), imported_in(text)
        same = "".join("".join(plus).split()) == "".join("".join(minus).split())
        was = old[1] if kind == "renamed" and old else ""
        is_format = kind == "changed" and same and bool(plus)
        yield Touched(
            named[1].strip('"'), kind, len(plus), len(minus), names[0], was, is_format, *names[1:]
        )


def severity(commit: Commit, title: str) -> str | None:
    """How severe what a commit does is for a task."""
    return worst(
        detect(Proposed(commit.files), Goal(title, kind="feature", project=commit.project))
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift_history", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--most", type=int, default=300, help="commits; 300 by default")
    parser.add_argument("--alarms", action="store_true", help="list the false alarms")
    options = parser.parse_args(arguments)
    found = [one for one in commits(options.folder, options.most) if one.files]
    alarms = [one for one in found if interrupts(severity(one, one.title))]
    print(f"{len(found)} commits under their own first line: {len(alarms)} interrupted", end="")
    print(f" ({len(alarms) / max(len(found), 1):.1%}; none should be)")
    others = [found[(index + ELSEWHERE) % len(found)] for index in range(len(found))]
    pairs = [
        (one, other)
        for one, other in zip(found, others, strict=True)
        if not {f.path for f in one.files} & {f.path for f in other.files}
    ]
    seen = sum(interrupts(severity(one, other.title)) for one, other in pairs)
    print(f"{len(pairs)} under another's that shares no file: {seen} interrupted", end="")
    print(f" ({seen / max(len(pairs), 1):.1%}; most should be)")
    for one in alarms if options.alarms else ():
        (first, *_) = detect(
            Proposed(one.files), Goal(one.title, kind="feature", project=one.project)
        )
        print(f"  {one.id[:8]} {one.title}\n    {first.severity}: {first.detected_drift}")


if __name__ == "__main__":
    main()
