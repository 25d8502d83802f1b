"""How long a history takes to load as tables, beside what one would write without loki.

    python -m benchmarks.analysis                    # 100,000 attempts in 1,000 tasks; a minute or two
    python -m benchmarks.analysis --attempts 10000
    python -m benchmarks.analysis --keep FOLDER      # leave the made project there, to look at

A project's `.loki/` is made from a seed, as `benchmarks.history` does, with many attempts a task. Each
way runs in a process of its own, the best of three counts; the files are in the page cache, as they
have just been written. The two others make a pandas frame of the same plain fields and look at nothing
nested; neither mends damage, applies amendments or has the failures. One log in a hundred is torn in a
second project, as crashes leave them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from benchmarks.history import BEGIN, attempt_record, failures, measure
from loki.base.time import isoformat
from loki.memory.attempt import log_name

PER_TASK = 100
"""Attempts of a task."""

TRIES = 3
"""Of which the best counts."""

PLAIN = (
    *("attempt", "timestamp", "action", "result", "error", "pattern_matched", "strategy_used"),
    *("duration_ms", "execution", "infrastructure", "fingerprint", "signature", "agent", "model"),
    *("tokens", "cost", "branch", "commit"),
)
"""What the ways without loki take of an attempt."""

IMPORTS = "from pathlib import Path\nfolder = Path({folder!r})\n"
LOGS = "sorted((folder / '.loki/tasks').glob('*/attempts.jsonl'))"
TABLE = IMPORTS + "from loki import analysis\nhistory = analysis.history(folder)\n"
WAYS = {
    "loki: the table of attempts": f"{TABLE}assert history.attempts.num_rows == {{attempts}}\n",
    "loki: all tables": f"{TABLE}repr(history)\n",
    "json.loads, line by line, to pandas": f"""{IMPORTS}
import json, pandas
rows = []
for log in {LOGS}:
    with log.open("rb") as lines:
        for line in lines:
            record = json.loads(line)
            if "attempt" in record:
                row = {{{{name: record.get(name) for name in {PLAIN!r}}}}}
                rows.append({{{{"task": log.parent.name, **row}}}})
frame = pandas.DataFrame(rows)
frame["timestamp"] = pandas.to_datetime(frame["timestamp"])
assert len(frame) == {{attempts}}
""",
    "pandas.read_json(lines=True), log by log": f"""{IMPORTS}
import pandas
frames = [
    pandas.read_json(log, lines=True).reindex(columns={PLAIN!r}).assign(task=log.parent.name)
    for log in {LOGS}
]
frame = pandas.concat(frames)
assert len(frame) >= {{attempts}}
""",
}


def make(folder: Path, attempts: int, *, torn: bool = False, seed: int = 1) -> int:
    """Make a project with this many attempts; bytes of its logs."""
    rng, pool, size = random.Random(seed), failures(), 0
    for index in range(max(1, attempts // PER_TASK)):
        begin = BEGIN + timedelta(hours=3 * index)
        log = folder / ".loki" / log_name(f"task-{index:05}")
        log.parent.mkdir(parents=True)
        lines = []
        for number in range(1, PER_TASK + 1):
            result = "success" if number == PER_TASK else "failed"
            found = rng.choice(pool)
            attempt = attempt_record(number, 1, result, found, rng, begin, PER_TASK - number)
            lines.append(json.dumps(attempt.to_dict(), ensure_ascii=False) + "\n")
            begin += timedelta(seconds=90)
        outcome = {"task_id": log.parent.name, "status": "success", "attempts": PER_TASK}
        lines.append(json.dumps({"ends": 1, "at": isoformat(begin), "outcome": outcome}) + "\n")
        text = "".join(lines) + ('{"attempt": 101, "timest' if torn and index % 100 == 0 else "")
        log.write_text(text, "utf-8")
        size += len(text)
        record = {"id": log.parent.name, "title": f"Mend {index}", "execution": 1}
        (log.parent / "task.json").write_text(json.dumps({**record, "outcome": outcome}))
    return size


def rows(folder: Path, attempts: int) -> list[str]:
    """Lines of a table: each way, its seconds, and how many times as long as loki it takes."""
    best: dict[str, tuple[float, float, float]] = {}
    for name, code in WAYS.items():
        task = code.format(folder=str(folder), attempts=attempts)
        best[name] = min(measure(task) for _ in range(TRIES))
        print(f"{name}: {best[name][0]:.2f} s", file=sys.stderr)
    own = best["loki: the table of attempts"]
    return [
        f"| {name} | {seconds:.2f} | {used:.2f} | {peak:,.0f} | {used / own[1]:.1f} |"
        for name, (seconds, used, peak) in best.items()
    ]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--attempts", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="make the project here and leave it")
    arguments = parser.parse_args()
    attempts = max(PER_TASK, arguments.attempts // PER_TASK * PER_TASK)
    with tempfile.TemporaryDirectory(prefix="loki-analysis-") as temporary:
        folder = arguments.keep or Path(temporary) / "whole"
        size = make(folder, attempts)
        damaged = Path(temporary) / "torn"
        make(damaged, attempts, torn=True)
        print(f"{attempts:,} attempts in {attempts // PER_TASK:,} tasks, {size / 1e6:,.0f} MB")
        print("\n| way | seconds | of the processor | peak MB | processor, times loki's |")
        print("|---|---|---|---|---|")
        print("\n".join(rows(folder, attempts)))
        code = WAYS["loki: the table of attempts"].format(folder=str(damaged), attempts=attempts)
        seconds, used, peak = min(measure(code) for _ in range(TRIES))
        print(f"| loki, one log in a hundred torn | {seconds:.2f} | {used:.2f} | {peak:,.0f} | |")


if __name__ == "__main__":
    main()
