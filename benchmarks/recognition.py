"""Measures loki's recognition beside named peers: `make bench`, or `python benchmarks/recognition.py`.

Each rival of each case runs in a process of its own; its answer is held against loki's. Writes
`report.md`, `report.json` and plots to the output folder, and the report to stdout. See README.md.
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

from benchmarks import corpus, plots, report  # noqa: E402
from benchmarks.cases import FAMILIES, cases  # noqa: E402
from benchmarks.job import Data  # noqa: E402
from benchmarks.rivals import measured  # noqa: E402

FULL, QUICK = 16_000_000, 400_000
"""Characters of generated logs."""
PEERS = (
    "ahocorasick_rs",
    "google-re2",
    "hyperscan",
    "drain3",
    "rapidfuzz",
    "datasketch",
    "matplotlib",
)
BUDGET = {False: 4.0, True: 0.2}
"""Seconds of repeats for one rival in one case."""


def arguments(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--logs", type=Path, metavar="FILE.jsonl[.gz]", help="records with a log or text key"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "benchmarks", help="folder")
    parser.add_argument("--quick", action="store_true", help="small sizes: under a minute")
    parser.add_argument("--seed", type=int, default=1, help="of generated logs")
    parser.add_argument("--only", default="", help="families, with commas: " + ",".join(FAMILIES))
    parsed = parser.parse_args(words)
    unknown = set(filter(None, parsed.only.split(","))) - set(FAMILIES)
    if unknown:
        parser.error(f"unknown family {min(unknown)!r}: expected some of {', '.join(FAMILIES)}")
    return parsed


def prepared(folder: Path, options: argparse.Namespace) -> tuple[Data, str]:
    """Writes the data where all processes find it, and says what it is."""
    import loki

    if options.logs:
        logs, said = corpus.read(options.logs), options.logs.name
        if options.quick:
            logs = logs[:10]
    else:
        logs = corpus.logs(options.seed, QUICK if options.quick else FULL)
        said = f"generated, seed {options.seed}"
    lines = [line for text in logs for line in loki.clean(text).split("\n") if line.strip()]
    data = Data(folder)
    data.keep("logs", logs)
    data.keep("texts", corpus.excerpts(logs))
    data.keep("lines", lines)
    size = sum(map(len, logs))
    return (
        data,
        f"{said}: {len(logs)} logs, {size / 1e6:.1f} million characters, {len(lines)} lines",
    )


def main(words: list[str]) -> int:
    """Runs the cases; 1 where a rival failed, or its answer differs from loki's by too much."""
    options = arguments(words)
    begin = time.monotonic()
    only = set(filter(None, options.only.split(",")))
    with tempfile.TemporaryDirectory(prefix="loki-bench-") as folder:
        data, said = prepared(Path(folder), options)
        results = []
        for case in cases(options.quick):
            if only and case.family not in only:
                continue
            results.append(measured(case, data, "benchmarks.cases", BUDGET[options.quick]))
            at = f" {case.series[1]}" if case.series else ""
            sys.stderr.write(f"{time.monotonic() - begin:6.1f} s  {case.name}{at}\n")
    whole = {
        "title": "Recognition",
        "about": {**report.machine(PEERS), "data": said, "quick": options.quick},
        "seconds": round(time.monotonic() - begin, 1),
        "cases": results,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    text = report.markdown(whole, plots.write(whole, options.out))
    (options.out / "report.json").write_text(json.dumps(whole, indent=1), "utf-8")
    (options.out / "report.md").write_text(text, "utf-8")
    sys.stdout.write(text)
    return int(any(not case["sound"] for case in results))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
