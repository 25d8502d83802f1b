"""One triage, from its lock to its record: evidence, question, verdict, and what the program does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from loki.base import atomic_file, locks, path_containment
from loki.base.error import LokiError, StoreError
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.triage import triage_audit, triage_policy, triage_prompt
from loki.jobs.triage.triage_actions import Tell, act
from loki.jobs.triage.triage_agents import NotBegun, TriageAgents, Way
from loki.jobs.triage.triage_evidence import began, gather, records
from loki.jobs.triage.triage_policy import TriageRules
from loki.jobs.triage.triage_record import Refusal, TriageRecord, document
from loki.jobs.triage.triage_verdict import LONGEST, parse
from loki.memory.store import Masked

if TYPE_CHECKING:
    from loki.jobs.recurring.recurring_tasks import RecurringTasks
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


class TriageRunner:
    """Conducts triages; called from several threads at once.

    Args:
        workspace: the project.
        tasks: its recurring tasks.
        rules: who is triaged.
        agents: whom to ask.
        cancelled: stops whoever is being asked.
        tell: tells people what happened to a task.
    """

    def __init__(
        self,
        workspace: Workspace,
        tasks: RecurringTasks,
        rules: TriageRules,
        agents: TriageAgents,
        cancelled: threading.Event,
        tell: Tell,
    ) -> None:
        self._workspace, self._tasks, self._rules = workspace, tasks, rules
        self._agents, self._cancelled, self._tell = agents, cancelled, tell

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
        way = self._agents.way(agent)
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
        store.put(record.prompt, Masked(prompt))
        stood = triage_audit.audited_definitions(store)
        try:
            said = self._agents.ask(agent, record, prompt, self._cancelled)
        except LokiError as error:
            record = self._failed(record, str(error))
            return self._witnessed(record, stood, ())
        record = record.with_(answer=document(task.id, record.number, ".answer.txt"))
        store.put(record.answer, said.text[-LONGEST:])
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
        tried = [*triage_audit.refused_commands(store, record.task_id, number)]
        tried += [Refusal(what=f"changed {path} in its copy") for path in changed]
        meanwhile = triage_audit.audited_changes(stood, triage_audit.audited_definitions(store))
        if tried:
            shown = "; ".join(one.what for one in tried[: triage_audit.SHOWN])
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
        return triage_policy.failed(record, reason, now)

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
            self._workspace.store.update(document(record.task_id, record.number, suffix), _nothing)
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
                tried = tuple(
                    triage_audit.refused_commands(self._workspace.store, id_, record.number)
                )
                reason = "its dispatcher ended in the middle of it"
                self._save(self._failed(record.with_(refused=tried), reason))

    def _save(self, record: TriageRecord) -> None:
        self._workspace.store.put(document(record.task_id, record.number), record.to_text())

    @contextmanager
    def _lock(self, id_: str) -> Iterator[bool]:
        """Whether a task's triage is ours."""
        try:
            folder = path_containment.path(
                self._workspace.folder, "recurring", path_containment.part(id_)
            )
            atomic_file.make_folder(folder)
        except StoreError:
            yield False
            return
        with locks.hold_if_free(f"{folder}/triage") as is_free:
            yield is_free


def _marked(task: RecurringTask, begun: RecurringTask) -> RecurringTask:
    """A task as it is now, with the triage that has begun."""
    last, began = task.last_triaged_at, begun.last_triaged_at
    latest = max(filter(None, (last, began)), default=None)
    return task.with_(last_triaged_at=latest, triages=max(task.triages, begun.triages))


def _nothing(_: str | None) -> None:
    return None
