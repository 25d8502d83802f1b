"""Texts with secrets of every kind, and texts that only look so: labelled in ``secrets.yml``."""

from __future__ import annotations

import random
import re
import string
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

_BLANK = re.compile(r"\{(mixed|upper|lower|hex|digits|base64):(\d+)\}")
_LETTERS = {
    "mixed": string.ascii_letters + string.digits,
    "upper": "ABCDEFGHJKLMNPQRSTUVWXYZ234567",
    "lower": string.ascii_lowercase,
    "hex": "0123456789abcdef",
    "digits": string.digits,
    "base64": string.ascii_letters + string.digits + "+/",
}
LEAST = 6
"""Characters of a made-up part that must be gone: shorter ones may stand elsewhere, too."""


@dataclass(frozen=True)
class Labelled:
    """A text, the kind of secret in it ("secret" for those without a kind), and its secret parts."""

    kind: str
    text: str
    parts: tuple[str, ...]

    def leaks(self, shown: str) -> list[str]:
        """Those of its secret parts that a text shows."""
        return [part for part in self.parts if part in shown]


@cache
def secrets() -> tuple[Labelled, ...]:
    """Every labelled secret; the same in every run."""
    made = random.Random(7)
    return tuple(_made(row[0], row[1], made) for row in _table()["secrets"])


@cache
def innocent() -> tuple[str, ...]:
    """Texts that must stay as they are."""
    return tuple(_table()["innocent"])


def _table() -> dict[str, list[str]]:
    text = Path(__file__).with_suffix(".yml").read_text("utf-8")
    table: dict[str, list[str]] = yaml.safe_load(text)
    return table


def _made(kind: str, text: str, made: random.Random) -> Labelled:
    parts = []

    def fill(blank: re.Match[str]) -> str:
        letters, count = _LETTERS[blank[1]], int(blank[2])
        part = "".join(made.choices(letters, k=count))
        if blank[1] in {"mixed", "base64"} and count > 2:
            part = f"{part[:1]}7{part[2:-1]}Z"  # a digit and a capital letter, as real ones have
        if count >= LEAST:
            parts.append(part)
        return part

    return Labelled(kind, _BLANK.sub(fill, text), tuple(parts))
