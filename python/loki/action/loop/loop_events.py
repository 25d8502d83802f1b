"""What the closed loop is told (events) and what it asks for (effects).

An effect that asks for an answer is always the last of its step; the answer is the next event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from loki.action.agent_protocol import Proposal
from loki.action.changes.change import Merge, Merged
from loki.action.checks.check import Report
from loki.action.checks.results.suite_results import Comparison
from loki.action.gates.gate import Validation
from loki.base.machine import Begin, Wait, Waited
from loki.decision.drift import Drift
from loki.memory.attempt import Attempt
from loki.memory.reflection import Reflection
from loki.memory.task_record import Outcome
from loki.recognition.failure import Failure

# --- Events -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Drifted:
    """A proposal leaves its task, or somebody says that its agent does.

    Attributes:
        drifts: how, the most severe first; one or more.
        count: drifts of the task since its context was cleared last, these included.
        has_reviewer: an agent can be asked about it.
    """

    drifts: tuple[Drift, ...]
    count: int = 1
    has_reviewer: bool = False


@dataclass(frozen=True, slots=True)
class DriftReviewed:
    """The task was reviewed.

    Attributes:
        approved: the proposal serves the task after all.
        by: who looked.
        reason: why, a sentence.
        drifts: what was looked at.
    """

    approved: bool
    by: str
    reason: str
    drifts: tuple[Drift, ...]


@dataclass(frozen=True, slots=True)
class ReviewNeeded:
    """A person is asked; what was to be done next is not done.

    Attributes:
        review: id of the request.
        reason: what has to be decided, in a sentence or a few.
        proposal: what the agent answered, where it asks the question itself.
    """

    review: str
    reason: str
    proposal: Proposal | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """The checks ran; ``gone``: files of tests that they failed in, and that are not there any more."""

    report: Report
    gone: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Answered:
    """The agent answered.

    Attributes:
        proposal: its answer.
        shown: digest of the project as it was shown to the agent.
    """

    proposal: Proposal
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The agent's circuit breaker lets no call through.

    Attributes:
        name: the breaker's.
        retry_after: seconds after which to ask again; None: a person has to close it.
        last_error: what the last call that counted as a failure said, or "".
        between_probes: nothing but the pause between two probes is in the way.
    """

    name: str
    retry_after: float | None = None
    last_error: str = ""
    between_probes: bool = False


@dataclass(frozen=True, slots=True)
class AgentFailed:
    """The agent could not answer.

    Attributes:
        failure: what it said.
        retryable: asking again could help; else a person must take over.
        retry_after: seconds that its service asked to wait, or None.
        refused: what the agent's circuit breaker says now, where it is open.
        gave_up: whoever was asked has asked again already, as often as makes sense.
        tokens, cost: what it took nevertheless.
    """

    failure: Failure
    retryable: bool = True
    retry_after: float | None = None
    refused: Refused | None = None
    gave_up: bool = False
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Malformed:
    """The agent's answer cannot be used; it is the agent's failure, not infrastructure's.

    Attributes:
        failure: what is wrong with it.
        proposal: what it took all the same, without a change; None: not known.
    """

    failure: Failure
    proposal: Proposal | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """The caller edited the project by itself.

    Attributes:
        description: what it says it did.
        files: paths that changed.
        ok: what the caller claims: True, False, or None where it claims nothing.
        failure: what the caller's own output says failed, or None.
    """

    description: str
    files: tuple[str, ...]
    ok: bool | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Validated:
    """The gates ran."""

    validation: Validation


@dataclass(frozen=True, slots=True)
class Executed:
    """The change was applied and its commands ran, as far as they came.

    Attributes:
        files: paths that differ now; commands: what each command did.
        failure: what went wrong, or None.
        was_applied: its edits are in the project.
    """

    files: tuple[str, ...]
    commands: tuple[Mapping[str, Any], ...] = ()
    failure: Failure | None = None
    was_applied: bool = True


@dataclass(frozen=True, slots=True)
class Compared:
    """Tests that the change can have broken were compared with how they did before it."""

    comparison: Comparison


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """A strategy was carried out.

    Attributes:
        strategy: its name.
        done: what it did, one line.
        context: what it found for the next briefing: text, "" for nothing.
        files: paths that it changed.
        error: why it could not be carried out, or "".
        acted: it changed something that is no file of the project, such as what is installed.
    """

    strategy: str
    done: str = ""
    context: str = ""
    files: tuple[str, ...] = ()
    error: str = ""
    acted: bool = False


