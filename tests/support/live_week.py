"""The week with the real dispatcher and the real triage, on a clock that obeys."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from loki import AgentError, Workspace
from loki.action.agent_protocol import Question, Said
from loki.config import RecurrenceConfig
from loki.jobs.queue.queue import queue_of
from loki.jobs.recurring.dispatcher import Dispatcher
from loki.jobs.recurring.recurring_outcome import (
    checked,
    paused,
    replanned,
    resumed,
)
from loki.jobs.recurring.recurring_run import Running, RunRecord, RunResult, Verdict
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.recurring.recurring_tasks import LOG, RecurringTasks
from loki.jobs.triage import triages as triages_module
from loki.jobs.triage.triage_prompt import records
from loki.jobs.triage.triages import Triages
from loki.stores.file_store import ForgivingStore
from loki.testing import ManualClock, MemoryStore
from support.week import (
    AGENT,
    START,
    WEEK,
    Happened,
    Held,
    Outage,
    Plan,
    Triaged,
    answer,
    mornings,
    succeeds,
)

T = TypeVar("T")
Acts = list[tuple[datetime, str, str]]
_CONFIG = f'[recurrence]\ntriage_agent = "{AGENT}"\n[loop]\ninfrastructure_retries = 0\n'


def task_of(plan: Plan) -> RecurringTask:
    delay = f"{round(plan.delay.total_seconds())}s"
    cycle = {"delay": delay, "max_iterations": plan.max_iterations}
    schedule = {"cron": plan.cron, "zone": plan.zone} if plan.cron else cycle
    task = checked({"id": plan.id, "schedule": schedule, "command": ["x"]})
    return replanned(task, START, RecurrenceConfig())


class Services:
    """Runs that take no time, and fail while the service that they need is down."""

    def __init__(self, week: list[Plan], down: list[Outage], seed: int, clock: ManualClock) -> None:
        self.plans = {plan.id: plan for plan in week}
        self.down, self.seed, self.clock = down, seed, clock

    def run(self, task: RecurringTask, running: Running, cancelled: threading.Event) -> RunResult:
        del running, cancelled
        is_good = succeeds(self.plans[task.id], self.clock.now(), self.down, self.seed)
        return RunResult("success") if is_good else RunResult("failed", 1, reason="down")

    def evaluate(self, task: object, run: RunRecord, cancelled: threading.Event) -> Verdict | None:
        raise AssertionError(f"nobody asked to evaluate {task} {run} {cancelled}")


def free(_id: str) -> AbstractContextManager[bool]:
    return nullcontext(True)


class Here(Executor):
    """Runs at once what it is given: fifty tasks that take no time want no threads."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Doctor:
    """The triage agent: says of a task at a moment what the week's plan says."""

    name = AGENT

    def __init__(self, services: Services) -> None:
        self.services = services

    def ask(self, question: Question) -> Said:
        now, plan = self.services.clock.now(), self.about(question)
        assert "# Its last runs" in question.text
        assert "Failures in a row" in question.text
        if any(o.service == AGENT and o.begin <= now < o.end for o in self.services.down):
            raise AgentError("HTTP 503 Service Unavailable")
        verdict, cause = answer(plan, now, self.services.seed)
        if verdict == "failing":
            raise AgentError("it said nothing", retryable=False)
        if verdict == "unreadable":
            return Said("VERDICT=PAUSE or FILE-FIX, who knows?\nROOT_CAUSE: I wonder\n")
        return Said(f"So:\n\nVERDICT={verdict}\nROOT_CAUSE: {cause}\nEVIDENCE: it is down\n")

    def about(self, question: Question) -> Plan:
        (plan,) = (p for p in self.services.plans.values() if f"-{p.id}-" in question.task_id)
        return plan


class Clinic(Workspace):
    """A project with that agent."""

    doctor: Doctor


def called(workspace: Workspace, name: str, **_: Any) -> Any:
    """The agent of a clinic, by its name."""
    assert isinstance(workspace, Clinic)
    assert name == AGENT
    return workspace.doctor


