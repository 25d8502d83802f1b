"""One triage, from its lock to its record: evidence, question, verdict, and what the program does."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loki.action.agent_protocol import Question, Said
from loki.action.loop.agent_call import breaker_of, name_of
from loki.agents.fallback_agent import FallbackAgent, ask
from loki.base.error import BreakerOpen, LokiError, StoreError, UsageError
from loki.base.secret import holds_secret, mask_secrets
from loki.execution.resilience import breakers as breakers_of
from loki.execution.resilience import ways
from loki.execution.resolve import named_agent, program
from loki.jobs.queue.queue import queue_of
from loki.jobs.recurring import recurring_outcome
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.recurring.recurring_tasks import hold_task
from loki.jobs.triage import triage_policy, triage_prompt
from loki.jobs.triage.triage_policy import FIX, Conclusion, TriageRules
from loki.jobs.triage.triage_prompt import INSTRUCTIONS, began, gather, records
from loki.jobs.triage.triage_verdict import LONGEST, Refusal, TriageRecord, Verdict, document, parse
from loki.memory.store import Masked, Store

if TYPE_CHECKING:
    from loki.jobs.recurring.recurring_tasks import RecurringTasks
    from loki.workspace import Workspace


# --- What changes while a triage agent works ----------------------------------------------------------

REFUSED = ".refused.jsonl"
"""Ends the name of the log of what a triage agent was refused."""

DECIDED = frozenset(
    {"id", "title", "schedule", "command", "agent", "timeout", "pass_environment", "tags"}
    | {"created_at", "paused"}
)
"""Fields of a recurring task that people decide; the others are the dispatcher's."""

COUNTED = frozenset(RecurringTask.model_fields) - DECIDED

SHOWN_CHANGES = 10
"""Changes that are told, the others are counted; chosen, not measured."""


def refused_commands_log(task: str, number: int) -> str:
    """The name of the log of what the agent of a triage was refused."""
    return document(task, number, REFUSED)


def audited_definitions(store: Store) -> dict[str, str]:
    """What people decide, as it stands now: recurring tasks without their counters, queued tasks.

    Args:
        store: of the workspace.
    """
    found: dict[str, str] = {}
    for name in store.keys("recurring/"):
        if name.split("/")[2:] == ["task.json"]:
            data = _parsed(store.read(name))
            if isinstance(data, Mapping):
                data = {key: value for key, value in data.items() if key not in COUNTED}
            found[name] = json.dumps(data, sort_keys=True, default=str)
    for name in store.keys("queue/"):
        if name.endswith(".json"):
            for id_, title in _queued(_parsed(store.read(name))):
                found[f"queued task {id_}"] = title
    return found