@dataclass(frozen=True, slots=True)
class Reflected:
    """What an agent says of the attempt that failed, if anything.

    Attributes:
        reflection: what it said; None: it was not asked, or could not.
        by: its name.
        error: why it could not, or "".
        tokens, cost: what asking it took, cost in US dollars; 0 where nobody says.
    """

    reflection: Reflection | None = None
    by: str = ""
    error: str = ""
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The user wants the run to stop: now, but whole.

    Attributes:
        asked: the attempt in flight has been put to an agent; else there is nothing to record.
        out_of_time: nobody asked for it, but the time budget is spent.
        files: every path that the task has changed so far, also by what was ended.
    """

    asked: bool = True
    out_of_time: bool = False
    files: tuple[str, ...] = ()


Event: TypeAlias = (
    Begin
    | Checked
    | Answered
    | AgentFailed
    | Refused
    | Malformed
    | Edited
    | Validated
    | Executed
    | Compared
    | Merged
    | StrategyResult
    | Reflected
    | Waited
    | ReviewNeeded
    | Interrupted
    | Drifted
    | DriftReviewed
)


# --- Effects ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunChecks:
    """Run the checks; ``judge``: there is work to be judged, too. Answered by `Checked`."""

    judge: bool = True


@dataclass(frozen=True, slots=True)
class TakeBaseline:
    """Before a change of ``paths``: see to it that the results of tests which it can break are known."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckRegressions:
    """Compare the tests that the work can have broken; answered by `Compared`."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the agent; answered by `Answered`, `AgentFailed`, `Refused`, `Malformed` or `Edited`.

    Attributes:
        attempt: number of the attempt.
        failure: what failed last, or None.
        strategy: how to go about it, or None.
        reason: why this strategy.
        context: what the strategy found.
        done: what the strategy did.
        to_mend: where what failed last says nothing of the work: what failed before it.
        left: how many attempts may follow it.
    """

    attempt: int
    failure: Failure | None = None
    strategy: str | None = None
    reason: str = ""
    context: str = ""
    done: str = ""
    to_mend: Failure | None = None
    left: int = 0


@dataclass(frozen=True, slots=True)
class Validate:
    """Run the gates on a proposal; answered by `Validated`."""

    proposal: Proposal


@dataclass(frozen=True, slots=True)
class Execute:
    """Apply a proposal and run its commands; answered by `Executed`.

    Attributes:
        proposal: what to apply.
        commands_only: its edits are in the project already.
    """

    proposal: Proposal
    commands_only: bool = False


@dataclass(frozen=True, slots=True)
class RunStrategy:
    """Carry out a strategy; answered by `StrategyResult`.

    Attributes:
        strategy: its name.
        failure: what it answers.
        files: paths that the task has changed so far.
    """

    strategy: str
    failure: Failure
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Keep:
    """Put an attempt's record on disk."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Amend:
    """Another strategy than the recorded one was used."""

    attempt: int
    strategy: str


@dataclass(frozen=True, slots=True)
class Observe:
    """Remember a failure and what led to it; a second time makes it a sign.

    Attributes:
        failure: what failed.
        approach: what led to it.
        command: the command that failed, or "" where none did.
    """

    failure: Failure
    approach: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Reflect:
    """Ask the agent about the attempt that failed, where it can be asked; answered by `Reflected`.

    Attributes:
        facts: what can be said without asking anybody.
        failure: what failed.
    """

    facts: Reflection
    failure: Failure


@dataclass(frozen=True, slots=True)
class Note:
    """Keep a reflection."""

    reflection: Reflection


@dataclass(frozen=True, slots=True)
class ReviewDrift:
    """Have it looked at whether a proposal serves its task; answered by `DriftReviewed`."""

    proposal: Proposal
    drifts: tuple[Drift, ...]


@dataclass(frozen=True, slots=True)
class ReportDrift:
    """Keep drift in the log of signals; ``ask``: why a person has to look, or ""."""

    drifts: tuple[Drift, ...]
    agent: str
    ask: str = ""


@dataclass(frozen=True, slots=True)
class Say:
    """A log line.

    Attributes:
        message: the text after ``[closed-loop]``.
        fields: the same as data.
        warning: worth a person's attention.
    """

    message: str
    fields: Mapping[str, Any]
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """The task ended: write its pages.

    Attributes:
        outcome: how.
        failure: the last failure of the work, or None.
        answer: what failed after it, where that is the agent's answer alone, or None.
    """

    outcome: Outcome
    failure: Failure | None = None
    answer: Failure | None = None


Effect: TypeAlias = (
    RunChecks
    | Ask
    | Validate
    | Execute
    | CheckRegressions
    | RunStrategy
    | Reflect
    | Wait
    | Merge
    | ReviewDrift
    | ReportDrift
    | TakeBaseline
    | Keep
    | Amend
    | Observe
    | Note
    | Say
    | Finish
)
