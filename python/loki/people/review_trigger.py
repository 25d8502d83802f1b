"""When a person is asked before work goes on: the six conditions; pure.

Each rule is a function from facts to a `Trigger`, or None where it does not fire. A project switches
each of them in ``[review]`` of its ``config.toml``. Why it is so: ``docs/design/human-review.md``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from loki.base.control_characters import escape_control_characters
from loki.people.human_review import HumanReview
from loki.people.irreversible import irreversible

LOW_CONFIDENCE = "low_confidence"
SECURITY = "security_decision"
IRREVERSIBLE = "irreversible_operation"
FAILED_RUNS = "failed_runs"
AMBIGUITY = "blocking_ambiguity"
COST = "cost_limit"

REASONS = frozenset({LOW_CONFIDENCE, SECURITY, IRREVERSIBLE, FAILED_RUNS, AMBIGUITY, COST})
"""Of requests that loki makes itself."""

MANY = 10
"""Names of files that a sentence lists; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a person is asked about; the defaults are the specification's.

    Attributes:
        low_confidence: where an agent is unsure of a critical decision.
        min_confidence: under this it is unsure.
        security: before a change of a security task counts as done.
        irreversible: before a command that no undo reaches.
        failed_runs: after so many failed runs of a task in a row; 0: never.
        ambiguity: where an agent asks.
        cost_per_hour: US dollars in an hour that all tasks together may take; 0: any.
    """

    low_confidence: bool = True
    min_confidence: float = 0.40
    security: bool = True
    irreversible: bool = True
    failed_runs: int = 3
    ambiguity: bool = True
    cost_per_hour: float = 100.0


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a person is asked, and what.

    Attributes:
        reason: its short name, as a request has it.
        context: what happened, and what exactly has to be decided.
        severity: low, medium, high or critical.
        alternatives: what else could be done.
        data: what an answer is about, JSON-able: kept with the request.
    """

    reason: str
    context: str
    severity: str = "high"
    alternatives: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Proposed:
    """What an agent proposes, as far as a person has to do with it.

    Attributes:
        kind, complexity: of the task.
        confidence: what the agent says of it, 0 to 1; None: it does not say.
        removes: paths that it removes.
        commands: words of each command that it runs, as far as the project lets it.
        description: what it says it does.
        digest: of exactly this change.
    """

    kind: str
    complexity: str
    confidence: float | None = None
    removes: Sequence[str] = ()
    commands: Sequence[Sequence[str]] = ()
    description: str = ""
    digest: str = ""


Decided = Callable[[Sequence[str]], bool]
"""Whether a person has decided on exactly these words."""


def of_proposal(proposed: Proposed, rules: Rules, root: str, decided: Decided) -> Trigger | None:
    """Whether a person has to look before a proposal is carried out.

    Args:
        proposed: the proposal.
        rules: what the project wants to be asked about.
        root: the project's folder, absolute.
        decided: tells whether a person has decided on a command, word by word.

    Example:
        >>> unsure = Proposed("bug_fix", "medium", 0.3, removes=["a.py"], digest="d")
        >>> of_proposal(unsure, Rules(), "/p", lambda words: False).reason
        'low_confidence'
        >>> of_proposal(Proposed("bug_fix", "medium", 0.3), Rules(), "/p", lambda words: False)
    """
    found = of_commands(proposed.commands, rules, root, decided, "The change wants to run")
    return found or _low_confidence(proposed, rules, root)


def of_commands(
    commands: Sequence[Sequence[str]], rules: Rules, root: str, decided: Decided, who: str
) -> Trigger | None:
    """Whether a command is among them that cannot be taken back, and that nobody has decided on."""
    if not rules.irreversible:
        return None
    for words in commands:
        operation = irreversible(words, root)
        if operation is None or decided(words):
            continue
        shown = escape_control_characters(shlex.join(words))
        return Trigger(
            IRREVERSIBLE,
            f"{who} `{shown}`: {operation.why}, and `loki undo` cannot restore that. Decide whether "
            "exactly this command may run.",
            "critical",
            ("Run it yourself, and go on without it",),
            {"command": list(words), "operation": operation.id},
        )
    return None


