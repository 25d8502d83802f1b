"""Measures what loki decides with beside named peers: `make bench-decision`.

Each rival of each case runs in a process of its own. Writes `decision.md`, `decision.json` and plots
to the output folder, and the report to stdout. See README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if not __package__:  # started as a file: its siblings are a package
    sys.path[0] = str(ROOT)

from benchmarks import plots, report  # noqa: E402
from benchmarks.decision_cases import FAMILIES, PEERS, cases  # noqa: E402
from benchmarks.job import Data  # noqa: E402
from benchmarks.rivals import measured  # noqa: E402

BUDGET = {False: 2.0, True: 0.1}
"""Seconds of repeats for one rival in one case."""


def arguments(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "benchmarks", help="folder")
    parser.add_argument("--quick", action="store_true", help="few calls: some seconds")
    parser.add_argument("--only", default="", help="families, with commas: " + ",".join(FAMILIES))
    parsed = parser.parse_args(words)
    unknown = set(filter(None, parsed.only.split(","))) - set(FAMILIES)
    if unknown:
        parser.error(f"unknown family {min(unknown)!r}: expected some of {', '.join(FAMILIES)}")
    return parsed


def main(words: list[str]) -> int:
    """Runs the cases; 1 where a rival failed, or its answer differs from loki's by too much."""
    options = arguments(words)
    begin = time.monotonic()
    only = set(filter(None, options.only.split(","))) or set(FAMILIES)
    budget = BUDGET[options.quick]
    options.out.mkdir(parents=True, exist_ok=True)
    # Beside the report: the system's folder for temporary files may be no disk at all.
    with tempfile.TemporaryDirectory(prefix="loki-bench-", dir=options.out.resolve()) as folder:
        results = []
        for case in cases(options.quick):
            if case.family not in only:
                continue
            results.append(measured(case, Data(Path(folder)), "benchmarks.decision_cases", budget))
            at = f" {case.series[1]}" if case.series else ""
            sys.stderr.write(f"{time.monotonic() - begin:6.1f} s  {case.name}{at}\n")
    whole = {
        "title": "Decision",
        "about": {
            **report.machine(PEERS),
            "data": "none: bodies are empty",
            "quick": options.quick,
        },
        "seconds": round(time.monotonic() - begin, 1),
        "cases": results,
    }
    text = report.markdown(
        whole, plots.overview(whole, options.out) + plots.write(whole, options.out)
    )
    (options.out / "decision.json").write_text(json.dumps(whole, indent=1), "utf-8")
    (options.out / "decision.md").write_text(text, "utf-8")
    sys.stdout.write(text)
    return int(any(not case["sound"] for case in results))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
