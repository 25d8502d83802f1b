"""One rival in one case, in a process of its own: `python -m benchmarks.worker JSON`.

Prints one JSON line: the best time of the repeats, all times, the peak of memory, and where the
answer was written.
"""

from __future__ import annotations

import gc
import importlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.job import Data, Job

MOST_REPEATS = 7


def main() -> None:
    """The rival of one JSON argument: module, family, rival, parameters, folder, budget, answer."""
    asked = json.loads(sys.argv[1])
    data = Data(Path(asked["folder"]))
    families = importlib.import_module(asked["module"]).FAMILIES
    try:
        job = families[asked["family"]].rivals[asked["rival"]](asked["parameters"], data)
    except ImportError as error:
        sys.stdout.write(json.dumps({"missing": error.name}) + "\n")
        return
    before = forget_peak()
    times, cpu, returned = _timed(job, asked["budget"])
    memory = peak() - before
    answer = job.answer(returned)
    Path(asked["answer"]).write_text(json.dumps(answer), "utf-8")
    result = {
        "seconds": min(times),
        "times": times,
        "cpu": cpu,
        "amount": job.amount,
        "items": job.items,
        "memory": memory,
        "said": _figures(answer) if isinstance(answer, dict) else {},
    }
    sys.stdout.write(json.dumps(result) + "\n")


def _figures(answer: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in answer.items() if isinstance(value, (int, float))}


def _timed(job: Job, budget: float) -> tuple[list[float], float, Any]:
    """Best of repeats, as many as the seconds of the budget allow, at least one.

    Returns:
        All times, the processor's time of the best one, and what the run returned.
    """
    if job.timed:
        seconds, cpu, returned = job.run()
        return [seconds], cpu, returned
    times: list[float] = []
    best = 0.0
    returned = None
    gc.collect()
    while not times or (len(times) < MOST_REPEATS and sum(times) + min(times) < budget):
        returned = None
        begin, cpu = time.perf_counter(), time.process_time()
        returned = job.run()
        times.append(time.perf_counter() - begin)
        if times[-1] == min(times):
            best = time.process_time() - cpu
    return times, best, returned


def _status(field: str) -> int | None:
    """Bytes in a field of this process's status, where the system has one."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(field)), None)
    return int(found.split()[1]) * 1024 if found else None


def forget_peak() -> int:
    """The memory in use now; what was in use before counts no more, where the system allows it."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    except OSError:
        return peak()
    return _status("VmRSS:") or peak()


def peak() -> int:
    """The most memory in use since `forget_peak`, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM:") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
