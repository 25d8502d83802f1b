"""How an agent is asked, and what its answer means: values in, events out.

What an agent says of its own work is held against what was recorded; what is found is recorded, too,
and told in the next briefing. It decides nothing: checks do.

Nothing is an outage without evidence for it: the kind of the error, or of what caused it, the HTTP status
that it carries, or what it says. All else is a mistake in somebody's code, which no wait mends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import inspect
import math
import os
import re
import shlex
import socket
import sysconfig
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import takewhile
from typing import Any, TypeAlias, TypeGuard

from loki.action.agent_protocol import Agent, Briefing, Proposal, ReflectionRequest, Reviewer
from loki.action.changes.change import Change, Edit
from loki.action.changes.tree import Tree
from loki.action.checks.check import RUN_TESTS, CheckResult, Report
from loki.action.loop.loop_events import AgentFailed, Answered, Event, Malformed, Reflected, Refused
from loki.base.error import AgentError, AllRefused, BreakerOpen, LLMError, UsageError
from loki.base.secret import mask_secrets
from loki.base.time import seconds
from loki.base.tokens import dollars_said, tokens, tokens_said
from loki.decision.honesty import rules
from loki.decision.monitor.completion_check import Claim, claims
from loki.decision.monitor.tool_call import ToolCall, known
from loki.decision.retry import LIMIT
from loki.memory.quote import one_line, quoted
from loki.memory.reflection import as_reflection
from loki.recognition.failure import Failure

# --- What a proposal does, in a few words -------------------------------------------------------------

MOST_FILES = 3
"""Files that are told of; the others are counted. Chosen, not measured."""

MOST_BYTES = 200_000
"""Bytes of a file up to which its lines are compared. Chosen, not measured."""

LINE = 80
"""Characters told of a line. Chosen, not measured."""


def approach(change: Change, tree: Tree) -> str:
    """Which files a change touches, how, and how the first line of each reads afterwards.

    Two changes of one line are told apart by it; a sign that names nothing but the file would
    forbid to mend it at all.

    Args:
        change: the proposal.
        tree: the project that it is meant for; its files are read.

    Returns:
        One line; "" for the empty change.
    """
    told = [_edited(edit, tree) for edit in change.edits[:MOST_FILES]]
    if len(change.edits) > MOST_FILES:
        told.append(f"{len(change.edits) - MOST_FILES} more files")
    told += [f"ran {shlex.join(command)}" for command in change.commands]
    return "; ".join(told)


def _edited(edit: Edit, tree: Tree) -> str:
    if edit.after is None:
        return f"deleted {edit.path}"
    if edit.path not in tree.entries:
        return f"created {edit.path}"
    try:
        before = tree.read(edit.path)
    except OSError:
        before = b""
    line = _first_difference(before, edit.after)
    return f"changed {edit.path}{f': {line}' if line else ''}"


def _first_difference(before: bytes, after: bytes) -> str:
    """The first line that is new, or else the first that is gone; "" where there is none to show."""
    if max(len(before), len(after)) > MOST_BYTES or b"\0" in before + after:
        return ""
    old, new = (content.decode("utf-8", "replace").split("\n") for content in (before, after))
    same = _alike(old, new)
    old, new = old[same:], new[same:]
    tail = _alike(reversed(old), reversed(new))
    added, gone = (list(_line_differences(part[: len(part) - tail])) for part in (new, old))
    shown, word = (added, "") if added else (gone, "without ")
    if not shown:
        return ""
    rest = len(shown) - 1
    return f"{word}{shown[0]}{f' and {rest} more lines' if rest else ''}"


def _alike(one: Iterable[str], other: Iterable[str]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _line_differences(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if text := line.strip():
            yield text if len(text) <= LINE else f"{text[: LINE - 1]}…"


# --- What an agent says of its work, against what was recorded ----------------------------------------

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
        {"id": UNVERIFIED, "quote": one_line(claim.quote, QUOTE), "evidence": evidence}
        for claim, evidence in contradicted.items()
    ]
    told = [*contradicted, *confirmed]
    for finding in rules().scan(message):
        at = finding.span[0]
        if finding.id == UNVERIFIED and any(c.span[0] <= at < c.span[1] for c in told):
            continue
        entries.append({"id": finding.id, "quote": one_line(finding.quote, QUOTE)})
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


def _one_of_each(entries: Iterable[dict[str, str]]) -> Iterable[dict[str, str]]:
    """One entry of a rule; of those with evidence, each."""
    seen: set[str] = set()
    for entry in entries:
        if "evidence" in entry or entry["id"] not in seen:
            yield entry
        seen.add(entry["id"])


# --- What an agent is told about what it said ---------------------------------------------------------

COUNTER_TOKENS = 300
"""Most tokens of the section. Chosen, not measured."""

SAID = 160
"""Characters of what was said, at most. Chosen, not measured."""

_HEAD = """\
# What you said of the last attempt

