"""Backoff once more: slow, obvious, and in another language than the one under test.

``python tests/support/backoff.py`` prints the vectors in ``tests/py/decision``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import xxhash

MODES = ("proportional", "none", "full", "equal", "decorrelated")
SECOND = 10**9
MOST = 2**63 - 1


@dataclass(frozen=True)
class Setting:
    """The arguments of a Backoff; times in nanoseconds."""

    base: int
    multiplier: float
    cap: int
    jitter: float
    mode: str
    seed: int

    @property
    def top(self) -> int:
        return max(self.base, self.cap)


def draw(setting: Setting, key: str, failures: int) -> int:
    of_key = xxhash.xxh3_64_intdigest(key.encode("utf-8", "surrogatepass"), seed=setting.seed)
    return xxhash.xxh3_64_intdigest(failures.to_bytes(8, "little"), seed=of_key)


def grown(setting: Setting, exponent: int) -> int:
    """Products of doubles, which IEEE 754 defines to the last bit: no power function."""
    product, power = float(setting.base), setting.multiplier
    for bit in range(32):
        if exponent >> bit & 1:
            product *= power
        power *= power
    if setting.base == 0:
        return 0
    return setting.top if product >= float(setting.top) else max(setting.base, int(product))


def width(setting: Setting, delay: int) -> int:
    room = setting.top - setting.base
    if setting.mode == "full":
        return min(delay, room)
    if setting.mode == "equal":
        return min(delay // 2, room)
    if setting.mode == "none":
        return 0
    half = setting.jitter * delay
    return room if half >= room / 2 else 2 * int(half)


def window(setting: Setting, exponent: int) -> tuple[int, int]:
    """First and last nanosecond that a delay may be."""
    delay = grown(setting, exponent)
    wide = width(setting, delay)
    low = {"full": 0, "equal": delay - delay // 2, "none": delay}.get(setting.mode)
    if low is None:
        highest_middle = setting.top - width(setting, setting.top) // 2
        low = min(delay, highest_middle) - wide // 2
    low = min(max(low, setting.base), setting.top - wide)
    return low, low + wide


def pick(low: int, high: int, drawn: int) -> int:
    return low + (drawn * (high - low + 1) >> 64)


def delay(setting: Setting, failures: int, key: str = "", offset: int = 0) -> int:
    """Nanoseconds."""
    if failures == 0 or setting.base == 0:
        return setting.base
    first = min(failures, offset)
    exponent = failures - first
    if setting.mode != "decorrelated":
        return pick(*window(setting, exponent), draw(setting, key, failures))
    begin = exponent - exponent % 1024
    previous = setting.top if begin else setting.base
    for step in range(first + begin, failures + 1):
        previous = pick(setting.base, min(setting.top, 3 * previous), draw(setting, key, step))
    return previous


SETTINGS = [
    *(Setting(5 * SECOND, 2.0, 300 * SECOND, 0.1, mode, 0) for mode in MODES),
    *(Setting(SECOND // 2, 1.7, 86_400 * SECOND, 0.3, mode, 2**64 - 1) for mode in MODES),
    *(Setting(1, 1.0000001, MOST, 1.0, mode, 7) for mode in MODES),
    *(Setting(10 * SECOND, 2.0, 11 * SECOND, 0.5, mode, 3) for mode in MODES),
    Setting(MOST, 2.0, SECOND, 0.1, "proportional", 1),
    Setting(0, 2.0, SECOND, 0.1, "proportional", 1),
]
FAILURES = (0, 1, 2, 3, 7, 13, 40, 1023, 1024, 1025, 100_000, 2**31, 2**32 - 1)
KEYS = ("", "api/claude", "a task with a longer key: größer als sonst, " * 6)


def vectors() -> list[dict[str, object]]:
    return [
        {
            **asdict(setting),
            "key": key,
            "offset": offset,
            "delays": [delay(setting, failures, key, offset) for failures in FAILURES],
        }
        for number, setting in enumerate(SETTINGS)
        for key, offset in [(KEYS[number % len(KEYS)], number % 2)]
    ]


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(vector, ensure_ascii=False) for vector in vectors())
    print(f'{{"failures": {list(FAILURES)}, "vectors": [\n{lines}\n]}}')
