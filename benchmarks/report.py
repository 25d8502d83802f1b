"""From what was measured to what is said of it: ratios, verdicts, a page of Markdown."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.job import Case, Family

DISTURBED = 1.15
"""Times the processor's time: what took longer had to wait for other processes."""


def machine(peers: Iterable[str]) -> dict[str, Any]:
    """What the figures depend on besides loki; of peers the version, by the name of the package."""
    versions = {name: _version(name) for name in ("loki-core", *peers)}
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": [round(load, 1) for load in os.getloadavg()],
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "commit": _commit(),
        "versions": versions,
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def judged(case: Case, family: Family, found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A case's results with ratios, and whether they may be believed.

    Sound is a case where no rival failed, and the answers agree as far as the case asks.
    """
    mine = found.get("loki", {})
    per_call = mine["seconds"] / mine["items"] if "seconds" in mine else None
    targets = [
        {"rival": rival, "wanted": wanted, "ratio": ratio, "met": ratio >= wanted}
        for rival, wanted in case.targets
        if (ratio := _ratio(mine, found.get(rival, {}))) is not None
    ]
    sound = all(
        "failed" not in result and (result.get("agrees") is None or result["agrees"] >= case.least)
        for result in found.values()
    )
    return {
        "name": case.name,
        "family": case.family,
        "unit": family.unit,
        "waits": family.waits,
        "parameters": case.parameters,
        "series": case.series,
        "note": case.note,
        "rivals": found,
        "targets": targets,
        "limit": case.limit,
        "per_call": per_call,
        "limit_met": None if case.limit is None or per_call is None else per_call <= case.limit,
        "least": case.least,
        "sound": sound,
    }


def _ratio(mine: dict[str, Any], other: dict[str, Any]) -> float | None:
    """How many times as fast loki does a unit of work."""
    if "seconds" not in mine or "seconds" not in other:
        return None
    ratio: float = (other["seconds"] / other["amount"]) / (mine["seconds"] / mine["amount"])
    return ratio


def markdown(whole: dict[str, Any], plots: list[str]) -> str:
    """The page."""
    about = whole["about"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    rows = [case for case in whole["cases"] if not case["series"]]
    parts = [
        f"# {whole['title']}, measured\n",
        f"{about['date']}; {about['processor']}, {about['cores']} cores, load {about['load'][0]} at "
        f"the end; {about['system']}; {about['python']}; commit {about['commit']}; {versions}.\n",
        f"Data: {about['data']}.{' A quick run: small sizes, few repeats.' if about['quick'] else ''} "
        f"{whole['seconds']:.0f} s in all.\n",
        "Best of repeats, a process for each rival, one thread but where it says otherwise. "
        "The ratio is the rival's time over loki's: above 1 loki is faster. What is called "
        "disturbed had to wait for other processes: measure again on a quiet machine.\n",
        *[_table(case) for case in rows],
        *_series(whole["cases"]),
        *[f"![{plot}]({plot})\n" for plot in plots],
    ]
    return "\n".join(parts)


def _table(case: dict[str, Any]) -> str:
    mine = case["rivals"].get("loki", {})
    lines = [f"## {case['name']}\n"]
    if case["note"]:
        lines.append(f"{case['note']}\n")
    lines += [
        "| rival | speed | ratio | aim | same answer | peak memory |",
        "|---|---|---|---|---|---|",
    ]
    for rival, result in case["rivals"].items():
        if "seconds" not in result:
            lines.append(f"| {rival} | {result.get('failed', 'not installed')} | | | | |")
            continue
        target = next((t for t in case["targets"] if t["rival"] == rival), None)
        aim = f"{target['wanted']:.3g} {_verdict(target['met'])}" if target else ""
        ratio = None if rival == "loki" else _ratio(mine, result)
        lines.append(
            f"| {rival} | {_speed(result, case)} | {'' if ratio is None else f'{ratio:.3g}'} "
            f"| {aim} | {_agreement(rival, result)} | {result['memory'] / 1e6:.1f} MB |"
        )
    if case["per_call"] is not None and case["limit"] is not None:
        lines.append(
            f"\nOne call of loki: {_time(case['per_call'])}, aim {_time(case['limit'])} "
            f"{_verdict(case['limit_met'])}."
        )
    lines += _remarks(case)
    return "\n".join(lines) + "\n"


def _verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def _agreement(rival: str, result: dict[str, Any]) -> str:
    agrees = result.get("agrees")
    return "" if agrees is None or rival == "loki" else f"{100 * agrees:.1f} %"


def _remarks(case: dict[str, Any]) -> list[str]:
    """What the rivals said of their answers; memory for each where many are kept."""
    remarks = []
    for rival, result in case["rivals"].items():
        said = ", ".join(f"{key} {value:.4g}" for key, value in result.get("said", {}).items())
        if case["family"] == "index" and "memory" in result:
            said += f", {result['memory'] / result['amount']:.0f} bytes for each failure"
        if said:
            remarks.append(f"\n{rival}: {said}.")
    if not case["sound"]:
        remarks.append("\n**The answers differ by more than the case allows, or a rival failed.**")
    return remarks


def _speed(result: dict[str, Any], case: dict[str, Any]) -> str:
    unit, rate = case["unit"], result["amount"] / result["seconds"]
    has_waited = not case["waits"] and result["seconds"] > DISTURBED * result["cpu"] + 1e-3
    disturbed = " (disturbed)" if has_waited else ""
    if unit == "bytes":
        return f"{rate / 1e6:.4g} MB/s{disturbed}"
    if unit == "calls":
        return f"{_time(1 / rate)} a call{disturbed}"
    return f"{rate:.4g} {unit}/s, {_time(result['seconds'])} in all{disturbed}"


def _time(seconds: float) -> str:
    if seconds < 1e-6:
        return f"{seconds * 1e9:.3g} ns"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} \u00b5s"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def points(cases: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The cases of each series, by where they stand on its axis."""
    found: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        if case["series"]:
            found.setdefault(case["series"][0], []).append(case)
    return {name: sorted(own, key=lambda case: case["series"][1]) for name, own in found.items()}


def _series(cases: list[dict[str, Any]]) -> list[str]:
    tables = []
    for own in points(cases).values():
        rivals = list(dict.fromkeys(rival for case in own for rival in case["rivals"]))
        lines = [f"## {own[0]['name']}\n", f"| size | {' | '.join(rivals)} |"]
        lines.append("|---" * (len(rivals) + 1) + "|")
        for case in own:
            cells = [_cell(case, rival) for rival in rivals]
            lines.append(f"| {case['series'][1]:,} | {' | '.join(cells)} |")
        tables.append("\n".join(lines) + "\n")
    return tables


def _cell(case: dict[str, Any], rival: str) -> str:
    result = case["rivals"].get(rival, {})
    if "seconds" not in result:
        return str(result.get("failed", ""))
    said = f"{_speed(result, case)}, {result['memory'] / 1e6:.0f} MB"
    if case["family"] == "index":
        said += f", {result['memory'] / result['amount']:.0f} bytes each"
    return said
