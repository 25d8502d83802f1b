"""What one call of `loki hook` costs an agent: the wall time of a process beside that of ``python -c pass``.

    python -m benchmarks.hooks [--calls 20]

Each kind of event is sent so often, in turn with the others, and the median counts: a busy machine slows
all of them alike. What is printed is a ratio, and the milliseconds of this machine beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from loki.adapters.hooks.hooked_agents import AGENTS

AGENT = "claude-code"
NOTHING = "python -c pass"


def events(folder: str) -> Mapping[str, Mapping[str, object]]:
    """An event of each kind that costs something else."""
    call = {
        "session_id": "bench",
        "cwd": folder,
        "tool_name": "Bash",
        "tool_input": {"command": "make test"},
    }
    failed = "Exit code 1\nValueError: no such column: user_id"
    return {
        "before a call": {**call, "hook_event_name": "PreToolUse"},
        "after a read that went well": {**call, "hook_event_name": "PostToolUse", "tool_name": "Read"},
        "after a command that went well": {
            **call, "hook_event_name": "PostToolUse", "tool_response": {"stdout": "ok", "stderr": ""}},
        "after a command that failed": {
            **call, "hook_event_name": "PostToolUseFailure", "error": failed},
        "at the end of a turn": {
            **call, "hook_event_name": "Stop", "last_assistant_message": "I looked at it."},
    }  # fmt: skip


def seconds(words: Sequence[str], stdin: str) -> float:
    """Wall time of one process."""
    began = time.perf_counter()
    subprocess.run(
        words, input=stdin, text=True, capture_output=True, check=True, env=_environment()
    )
    return time.perf_counter() - began


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "LOKI_TASK"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20, help="calls of each kind")
    calls = parser.parse_args().calls
    assert AGENT in AGENTS
    hook = [str(Path(sys.executable).parent / "loki"), "hook", AGENT]
    with tempfile.TemporaryDirectory() as folder:
        kinds = {name: json.dumps(said) for name, said in events(folder).items()}
        times: dict[str, list[float]] = {name: [] for name in (NOTHING, *kinds)}
        for _ in range(calls):
            times[NOTHING].append(seconds([sys.executable, "-c", "pass"], ""))
            for name, said in kinds.items():
                times[name].append(seconds(hook, said))
    base = statistics.median(times[NOTHING])
    for name, taken in times.items():
        median = statistics.median(taken)
        print(f"{name:32} {median / base:6.1f} x  {median * 1000:6.0f} ms")


if __name__ == "__main__":
    main()