def _low_confidence(proposed: Proposed, rules: Rules, root: str) -> Trigger | None:
    confidence = proposed.confidence
    if not rules.low_confidence or confidence is None or not confidence < rules.min_confidence:
        return None
    why = _critical(proposed, root)
    if not why:
        return None
    does = escape_control_characters(proposed.description.strip())
    return Trigger(
        LOW_CONFIDENCE,
        f"The agent is {confidence:.0%} sure of its proposal, less than {rules.min_confidence:.0%}, "
        f"and {why}. It would: {does or '(it does not say what)'}. Decide whether this change is to "
        "be made.",
        "high",
        ("Say what the agent lacks (a clarification), and have it propose again",),
        {"digest": proposed.digest},
    )


def _critical(proposed: Proposed, root: str) -> str:
    """Why a decision is critical, a clause; "" where it is not."""
    if proposed.kind == "security":
        return "the task is about security"
    if proposed.complexity == "high":
        return "the task is of high complexity"
    if proposed.removes:
        listed = ", ".join(map(escape_control_characters, proposed.removes[:MANY]))
        more = len(proposed.removes) - MANY
        return f"it removes {listed}{f' and {more} more' if more > 0 else ''}"
    for words in proposed.commands:
        if operation := irreversible(words, root):
            return f"it runs `{escape_control_characters(shlex.join(words))}`: {operation.why}"
    return ""


def of_failed_runs(count: int, rules: Rules, last: str = "") -> Trigger | None:
    """Whether so many runs of a task in a row have failed that a person has to look.

    Args:
        count: runs that failed, one after the other, up to the last.
        rules: what the project wants.
        last: what failed last.

    Example:
        >>> of_failed_runs(3, Rules()).severity, of_failed_runs(2, Rules())
        ('high', None)
    """
    if not rules.failed_runs or count < rules.failed_runs:
        return None
    failed = f" The last one: {escape_control_characters(last)}." if last else ""
    return Trigger(
        FAILED_RUNS,
        f"{count} runs of this task in a row have failed.{failed} Decide whether it is to be tried "
        "again, with what help, or given up.",
        "high",
        ("Make the task smaller", "Mend it by hand"),
        {"runs": count},
    )


def of_question(question: str, rules: Rules) -> Trigger | None:
    """Whether an agent asks something that a person has to answer before it goes on."""
    if not rules.ambiguity or not question.strip():
        return None
    return Trigger(
        AMBIGUITY,
        f"The agent asks: {escape_control_characters(question.strip())} Answer it.",
        "medium",
    )


def of_cost(dollars: float, rules: Rules, allowed: float = 0.0) -> Trigger | None:
    """Whether all tasks together have taken more in the last hour than they may without asking.

    Args:
        dollars: US dollars in the last hour.
        rules: what the project wants.
        allowed: what they had taken when a person let the task go on: it may until they take the
            limit more.

    Example:
        >>> of_cost(120, Rules()).context.split(":")[0]
        'Agents took $120.00 in the last hour, over the limit of $100.00 ([review] cost_per_hour)'
    """
    if not rules.cost_per_hour or dollars <= allowed + rules.cost_per_hour:
        return None
    return Trigger(
        COST,
        f"Agents took ${dollars:,.2f} in the last hour, over the limit of "
        f"${rules.cost_per_hour:,.2f} ([review] cost_per_hour): all tasks of the project counted. "
        "Decide whether this one goes on.",
        "high",
        ("Wait: what was spent over an hour ago does not count",),
        {"dollars": dollars},
    )


def is_about_done(review: HumanReview) -> bool:
    """Whether a request of ours asks whether work counts as done; others ask before it goes on."""
    about = review.extra.get("about")
    return review.reason == SECURITY and isinstance(about, Mapping) and "criteria" in about


def of_security(title: str, files: Sequence[str]) -> Trigger:
    """What a person is asked before the change of a security task counts as done."""
    listed = ", ".join(map(escape_control_characters, files[:MANY])) or "nothing"
    return Trigger(
        SECURITY,
        f"“{escape_control_characters(title)}” is about security, and every other check passes. It changed "
        f"{listed}. Look at the change, and decide whether it counts as done.",
        "critical",
    )
