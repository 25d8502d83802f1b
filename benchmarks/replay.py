"""Replays recorded runs of agents through `loki.Monitor`, beside what others would have said to them.

    python -m benchmarks.replay FILE… [--half kept] [--agents] [--show stops]
    python -m benchmarks.replay --get build/runs          # fetches public runs first, and replays them

Files are as `loki.adapters.monitor.recorded_run` reads them: a run a line, or sessions of Claude
Code. A replay does
not react: what an agent would have done with what it is told, nobody knows. The rivals are those of
`benchmarks.replay_peers`. Time grows with the calls, about 2 ms each; runs are read one after the other.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks import replay_peers, replay_runs
from loki.adapters.monitor.recorded_run import (
    Ends,
    Made,
    Read,
    RecordedRun,
    Remark,
    Window,
    recorded_runs,
    remarks,
)

LOKI = "loki"
WATCHERS = (LOKI, *replay_peers.PEERS)
HALVES = ("all", "tuned", "kept")
SHOWN = {"stops": "stop", "nudges": "nudge", "refusals": "refuse", "missed": ""}
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Watched:
    """A run, and what each watcher would have said to it.

    Attributes:
        id, agent, unit, resolved, windows: as of the run.
        calls: how many it made.
        has_words: whether its last words are recorded.
        said: remarks by watcher.
        seconds: of processor time that loki took for each call.
        stuck: what the agent called in each window that is labelled stuck.
    """

    id: str
    agent: str
    unit: str
    resolved: bool | None
    windows: tuple[Window, ...]
    calls: int
    has_words: bool
    said: Mapping[str, tuple[Remark, ...]]
    seconds: tuple[float, ...]
    stuck: Mapping[Window, tuple[str, ...]]

    def stop(self, who: str) -> Remark | None:
        """Where a watcher would first have stopped it."""
        return next((one for one in self.said[who] if one.kind == "stop"), None)

    def saved(self, who: str) -> int:
        """Calls that were made after a watcher would have stopped it."""
        return sum(one.left for one in self.said[who] if one.kind == "stop")

    def is_spoken_to(self, who: str) -> bool:
        """Whether a watcher would have said anything but at the end."""
        return any(not one.is_last for one in self.said[who])

    def is_refused(self, who: str) -> bool:
        """Whether it would not have been let end as it did."""
        return any(one.is_last and one.kind == "refuse" for one in self.said[who])

    def is_heard(self, who: str, window: Window) -> bool:
        """Whether a watcher would have spoken in a window, or stopped the agent before."""
        return any(
            one.place <= window.last and (one.place >= window.first or one.kind == "stop")
            for one in self.said[who]
            if not one.is_last
        )


def main(words: list[str]) -> int:
    """Replays, and prints tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="files of runs, or folders with some")
    parser.add_argument("--get", type=Path, metavar="DIR", help="fetch public runs into a folder")
    parser.add_argument("--half", choices=HALVES, default="all", help="by the SHA-256 of ids")
    parser.add_argument("--agents", action="store_true", help="a table by agent, too")
    parser.add_argument("--show", choices=SHOWN, help="each such place of loki's, to read")
    options = parser.parse_args(words)
    files = [*options.files, *([replay_runs.get(options.get)] if options.get else [])]
    if not files:
        parser.error("no runs are given: expected FILE… or --get DIR")
    logging.getLogger("loki").setLevel(logging.ERROR)
    read = Read()
    found = [watched(run) for run in recorded_runs(files, read) if is_in(options.half, run.id)]
    print(table(found, options.half))
    if options.agents:
        print("\n" + by_agent(found))
    if options.show:
        print("\n" + ("\n".join(shown(found, options.show)) or f"no {options.show}"))
    if read.left_out:
        print(f"{len(read.left_out)} left out, first: {read.left_out[0]}", file=sys.stderr)
    return 0


def is_in(half: str, name: str) -> bool:
    """Whether a run belongs to a half: loki's rules were tuned on those whose hash is even."""
    is_kept = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 == 1
    return half == "all" or is_kept is (half == "kept")


def watched(run: RecordedRun) -> Watched:
    """Replay a run, in a project of its own."""
    seconds: list[float] = []
    with tempfile.TemporaryDirectory(prefix="loki-replay-") as project:
        said = {LOKI: tuple(remarks(run, project, seconds.append))}
    said |= {name: tuple(replay_peers.remarks(run, of)) for name, of in replay_peers.PEERS.items()}
    made = [one for one in run.events if isinstance(one, Made)]
    stuck = {
        window: tuple(
            replay_peers.about(one) for one in made if window.first <= one.place <= window.last
        )
        for window in run.windows
        if window.label == "stuck"
    }
    has_words = any(isinstance(one, Ends) for one in run.events)
    facts = (run.id, run.agent, run.unit, run.resolved, run.windows, len(made), has_words)
    return Watched(*facts, said, tuple(seconds), stuck)