def audited_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """What differs between two looks at `audited_definitions`.

    Example:
        >>> audited_changes({"a": "1", "b": "2"}, {"a": "3", "c": "4"})
        ('a was changed', 'b is gone', 'c is new')
    """
    told = [
        f"{name} {'is new' if name not in before else 'is gone' if name not in after else 'was changed'}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    rest = len(told) - SHOWN_CHANGES
    return tuple(told[:SHOWN_CHANGES] + ([f"and {rest} more"] if rest > 0 else []))


def refused_commands(store: Store, task: str, number: int) -> Iterator[Refusal]:
    """What the agent of a triage tried and was refused."""
    for record in store.scan(refused_commands_log(task, number)):
        try:
            yield Refusal.model_validate(record)
        except ValueError:
            yield Refusal(what=str(record.get("what", ""))[:500])


def _queued(data: Any) -> Iterator[tuple[str, str]]:
    tasks = data.get("tasks") if isinstance(data, Mapping) else data
    for one in tasks if isinstance(tasks, list) else []:
        if isinstance(one, Mapping):
            title = one.get("title") or (one.get("task_data") or {}).get("title")
            yield str(one.get("id") or one.get("task_id")), str(title)


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return text


# --- Whom triages ask, and whether that may be now ----------------------------------------------------

VARIABLE, PROJECT_VARIABLE = "LOKI_TRIAGE", "LOKI_TRIAGE_PROJECT"
"""A triage agent's environment: the id of the triage, and the project's folder. Where the first is set,
the ``loki`` command only reads."""

ANSWER_TOKENS = 4_000
"""Tokens of a model's answer, thinking included. Chosen, not measured."""

_COMMAND = "command "


class NotBegun(Exception):
    """A circuit breaker stood in the way before anybody was asked."""


@dataclass(frozen=True)
class Way:
    """How a triage's agent is asked.

    Attributes:
        agent: who; name: what people call it.
        breakers: names of the circuit breakers that calls may go through: any one is enough.
    """

    agent: object
    name: str
    breakers: tuple[str, ...]


class TriageAgents:
    """The agents of a workspace, as far as triages ask them.

    Args:
        workspace: the project.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._ways: dict[str, Way | str] = {}

    def of(self, task: RecurringTask) -> str | None:
        """What stands for the agent that is asked about a task: ``[recurrence] triage_agent``, else its own.

        Returns:
            A name for `way`; None: there is nobody, or it cannot be started.
        """
        wanted = self._wanted(task)
        return wanted if wanted and isinstance(self.way(wanted), Way) else None

    def problem(self, task: RecurringTask) -> str:
        """Why the agent that was to be asked about a task cannot be, or ""."""
        wanted = self._wanted(task)
        found = self.way(wanted) if wanted else ""
        return found if isinstance(found, str) else ""

    def _wanted(self, task: RecurringTask) -> str | None:
        own = task.agent
        if name := self._workspace.config.recurrence.triage_agent or (own and own.agent):
            return name
        return f"{_COMMAND}{own.agent_command}" if own and own.agent_command else None

    def way(self, name: str) -> Way | str:
        """How an agent is asked, or why it cannot be."""
        if name not in self._ways:
            try:
                if name.startswith(_COMMAND):
                    agent: object = program(self._workspace, name.removeprefix(_COMMAND))
                else:
                    agent = named_agent(self._workspace, name)
            except UsageError as error:
                self._ways[name] = mask_secrets(str(error))
            else:
                shown = name_of(agent)  # type: ignore[arg-type]
                self._ways[name] = Way(agent, shown, _breakers_of(agent))
        return self._ways[name]

    def open_breaker(self, name: str) -> str | None:
        """The breaker that keeps an agent from being asked now; None: nothing does."""
        way = self.way(name)
        if not isinstance(way, Way):
            return None
        breakers = breakers_of(self._workspace)
        left = [breakers[one].snapshot().retry_after for one in way.breakers]
        return way.breakers[0] if all(one is None or one > 0 for one in left) else None

    def ask(self, name: str, record: TriageRecord, prompt: str, cancelled: threading.Event) -> Said:
        """What an agent says of a task that keeps failing.

        Raises:
            NotBegun: its circuit breaker was open before anything was asked.
            LokiError: it could not be asked, or did not answer.
        """
        way = self.way(name)
        if not isinstance(way, Way):
            raise UsageError(way)
        root = self._workspace.root
        question = Question(
            prompt,
            record.id,
            root,
            record.number,
            cancelled,
            INSTRUCTIONS,
            ANSWER_TOKENS,
            sees_project=True,
            environment={VARIABLE: record.id, PROJECT_VARIABLE: str(root)},
        )
        try:
            return ask([way.agent], question, self._workspace.once(ways))
        except BreakerOpen as error:
            if not getattr(error, "calls", 0):
                raise NotBegun from error
            raise


def _breakers_of(agent: object) -> tuple[str, ...]:
    """Names of the circuit breakers that calls of an agent may go through: any one is enough."""
    if isinstance(agent, FallbackAgent):
        return tuple(name for one in agent.agents for name in _breakers_of(one))
    llms = getattr(getattr(agent, "llm", None), "llms", ())
    return tuple(one.breaker for one in llms) or (breaker_of(agent),)  # type: ignore[arg-type]


# --- What a verdict leads to: the program's part, never the agent's -----------------------------------

Tell = Callable[[str, str], None]
"""Tells people: id of a recurring task, and what happened to it."""


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
    fixes = _open_fixes(workspace, record.task_id)
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


def _open_fixes(workspace: Workspace, task: str) -> list[tuple[str, str]]:
    """Fixes that triages of a task asked for and nobody has done."""
    queue = queue_of(workspace)
    waiting = [one for name in ("pending", "in-progress") for one in queue.tasks(name)]
    return [(one.id, one.title) for one in waiting if one.after == task and FIX in one.tags]


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


# --- One triage ---------------------------------------------------------------------------------------

logger = logging.getLogger("loki")


class TriageRunner:
    """Conducts triages; called from several threads at once.

    Args:
        workspace: the project.
        tasks: its recurring tasks.
        rules: who is triaged.
        cancelled: stops whoever is being asked.
        tell: tells people what happened to a task.

    Attributes:
        agents: whom to ask.
    """

    def __init__(
        self,
        workspace: Workspace,
        tasks: RecurringTasks,
        rules: TriageRules,
        cancelled: threading.Event,
        tell: Tell,
    ) -> None:
        self._workspace, self._tasks, self._rules = workspace, tasks, rules
        self._cancelled, self._tell = cancelled, tell
        self.agents = TriageAgents(workspace)

    def run(self, id_: str, agent: str) -> None:
        """A triage from its lock to its record.

        Args:
            id_: of the recurring task.
            agent: who is asked, as `TriageAgents.of` says.
        """
        with self._lock(id_) as is_ours:
            begun = self._begin(id_, agent) if is_ours and not self._cancelled.is_set() else None
            if begun is None:
                return
            before, record = begun
            try:
                record = self._finish(before, record, agent)
            except NotBegun:
                self._take_back(before, record)
                return
            except LokiError as error:
                record = self._failed(record, str(error))
            except Exception as error:  # a bug of ours must not end the dispatcher
                logger.exception("[triage] %s", record.id)
                record = self._failed(record, f"{type(error).__name__}: {error}")
            self._save(record)

    def _begin(self, id_: str, agent: str) -> tuple[RecurringTask, TriageRecord] | None:
        """The task and its record; the cooldown runs from here. None: it is not wanted any more."""
        self._mend(id_)
        before, now = self._tasks.find(id_), self._workspace.clock.now()
        if not isinstance(before, RecurringTask):
            return None
        if not triage_policy.is_wanted(before, self._rules, now, began(self._workspace, before)):
            return None
        way = self.agents.way(agent)
        name = way.name if isinstance(way, Way) else agent
        after, record = triage_policy.begun(before, name, now)
        # The record first: of what is killed in between, the record alone tells that it began.
        self._save(record)
        self._tasks.update(id_, partial(_marked, begun=after))
        self._tasks.log(now, "triage_started", id_, triage=record.id, agent=name)
        many = record.failures
        logger.info("[triage] %s asks %s: %s failed %d times in a row", record.id, name, id_, many)
        return before, record

    def _finish(self, task: RecurringTask, record: TriageRecord, agent: str) -> TriageRecord:
        store = self._workspace.store
        evidence = gather(self._workspace, self._tasks, task)
        prompt = triage_prompt.prompt(evidence)
        record = record.with_(prompt=document(task.id, record.number, ".prompt.md"))
        store.write(record.prompt, Masked(prompt))
        stood = audited_definitions(store)
        try:
            said = self.agents.ask(agent, record, prompt, self._cancelled)
        except LokiError as error:
            record = self._failed(record, str(error))
            return self._witnessed(record, stood, ())
        record = record.with_(answer=document(task.id, record.number, ".answer.txt"))
        store.write(record.answer, said.text[-LONGEST:])
        record = self._witnessed(record, stood, said.changed)
        verdict = parse(said.text, prompt, evidence.text)
        if not verdict.is_readable:
            logger.warning("[triage] %s: its answer counts as NOOP: %s", record.id, verdict.problem)
        record = act(self._workspace, self._tasks, record, verdict, self._tell)
        took = {"model": said.model, "tokens": said.tokens, "cost": said.cost}
        record = record.with_(status="done", ended_at=self._workspace.clock.now(), **took)
        self._say_done(record)
        return record

    def _witnessed(
        self, record: TriageRecord, stood: dict[str, str], changed: tuple[str, ...]
    ) -> TriageRecord:
        """The record with what the agent tried, and what changed while it worked."""
        store, number = self._workspace.store, record.number
        tried = [*refused_commands(store, record.task_id, number)]
        tried += [Refusal(what=f"changed {path} in its copy") for path in changed]
        meanwhile = audited_changes(stood, audited_definitions(store))
        if tried:
            shown = "; ".join(one.what for one in tried[:SHOWN_CHANGES])
            logger.warning("[triage] %s may only read and was refused: %s", record.id, shown)
        if meanwhile:
            shown = "; ".join(meanwhile)
            logger.warning(
                "[triage] while %s ran, and by whom loki cannot tell: %s", record.id, shown
            )
        return record.with_(refused=tuple(tried), meanwhile=meanwhile)

    def _failed(self, record: TriageRecord, reason: str) -> TriageRecord:
        """The record of a triage that came to nothing; the one warning of it."""
        now = self._workspace.clock.now()
        logger.warning(
            "[triage] triage '%s' failed; no recursive triage is started (tagged %s): %s",
            record.id, triage_policy.EXEMPT, reason,
        )  # fmt: skip
        self._tasks.log(now, "triage_failed", record.task_id, triage=record.id, reason=reason)
        return record.with_(status="failed", reason=reason, ended_at=now)

    def _say_done(self, record: TriageRecord) -> None:
        assert record.ended_at is not None
        said = f"VERDICT={record.verdict} {record.root_cause}".rstrip()
        logger.info("[triage] %s: %s: %s", record.id, said, record.acted)
        self._tasks.log(
            record.ended_at, "triage_ended", record.task_id, triage=record.id,
            verdict=record.verdict, acted=record.acted,
        )  # fmt: skip

    def _take_back(self, before: RecurringTask, record: TriageRecord) -> None:
        """Nobody was asked: nothing has begun, and it is tried again at the next tick."""
        back = {"last_triaged_at": before.last_triaged_at, "triages": before.triages}
        self._tasks.update(record.task_id, lambda task: task.with_(**back))
        for suffix in (".json", ".prompt.md"):
            self._workspace.store.update(
                document(record.task_id, record.number, suffix), lambda _: None
            )
        self._tasks.log(self._workspace.clock.now(), "triage_suppressed", record.task_id, count=1)
        logger.info("[triage] circuit breaker of %s is open: 1 task waits for triage", record.agent)

    # --- what a killed dispatcher left ------------------------------------------------------------

    def repair(self, id_: str) -> None:
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
                tried = tuple(refused_commands(self._workspace.store, id_, record.number))
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
