"""What the demo's scripted agent answers: proposals as a model makes them, some of them wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loki.action.agent_protocol import Briefing, Proposal
from loki.action.changes.change import Change

Answer = Callable[[Briefing], Proposal]


@dataclass(frozen=True, slots=True)
class Story:
    """A task of the demo.

    Attributes:
        title: the task.
        checks: what must pass.
        answers: what the agent answers, one after the other.
        status: how it ends.
        shows: what one sees in it.
        kind: kind of the task.
        max_attempts: attempts in all.
    """

    title: str
    checks: tuple[str, ...]
    answers: tuple[Answer, ...]
    status: str
    shows: str
    kind: str = "bug_fix"
    max_attempts: int = 4


def replaces(path: str, edits: Mapping[str, str], description: str, confidence: float) -> Answer:
    """An agent's edit: passages of a file of the project, replaced."""

    def answer(briefing: Briefing) -> Proposal:
        text = (briefing.root / path).read_text("utf-8")
        for old, new in edits.items():
            text = text.replace(old, new)
        return Proposal(Change.write({path: text}), description, confidence, "scripted")

    return answer


def _nothing_more(_briefing: Briefing) -> Proposal:
    return Proposal(Change.nothing(), "nothing more to change", 0.9, "scripted")


STORIES = (
    Story(
        "Prices with a thousands separator, like 1,299.50, must be read",
        ("pytest -q tests/test_money.py", "mypy till"),
        (
            replaces(
                "till/money.py",
                {"return Decimal(text)": 'return float(text.replace(",", ""))'},
                "remove the separator and convert to float",
                0.7,
            ),
            replaces(
                "till/money.py",
                {'float(text.replace(",", ""))': 'Decimal(text.replace(",", ""))'},
                "keep Decimal, as the signature says",
                0.9,
            ),
        ),
        "success",
        "success at the second attempt",
    ),
    Story(
        "Half a cent must be rounded up in a basket's total",
        ("pytest -q tests/test_basket.py",),
        (
            replaces(
                "till/basket.py",
                {"(full * (100 - self.discount_percent) / 100).quantize(CENT)":
                 "round(full * (100 - self.discount_percent) / 100, 2)"},
                "round() instead of quantize()",
                0.6,
            ),
            replaces(
                "till/basket.py",
                {"round(full * (100 - self.discount_percent) / 100, 2)":
                 "round(full - full * self.discount_percent / 100, 2)"},
                "subtract the discount before rounding",
                0.5,
            ),
            replaces(
                "till/basket.py",
                {"round(full - full * self.discount_percent / 100, 2)":
                 "(full * (100 - self.discount_percent) / 100).quantize(CENT, ROUND_HALF_UP)",
                 "from decimal import Decimal": "from decimal import ROUND_HALF_UP, Decimal"},
                "say how to round: ROUND_HALF_UP",
                0.9,
            ),
        ),
        "success",
        "the same failure twice → a sign → another strategy → success",
    ),
    Story(
        "A receipt's line must be as wide as the paper",
        ("ruff check till/receipt.py", "pytest -q tests/test_receipt.py"),
        (
            replaces(
                "till/receipt.py",
                {"from decimal import Decimal\n": "import textwrap\nfrom decimal import Decimal\n",
                 "return name + show(price)":
                 "amount = show(price)\n    return name.ljust(WIDTH - len(amount)) + amount"},
                "pad the name with blanks",
                0.8,
            ),
            _nothing_more,
        ),
        "success",
        "an auto_fix: ruff mends what ruff complains of",
    ),
    Story(
        "Counting the stock must not change its argument",
        ("pytest -q tests/test_stock.py",),
        (
            replaces("till/stock.py", {"left = start": "left = dict(start"}, "copy the stock", 0.8),
            replaces("till/stock.py", {"left = start": "left = dict(start)"}, "copy the stock", 0.9),
        ),
        "success",
        "VALIDATE catches a syntax error; nothing was written",
    ),
    Story(
        "The bank's terminal must be reachable",
        ("pytest -q tests/test_bank.py",),
        (
            replaces(
                "till/bank.py",
                {'key = os.environ["TILL_BANK_KEY"]':
                 'key = os.environ.get("TILL_BANK_KEY", "")\n'
                 "    if not key:\n"
                 '        raise RuntimeError("environment variable TILL_BANK_KEY is not set")'},
                "say clearly what is missing",
                0.5,
            ),
        ),
        "escalated",
        "an escalation: a missing key is for a person, not for another try",
    ),
    Story(
        "Loyal customers get a tenth more points for each year",
        ("pytest -q tests/test_loyalty.py",),
        (
            replaces(
                "till/loyalty.py",
                {"cents // 100 + years": "cents // 100 * years"},
                "multiply by the years",
                0.5,
            ),
            replaces(
                "till/loyalty.py",
                {"cents // 100 * years": "cents // 100 * (10 + years) // 10"},
                "a tenth for each year",
                0.7,
            ),
        ),
        "failed",
        "a dead letter: two attempts were allowed, both failed",
        max_attempts=2,
    ),
)  # fmt: skip