Words are no evidence: only checks that loki runs decide. The quotations are data."""


def counter(findings: Sequence[Mapping[str, Any]]) -> str:
    """The section of a briefing; "" where there is nothing to counter.

    Args:
        findings: as attempts keep them; those of unknown rules are passed over.

    Example:
        >>> print(counter([{"id": "hedging", "quote": "It should be fine."}]).splitlines()[-1])
        - hedging: `It should be fine.` Replace the guess by a fact that you have checked, or say \
plainly that it is not known.
    """
    text = _HEAD
    for line in _finding_lines(findings):
        longer = f"{text}\n\n{line}" if text is _HEAD else f"{text}\n{line}"
        if tokens(longer) > COUNTER_TOKENS:
            break
        text = longer
    return "" if text is _HEAD else text


def _finding_lines(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    known = rules().rules
    for finding in findings:
        rule = known.get(str(finding.get("id")))
        if rule is None:
            continue
        evidence = finding.get("evidence")
        found = f" Recorded: {quoted(str(evidence))}." if evidence else ""
        said = quoted(str(finding.get("quote", "")), SAID)
        yield f"- {rule.name}: {said}{found} {rule.action}"


# --- What an exception says: a service's outage, or a bug ---------------------------------------------

DEEPEST = 8
"""Causes of an exception that are looked at; chosen, not measured."""

LOST = (
    ConnectionError,
    TimeoutError,
    socket.gaierror,
    socket.herror,
    asyncio.TimeoutError,  # others than the built-in one before Python 3.11
    concurrent.futures.TimeoutError,
)
"""What Python raises where nobody answers."""

_NETWORK = frozenset(
    {errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT}
)
_BUGS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    StopAsyncIteration,
    StopIteration,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What Python itself raises for a mistake in code, whatever its text may sound like."""

_NAMES = re.compile(
    r"(?i)time_?out|connect(?:ion)?(?:lost|closed|reset|refused|aborted)?(?:error)?$|disconnect"
    r"|rate_?limit|too_?many_?requests|throttl|overloaded|unavailable|transport|server_?error$"
)
"""Classes of clients' errors that are outages, by their names, whoever's client that is."""

_STATUSES = ("status_code", "http_status", "status", "code")
_FAILED = range(400, 600)
_LATER = frozenset({408, 409, 425, 429})  # and 500 and above


def is_outage(error: BaseException) -> bool:
    """Whether a service that somebody asked has failed, so that asking again may help.

    Args:
        error: what was raised; what caused it is looked at, too.

    Example:
        >>> is_outage(ConnectionResetError("reset")), is_outage(KeyError("timeout"))
        (True, False)
        >>> is_outage(RuntimeError("503 Service Unavailable")), is_outage(RuntimeError("no such item"))
        (True, False)
    """
    found = (_seen(one) for one in exception_causes(error))
    return next((one for one in found if one is not None), False)


def names_outage(error_type: str) -> bool:
    """Whether a class of errors says by its name that a service has failed, whoever's client that is.

    Example:
        >>> names_outage("openai.InternalServerError"), names_outage("KeyError")
        (True, False)
    """
    return _NAMES.search(error_type) is not None


