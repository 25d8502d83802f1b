"""How long a report over a long history takes, and how much memory.

    python -m benchmarks.history                     # 10,000 and 100,000 attempts; about a minute
    python -m benchmarks.history --attempts 1000000
    python -m benchmarks.history --keep FOLDER       # leave the made project there, to look at

A project's `.loki/` is made from a seed: tasks with one or two executions of up to four attempts, as the
loop records them, failures of several tools among them. What is measured runs in a process of its
own; the files are in the page cache, as they have just been written.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from loki import recognize
from loki.base.time import isoformat
from loki.memory.attempt import Attempt, CheckRecord, log_name
from loki.recognition.failure import Failure

BEGIN = datetime(2026, 1, 5, 8, tzinfo=timezone.utc)

OUTPUTS = (
    'Traceback (most recent call last):\n  File "app/{w}.py", line {n}, in main\n    run({n})\n'
    '  File "app/{w}_run.py", line {n}, in run\n    raise ValueError("no {w} of that name")\n'
    "ValueError: no {w} of that name\n",
    "src/{w}.ts({n},5): error TS2339: Property '{w}' does not exist on type 'Session'.\n",
    "============ FAILURES ============\n____ test_{w} ____\n\n    def test_{w}():\n"
    ">       assert {w}(2) == {n}\nE       assert 4 == {n}\n\ntests/test_{w}.py:{n}: AssertionError\n"
    "=== short test summary info ===\nFAILED tests/test_{w}.py::test_{w} - assert 4 == {n}\n",
    "app/{w}.py:{n}:1: F401 [*] `{w}` imported but unused\nFound 1 error.\n",
    "error[E0308]: mismatched types\n --> src/{w}.rs:{n}:9\n  |\n{n} |     {w}\n  |     ^^ expected `u32`\n",
    "ModuleNotFoundError: No module named '{w}'\n",
)
WORDS = ("basket", "ledger", "parser", "router", "session", "token", "invoice", "crawler")
STRATEGIES = ("context_expand", "analyze_then_fix", "auto_fix", "dependency_check")
CHECKS = (("pytest -q", "test"), ("ruff check .", "lint"), ("mypy", "type"))
GATES = ["change_check", "syntax_check", "import_check", "self_review"]


def failures() -> list[tuple[Failure, str]]:
    """Failures to choose from, each with the output that it was in."""
    texts = [
        o.replace("{w}", w).replace("{n}", str(7 + 6 * i))
        for o in OUTPUTS
        for i, w in enumerate(WORDS)
    ]
    return [(recognize(text), text) for text in texts]


def make(folder: Path, attempts: int, seed: int = 1) -> int:
    """Make a project with at least this many attempts; how many tasks they are in."""
    rng, pool = random.Random(seed), failures()
    made = tasks = 0
    while made < attempts:
        made += _make_task(folder, f"task-{tasks:06}", rng, pool, BEGIN + timedelta(minutes=made))
        tasks += 1
    return tasks


def _make_task(
    folder: Path, task: str, rng: random.Random, pool: list[tuple[Failure, str]], begin: datetime
) -> int:
    lines: list[dict[str, Any]] = []
    number, executions = 0, rng.choice((1, 1, 1, 2))
    outcome: dict[str, Any] = {}
    for execution in range(1, executions + 1):
        found, status = rng.choice(pool), "failed"
        for left in range(rng.randint(1, 4), 0, -1):
            number += 1
            if rng.random() < 0.4:
                found = rng.choice(pool)
            status = "success" if left == 1 and rng.random() < 0.7 else "failed"
            lines.append(
                attempt_record(number, execution, status, found, rng, begin, left).to_dict()
            )
            begin += timedelta(seconds=90)
        status = rng.choice(("failed", "escalated")) if status == "failed" else status
        page = None if status == "success" else f"tasks/{task}/dead-letter-{task}.md"
        outcome = {"task_id": task, "status": status, "reason": "as it came", "page": page}
        lines.append({"ends": execution, "at": isoformat(begin), "outcome": outcome})
    log = folder / ".loki" / log_name(task)
    log.parent.mkdir(parents=True)
    log.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    record = {"id": task, "title": f"Mend {task}", "execution": executions, "outcome": outcome}
    (log.parent / "task.json").write_text(json.dumps(record))
    return number


def attempt_record(
    number: int,
    execution: int,
    result: str,
    found: tuple[Failure, str],
    rng: random.Random,
    begin: datetime,
    left: int,
) -> Attempt:
    """An attempt as the loop records it, with a failure of the pool where it failed."""
    failure, output = found
    failed = result == "failed"
    phase = rng.choice(("validate", "evaluate", "evaluate", "evaluate")) if failed else ""
    checks = tuple(
        CheckRecord(
            name,
            kind,
            name,
            not failed or i > 0,
            int(failed and i == 0),
            rng.randint(50, 9000),
            output * 4,
        )
        for i, (name, kind) in enumerate(CHECKS)
    )
    validation = {"passed": phase != "validate", "skipped": False, "gates": GATES, "violations": []}
    if phase == "validate":
        violations = [f"app/a.py:{number}:1: invalid syntax [{rng.choice(GATES)}]"]
        validation = {**validation, "violations": violations}
    strategy = rng.choice(STRATEGIES) if failed and left > 1 else None
    said: dict[str, Any] = {}
    if failed:
        match = failure.match
        said = {
            "error": failure.message,
            "pattern_matched": match.pattern if match else None,
            "failure": failure.to_dict(),
            "fingerprint": failure.fingerprint,
            "signature": failure.signature,
            "recognizer_version": failure.recognizer_version,
            "confidence": failure.confidence,
            "decision": {"action": "fix", "rule": 6, "reason": "as its pattern says"},
        }
    return Attempt(
        number,
        isoformat(begin),
        "Looked at the failing line and changed what it expects. " * 4,
        result,
        strategy_used=strategy,
        duration_ms=rng.randint(2000, 60000),
        files_modified=(f"app/{rng.choice(WORDS)}.py",),
        execution=execution,
        phase=phase,
        infrastructure=failed and rng.random() < 0.05,
        checks=() if phase == "validate" else checks,
        validation=validation,
        agent="claude",
        model=rng.choice(("large", "small")),
        tokens=rng.randint(2000, 40000),
        cost=rng.randint(1, 400) / 1000,
        branch="main",
        commit="0" * 40,
        **said,
    )


FIGURES = """\
from loki.memory.attempt_metrics import Summary
from loki import Workspace

