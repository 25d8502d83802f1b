"""Fifty recurring tasks, a week, and outages that hit many at once; told to dispatcher and reference."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

START = datetime(2026, 10, 19, tzinfo=timezone.utc)
"""A Monday; on its Sunday clocks are put back in Europe."""

WEEK = timedelta(days=7)
MINUTE = timedelta(minutes=1)

_CRONS = (
    "*/30 * * * *", "0 * * * *", "15 */2 * * *", "30 2 * * *", "0 9-17 * * mon-fri",
    "5,35 8-20 * * *", "0 0 * * *", "45 3 * * sun", "0 */6 * * *", "20 4 1,15,21 * *",
)  # fmt: skip
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")
_SERVICES = ("network", "database", "disk", "none")


@dataclass(frozen=True)
class Plan:
    """A task: either ``cron`` in ``zone``, or again ``delay`` after each run; fails with ``service``."""

    id: str
    service: str
    cron: str = ""
    zone: str = "UTC"
    delay: timedelta = timedelta()
    max_iterations: int | None = None
    paused: tuple[timedelta, timedelta] | None = None


@dataclass(frozen=True)
class Outage:
    service: str
    begin: datetime
    end: datetime


def plans(seed: int) -> list[Plan]:
    """Thirty-five by the clock, fifteen in cycles; some are paused for a while by a person."""
    rng = random.Random(seed)
    found = []
    for number in range(50):
        service = rng.choices(_SERVICES, (6, 3, 2, 2))[0]
        pause = timedelta(minutes=rng.randrange(600, 6000))
        paused = (pause, pause + timedelta(minutes=rng.randrange(60, 2000)))
        held = paused if rng.random() < 0.2 else None
        name = f"task-{number:02}"
        if number < 35:
            zone = rng.choice(_ZONES)
            found.append(Plan(name, service, rng.choice(_CRONS), zone, paused=held))
        else:
            most = rng.choice((None, None, 40))
            delay = timedelta(minutes=rng.randrange(20, 240))
            found.append(Plan(name, service, delay=delay, max_iterations=most, paused=held))
    return found


def outages(seed: int) -> list[Outage]:
    """One long one of the network, and some of the others."""
    rng = random.Random(seed + 1)
    found = [Outage("network", START + timedelta(hours=30), START + timedelta(hours=52))]
    for service in ("database", "disk", "network"):
        begin = START + timedelta(minutes=rng.randrange(60, 8000))
        found.append(Outage(service, begin, begin + timedelta(minutes=rng.randrange(60, 900))))
    return found


def succeeds(plan: Plan, at: datetime, down: list[Outage], seed: int) -> bool:
    """Whether a run does: not while its service is down, and one in thirty fails by itself.

    With a negative seed none does by itself.
    """
    if any(o.service == plan.service and o.begin <= at < o.end for o in down):
        return False
    return seed < 0 or random.Random(f"{seed} {plan.id} {at:%d%H%M}").random() > 1 / 30


AGENT = "doc"
"""Who is asked about tasks that keep failing; out like any other service."""

ANSWERS = ("NOOP", "FILE-FIX", "PAUSE", "RECOMMEND-CONFIG", "unreadable", "failing")
_WEIGHTS = (3, 4, 3, 2, 2, 2)
_CAUSES = ("the certificate of {} has run out", "nobody renewed its lease at {}")


def triaged_outages(seed: int) -> list[Outage]:
    """The same, one so long that cooldowns end in it, and the triage agent is out for some hours, too."""
    begin, hour = START + timedelta(hours=20), timedelta(hours=1)
    agent_out = START + (32 + seed % 5) * hour
    return [
        *outages(seed),
        Outage("database", begin, begin + 75 * hour),
        Outage(AGENT, agent_out, agent_out + 8 * hour),
    ]


def mornings() -> list[datetime]:
    """When somebody looks after what was paused or has stopped."""
    return [START + timedelta(days=n, hours=9) for n in (2, 4, 5)]


def answer(plan: Plan, at: datetime, seed: int) -> tuple[str, str]:
    """What the triage agent says of a task at a moment, and the cause that it names."""
    rng = random.Random(f"{seed} {plan.id} triage {at:%d%H%M}")
    return rng.choices(ANSWERS, _WEIGHTS)[0], rng.choices(_CAUSES, (4, 1))[0].format(plan.service)


@dataclass(frozen=True, order=True)
class Triaged:
    """A triage, as both tell it: when it began, what it said, and what came of it."""

    at: datetime
    task: str
    number: int
    verdict: str
    came: str


@dataclass(frozen=True, order=True)
class Held:
    """A line about triages that wait for the agent's breaker: how many, or one of a task."""

    at: datetime
    task: str
    count: int


@dataclass(frozen=True, order=True)
class Happened:
    """A run, as both tell it."""

    at: datetime
    task: str
    status: str
    failures: int