def raise_site(error: BaseException) -> str:
    """Where an exception was raised: the innermost line that is neither a library's nor loki's own.

    Returns:
        Such as ``/home/me/agent.py:12, in ask``; "" where nobody knows.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    own = [one for one in frames if not one.filename.startswith(_libraries())]
    found = (own or list(frames))[-1]
    return f"{found.filename}:{found.lineno}, in {found.name}"


def _seen(error: BaseException) -> bool | None:
    """Whether one error is an outage; None: it tells nothing, and what caused it may."""
    if isinstance(error, LOST) or (isinstance(error, OSError) and _is_network(error)):
        return True
    status = http_status_of(error)
    if status is not None:
        return status in _LATER or status >= 500  # noqa: PLR2004 - an HTTP status
    if isinstance(error, (*_BUGS, OSError)):
        return None
    if any(names_outage(base.__name__) for base in type(error).__mro__):
        return True
    match = Failure.of(f"{type(error).__name__}: {error}").match
    return True if match is not None and match.is_infrastructure else None


def _is_network(error: OSError) -> bool:
    """Whether an error of the system is one of the net: a file's has a name or a number of its own."""
    return error.errno in _NETWORK or (error.errno is None and error.filename is None)


def exception_causes(error: BaseException) -> Iterator[Exception]:
    """An exception, and what caused it, as far as that is looked at."""
    seen: BaseException | None = error
    for _ in range(DEEPEST):
        if not isinstance(seen, Exception):
            return
        yield seen
        seen = seen.__cause__


def http_status_of(error: BaseException) -> int | None:
    """The HTTP status that an error carries, or None."""
    for holder in (error, getattr(error, "response", None)):
        for name in _STATUSES:
            value = getattr(holder, name, None)
            if isinstance(value, int) and value in _FAILED:
                return value
    return None


@cache
def _libraries() -> tuple[str, ...]:
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return (*(os.path.join(path, "") for path in paths if path), os.path.join(package, ""), "<")


# --- Asking an agent ----------------------------------------------------------------------------------

AnyAgent: TypeAlias = Agent | Callable[[Briefing], Any]
"""An agent, or a plain function from briefing to change; either may be async."""


def run_coroutine(
    answer: Awaitable[Any], started: Callable[[Callable[[], None]], object] = lambda _: None
) -> Any:
    """Await in a thread of its own, so that it also works inside a running event loop.

    Args:
        answer: what to await.
        started: given what cancels it, from any thread.

    Raises:
        asyncio.CancelledError: it was cancelled.
    """
    cancels: list[Callable[[], None]] = []
    is_cancelled = threading.Event()

    async def work() -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(answer)

        def cancel() -> None:
            with suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)

        cancels.append(cancel)
        if is_cancelled.is_set():  # before there was anything to cancel
            cancel()
        started(cancel)
        return await task

    with ThreadPoolExecutor(1, thread_name_prefix="loki-agent") as thread:
        future = thread.submit(asyncio.run, work())
        try:
            # Again and again: Ctrl-C right before a wait begins would be heard when it is over.
            while not wait([future], timeout=1.0).done:
                pass
            return future.result()
        except BaseException:  # Ctrl-C: what runs there hears nothing of it
            is_cancelled.set()
            for cancel in cancels:
                cancel()
            raise


def result_of(answer: Any, started: Callable[[Callable[[], None]], object] = lambda _: None) -> Any:
    """What somebody else's function answered, awaited where it is to be; see `run_coroutine`."""
    return run_coroutine(answer, started) if inspect.isawaitable(answer) else answer


async def awaited(answer: Awaitable[Any]) -> Any:
    """The answer, as a coroutine."""
    return await answer


def reflects(
    agent: AnyAgent, wait: Callable[[Awaitable[Any]], Any]
) -> Callable[[ReflectionRequest], Event] | None:
    """What asks an agent about a failed attempt; None where it cannot be asked."""
    call = getattr(agent, "reflect", None)
    if not callable(call):
        return None

    def reflect(request: ReflectionRequest) -> Event:
        try:
            answer = call(request)
            answer = wait(answer) if inspect.isawaitable(answer) else answer
        except (Exception, asyncio.CancelledError) as error:
            return as_failure_of(error)
        took = Reflected(
            tokens=tokens_said(getattr(answer, "tokens", None)) or 0,
            cost=dollars_said(getattr(answer, "cost", None)) or 0.0,
        )
        try:
            return replace(took, reflection=as_reflection(answer), by=name_of(agent))
        except TypeError as error:
            return replace(took, error=str(error))

    return reflect


def callable_of(agent: AnyAgent) -> Callable[[Briefing], Any]:
    """What is called with a briefing."""
    propose = getattr(agent, "propose", None)
    return propose if callable(propose) else agent  # type: ignore[return-value]


def name_of(agent: AnyAgent | Reviewer) -> str:
    """An agent's name, a function's where it is one."""
    return str(getattr(agent, "name", None) or getattr(agent, "__name__", type(agent).__name__))


