"""Hostile and huge outputs: `python -m benchmarks.robustness [--megabytes 100] [CASE ...]`.

Each case runs `loki.recognize` in a process of its own, on a quarter of the size and on the whole:
seconds, how they grow (1.0 is linear), the peak of memory over that of the text, and whether the
failure at the end was found. Ends with 1 where an answer is wrong, memory exceeds LIMIT texts, or
time is not linear.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.worker import forget_peak, peak

STEEPEST = 1.5
"""Growth of the time with the size; linear is 1, and these machines are noisy."""
LIMIT = 3.0
"""Memory, in sizes of the text: what is promised for the whole of `recognize`."""

FAILURE = (
    "Traceback (most recent call last):\n"
    '  File "app.py", line 3, in load\n'
    "    raise ValueError(flavour)\n"
    "ValueError: no such flavour\n"
)
LINES = (
    "2024-01-31T10:11:12.1234567Z Collecting requests==2.31.0 from https://example.org/simple\n"
    "[ 12%] Building CXX object src/CMakeFiles/core.dir/main.cpp.o\n"
    "tests/test_shop.py::test_price[eur-12] PASSED                            [ 34%]\n"
    "  adding: lib/module_17/component.js (deflated 61%)\n"
)
ESCAPED = (
    "\x1b[32m[INFO]\x1b[0m \x1b[1m\x1b[34mBuilding\x1b[m \x1b]8;;http://x\x07link\x1b]8;;\x07\n"
)
BAR = "".join(f"\r\x1b[K{n:3}% |{'#' * (n // 4):25}| {n}/100 MB" for n in range(0, 101, 10)) + "\n"


def _filled(piece: str | bytes, size: int) -> bytes:
    encoded = piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece
    return encoded * (size // len(encoded))


def _then_failure(piece: str | bytes) -> Callable[[int], bytes]:
    return lambda size: _filled(piece, size) + b"\n" + FAILURE.encode()


@dataclass(frozen=True)
class Case:
    """Makes a text of about so many bytes; `found`: the failure at its end is to be found."""

    make: Callable[[int], bytes | str]
    found: bool = True


CASES = {
    "log": Case(_then_failure(LINES)),
    "log, as str": Case(lambda size: _then_failure(LINES)(size).decode()),
    "log, beyond ASCII": Case(
        lambda size: _then_failure("\u2713 gepr\u00fcft: \u4e2d\u6587\n")(size).decode()
    ),
    "one line": Case(_then_failure("x")),
    "one line of words": Case(_then_failure("error: a.py:1:1: ")),
    "one line of signals": Case(
        lambda size: _filled("x" * 90 + " error: Permission timeout connection failed ", size),
        False,
    ),
    "one line of equal signs": Case(lambda size: _filled("=", size), False),
    "NULs": Case(_then_failure(b"\0")),
    "invalid UTF-8": Case(_then_failure(b"\xff")),
    "invalid UTF-8 among words": Case(_then_failure(b"caf\xe9 \xc3( ok\n")),
    "lone surrogates, as str": Case(
        lambda size: _filled("\ud800ab\n", size).decode("utf-8", "surrogatepass") + FAILURE
    ),
    "UTF-16": Case(lambda size: (_filled(LINES, size // 2).decode() + FAILURE).encode("utf-16")),
    "CRLF": Case(lambda size: _then_failure(LINES)(size).replace(b"\n", b"\r\n")),
    "CR only": Case(lambda size: _then_failure(LINES)(size).replace(b"\n", b"\r")),
    "escapes": Case(_then_failure(ESCAPED)),
    "an escape that never ends": Case(_then_failure("\x1b]0;")),
    "progress bars": Case(_then_failure(BAR)),
    "one line of progress": Case(_then_failure(BAR.replace("\n", ""))),
    "backspaces": Case(_then_failure("ab\b\b")),
    "cursor back": Case(_then_failure("abc\x1b[9D")),
    "deep JSON": Case(_then_failure('{"a":[')),
    "deep JSON, indented": Case(_then_failure('                {"a": [\n')),
    "empty lines": Case(_then_failure("\n")),
    "every line an error": Case(
        lambda size: _filled("src/a.py:1:2: F401 [*] `os` imported but unused\n", size), False
    ),
    "every line a traceback": Case(lambda size: _filled(FAILURE, size)),
    "quotes and at-signs": Case(_then_failure("'\"`@:/.-\n")),
}


def measured(name: str, size: int) -> dict[str, float | bool]:
    """One case in this process."""
    import loki

    loki.recognize(FAILURE)
    text = CASES[name].make(size)
    length = len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else len(text)
    gc.collect()
    before = forget_peak()
    begin = time.perf_counter()
    failure = loki.recognize(text)
    seconds = time.perf_counter() - begin
    found = (failure.error_type, failure.message) == ("ValueError", "no such flavour")
    return {
        "size": length,
        "seconds": seconds,
        "memory": (peak() - before) / length,
        "right": found or not CASES[name].found,
    }


def main(words: list[str]) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.robustness")
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    asked = parser.parse_args(words)
    size = int(asked.megabytes * 1e6)
    if asked.one:
        print(json.dumps(measured(asked.cases[0], size)))
        return 0
    broken = 0
    print(
        "| text | MB | s | MB/s | growth | memory / text | right |\n|---|--:|--:|--:|--:|--:|---|"
    )
    for name in asked.cases or CASES:
        small, large = (
            _apart(name, megabytes) for megabytes in (asked.megabytes / 4, asked.megabytes)
        )
        growth = math.log(large["seconds"] / small["seconds"], large["size"] / small["size"])
        kept = round(large["memory"], 1) <= LIMIT and bool(large["right"]) and growth < STEEPEST
        broken += not kept
        print(
            f"| {name} | {large['size'] / 1e6:.0f} | {large['seconds']:.2f} |"
            f" {large['size'] / 1e6 / large['seconds']:.0f} | {growth:.2f} | {large['memory']:.2f} |"
            f" {'yes' if large['right'] else '**no**'} |",
            flush=True,
        )
    return 1 if broken else 0


def _apart(name: str, megabytes: float) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.robustness",
        "--one",
        "--megabytes",
        str(megabytes),
        name,
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
