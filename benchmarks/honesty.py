"""How well `loki.scan_message` tells honest messages from others, on labelled ones.

``python -m benchmarks.honesty`` prints precision and recall for the messages that the rules were made
with, for those that were kept back, and for each set that somebody else wrote; ``--wrong`` also each
message that is judged wrongly. What these figures are worth: ``docs/design/honesty.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from loki.decision.honesty import Finding, rules, scan_message

FOLDER = Path(__file__).parents[1] / "tests" / "py" / "decision" / "honesty"
MADE_WITH, KEPT_BACK, INDEPENDENT = "Made with", "Kept back", "Independent"
INDEPENDENT_2, NEVER_USED = "Independent, second", "Never used"
SEEN = (MADE_WITH, KEPT_BACK, INDEPENDENT, INDEPENDENT_2)  # the rules have been mended with these
SETS = (*SEEN, NEVER_USED)
_STARTS = {
    "held_out_independent": INDEPENDENT,
    "held_out_second": INDEPENDENT_2,
    "held_out_third": NEVER_USED,
    "held_out": KEPT_BACK,
}


@dataclass(frozen=True)
class Message:
    """A labelled message: where it stands, what it says, what it shows."""

    place: str
    text: str
    expected: frozenset[str]


@dataclass
class Score:
    """Messages by what was found and what was expected; `wrong` names the others."""

    right: int = 0
    false: int = 0
    missed: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """Share of what was found that was expected; 1 where nothing was found."""
        return self.right / (self.right + self.false) if self.right + self.false else 1.0

    @property
    def recall(self) -> float:
        """Share of what was expected that was found; 1 where nothing was expected."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    def add(self, message: Message, *, expected: bool, found: bool, what: str = "") -> None:
        """Count a message."""
        self.add_one(f"{message.place} {what}", message.text, expected=expected, found=found)

    def add_one(self, place: str, text: str, *, expected: bool, found: bool) -> None:
        """Count what stands somewhere."""
        self.right += expected and found
        self.false += found and not expected
        self.missed += expected and not found
        if expected is not found:
            kind = "missed" if expected else "false"
            self.wrong.append(f"{kind} {place}\n{text.strip()}\n")

    def row(self, name: str) -> str:
        """A row of a table."""
        return (
            f"| {name} | {self.right + self.missed} | {self.right} | {self.false} "
            f"| {self.missed} | {self.precision:.2f} | {self.recall:.2f} |"
        )


Scan = Callable[[str], Sequence[Finding]]


def messages(name: str) -> list[Message]:
    """The labelled messages of a set."""
    found = []
    for path in sorted(FOLDER.glob("*.yml")):
        if _set_of(path.stem) == name:
            entries = yaml.safe_load(path.read_text("utf-8"))
            found += [
                Message(f"{path.stem}/{number}", entry["text"], frozenset(entry["expect"]))
                for number, entry in enumerate(entries, 1)
            ]
    return found


def by_message(given: Iterable[Message], scan: Scan = scan_message) -> Score:
    """Anything found against anything expected."""
    score = Score()
    for message in given:
        ids = sorted({finding.id for finding in scan(message.text)})
        what = f"expected {sorted(message.expected)} found {ids}"
        score.add(message, expected=bool(message.expected), found=bool(ids), what=what)
    return score


def by_rule(given: Sequence[Message], scan: Scan = scan_message) -> dict[str, Score]:
    """The same for each family, and for each rationalization alone."""
    known = rules().rules
    groups: dict[str, set[str]] = {}
    for rule in known.values():
        groups.setdefault(rule.family, set()).add(rule.id)
    groups.update({name: {name} for name in known})
    scores = {name: Score() for name in groups}
    for message in given:
        ids = {finding.id for finding in scan(message.text)}
        for name, group in groups.items():
            score, expected = scores[name], bool(group & message.expected)
            score.add(message, expected=expected, found=bool(group & ids))
    return scores


def _set_of(file: str) -> str:
    return next((name for start, name in _STARTS.items() if file.startswith(start)), MADE_WITH)


def _table(name: str, given: Sequence[Message]) -> str:
    total = by_message(given)
    innocent = sum(not message.expected for message in given)
    lines = [
        f"## {name}: {len(given)} messages, {innocent} of them honest",
        "",
        "| | expected | found rightly | wrongly | missed | precision | recall |",
        "|---|---:|---:|---:|---:|---:|---:|",
        total.row("any, by message"),
        *(score.row(rule) for rule, score in by_rule(given).items()),
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="show what is judged wrongly")
    parser.add_argument("--no-held-out", action="store_true", help="leave these unread")
    options = parser.parse_args()
    for name in SETS[:1] if options.no_held_out else SETS:
        given = messages(name)
        print(_table(name, given), "\n")
        if options.wrong:
            print("\n".join(by_message(given).wrong))


if __name__ == "__main__":
    main()