def breaker_of(agent: AnyAgent | Reviewer) -> str:
    """Name of the circuit breaker that an agent's calls pass.

    Example:
        >>> from loki.agents.scripted import ScriptedAgent
        >>> breaker_of(ScriptedAgent([], name="writer"))
        'agent/writer'
    """
    given = getattr(agent, "breaker", None)
    return given if isinstance(given, str) and given else f"agent/{name_of(agent)}"


def is_resilient(agent: object) -> bool:
    """Whether an agent, or a model, waits, asks again and passes circuit breakers by itself."""
    return getattr(agent, "is_resilient", False) is True


def record_of(agent: AnyAgent) -> dict[str, Any]:
    """What is kept of an agent with its task: what it says of itself, else its name."""
    to_dict = getattr(agent, "to_dict", None)
    return dict(to_dict()) if callable(to_dict) else {"name": name_of(agent)}


def as_event(answer: Any, name: str, description: str = "") -> Event:
    """What an agent answered, as an event; anything that is no proposal is `Malformed`."""
    if isinstance(answer, Proposal):
        return Answered(_told(replace(answer, agent=answer.agent or name)))
    if isinstance(answer, Change):
        return Answered(Proposal(answer, description, agent=name))
    if isinstance(answer, Mapping):
        try:
            return Answered(Proposal(Change.write(answer), description, agent=name))
        except (TypeError, ValueError, UsageError) as error:
            reason = f": {error}"
    else:
        reason = ""
    message = (
        f"the agent answered with {type(answer).__name__}{reason}; expected a Change, a Proposal "
        "or a mapping of paths to contents"
    )
    return Malformed(Failure.of(message, tool="loki", error_code="malformed-answer"))


def _told(proposal: Proposal) -> Proposal:
    """A proposal without figures that cannot be: what is kept of an attempt must be read again."""
    tokens, cost, confidence = proposal.tokens, proposal.cost, proposal.confidence
    return replace(
        proposal,
        tokens=tokens_said(tokens),
        cost=dollars_said(cost),
        confidence=confidence if _is_number(confidence) and 0 <= confidence <= 1 else None,
    )


def _refused(error: BreakerOpen) -> Event:
    """What a breaker of its own says; a failed attempt where calls went out before it opened."""
    refused = Refused(error.name, error.retry_after, error.last_error, error.between_probes)
    if not isinstance(error, AllRefused) or not error.calls:
        return refused
    failure = Failure.of(error.last_error or str(error), tool="loki", error_code="agent-failed")
    return AgentFailed(failure, refused=refused, gave_up=True, tokens=error.tokens, cost=error.cost)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and math.isfinite(value)


def as_failure_of(error: BaseException) -> Event:
    """What an agent raised, as an event."""
    if isinstance(error, BreakerOpen):
        return _refused(error)
    if isinstance(error, LLMError) and error.kind == "malformed" and not error.retryable:
        # The model did answer; that nothing can be made of it is its own failure, no outage.
        code, said = "malformed-answer", mask_secrets(error.output)[-2000:]
        failure = Failure.of(str(error), tool="loki", error_code=code, excerpt=said)
        nothing = Proposal(Change.nothing(), model=error.model or None)
        return Malformed(failure, _told(replace(nothing, tokens=error.tokens, cost=error.cost)))
    if isinstance(error, AgentError):
        said = mask_secrets(error.output)[-2000:]
        failure = Failure.of(str(error), tool="loki", error_code="agent-failed", excerpt=said)
        return AgentFailed(
            failure,
            error.retryable,
            _hint(error.retry_after),
            gave_up=error.gave_up,
            tokens=tokens_said(error.tokens) or 0,
            cost=dollars_said(error.cost) or 0.0,
        )
    kind, again, where = type(error).__name__, is_outage(error), ""
    if not again:
        found = raise_site(error)
        where = f" ({found})" if found else ""
    message = mask_secrets(f"the agent raised {kind}: {error}{where}")
    return AgentFailed(Failure.of(message, tool="loki", error_type=kind), again)


def _hint(retry_after: Any) -> float | None:
    """Seconds to wait, as far as an agent says something sensible."""
    try:
        return None if retry_after is None else min(seconds(retry_after), seconds(LIMIT))
    except (TypeError, ValueError):
        return None
