"""The week once more: minute by minute, task by task, with nothing of what is under test."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import cache

from support import backoff
from support.cron_reference import SlowCron
from support.slow_triage import SlowTriage
from support.week import MINUTE, START, WEEK, Happened, Outage, Plan, succeeds

_DAY = 86400 * backoff.SECOND
HORIZON = WEEK + timedelta(days=25)
"""So far fires are looked for: the gap after a failure wants the next two."""


@cache
def _fires(cron: str, zone: str) -> tuple[datetime, ...]:
    return tuple(SlowCron(cron, zone).fires(START, START + HORIZON))


class SlowTask:
    """What a person would do with pencil and paper for one task."""

    def __init__(self, plan: Plan, down: list[Outage], seed: int) -> None:
        self.plan, self.down, self.seed = plan, down, seed
        self.failures = 0
        self.restarts = 0
        self.iterations = 0
        self.is_stopped = False
        self.held_by = ""
        self.failed_at: datetime | None = None
        self.happened: list[Happened] = []
        self.fires = _fires(plan.cron, plan.zone) if plan.cron else ()
        self.next = self.fires[0] if plan.cron else START

    def can_run(self) -> bool:
        return not self.is_stopped and not self.held_by

    def pause(self, by: str) -> None:
        self.held_by = self.held_by or by

    def resume(self, now: datetime) -> None:
        self.held_by = ""
        if self.is_stopped:
            self.is_stopped, self.restarts, self.next = False, 0, now
        elif self.failures or not self.plan.cron:
            self.next = max(self.next, now)
        else:
            self.next = self.following(now)

    def run(self, at: datetime) -> None:
        scheduled = self.next
        is_success = succeeds(self.plan, at, self.down, self.seed)
        if is_success:
            self.failures = self.restarts = 0
            self.iterations += 1
            self.next = self.following(at) if self.plan.cron else at + self.plan.delay
            most = self.plan.max_iterations
            self.is_stopped = most is not None and self.iterations >= most
        else:
            self.failures += 1
            self.restarts += 1
            self.failed_at = at
            self.next = max(at, scheduled + self.delay(scheduled))
            self.is_stopped = not self.plan.cron and self.restarts == 4
        status = "success" if is_success else "failed"
        self.happened.append(Happened(at, self.plan.id, status, self.failures))

    def following(self, at: datetime) -> datetime:
        return next(fire for fire in self.fires if fire > at)

    def delay(self, scheduled: datetime) -> timedelta:
        base = self.plan.delay
        if self.plan.cron:
            first, second = [fire for fire in self.fires if fire > scheduled][:2]
            base = max(MINUTE, second - first)
        setting = backoff.Setting(
            round(base.total_seconds() * backoff.SECOND), 2.0, _DAY, 0.1, "proportional", 0
        )
        found = backoff.delay(setting, self.failures, self.plan.id)
        exact = timedelta(microseconds=round(found / 1000))  # a time of day has no more
        rest = timedelta(microseconds=-(scheduled + exact).microsecond % 1000)
        return exact + rest  # files keep milliseconds, and nothing comes too early


class SlowWeek:
    """All tasks, and whoever looks at those that keep failing.

    Args:
        acts: moments, at full minutes, at which a dispatcher begins anew, and what a person does before.
        is_triaged: whether anybody looks.
    """

    def __init__(
        self,
        plans: list[Plan],
        down: list[Outage],
        seed: int,
        acts: list[tuple[datetime, str, str]],
        *,
        is_triaged: bool,
    ) -> None:
        self.tasks = [SlowTask(plan, down, seed) for plan in plans]
        self.acts = acts
        self.triage = SlowTriage(down, seed) if is_triaged else None
        self.looks_again: datetime | None = None

    def week(self) -> None:
        at = START
        while at < START + WEEK:
            self.minute(at)
            at += MINUTE

    def minute(self, at: datetime) -> None:
        """What happens from this full minute to the next."""
        acts = [(what, id_) for moment, what, id_ in self.acts if moment == at]
        for n, (what, id_) in enumerate(acts):
            self.act(at, what, id_)
            if n + 1 == len(acts):
                self.round(at)
        while (due := self.due()) is not None and due < at + MINUTE:
            self.round(max(due, at))

    def due(self) -> datetime | None:
        times = [t.next for t in self.tasks if t.can_run()]
        return min([*times, *filter(None, [self.looks_again])], default=None)

    def round(self, now: datetime) -> None:
        for task in sorted(self.tasks, key=lambda one: (one.next, one.plan.id)):
            if task.can_run() and task.next <= now:
                task.run(now)
        if self.triage is not None:
            self.triage.look(self.tasks, now)
            self.looks_again = self.triage.again(self.tasks, now)

    def act(self, now: datetime, what: str, id_: str) -> None:
        """What a person does, or another program with the same agent."""
        for task in self.tasks:
            if what == "pause" and task.plan.id == id_:
                task.pause("person")
            elif (what == "resume" and task.plan.id == id_) or (
                what == "morning"
                and (task.held_by == "triage" or (task.is_stopped and task.failures))
            ):
                task.resume(now)
        if self.triage is not None:
            if what == "fixes done":
                self.triage.open_fixes.clear()
            elif what == "agent out":
                self.triage.breaker.trip(now)
            elif what == "agent held":
                self.triage.breaker.is_held_open = True
            elif what == "agent let go":
                self.triage.breaker.close()


assert START.tzinfo is timezone.utc
