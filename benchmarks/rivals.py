"""All rivals of a case, each in a process of its own, and how far their answers agree with loki's."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.job import Case, Data, Family

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 900
"""Seconds after which a rival is given up."""


def measured(case: Case, data: Data, module: str, budget: float) -> dict[str, Any]:
    """All rivals of a case, one after the other.

    Args:
        case: what to measure.
        data: what the rivals read.
        module: the one that has the families, as its `FAMILIES`.
        budget: seconds of repeats for each rival.
    """
    family: Family = importlib.import_module(module).FAMILIES[case.family]
    found = {
        rival: _asked(case, rival, data, module, budget)
        for rival in case.rivals or tuple(family.rivals)
    }
    answers = {
        rival: json.loads(Path(result.pop("answer")).read_text("utf-8"))
        for rival, result in found.items()
        if "seconds" in result
    }
    for rival, answer in answers.items():
        found[rival]["agrees"] = _agreement(family, answers.get(family.reference), answer)
    return report.judged(case, family, found)


def _agreement(family: Family, mine: Any, other: Any) -> float | None:
    return None if mine is None or other is None else family.agree(mine, other)


def _asked(case: Case, rival: str, data: Data, module: str, budget: float) -> dict[str, Any]:
    answer = data.folder / "answer" / f"{rival.replace('/', ' ')}.json"
    answer.parent.mkdir(exist_ok=True)
    asked = {
        "module": module,
        "family": case.family,
        "rival": rival,
        "parameters": case.parameters,
        "folder": str(data.folder),
        "budget": budget,
        "answer": str(answer),
    }
    command = [sys.executable, "-m", "benchmarks.worker", json.dumps(asked)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"given up after {LONGEST} s"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["no word"])[-1]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"answer": str(answer), **result} if "seconds" in result else result
