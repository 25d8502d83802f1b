"""Measures what becomes of calls to a service that fails: `python -m benchmarks.calls`.

Beside loki: the clients' own retries, stamina and litellm's Router (`pip install --group bench-calls`,
into another environment where one likes, named by `--python`). Each rival has a process and a service of
its own on this machine, all at once and in real time. Says how many calls were lost, how many reached the
service while it was down, and how long after its recovery the first one was answered.

The outages' lengths are also tried in simulated time, for loki alone: whether 120 s is a lucky length.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.callers.peer import PEERS
from benchmarks.calls_service import Plan, Service
from benchmarks.calls_simulated import SHORT, simulated, trade

SCRIPT = Path(__file__).parent / "callers" / "peer.py"


@dataclass(frozen=True)
class Case:
    """What is tried.

    Attributes:
        name: for people.
        plan: when the service fails.
        calls: how many are made; spacing: seconds from the start of one to the next.
        parallel: at a time, at most.
        patience: seconds that a caller has for one.
        others: services that stand in and do not fail.
        peers: who takes part.
    """

    name: str
    plan: Plan
    calls: int
    spacing: float
    parallel: int
    patience: float = 300.0
    others: int = 0
    peers: Sequence[str] = field(default_factory=lambda: tuple(PEERS))


OUTAGE = Plan(begins=5.0, lasts=120.0)
TOLD = Plan(begins=5.0, lasts=120.0, tells=True)
CASES = (
    Case("4 % of 200 calls fail, 503 and 429", Plan(share=0.04), 200, 0.05, 5),
    Case("2 minutes' outage, 50 calls in 3 minutes, one model", OUTAGE, 50, 3.6, 50),
    Case("the same, and the service says when it is back", TOLD, 50, 3.6, 50),
    Case("2 minutes' outage, one caller after the other", OUTAGE, 50, 3.6, 1),
    Case(
        "2 minutes' outage, two models, the other one is up",
        OUTAGE,
        50,
        3.6,
        50,
        others=1,
        peers=("loki", "litellm Router, 3 retries"),
    ),
)


def main(words: list[str]) -> int:
    """Runs all cases and prints a table for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="an interpreter with the rivals")
    parser.add_argument("--simulated", action="store_true", help="the simulated outages alone")
    parser.add_argument("--case", type=int, nargs="*", default=range(len(CASES)), help="from 0")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    found: list[dict[str, Any]] = []
    if not options.simulated:
        with ThreadPoolExecutor(len(CASES) * len(PEERS)) as pool:
            jobs = [
                pool.submit(measured, case, peer, options.python)
                for case in (CASES[number] for number in options.case)
                for peer in case.peers
            ]
            found = [job.result() for job in jobs]
    lengths, pauses = list(simulated()), list(trade())
    if options.json:
        told = {"real": found, "simulated": lengths, "pauses": pauses}
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
        return 0
    sys.stdout.write("\n".join([*_tables(found), *_lengths(lengths), *_pauses(pauses)]) + "\n")
    return 0


def measured(case: Case, peer: str, python: str) -> dict[str, Any]:
    """What became of one rival's calls in one case."""
    service, others = Service(case.plan), [Service(Plan()) for _ in range(case.others)]
    job = {
        "urls": [one.url for one in (service, *others)],
        "calls": case.calls,
        "spacing": case.spacing,
        "parallel": case.parallel,
        "patience": case.patience,
    }
    interpreter = sys.executable if peer == "loki" else python
    process = subprocess.Popen(
        [interpreter, str(SCRIPT), peer, json.dumps(job)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    said = process.stdout.readline()
    row: dict[str, Any] = {"case": case.name, "rival": peer, "calls": case.calls}
    if said.strip() != "ready":
        process.wait()
        return {**row, "missing": True}
    for one in (service, *others):
        one.start()
    process.stdin.write("\n")
    process.stdin.flush()
    told = json.loads(process.stdout.readlines()[-1])
    process.wait()
    for one in (service, *others):
        one.stop()
    return {**row, **told, **_seen(service)}


def _seen(service: Service) -> dict[str, Any]:
    ends = service.ends
    failed = [one for one in service.noted if one.status != 200]
    back = [one.at - ends for one in service.noted if one.at >= ends and one.status == 200]
    return {
        "wire": len(service.noted),
        "dead": len(failed),
        "back": min(back) if service.plan.lasts and back else None,
    }


def _tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    for name in dict.fromkeys(row["case"] for row in rows):
        yield f"## {name}\n"
        yield "| rival | lost | calls that failed | answered after recovery | all done |"
        yield "|---|---|---|---|---|"
        for row in rows:
            if row["case"] == name:
                yield _row(row)
        yield ""


def _row(row: dict[str, Any]) -> str:
    if "missing" in row:
        return f"| {row['rival']} | not installed | | | |"
    back = "" if row["back"] is None else f"{row['back']:.1f} s"
    return (
        f"| {row['rival']} | {row['lost']} of {row['calls']} | {row['dead']} | {back} | "
        f"{row['took']:.0f} s |"
    )


def _lengths(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "## Outages of other lengths, simulated: loki, one caller after the other\n"
    yield "| outage | lost | calls that failed | answered after recovery |"
    yield "|---|---|---|---|"
    for row in rows[::7]:
        yield f"| {row['lasts']} s | {row['lost']} of 50 | {row['dead']} | {row['back']:.1f} s |"
    backs = [row["back"] for row in rows]
    yield f"\nOf every second's length {_seen_after(backs)}."
    short = [row["back"] for row in simulated(SHORT)]
    yield f"Of {SHORT[0]} to {SHORT[-1]} s {_seen_after(short)}."


def _seen_after(backs: list[float]) -> str:
    return f"on average {sum(backs) / len(backs):.1f} s, at most {max(backs):.1f} s"


def _pauses(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "\n## Two minutes, one caller after the other, by the longest pause of the breaker\n"
    yield "| longest pause | calls that failed | seen after, on average | at most | as many calls at best |"
    yield "|---|---|---|---|---|"
    for row in rows:
        mean, most = row["least"]
        yield (
            f"| {row['pause']:g} s | {row['dead']} | {row['mean']:.1f} s | {row['most']:.1f} s | "
            f"{mean:.1f} s, at most {most:.1f} s |"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
