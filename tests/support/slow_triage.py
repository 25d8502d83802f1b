"""Triage once more, as a person would do it with a list: nothing of what is under test."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from support.week import AGENT, Held, Outage, Triaged, answer

if TYPE_CHECKING:
    from support.slow_week import SlowTask

_COOLDOWN = timedelta(hours=24)


class SlowBreaker:
    """Three failures within a minute trip it: it lets nobody through for five minutes, then one every ten
    seconds, until three went well. A person may hold it open, and close it."""

    def __init__(self) -> None:
        self.is_held_open = False
        self.failed: list[datetime] = []
        self.open_until: datetime | None = None
        self.tried_at: datetime | None = None
        self.good = 0

    def trip(self, now: datetime) -> None:
        self.open_until, self.tried_at, self.good = now + timedelta(minutes=5), None, 0

    def close(self) -> None:
        self.is_held_open, self.open_until, self.failed = False, None, []

    def lets(self, now: datetime) -> bool:
        if self.is_held_open:
            return False
        if self.open_until is None:
            return True
        rests = self.tried_at is not None and now - self.tried_at < timedelta(seconds=10)
        return now >= self.open_until and not rests

    def tried(self, now: datetime, went: str) -> None:
        """Somebody was let through, and it went well, badly, or was nobody's fault."""
        if self.open_until is None:
            self.failed += [now] if went == "badly" else []
            if len([at for at in self.failed if now - at < timedelta(minutes=1)]) == 3:
                self.trip(now)
            return
        self.tried_at = now
        if went == "badly":
            self.trip(now)
        elif went == "well":
            self.good += 1
            if self.good == 3:
                self.close()


class SlowTriage:
    """Who is asked about what, when, and what comes of it."""

    def __init__(self, down: list[Outage], seed: int) -> None:
        self.down, self.seed = down, seed
        self.breaker = SlowBreaker()
        self.began: dict[str, datetime] = {}
        self.numbers: dict[str, int] = {}
        self.open_fixes: set[tuple[str, str]] = set()
        self.triaged: list[Triaged] = []
        self.held: list[Held] = []
        self.fixes: list[str] = []
        self.paused: list[tuple[datetime, str]] = []

    def look(self, tasks: list[SlowTask], now: datetime) -> None:
        """At the end of a round."""
        wanted = [t for t in tasks if self.is_wanted(t, now)]
        if wanted and not self.breaker.lets(now):
            self.held.append(Held(now, "", len(wanted)))
            return
        for task in sorted(wanted, key=lambda one: one.plan.id):
            if self.breaker.lets(now):
                self.ask(task, now)
            else:
                self.held.append(Held(now, task.plan.id, 1))

    def is_wanted(self, task: SlowTask, now: datetime) -> bool:
        last = self.began.get(task.plan.id)
        return self.has_cause(task) and (last is None or now >= last + _COOLDOWN)

    def has_cause(self, task: SlowTask) -> bool:
        if task.held_by or task.failures < 3:
            return False
        last = self.began.get(task.plan.id)
        assert task.failed_at is not None
        return last is None or task.failed_at > last

    def again(self, tasks: list[SlowTask], now: datetime) -> datetime | None:
        """When it is looked again although nothing runs: a cooldown is over, or a breaker may be."""
        ends = [
            self.began[t.plan.id] + _COOLDOWN
            for t in tasks
            if t.plan.id in self.began and self.has_cause(t)
        ]
        times = [end for end in ends if end > now]
        if any(one.at == now and not one.task for one in self.held[-1:]):
            times.append(now + timedelta(minutes=5))
        return min(times, default=None)

    def ask(self, task: SlowTask, now: datetime) -> None:
        id_ = task.plan.id
        self.began[id_] = now
        number = self.numbers[id_] = self.numbers.get(id_, 0) + 1
        verdict, cause = answer(task.plan, now, self.seed)
        if any(o.service == AGENT and o.begin <= now < o.end for o in self.down):
            verdict = "out"
        went = {"out": "badly", "failing": "nobody's fault"}.get(verdict, "well")
        self.breaker.tried(now, went)
        came = self.act(task, number, verdict, cause, now)
        self.triaged.append(Triaged(now, id_, number, verdict, came))

    def act(self, task: SlowTask, number: int, verdict: str, cause: str, now: datetime) -> str:
        id_ = task.plan.id
        if verdict == "PAUSE":
            task.pause("triage")
            self.paused.append((now, id_))
            return "paused"
        if verdict == "FILE-FIX":
            if (id_, cause) in self.open_fixes:
                return "filed before"
            self.open_fixes.add((id_, cause))
            self.fixes.append(f"fix-{id_}-{number}")
            return "filed"
        return "nothing"