def acts_of(week: list[Plan], down: list[Outage], restarts: int = 0) -> Acts:
    """When a dispatcher begins anew, and what is done before: by people, or to the agent's breaker."""
    acts: Acts = [(START, "", "")]
    for plan in week:
        for moment, what in zip(plan.paused or (), ("pause", "resume"), strict=False):
            acts.append((START + moment, what, plan.id))
    acts += [(moment, "morning", "") for moment in mornings()]
    acts.append((START + timedelta(days=4), "fixes done", ""))
    for begin in (one.begin for one in down if one.service == AGENT):
        hour = timedelta(hours=1)
        acts += [(begin, "agent out", ""), (begin + 2 * hour, "agent held", "")]
        acts.append((begin + 6 * hour, "agent let go", ""))
    whole = WEEK // timedelta(minutes=1)
    minutes = [whole * (n + 1) // (restarts + 1) for n in range(restarts)]
    acts += [(START + timedelta(minutes=n), "", "") for n in minutes]
    return sorted(acts)


class LiveWeek:
    """The week with the real dispatcher; what is left of it afterwards.

    Args:
        root: an empty folder for what has to be in files; None: nobody looks at what keeps failing.
    """

    def __init__(
        self, week: list[Plan], down: list[Outage], seed: int, acts: Acts, root: Path | None = None
    ) -> None:
        self.clock = ManualClock(START)
        self.services = Services(week, down, seed, self.clock)
        self.store, self.root, self.acts = MemoryStore(), root, acts
        self.told: list[tuple[datetime, str]] = []
        self.tasks = RecurringTasks(self.store)
        for plan in week:
            self.tasks.add(task_of(plan))
        if root is not None:
            (root / ".loki").mkdir()
            (root / ".loki" / "config.toml").write_text(_CONFIG)

    def run(self) -> LiveWeek:
        ends = [at for at, _, _ in self.acts[1:]] + [START + WEEK]
        for (_, what, id_), until in zip(self.acts, ends, strict=True):
            self.act(what, id_)
            self.watch(until)
        return self

    def watch(self, until: datetime) -> None:
        """A dispatcher of its own; nothing is remembered but what is in files."""
        tasks = RecurringTasks(self.store)
        dispatcher = Dispatcher(tasks, self.services, self.clock, free, pool=Here())
        if self.root is not None:
            triages = Triages(
                self.workspace(), tasks, dispatcher.cancelled, waits=True, tell=self.tell, pool=Here()
            )  # fmt: skip
            dispatcher.after_round.append(triages.tick)
            dispatcher.closing.append(triages.close)
        with patch.object(triages_module, "named_agent", called):
            dispatcher.watch(until, is_simulated=True)

    def workspace(self) -> Workspace:
        assert self.root is not None
        found = Clinic(self.root, clock=self.clock)
        found.store = ForgivingStore(self.store)
        found.doctor = Doctor(self.services)
        return found

    def tell(self, id_: str, text: str) -> None:
        assert "was paused by its triage" in text
        self.told.append((self.clock.now(), id_))

    def act(self, what: str, id_: str) -> None:
        """What a person does, or another program with the same agent."""
        now, settings = self.clock.now(), RecurrenceConfig()
        if what == "pause":
            self.tasks.update(id_, partial(paused, now=now, reason="for a person"))
        elif what == "resume":
            self.tasks.update(id_, partial(resumed, now=now, settings=settings))
        elif what == "morning":
            for task in self.tasks.usable():
                is_paused = task.paused is not None and task.paused.by.startswith("triage ")
                if is_paused or (task.stopped is not None and task.stopped.status == "failed"):
                    self.tasks.update(task.id, partial(resumed, now=now, settings=settings))
        elif what == "fixes done":
            self.fix_all()
        elif self.root is not None and what.startswith("agent "):
            self.act_on_breaker(what)

    def act_on_breaker(self, what: str) -> None:
        breaker = self.workspace().breakers()[f"agent/{AGENT}"]
        if what == "agent held":
            breaker.isolate()
        elif what == "agent let go":
            breaker.close()
        else:
            while permit := breaker.try_acquire():
                permit.failure("out")

    def fix_all(self) -> None:
        """Whatever triages asked for is done."""
        if self.root is not None:
            queue = queue_of(self.workspace())
            for task in queue.tasks("pending"):
                queue.achieve(task.id)

    # --- what is left -----------------------------------------------------------------------------

    def happened(self) -> list[Happened]:
        """What was run, with the failures in a row after each."""
        return told(self.tasks)

    def triaged(self) -> list[Triaged]:
        """What was triaged, and what came of it."""
        found, workspace = [], self.workspace()
        for task in self.tasks.usable():
            for record in records(workspace, task.id, task.triages + 1):
                came = "filed" if record.fix else "nothing"
                if "asks for it" in record.acted:
                    came = "filed before"
                elif record.acted == "the task was paused":
                    came = "paused"
                said = "unreadable" if record.problem else record.verdict
                if record.status == "failed":
                    said = "out" if "503" in record.reason else "failing"
                found.append(Triaged(record.started_at, task.id, record.number, said, came))
        return sorted(found)

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Lines of the scheduler's log."""
        return [line for line in self.store.records(LOG) if line["event"] == event]

    def held(self) -> list[Held]:
        """Triages that waited for the breaker."""
        return [
            Held(datetime.fromisoformat(line["at"].replace("Z", "+00:00")), line.get("task", ""), line["count"])
            for line in self.lines("triage_suppressed")
        ]  # fmt: skip

    def fixes(self) -> list[str]:
        """Ids of all tasks that triages have filed, done or not."""
        return sorted(task.id for task in queue_of(self.workspace()).tasks())


def told(tasks: RecurringTasks) -> list[Happened]:
    """What was run, with the failures in a row after each."""
    found = []
    for id_ in tasks.ids():
        failures = 0
        for run in tasks.runs(id_):
            failures = 0 if run.status == "success" else failures + 1
            found.append(Happened(run.started_at, id_, run.status, failures))
    return sorted(found)
