"""Triages of a workspace's recurring tasks: started by the dispatcher, each in a thread of its own.

One goes from its lock to its record: evidence, question, verdict, and what the program does about it.
Why it is so: ``docs/design/triage.md``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from loki.action.agent_protocol import Question, Said
from loki.action.loop.agent_call import breaker_of, name_of
from loki.base.documents import Masked
from loki.base.error import BreakerOpen, LokiError, StoreError, UsageError
from loki.base.secret import holds_secret, mask_secrets
from loki.execution.resolve import breakers as breakers_of
from loki.execution.resolve import named_agent, program, ways
from loki.jobs.job_pool import JobPool
from loki.jobs.queue.queue import queue_of
from loki.jobs.recurring import recurring_outcome
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.recurring.recurring_tasks import hold_task
from loki.jobs.triage import triage_policy
from loki.jobs.triage.triage_policy import FIX, Conclusion, due_at
from loki.jobs.triage.triage_prompt import INSTRUCTIONS, began, gather, prompt, records
from loki.jobs.triage.triage_verdict import (
    LONGEST,
    Refusal,
    TriageRecord,
    Verdict,
    document,
    parse,
    refusals,
)

if TYPE_CHECKING:
    from loki.jobs.recurring.recurring_tasks import RecurringTasks
    from loki.workspace import Workspace

PARALLEL = 2
"""Triages at a time; chosen, not measured."""

HELD = timedelta(minutes=5)
"""After this a circuit breaker that holds triages up is looked at again: its usual cooldown."""

HOW = 'set `triage_agent` in [recurrence] of .loki/config.toml, like triage_agent = "claude"'

VARIABLE, PROJECT_VARIABLE = "LOKI_TRIAGE", "LOKI_TRIAGE_PROJECT"
"""A triage agent's environment: the id of the triage, and the project's folder. Where the first is set,
the ``loki`` command only reads."""

ANSWER_TOKENS = 4_000
"""Tokens of a model's answer, thinking included. Chosen, not measured."""

SHOWN_REFUSALS = 10
"""Refusals that a warning tells; chosen, not measured."""

Tell = Callable[[str, str], None]
"""Tells people: id of a recurring task, and what happened to it."""

logger = logging.getLogger("loki")


class NotBegun(Exception):
    """A circuit breaker stood in the way before anybody was asked."""


@dataclass(frozen=True)
class Doctor:
    """Whom a triage asks.

    Attributes:
        agent: who; name: what people call it.
        breakers: names of the circuit breakers that calls may go through: any one is enough.
    """

    agent: object
    name: str
    breakers: tuple[str, ...]