# --- figures --------------------------------------------------------------------------------------


def figures(runs: Sequence[Watched], who: str) -> dict[str, str]:
    """What a watcher would have done, by figure; the README says what each means."""
    solved = [run for run in runs if run.resolved]
    failed = [run for run in runs if run.resolved is False]
    made, saved = sum(run.calls for run in failed), sum(run.saved(who) for run in failed)
    found = {
        "solved_stopped": share(run.stop(who) is not None for run in solved),
        "solved_spoken": share(run.is_spoken_to(who) for run in solved),
        "failed_stopped": share(run.stop(who) is not None for run in failed),
        "failed_saved": f"{saved:,} of {made:,} calls" if made else NOTHING,
        "failed_spoken": share(run.is_spoken_to(who) for run in failed),
        "stuck_heard": in_windows(runs, who, "stuck"),
        "progress_disturbed": in_windows(runs, who, "progress"),
    }
    if who == LOKI:
        found["solved_refused"] = share(run.is_refused(who) for run in solved if run.has_words)
        found["failed_refused"] = share(run.is_refused(who) for run in failed if run.has_words)
        found |= times([second for run in runs for second in run.seconds])
    return found


def in_windows(
    runs: Iterable[Watched], who: str, label: Literal["stuck", "progress", "other"]
) -> str:
    """The share of labelled windows in which a watcher would have spoken."""
    return share(
        run.is_heard(who, window) for run in runs for window in run.windows if window.label == label
    )


def share(of: Iterable[bool]) -> str:
    """How many of how many."""
    found = list(of)
    if not found:
        return NOTHING
    return f"{sum(found)} of {len(found)} ({sum(found) / len(found):.1%})"


def times(seconds: Sequence[float]) -> dict[str, str]:
    """Microseconds of processor time a call."""
    ordered = sorted(seconds)
    if not ordered:
        return {}
    middle, late = statistics.median(ordered), ordered[int(0.95 * (len(ordered) - 1))]
    return {"microseconds_median": f"{middle * 1e6:,.0f}", "microseconds_p95": f"{late * 1e6:,.0f}"}


# --- what is printed ------------------------------------------------------------------------------


def table(runs: Sequence[Watched], half: str) -> str:
    """The figures as Markdown, a column for each watcher."""
    solved = sum(run.resolved is True for run in runs)
    failed = sum(run.resolved is False for run in runs)
    labels = [window.label for run in runs for window in run.windows]
    found = {who: figures(runs, who) for who in WATCHERS}
    lines = [
        f"{len(runs):,} runs ({half}), {sum(run.calls for run in runs):,} calls; {solved:,} solved, "
        f"{failed:,} failed, {len(runs) - solved - failed:,} unknown; "
        f"{labels.count('stuck'):,} windows stuck, {labels.count('progress'):,} progress",
        "",
        f"| | {' | '.join(WATCHERS)} |",
        f"|---|{'---:|' * len(WATCHERS)}",
    ]
    lines += [
        f"| `{name}` | {' | '.join(found[who].get(name, '') for who in WATCHERS)} |"
        for name in found[LOKI]
    ]
    return "\n".join(lines)


def by_agent(runs: Sequence[Watched]) -> str:
    """loki's figures as Markdown, a line for each agent."""
    names = ("solved_stopped", "solved_spoken", "failed_stopped", "failed_spoken", "stuck_heard",
             "solved_refused", "failed_refused")  # fmt: skip
    lines = [
        f"| agent | runs | calls | {' | '.join(f'`{name}`' for name in names)} |",
        f"|---|---:|---:|{'---:|' * len(names)}",
    ]
    for agent in sorted({run.agent for run in runs}):
        own = [run for run in runs if run.agent == agent]
        found = figures(own, LOKI)
        cells = [agent or NOTHING, len(own), sum(run.calls for run in own)]
        cells += [found[name] for name in names]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def shown(runs: Iterable[Watched], what: str) -> Iterator[str]:
    """Each place of a kind: where, what was called or said, what loki would have said to it."""
    for run in runs:
        was = {True: "solved", False: "failed", None: "unknown"}[run.resolved]
        if what == "missed":
            for window, calls in run.stuck.items():
                if not run.is_heard(LOKI, window):
                    yield f"{run.id} ({was}) {run.unit}s {window.first} to {window.last}"
                    yield from (f"    {call}" for call in calls)
            continue
        for one in run.said[LOKI]:
            if one.kind == SHOWN[what]:
                left = f", {one.left} calls were left" if one.kind == "stop" else ""
                yield f"{run.id} ({was}) {run.unit} {one.place}: {one.reason}{left}"
                yield f"    {one.about}"
                yield from (f"  > {line}" for line in one.text.splitlines())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
