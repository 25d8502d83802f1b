"""How often drift is seen where it is, and where it is not: labelled changes.

``python -m benchmarks.drift`` prints, for the part that the rules were tuned on and for the part that
was kept back, precision and recall of what interrupts anybody (medium and above), by severity too.
``--wrong`` lists what came out otherwise than labelled; ``tuning`` or ``kept_back`` takes one part.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from loki.decision.drift.drift import SEVERITIES, Drift, Proposed, detect, rank, worst
from loki.decision.drift.task_relation import Goal, Kind, Touched, is_telling, names_in

FOLDER = Path(__file__).parents[1] / "tests/py/decision/drift"
PARTS = ("tuning", "kept_back", "kept_back_second")
KINDS: Mapping[str, Kind] = {"A": "created", "M": "changed", "D": "deleted", "R": "renamed"}


@dataclass(frozen=True)
class Case:
    """A labelled change.

    Attributes:
        id: its name; part: the file that it stands in.
        goal, proposed: the task and what an agent did about it.
        label: none, or the severity of the drift.
    """

    id: str
    part: str
    goal: Goal
    proposed: Proposed
    label: str

    @property
    def found(self) -> list[Drift]:
        """What detection says of it."""
        return detect(self.proposed, self.goal)


def touched(line: str) -> Touched:
    """A line of ``edits``: ``M [~] +added -removed path [-> new path] | names``."""
    what, _, names = line.partition("|")
    kind, *words = what.split()
    formatting = words[0] == "~"
    added, removed, *path = words[formatting:]
    was = path[0] if len(path) > 1 else ""
    told = names_in(names)  # those that tell something: defined, imported or used, whichever
    defines = frozenset(name for name in told if is_telling(name))
    return Touched(
        path[-1], KINDS[kind], int(added), -int(removed), told, was, formatting, defines, told
    )


def load(part: str) -> list[Case]:
    """The labelled changes of a part."""
    said = yaml.safe_load((FOLDER / f"{part}.yml").read_text("utf-8"))
    return [_case(part, one) for one in cast("list[dict[str, Any]]", said)]


def _case(part: str, said: dict[str, Any]) -> Case:
    imports: dict[str, list[str]] = defaultdict(list)
    for edge in said.get("imports", "").split():
        importing, _, imported = edge.partition(">")
        imports[importing].append(imported)
    files = [touched(line) for line in said["edits"].splitlines()]
    named = frozenset(f"{said.get('about', '')} {said.get('earlier', '')}".split())
    there = {one.was or one.path for one in files if one.kind != "created"}
    goal = Goal(
        said["task"],
        kind=said.get("kind", "bug_fix"),
        scope=tuple(said.get("scope", "").split()),
        named=named,
        failure=said.get("failure", ""),
        project=frozenset(said.get("tree", "").split()) | named | there,
        imports=dict(imports),
    )
    commands = [line.split() for line in said.get("commands", "").splitlines()]
    return Case(
        said["id"], part, goal, Proposed(files, commands, said.get("says", "")), said["label"]
    )


def interrupts(severity: str | None) -> bool:
    """Whether anybody is interrupted by a drift of this severity."""
    return severity in SEVERITIES and rank(str(severity)) >= 1


def rates(cases: Iterable[Case]) -> tuple[int, int, int, int]:
    """(Rightly interrupted, interrupted, to be interrupted, all)."""
    judged = [(interrupts(case.label), interrupts(worst(case.found))) for case in cases]
    right = sum(label and found for label, found in judged)
    return right, sum(found for _, found in judged), sum(label for label, _ in judged), len(judged)


def show(part: str, cases: Sequence[Case], *, wrong: bool) -> None:
    """Print the figures of a part."""
    right, found, wanted, count = rates(cases)
    print(f"{part}: {count} changes, {wanted} of them drift (medium and above)")
    print(f"  precision {right}/{found} = {right / max(found, 1):.3f}", end="")
    print(f"   recall {right}/{wanted} = {right / max(wanted, 1):.3f}")
    print(f"  {'severity':10}{'labelled':>10}{'said':>8}{'both':>8}{'precision':>12}{'recall':>9}")
    for severity in ("none", *SEVERITIES):
        labelled = {case.id for case in cases if case.label == severity}
        said = {case.id for case in cases if (worst(case.found) or "none") == severity}
        both = len(labelled & said)
        print(f"  {severity:10}{len(labelled):10}{len(said):8}{both:8}", end="")
        print(f"{both / max(len(said), 1):12.3f}{both / max(len(labelled), 1):9.3f}")
    created = [c for c in cases if not interrupts(c.label) and _creates(c)]
    fired = sum(interrupts(worst(case.found)) for case in created)
    print(f"  of {len(created)} changes on task that create files, {fired} are interrupted")
    for case in cases if wrong else ():
        said_ = worst(case.found) or "none"
        if said_ != case.label:
            lines = "; ".join(f"{d.severity} {d.detected_drift}" for d in case.found)
            print(f"    {case.id}: labelled {case.label}, found {said_}: {lines}")


def _creates(case: Case) -> bool:
    return any(one.kind == "created" for one in case.proposed.files)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, help="one part; both by default")
    parser.add_argument("--wrong", action="store_true", help="list what came out otherwise")
    options = parser.parse_args(arguments)
    for part in (options.part,) if options.part else PARTS:
        show(part, load(part), wrong=options.wrong)


if __name__ == "__main__":
    main()