summary = Summary()
for execution, attempts in Workspace({folder!r}).executions():
    summary.add(execution, attempts)
"""
COMMAND = """\
from loki.cli.app import app

app({words!r})
"""
COMMANDS = {
    "figures alone": None,
    "loki report": ("report", "--project", "{folder}", "-o", "{folder}/report.html"),
    "loki history": ("history", "--project", "{folder}"),
    "loki history --last 20": ("history", "--project", "{folder}", "--last", "20"),
}


def code(words: tuple[str, ...] | None, folder: Path) -> str:
    """What a measured process does."""
    if words is None:
        return FIGURES.format(folder=str(folder))
    return COMMAND.format(words=[word.format(folder=folder) for word in words])


def measure(task: str) -> tuple[float, float, float]:
    """Seconds, seconds of the processor and peak memory in MB of a process that does this."""
    whole = (
        "import resource, sys, time\nbegin = time.perf_counter()\n"
        f"try:\n{''.join('    ' + line + chr(10) for line in task.splitlines())}except SystemExit: pass\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, "
        "file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", whole],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, processor, peak = map(float, done.stderr.splitlines()[-1].split())
    return seconds, processor, peak


def rows(folder: Path, attempts: int) -> Iterator[str]:
    """Lines of a table: what was measured over so many attempts."""
    begin = time.perf_counter()
    tasks = make(folder, attempts)
    size = sum(path.stat().st_size for path in folder.rglob("*.jsonl")) / 1e6
    made = time.perf_counter() - begin
    print(
        f"{attempts:,} attempts in {tasks:,} tasks, {size:,.0f} MB, made in {made:.1f} s",
        file=sys.stderr,
    )
    for name, words in COMMANDS.items():
        seconds, processor, peak = measure(code(words, folder))
        figures = f"{size:,.0f} | {seconds:.1f} | {processor:.1f} | {peak:,.0f}"
        yield f"| {name} | {attempts:,} | {tasks:,} | {figures} |"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--attempts", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="make the larger project here and leave it")
    arguments = parser.parse_args()
    print("| what | attempts | tasks | MB on disk | seconds | of the processor | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for attempts in (max(1, arguments.attempts // 10), arguments.attempts):
        with tempfile.TemporaryDirectory(prefix="loki-history-") as temporary:
            keep = arguments.keep if attempts == arguments.attempts else None
            for row in rows(keep or Path(temporary), attempts):
                print(row, flush=True)


if __name__ == "__main__":
    main()
