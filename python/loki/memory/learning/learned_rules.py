"""Learned rules: what people approved, or wrote themselves, for every task to come.

Each is a page in ``.loki/memory/learned/``. The head is optional; the rule is what stands below it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki.base.token_estimate import tokens
from loki.memory import front_matter

if TYPE_CHECKING:
    from loki.memory.store import Store

FOLDER = "memory/learned/"

RULES_TOKENS = 500
"""Most tokens of the rules in a briefing; chosen, not measured."""

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Rule:
    """A lasting rule.

    Attributes:
        id: what it is called: the page's ``id``, else its name.
        text: the rule, Markdown.
        approved_at: when a person approved it, ISO 8601 UTC; "" where a person wrote it.
        approved_by: who did, or "".
    """

    id: str
    text: str
    approved_at: str = ""
    approved_by: str = ""


def read(name: str, text: str) -> Rule:
    """The rule of a page.

    Args:
        name: of its file.
        text: what stands in it.

    Raises:
        ValueError: its head cannot be read, or nothing stands below it.

    Example:
        >>> read("style.md", "Never edit gen/ by hand.\\n").text
        'Never edit gen/ by hand.'
    """
    fields, body = front_matter.parse(text) if text.startswith("---") else ({}, text)
    if not body.strip():
        raise ValueError("found no rule, expected its text below the head")
    given = fields.get("id")
    return Rule(
        str(given) if given else name.removesuffix(".md"),
        body.strip(),
        str(fields.get("approved_at") or ""),
        str(fields.get("approved_by") or ""),
    )


def fitting(rules: Sequence[Rule], budget_tokens: int) -> tuple[Sequence[Rule], int]:
    """The rules that a budget has room for, and how many it has not.

    Those that people wrote come first, then those approved last.
    """
    wanted = sorted(rules, key=lambda rule: rule.id)
    wanted.sort(key=lambda rule: rule.approved_at or "~", reverse=True)
    kept = []
    for rule in wanted:
        budget_tokens -= tokens(rule.text)
        if budget_tokens >= 0:
            kept.append(rule)
        else:
            budget_tokens += tokens(rule.text)
    return kept, len(wanted) - len(kept)


class Learned:
    """The learned rules of a workspace; what cannot be read is told once and skipped.

    Args:
        store: where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told: set[str] = set()

    def rules(self) -> list[Rule]:
        """All of them, as they stand now, by the names of their pages."""
        found = []
        for name in self._store.names(FOLDER):
            if not name.endswith(".md"):
                continue
            try:
                found.append(read(name.removeprefix(FOLDER), self._store.get(name) or ""))
            except ValueError as error:
                if name not in self._told:
                    self._told.add(name)
                    logger.warning("%s: skipped: %s", name, error)
        return found
