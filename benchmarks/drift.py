"""What each rule of drift sees in real commits: each as its own task, and as another's.

``python -m benchmarks.drift [FOLDER] [--most N]`` looks at the last commits of a git repository. A task has
a commit's first line for its title; its scope, which messages do not tell, is the folders of code
(``--code``) that the commit works in. Under its own task a commit should interrupt nobody, though one that
changes whatever uses what it is about does leave such a scope; under the task of a commit that shares no
such folder it should. Merges are left out.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from loki.decision.drift import Goal, Proposed, Touched, detect, rank

ELSEWHERE = 37
"""How many commits on the other task is taken from; a prime, chosen."""


@dataclass(frozen=True)
class Commit:
    """A commit: its first line, what it does, and the paths that there were."""

    title: str
    files: tuple[Touched, ...]
    project: frozenset[str]

    def scope(self, code: str) -> tuple[str, ...]:
        """The folders right below one of code that it works in."""
        found = (re.match(rf"{re.escape(code)}/[^/]+/", file.path) for file in self.files)
        return tuple(dict.fromkeys(match[0] for match in found if match))


def git(folder: Path, *words: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def commits(folder: Path, most: int) -> Iterator[Commit]:
    """The last commits, newest first, but for one without a parent."""
    log = git(folder, "log", "--no-merges", f"-{most}", "--format=%H %P %x00%s").splitlines()
    for line in log:
        hashes, _, title = line.partition("\0")
        commit, *parents = hashes.split()
        if parents:
            shown = git(folder, "show", "-M", "-U0", "--format=", "--no-color", commit)
            paths = git(folder, "ls-tree", "-r", "--name-only", parents[0]).splitlines()
            yield Commit(title, tuple(touched(shown)), frozenset(paths))


def touched(shown: str) -> Iterator[Touched]:
    """What a difference without context does to each file."""
    for part in re.split(r"^diff --git ", shown, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n@@")
        path = re.search(r"^(?:\+\+\+ b/|rename to )(.+)$", head, re.MULTILINE)
        old = re.search(r"^(?:--- a/|rename from )(.+)$", head, re.MULTILINE)
        named = path or old or re.match(r"a/(\S+)", head)
        if named is None:
            continue
        is_renamed = "\nrename to" in head and old is not None
        lines = [len(re.findall(rf"^{sign}", body, re.MULTILINE)) for sign in (r"\+", "-")]
        yield Touched(
            named[1].strip('"'),
            "deleted" if "\ndeleted file" in head else "renamed" if is_renamed else "written",
            max(lines),
            old[1] if is_renamed and old else "",
            "\nnew file" in head,
        )


def rules(commit: Commit, title: str, scope: tuple[str, ...]) -> set[str]:
    """The rules by which what a commit does would interrupt a task."""
    goal = Goal(title, scope=scope, failure="a test fails", project=commit.project)
    return {one.kind for one in detect(Proposed(commit.files), goal) if rank(one.severity) >= 1}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--most", type=int, default=300, help="commits; 300 by default")
    parser.add_argument("--code", default="python/loki", help="folder whose folders are scopes")
    options = parser.parse_args(arguments)
    found = [one for one in commits(options.folder, options.most) if one.files]
    own: Counter[str] = Counter()
    others: Counter[str] = Counter()
    scoped, pairs = 0, 0
    for index, one in enumerate(found):
        scope = one.scope(options.code)
        scoped += bool(scope)
        own.update(rules(one, one.title, scope))
        other = found[(index + ELSEWHERE) % len(found)]
        its = other.scope(options.code)
        if scope and its and not set(scope) & set(its):
            pairs += 1
            others.update(rules(one, other.title, its))
    print(
        f"{len(found)} commits as their own task, {scoped} of them with a scope; {pairs} as another's"
    )
    for rule in sorted({*own, *others}):
        print(f"  {rule}: {own[rule]} interrupted as their own, {others[rule]} as another's")


if __name__ == "__main__":
    main()
