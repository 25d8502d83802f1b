"""The week once more: minute by minute, task by task, with nothing of what is under test."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from support import backoff
from support.cron_reference import SlowCron
from support.week import MINUTE, START, WEEK, Happened, Outage, Plan, succeeds

_DAY = 86400 * backoff.SECOND
HORIZON = WEEK + timedelta(days=25)
"""So far fires are looked for: the gap after a failure wants the next two."""


class SlowTask:
    """What a person would do with pencil and paper for one task."""

    def __init__(self, plan: Plan, down: list[Outage], seed: int) -> None:
        self.plan, self.down, self.seed = plan, down, seed
        self.failures = 0
        self.restarts = 0
        self.iterations = 0
        self.is_stopped = False
        self.happened: list[Happened] = []
        slow = SlowCron(plan.cron, plan.zone) if plan.cron else None
        self.fires = list(slow.fires(START, START + HORIZON)) if slow else []
        self.next = self.fires[0] if slow else START

    def week(self) -> None:
        at = START
        while at < START + WEEK:
            self.minute(at)
            at += MINUTE

    def minute(self, at: datetime) -> None:
        """What happens from this full minute to the next."""
        if self.plan.paused is not None and at == START + self.plan.paused[1]:
            self.resume(at)
        while not self.is_stopped and not self.is_paused(at) and self.next < at + MINUTE:
            self.run(max(self.next, at))

    def is_paused(self, at: datetime) -> bool:
        held = self.plan.paused
        return held is not None and START + held[0] <= at < START + held[1]

    def resume(self, now: datetime) -> None:
        if self.failures or not self.plan.cron:
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
            self.is_stopped = self.iterations == self.plan.max_iterations
        else:
            self.failures += 1
            self.restarts += 1
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
        whole = -(-found // 10**6)  # files keep milliseconds, and nothing comes too early
        milliseconds = timedelta(milliseconds=whole)
        rest = timedelta(microseconds=-(scheduled + milliseconds).microsecond % 1000)
        return milliseconds + rest


def slow_week(plans: list[Plan], down: list[Outage], seed: int) -> list[SlowTask]:
    """All tasks, a week later."""
    tasks = [SlowTask(plan, down, seed) for plan in plans]
    for task in tasks:
        task.week()
    return tasks


assert START.tzinfo is timezone.utc
