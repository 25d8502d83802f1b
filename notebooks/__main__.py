"""Executes the notebooks and writes what came out.

    python -m notebooks                 all of them
    python -m notebooks tuning_patterns one
    python -m notebooks --check         write nothing; 1 where one differs from what is stored

Each runs in a kernel of its own, in an empty folder, without the network.
"""

from __future__ import annotations

import argparse
import re
import sys
import time

from notebooks import book

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
"""Colors of a traceback."""


def main() -> int:
    """Reads the arguments, executes the notebooks; 1 where one raises or is out of date."""
    parser = argparse.ArgumentParser(
        prog="python -m notebooks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="all, where none is named")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where one differs")
    options = parser.parse_args()
    known = book.names()
    for name in options.names:
        if name not in known:
            parser.error(f"no notebook {name!r}: expected one of {', '.join(known)}")
    return max([_made(name, options.check) for name in options.names or known], default=0)


def _made(name: str, is_check: bool) -> int:
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    began = time.monotonic()
    try:
        now = book.execute(name)
        if is_check:
            book.compare(name, book.read(name), now)
        else:
            book.write(name, now)
        wrong = book.faults(now, book.path_of(name).read_text("utf-8"))
    except (CellExecutionError, CellTimeoutError, book.Stale) as problem:
        print(f"{name}: {ESCAPES.sub('', str(problem))}", file=sys.stderr)
        return 1
    for one in wrong:
        print(f"{name}: it {one}", file=sys.stderr)
    print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
