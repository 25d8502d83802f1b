"""What ``pytest --loki`` costs: ``python -m benchmarks.pytest_overhead``; ``--quick`` for a look.

A generated suite of 5,000 tests, once green and once with 1 % of them failing for three reasons, is run
with and without ``--loki``, in turns, each several times; what counts is the best of each. The tests
do next to nothing, so that the ratio is an upper bound: a real suite takes longer, and loki does not.
Last, what importing the plugin costs a project that does not use it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FILES, EACH = 100, 50
IMPORT = (
    "import time, typing, pytest; began = time.perf_counter(); import loki.pytest_plugin;"
    "print(1000 * (time.perf_counter() - began))"
)

HEAD = '''"""A generated test file."""
import pytest


def price(n):
    return {"net": n}


@pytest.fixture
def table():
    return {n: price(n) for n in range(20)}


'''
GOOD = "def test_{n}(table):\n    assert table[{k}]['net'] == {k}\n\n\n"
BAD = (
    "def test_{n}(table):\n    assert table[{k}]['net'] == {k} + 1\n\n\n",
    "def test_{n}(table):\n    assert table[{k}]['gross'] > 0\n\n\n",
    "def test_{n}(table):\n    assert price({k}).net == {k}\n\n\n",
)


def generate(folder: Path, share: float) -> None:
    """Write the suite; every so many tests fail, for three reasons in turn.

    Args:
        folder: where to.
        share: of the tests that fail, 0 to 1.
    """
    every = round(1 / share) if share else 0
    for file in range(FILES):
        parts = [HEAD]
        for n in range(EACH):
            number = file * EACH + n
            is_bad = every and number % every == every - 1
            form = BAD[number // every % len(BAD)] if is_bad else GOOD
            parts.append(form.format(n=n, k=n % 20))
        (folder / f"test_{file:03}.py").write_text("".join(parts), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)


def seconds(folder: Path, *arguments: str) -> float:
    """Wall time of one run in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "loki.pytest_plugin", *arguments]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    took = time.perf_counter() - began
    if done.returncode not in {0, 1}:
        raise SystemExit(done.stdout.decode("utf-8", "replace")[-2000:])
    return took


def measure(name: str, share: float, repeats: int) -> float:
    """The ratio of the best run with loki to the best without; printed, too."""
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        generate(folder, share)
        seconds(folder, "--loki")  # bytecode is written
        plain: list[float] = []
        loki: list[float] = []
        for turn in range(repeats):
            order = ((), ("--loki",)) if turn % 2 else (("--loki",), ())
            for arguments in order:
                (loki if arguments else plain).append(seconds(folder, *arguments))
    ratio: float = min(loki) / min(plain)
    print(
        f"{name:12} without {min(plain):6.2f} s, with {min(loki):6.2f} s: ratio {ratio:.3f} "
        f"(of medians {statistics.median(loki) / statistics.median(plain):.3f}; best of {repeats})"
    )
    return ratio


def import_cost(repeats: int) -> float:
    """Milliseconds that importing the plugin takes where pytest is loaded; the best of some."""
    command = [sys.executable, "-c", IMPORT]
    times = [float(subprocess.check_output(command, text=True)) for _ in range(repeats)]
    print(f"import       {min(times):.2f} ms where nobody asks for it (best of {repeats})")
    return min(times)


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    repeats = 2 if options.quick else options.repeats
    print(f"{FILES * EACH} tests in {FILES} files")
    import_cost(3 * repeats)
    measure("green", 0.0, repeats)
    measure("1 % failing", 0.01, repeats)


if __name__ == "__main__":
    main()