class Triages:
    """Starts triages that are due, and acts on what they find.

    Args:
        workspace: the project.
        tasks: its recurring tasks.
        cancelled: stops triages that are under way when it is set.
        waits: whether each tick waits for the triages that it started, as where time is simulated.
        tell: tells people what happened to a task; None: the log alone.
        pool: where they run; threads of its own where nothing is said.
    """

    def __init__(
        self,
        workspace: Workspace,
        tasks: RecurringTasks,
        cancelled: threading.Event,
        *,
        waits: bool = False,
        tell: Tell | None = None,
        pool: Executor | None = None,
    ) -> None:
        self._rules = workspace.config.recurrence
        self._workspace, self._tasks, self._waits = workspace, tasks, waits
        self._tell = tell or _warn
        self._cancelled = cancelled
        self._jobs = JobPool(PARALLEL, "loki-triage", cancelled, pool)
        self._doctors: dict[str, Doctor | str] = {}
        self._has_mended = False
        self._told: set[tuple[str, int]] = set()
        self.wait, self.close = self._jobs.wait, self._jobs.close

    def tick(self, now: datetime) -> datetime | None:
        """Start what is due.

        Args:
            now: the time.

        Returns:
            When triage is due next if no task runs before; None: not before one does.
        """
        if not self._has_mended:
            self._has_mended = True
            for task in self._tasks.usable():
                if task.triages or task.consecutive_failures:
                    self._repair(task.id)
        self._jobs.collect()
        tasks = self._tasks.usable()
        times = [at for one in tasks if (at := due_at(one, self._rules, now)) and at > now]
        wanted = [one for one in tasks if one.id not in self._jobs and self._is_due(one, now)]
        if self._start(wanted, now):
            times.append(now + HELD)
        if self._waits:
            self.wait()
        return min(times, default=None)

    def _is_due(self, task: RecurringTask, now: datetime) -> bool:
        """Whether a task is to be triaged now; the record of its last triage is read for few."""
        if due_at(task, self._rules, now) != now:
            return False
        since = began(self._workspace, task)
        return due_at(task, self._rules, now, since) is not None

    def _start(self, tasks: Sequence[RecurringTask], now: datetime) -> bool:
        """Begin what may begin; whether a circuit breaker holds something up."""
        start: list[tuple[str, Doctor]] = []
        held: list[str] = []
        for task in tasks:
            doctor = self._doctor(task)
            if isinstance(doctor, str):
                self._say_agentless(task, doctor)
            elif breaker := self._open_breaker(doctor):
                held.append(breaker)
            else:
                start.append((task.id, doctor))
        if held:
            names, count = sorted(set(held)), len(held)
            what = "1 recurring task waits" if count == 1 else f"{count} recurring tasks wait"
            logger.info(
                "[triage] circuit breaker %s is open: %s for triage", ", ".join(names), what
            )
            self._tasks.log(now, "triage_suppressed", count=count, breakers=names)
        for id_, doctor in start:
            self._jobs.start(id_, partial(self._triage, id_, doctor))
        return bool(held)

    def _say_agentless(self, task: RecurringTask, problem: str) -> None:
        key = (task.id, task.total_failures)
        if key not in self._told:
            self._told.add(key)
            logger.warning(
                "[triage] recurring task %r failed %d times in a row, and no agent can look at it%s: %s",
                task.id, task.consecutive_failures, f" ({problem})" if problem else "", HOW,
            )  # fmt: skip

    # --- whom a triage asks ---------------------------------------------------------------------------

    def _doctor(self, task: RecurringTask) -> Doctor | str:
        """Who is asked about a task: ``[recurrence] triage_agent``, else its own agent; or why nobody."""
        own = task.agent
        name = self._rules.triage_agent or (own and own.agent) or ""
        command = (own and own.agent_command) or ""
        if not (name or command):
            return ""
        key = name or f"command {command}"
        if key not in self._doctors:
            try:
                agent = (
                    named_agent(self._workspace, name)
                    if name
                    else program(self._workspace, command)
                )
            except UsageError as error:
                self._doctors[key] = mask_secrets(str(error))
            else:
                self._doctors[key] = Doctor(agent, name_of(agent), _breakers_of(agent))
        return self._doctors[key]

    def _open_breaker(self, doctor: Doctor) -> str:
        """The breaker that keeps somebody from being asked now; "" where nothing does."""
        breakers = breakers_of(self._workspace)
        left = [breakers[one].snapshot().retry_after for one in doctor.breakers]
        return doctor.breakers[0] if all(one is None or one > 0 for one in left) else ""

    def _ask(self, doctor: Doctor, record: TriageRecord, text: str) -> Said:
        """What somebody says of a task that keeps failing.

        Raises:
            NotBegun: its circuit breaker was open before anything was asked.
            LokiError: it could not be asked, or did not answer.
        """
        from loki.agents.fallback_agent import ask  # as few tasks ever are triaged

        root = self._workspace.root
        question = Question(
            text,
            record.id,
            root,
            record.number,
            self._cancelled,
            INSTRUCTIONS,
            ANSWER_TOKENS,
            sees_project=True,
            environment={VARIABLE: record.id, PROJECT_VARIABLE: str(root)},
        )
        try:
            return ask([doctor.agent], question, self._workspace.once(ways))
        except BreakerOpen as error:
            if not getattr(error, "calls", 0):
                raise NotBegun from error
            raise

    # --- one triage -----------------------------------------------------------------------------------

    def _triage(self, id_: str, doctor: Doctor) -> None:
        """A triage from its lock to its record; in a thread."""
        with self._lock(id_) as is_ours:
            begun = self._begin(id_, doctor) if is_ours and not self._cancelled.is_set() else None
            if begun is None:
                return
            before, record = begun
            try:
                record = self._conduct(before, record, doctor)
            except NotBegun:
                self._take_back(before, record)
                return
            except LokiError as error:
                record = self._failed(record, str(error))
            except Exception as error:  # a bug of ours must not end the dispatcher
                logger.exception("[triage] %s", record.id)
                record = self._failed(record, f"{type(error).__name__}: {error}")
            self._save(record)

    def _begin(self, id_: str, doctor: Doctor) -> tuple[RecurringTask, TriageRecord] | None:
        """The task and its record; the cooldown runs from here. None: it is not wanted any more."""
        self._mend(id_)
        before, now = self._tasks.find(id_), self._workspace.clock.now()
        if not isinstance(before, RecurringTask) or not self._is_due(before, now):
            return None
        after, record = triage_policy.begun(before, doctor.name, now)
        # The record first: of what is killed in between, the record alone tells that it began.
        self._save(record)
        self._tasks.update(id_, partial(_marked, begun=after))
        self._tasks.log(now, "triage_started", id_, triage=record.id, agent=record.agent)
        logger.info(
            "[triage] %s asks %s: %s failed %d times in a row",
            record.id, record.agent, id_, record.failures,
        )  # fmt: skip
        return before, record

    def _conduct(self, task: RecurringTask, record: TriageRecord, doctor: Doctor) -> TriageRecord:
        """Evidence, question, verdict, and what follows."""
        store = self._workspace.store
        evidence = gather(self._workspace, self._tasks, task)
        text = prompt(evidence)
        record = record.with_(prompt=document(task.id, record.number, ".prompt.md"))
        store.write(record.prompt, Masked(text))
        try:
            said = self._ask(doctor, record, text)
        except LokiError as error:
            return self._failed(self._with_refusals(record, ()), str(error))
        record = record.with_(answer=document(task.id, record.number, ".answer.txt"))
        store.write(record.answer, said.text[-LONGEST:])
        record = self._with_refusals(record, said.changed)
        verdict = parse(said.text, text, evidence.text)
        if not verdict.is_readable:
            logger.warning("[triage] %s: its answer counts as NOOP: %s", record.id, verdict.problem)
        record = act(self._workspace, self._tasks, record, verdict, self._tell)
        now, took = self._workspace.clock.now(), {"tokens": said.tokens, "cost": said.cost}
        record = record.with_(status="done", ended_at=now, model=said.model, **took)
        told = f"VERDICT={record.verdict} {record.root_cause}".rstrip()
        logger.info("[triage] %s: %s: %s", record.id, told, record.acted)
        came = {"verdict": record.verdict, "acted": record.acted}
        self._tasks.log(now, "triage_ended", record.task_id, triage=record.id, **came)
        return record

    def _with_refusals(self, record: TriageRecord, changed: Sequence[str]) -> TriageRecord:
        """The record with what the agent tried to change and could not."""
        tried = [*refusals(self._workspace.store, record.task_id, record.number)]
        tried += [Refusal(what=f"changed {path} in its copy") for path in changed]
        if tried:
            shown = "; ".join(one.what for one in tried[:SHOWN_REFUSALS])
            logger.warning("[triage] %s may only read and was refused: %s", record.id, shown)
        return record.with_(refused=tuple(tried))

    def _failed(self, record: TriageRecord, reason: str) -> TriageRecord:
        """The record of a triage that came to nothing; the one warning of it."""
        now = self._workspace.clock.now()
        logger.warning(
            "[triage] triage '%s' failed; no recursive triage is started (tagged %s): %s",
            record.id, triage_policy.EXEMPT, reason,
        )  # fmt: skip
        self._tasks.log(now, "triage_failed", record.task_id, triage=record.id, reason=reason)
        return record.with_(status="failed", reason=reason, ended_at=now)

    def _take_back(self, before: RecurringTask, record: TriageRecord) -> None:
        """Nobody was asked: nothing has begun, and it is tried again at the next tick."""
        back = {"last_triaged_at": before.last_triaged_at, "triages": before.triages}
        self._tasks.update(record.task_id, lambda task: task.with_(**back))
        for suffix in (".json", ".prompt.md"):
            name = document(record.task_id, record.number, suffix)
            self._workspace.store.update(name, lambda _: None)
        self._tasks.log(self._workspace.clock.now(), "triage_suppressed", record.task_id, count=1)
        logger.info("[triage] circuit breaker of %s is open: 1 task waits for triage", record.agent)

    # --- what a killed dispatcher left ----------------------------------------------------------------

    def _repair(self, id_: str) -> None:
        """Record a triage whose dispatcher died as failed; its cooldown stands."""
        with self._lock(id_) as is_ours:
            if is_ours:
                self._mend(id_)

    def _mend(self, id_: str) -> None:
        """The same, with the lock held."""
        task = self._tasks.find(id_)
        if not isinstance(task, RecurringTask):
            return
        for record in records(self._workspace, id_, task.triages + 1)[-2:]:
            if record.status == "running":
                after = task.with_(last_triaged_at=record.started_at, triages=record.number)
                self._tasks.update(id_, partial(_marked, begun=after))
                tried = tuple(refusals(self._workspace.store, id_, record.number))
                reason = "its dispatcher ended in the middle of it"
                self._save(self._failed(record.with_(refused=tried), reason))

    def _save(self, record: TriageRecord) -> None:
        self._workspace.store.write(document(record.task_id, record.number), record.to_text())

    @contextmanager
    def _lock(self, id_: str) -> Iterator[bool]:
        """Whether a task's triage is ours."""
        with ExitStack() as stack:
            try:
                is_ours = stack.enter_context(hold_task(self._workspace.folder, "triage", id_))
            except StoreError:
                is_ours = False
            yield is_ours


