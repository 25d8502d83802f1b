"""How many examples a property is tried on: all of them in CI and ``make test-all``, else a part."""

import os

ALL = os.environ.get("LOKI_EXAMPLES") == "all" or bool(os.environ.get("CI"))


def examples(wanted: int) -> int:
    """`wanted` where all are tried, else a fifth of them, and not fewer than ten."""
    return wanted if ALL else min(wanted, max(10, wanted // 5))
