"""What an agent says of its work, against what was recorded: pure, no I/O, no clock.

Covered by tests/py/action/loop/test_claim_check.py. What it gives is recorded and told in the next
briefing; it
decides nothing: checks do.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loki.action.checks.check import RUN_TESTS, CheckResult, Report
from loki.decision.honesty import rules
from loki.decision.monitor.success_claim import Claim, claims
from loki.decision.monitor.tool_call import ToolCall, known
from loki.memory.quote import one_line

if TYPE_CHECKING:
    from loki.action.agent_protocol import Proposal

LONGEST = 8_000
"""Characters of a message that are read: its end, where work is summed up. Chosen, not measured."""

QUOTE = 200
"""Characters of a quotation, at most. Chosen, not measured."""

MOST = 8
"""Findings that are kept of a message, one of a rule; those with evidence first. Chosen."""

UNVERIFIED = "unverified-claim"


def message_of(proposal: Proposal | None) -> str:
    """What the agent itself says in a proposal, as far as it is read; "" where it says nothing.

    A program's output is read where it holds the description: it is the message then, whole.
    """
    if proposal is None or proposal.is_described:
        return ""
    description, printed = proposal.description, proposal.output[-LONGEST:]
    return printed if description and description in printed else description[-LONGEST:]


def findings(
    proposal: Proposal | None,
    report: Report,
    commands: Sequence[Mapping[str, Any]] = (),
    *,
    failed: bool,
) -> tuple[dict[str, str], ...]:
    """What an agent's message shows, as an attempt's record keeps it.

    Args:
        proposal: its answer.
        report: what the checks said of it; empty where they were not reached.
        commands: what its commands did.
        failed: the attempt failed.

    Returns:
        Of each: ``id`` of the rule, ``quote``, and ``evidence`` where the record contradicts it.
        A claim that the checks have just shown to be true is none.
    """
    message = message_of(proposal)
    if not message.strip():
        return ()
    claimed = claims(message)
    contradicted = _contradicted(claimed, report, commands) if failed else {}
    confirmed = claimed if not failed and any(result.passed for result in report.results) else []
    entries = [
        {"id": UNVERIFIED, "quote": _quote(claim.quote), "evidence": evidence}
        for claim, evidence in contradicted.items()
    ]
    told = [*contradicted, *confirmed]
    for finding in rules().scan(message):
        at = finding.span[0]
        if finding.id == UNVERIFIED and any(c.span[0] <= at < c.span[1] for c in told):
            continue
        entries.append({"id": finding.id, "quote": _quote(finding.quote)})
    return tuple(_one_of_each(entries))[:MOST]


def _contradicted(
    claimed: Iterable[Claim], report: Report, commands: Sequence[Mapping[str, Any]]
) -> dict[Claim, str]:
    """Claims that the record contradicts, or knows nothing of, and what it says."""
    told: dict[Claim, str] = {}
    sentences: set[tuple[int, int]] = set()
    for claim in sorted(claimed, key=lambda claim: claim.id == "tests-ran"):
        evidence = _evidence(claim, report, commands)
        if evidence and claim.span not in sentences:
            sentences.add(claim.span)
            told[claim] = evidence
    return told


def _evidence(claim: Claim, report: Report, commands: Sequence[Mapping[str, Any]]) -> str:
    if claim.id == "tests-ran":
        return "" if _ran_tests(report, commands) else "loki has no record of such a run"
    failed = [result for result in report.results if not result.passed and not result.is_pending]
    if claim.id == "tests-pass":
        failed = [result for result in failed if result.check.kind in RUN_TESTS]
    if failed:
        return _said(failed[0])
    return "" if report.results else "no check was reached"


def _ran_tests(report: Report, commands: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one of the change's own commands ran tests, or was a check's."""
    checks = {shlex.join(result.check.command) for result in report.results}
    ran = [str(command.get("command", "")) for command in commands]
    return any(
        line in checks or known(ToolCall("run", {}, command=line)).runs_tests for line in ran
    )


def _said(result: CheckResult) -> str:
    name = one_line(result.check.name, 80)
    code = f" with exit code {result.exit_code}" if result.exit_code is not None else ""
    said = f": {one_line(str(result.failure), QUOTE)}" if result.failure else ""
    return f"check {name} failed{code}{said}"


def _quote(text: str) -> str:
    return one_line(text, QUOTE)


def _one_of_each(entries: Iterable[dict[str, str]]) -> Iterable[dict[str, str]]:
    """One entry of a rule; of those with evidence, each."""
    seen: set[str] = set()
    for entry in entries:
        if "evidence" in entry or entry["id"] not in seen:
            yield entry
        seen.add(entry["id"])
