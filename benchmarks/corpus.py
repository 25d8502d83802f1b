"""The data of the benchmarks: CI-like logs, failures and lines by a seed, or logs from a file.

Everything generated depends on the seed alone (SplitMix64, no `random`), so that two people on two
Pythons measure the same bytes.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TEMPLATES = Path(__file__).with_name("templates.yml")
_MASK = (1 << 64) - 1


class Mix:
    """A stream of numbers by a seed.

    Source:
        Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def below(self, end: int) -> int:
        """The next number, 0 to end - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((z ^ (z >> 31)) * end) >> 64

    def hex(self, digits: int) -> str:
        """So many hex digits."""
        return "".join(f"{self.below(1 << 32):08x}" for _ in range((digits + 7) // 8))[:digits]


@cache
def words() -> tuple[str, ...]:
    """A few thousand words that look like ones in names."""
    mix, begin = Mix(1), ("b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "st", "tr")
    parts = [a + b + c for a in begin for b in "aeiou" for c in ("", "n", "r", "x", "st")]
    found = {parts[mix.below(len(parts))] + parts[mix.below(len(parts))] for _ in range(4000)}
    return tuple(sorted(found))


class Slots:
    """What templates name in braces; a name with a digit behind it stays the same in one text.

    Names, paths and words come from `stable`; times, numbers and addresses from `volatile`.
    """

    def __init__(self, stable: Mix, volatile: Mix) -> None:
        self._stable, self._volatile = stable, volatile
        self._kept: dict[str, str] = {}

    def __getitem__(self, key: str) -> str:
        if not key[-1].isdigit():
            return self._made(key)
        if key not in self._kept:
            self._kept[key] = self._made(key.rstrip("0123456789"))
        return self._kept[key]

    def _made(self, kind: str) -> str:
        make = _STABLE.get(kind)
        return make(self._stable) if make else _VOLATILE[kind](self._volatile)


def _word(mix: Mix) -> str:
    return words()[mix.below(len(words()))]


def _ident(mix: Mix) -> str:
    return f"{_word(mix)}_{_word(mix)}"


def _float(mix: Mix) -> str:
    return f"{mix.below(90)}.{mix.below(100):02d}"


_STABLE: dict[str, Callable[[Mix], str]] = {
    "word": _word,
    "ident": _ident,
    "Ident": lambda mix: _word(mix).title() + _word(mix).title(),
    "path": lambda mix: f"src/{_word(mix)}/{_ident(mix)}",
}
_VOLATILE: dict[str, Callable[[Mix], str]] = {
    "int": lambda mix: str(mix.below(9000)),
    "float": _float,
    "hex": lambda mix: f"0x{mix.hex(12)}",
    "sha": lambda mix: f"a1{mix.hex(38)}",
    "uuid": lambda mix: "-".join(mix.hex(n) for n in (8, 4, 4, 4, 12)),
    "time": lambda mix: (
        f"2024-0{1 + mix.below(9)}-1{mix.below(10)}T1{mix.below(10)}:{10 + mix.below(50)}:"
        f"{10 + mix.below(50)}.{mix.below(1000):03d}Z"
    ),
    "clock": lambda mix: f"1{mix.below(10)}:{10 + mix.below(50)}:{10 + mix.below(50)}",
    "ip": lambda mix: f"10.{mix.below(256)}.{mix.below(256)}.{mix.below(256)}",
    "version": lambda mix: f"{mix.below(9)}.{mix.below(30)}.{mix.below(20)}",
    "url": lambda mix: f"https://files.example.org/{mix.hex(2)}/{mix.hex(12)}",
    "tmp": lambda mix: f"/tmp/build-{mix.hex(8)}/run",
    "percent": lambda mix: f"{mix.below(100)}%",
    "nanos": lambda mix: f"{1570000000 + mix.below(10**7)}{mix.below(10**9):09d}",
}


@cache
def templates() -> dict[str, Any]:
    """What generated texts are made of."""
    import yaml

    found: dict[str, Any] = yaml.safe_load(TEMPLATES.read_bytes())
    return found


def fill(template: str, stable: Mix, volatile: Mix) -> str:
    """A template with its slots filled."""
    return template.format_map(Slots(stable, volatile))


def lines(seed: int, count: int) -> Iterator[tuple[str, int]]:
    """Log lines, each with the number of the template that it was made from."""
    mix, known = Mix(seed), templates()["lines"]
    for _ in range(count):
        template = mix.below(len(known))
        yield fill(known[template], mix, mix), template


def failures(
    seed: int, count: int, made_from: str = "failures", kinds: float = 0.3
) -> Iterator[tuple[str, int]]:
    """Outputs of failing tools, or messages, each with the number of its kind.

    Two of one kind differ in what varies from run to run only; two kinds differ in names, too.

    Args:
        seed: of everything.
        count: how many.
        made_from: "failures" for outputs, "messages" for the line that says what failed.
        kinds: so many kinds for each failure, 0 to 1.
    """
    mix, most, known = Mix(seed), max(1, int(count * kinds)), templates()[made_from]
    for _ in range(count):
        kind = mix.below(most)
        template = known[kind % len(known)]
        yield fill(template, Mix(seed * 1_000_003 + kind * 7919), mix), kind


def log(seed: int) -> str:
    """A CI job's log that ends in a failure: set-up, steps with their framing, and its end."""
    mix, known = Mix(seed), templates()

    def line(template: str) -> str:
        return fill(template, mix, mix)

    def one_of(several: list[Any]) -> Any:
        return several[mix.below(len(several))]

    parts = [line(known["head"])]
    for _ in range(3 + mix.below(6)):
        step = one_of(known["steps"])
        parts.append(line(known["step_begin"]))
        parts += [line(known["lines"][one_of(step)]) for _ in range(40 + mix.below(400))]
        parts.append(line(known["step_end"]))
    parts += [line(one_of(known["failures"])), line(known["tail"])]
    return "\r\n".join(parts)


def logs(seed: int, size: int) -> list[str]:
    """Logs of so many characters together, or a little more."""
    found: list[str] = []
    while size > 0:
        found.append(log(seed * 1000 + len(found)))
        size -= len(found[-1])
    return found


def read(path: Path) -> list[str]:
    """The texts of a JSON-lines file, plain or packed with gzip: each record's `log` or `text`."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    records = [json.loads(line) for line in text.split("\n") if line]
    found = [record.get("log", record.get("text")) for record in records]
    if not found or not all(isinstance(text, str) for text in found):
        raise ValueError(f"{path}: expected records with a text under 'log' or 'text'")
    return found


def excerpts(logs: list[str], size: int = 2048) -> list[str]:
    """One text of about so many characters per log: what surrounds the first line that complains."""
    found = []
    for text in logs:
        folded = text.lower()
        places = [folded.find(word) for word in ("error", "fail", "traceback", "exited with")]
        at = min((place for place in places if place >= 0), default=len(text))
        begin = max(0, min(at - size // 4, len(text) - size))
        found.append(text[begin : begin + size])
    return found
