"""Rationalizations and red flags on a page for people: one a task, in ``.loki/memory/episodic/``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loki.base.markdown import inline
from loki.decision.honesty import rules
from loki.memory import front_matter
from loki.memory.attempt import Attempt
from loki.memory.quote import one_line, quoted
from loki.memory.store import Store

FOLDER = "memory/episodic/"

MOST = 50
"""Findings on a page, the newest. Chosen, not measured."""


def document(store: Store, task: str, title: str, attempt: Attempt) -> None:
    """Add an attempt's findings to its task's page.

    Args:
        store: where memory is kept.
        task: the task's id; title: its title.
        attempt: it has findings.
    """
    new = [
        {"attempt": attempt.attempt, "at": attempt.timestamp, **finding}
        for finding in attempt.findings
    ]

    def add(text: str | None) -> str:
        return render(task, title, [*known(text), *new][-MOST:])

    store.update(f"{FOLDER}rationalizations-{task}.md", add)


def known(text: str | None) -> list[dict[str, Any]]:
    """The findings of a page; none where there is no page, or none that can be read."""
    try:
        fields = front_matter.parse(text or "")[0]
    except ValueError:
        return []
    kept = fields.get("findings")
    return [one for one in kept if isinstance(one, dict)] if isinstance(kept, list) else []


def render(task: str, title: str, findings: list[dict[str, Any]]) -> str:
    """The page: its findings as data, then for people."""
    head = front_matter.front_matter(
        {
            "entity_name": f"memory.episodic.rationalizations.{task}",
            "namespace": "memory.episodic",
            "category": "episodic",
            "task_id": task,
            "updated_at": findings[-1].get("at") if findings else None,
            "tags": ["rationalization", *sorted({str(one.get("id")) for one in findings})],
            "findings": findings,
        }
    )
    parts = [f"# What was said without evidence: {inline(one_line(title))}"]
    parts += [_entry(one) for one in findings]
    return head + "\n" + "\n\n".join(parts) + "\n"


def _entry(finding: Mapping[str, Any]) -> str:
    rule = rules().rules.get(str(finding.get("id")))
    name = rule.name if rule else one_line(str(finding.get("id")))
    lines = [
        f"## Attempt {inline(str(finding.get('attempt')))}: {inline(name)}",
        "",
        f"- said: {quoted(str(finding.get('quote', '')))}",
    ]
    if finding.get("evidence"):
        lines.append(f"- recorded: {quoted(str(finding['evidence']))}")
    if rule:
        lines += [f"- why it is wrong: {rule.why}", f"- required: {rule.action}"]
    return "\n".join(lines)