def _marked(task: RecurringTask, begun: RecurringTask) -> RecurringTask:
    """A task as it is now, with the triage that has begun."""
    last, began = task.last_triaged_at, begun.last_triaged_at
    latest = max(filter(None, (last, began)), default=None)
    return task.with_(last_triaged_at=latest, triages=max(task.triages, begun.triages))


def _breakers_of(agent: object) -> tuple[str, ...]:
    """Names of the circuit breakers that calls of an agent may go through: any one is enough."""
    if members := getattr(agent, "agents", ()):  # one with fallbacks
        return tuple(name for one in members for name in _breakers_of(one))
    llms = getattr(getattr(agent, "llm", None), "llms", ())
    return tuple(one.breaker for one in llms) or (breaker_of(agent),)  # type: ignore[arg-type]


def _warn(task: str, text: str) -> None:
    logger.warning("[triage] %s: %s", task, text)


# --- What a verdict leads to: the program's part, never the agent's -----------------------------------


def act(
    workspace: Workspace,
    tasks: RecurringTasks,
    record: TriageRecord,
    verdict: Verdict,
    tell: Tell,
) -> TriageRecord:
    """Do what a verdict leads to.

    Args:
        workspace: the project.
        tasks: its recurring tasks.
        record: of the triage.
        verdict: its agent's.
        tell: tells people that the task was paused.

    Returns:
        The record with what was done.
    """
    found = tasks.find(record.task_id)
    task = found if isinstance(found, RecurringTask) else None
    queue = queue_of(workspace)
    waiting = [one for name in ("pending", "in-progress") for one in queue.tasks(name)]
    fixes = [
        (one.id, one.title) for one in waiting if one.after == record.task_id and FIX in one.tags
    ]
    conclusion = triage_policy.conclude(verdict, record, task, fixes)
    said, fix = conclusion.said, ""
    if conclusion.fix is not None:
        said, fix = _submit(workspace, conclusion)
    elif conclusion.pause:
        _pause(workspace, tasks, record, conclusion.pause, tell)
    return record.with_(
        verdict=verdict.kind,
        root_cause=verdict.root_cause,
        evidence=verdict.evidence,
        action_taken=verdict.action,
        problem=verdict.problem,
        acted=said,
        fix=fix,
        recommendation=conclusion.recommendation,
    )


def _submit(workspace: Workspace, conclusion: Conclusion) -> tuple[str, str]:
    """What was done about a fix, and its id."""
    fix = conclusion.fix
    assert fix is not None
    if any(map(holds_secret, (*fix.checks, fix.reviewer_command))):
        fix = replace(fix, checks=(), reviewer_command="")  # a person says when it is done
    try:
        queue_of(workspace).submit(fix)
    except UsageError as error:  # a crash came between the submission and the record of it
        return f"no task was submitted: {error}", ""
    return conclusion.said, fix.id


def _pause(
    workspace: Workspace,
    tasks: RecurringTasks,
    record: TriageRecord,
    reason: str,
    tell: Tell,
) -> None:
    now, id_, by = workspace.clock.now(), record.task_id, f"triage {record.id}"
    tasks.update(id_, lambda task: recurring_outcome.paused(task, now, reason, by))
    tasks.log(now, "paused", id_, by=record.id, reason=reason)
    tell(id_, f"was paused by its {by}: {reason}")
