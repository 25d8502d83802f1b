"""Performs the effects of the closed loop: the one place where the loop touches the world."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import logging
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from loki.action import briefing, gate, process, strategy
from loki.action.agent import Briefing
from loki.action.check import Check, CheckResult, CheckRunner, Report
from loki.action.event import (
    Amend,
    Ask,
    Checked,
    Effect,
    Event,
    Execute,
    Executed,
    Finish,
    Help,
    Keep,
    Observe,
    RunChecks,
    Say,
    Validate,
    Validated,
    Wait,
    Waited,
)
from loki.action.journal import Journal
from loki.action.process import Finished
from loki.action.task import Outcome, TaskSpec
from loki.action.tree import Tree
from loki.base.error import LokiError, StoreError, UsageError
from loki.base.time import Clock, isoformat
from loki.memory.attempt import Attempt, shorten
from loki.memory.dead_letter import DeadLetter, alike
from loki.memory.dead_letter import render as render_dead_letter
from loki.memory.history import History
from loki.memory.sign import ARMED, Signs
from loki.memory.store import Store
from loki.people.escalation import Escalation
from loki.people.escalation import render as render_escalation
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import PatternSet
from loki.recognition.signature import mask_secrets

logger = logging.getLogger("loki")

_T = TypeVar("_T")


@dataclass
class Performer:
    """Everything that the loop's effects need of the world.

    Args:
        task: the task.
        root: the project's folder.
        store: where memory is kept.
        journal: applies changes and undoes them.
        patterns: the pattern set.
        signs: the branch's signs.
        clock: the time.
        execution: which execution of the task this is.
        allowed: globs of commands that a change may run.
        command_seconds: how long such a command may take.
        position: tells (branch, commit) of the project, each None where there is none.
        seen_failing: (check, test) of tests that were seen failing before.
    """

    task: TaskSpec
    root: Path
    store: Store
    journal: Journal
    patterns: PatternSet
    signs: Signs
    clock: Clock
    execution: int = 1
    allowed: Sequence[str] = ()
    command_seconds: float = 600.0
    position: Callable[[], tuple[str | None, str | None]] = lambda: (None, None)
    seen_failing: frozenset[tuple[str, str]] = frozenset()
    cancelled: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Join the rooms."""
        self._history = History(self.store, self.task.id)
        self._checks = CheckRunner(self.root, self.patterns, self.cancelled)
        self._report = Report()
        self._failed_check: Check | None = None
        self._seen: Tree | None = None
        self._performs: Mapping[type[Any], Callable[[Any], Event | None]] = {
            RunChecks: self._run_checks,
            Validate: self._validate,
            Execute: self._execute,
            Help: self._help,
            Wait: self._wait,
            Keep: self._keep,
            Amend: self._amend,
            Observe: self._observe,
            Say: self._say,
            Finish: self._finish,
        }

    def perform(self, effect: Effect) -> Event | None:
        """Perform an effect; the answer, where it has one."""
        return self._performs[type(effect)](effect)

    def briefing(self, ask: Ask) -> Briefing:
        """What the agent is told; what it is shown of the project is remembered."""
        self._log(f"attempt={ask.attempt} asking the agent")
        self._seen = Tree.scan(self.root, self._seen)
        failing = [result.check.name for result in self._report.results if not result.passed]
        made = [a for a in self._history.attempts() if a.execution == self.execution]
        described = self.patterns.strategies.get(ask.strategy or "")
        facts = briefing.Facts(
            title=self.task.title,
            kind=self.task.kind,
            checks=[shlex.join(check.command) for check in self.task.checks],
            number=ask.attempt,
            left=max(0, self.task.max_retries - sum(not a.infrastructure for a in made)),
            signs=self.signs.armed,
            failure=ask.failure,
            also_failing=failing[1:],
            strategy=ask.strategy,
            steps=described.steps if described else (),
            reason=ask.reason,
            done=ask.done,
            context=ask.context,
            tried=made,
        )
        text = mask_secrets(briefing.compose(facts))
        return Briefing(text, self.task.id, ask.attempt, self.root, self.cancelled)

    def recover(self) -> None:
        """Mend what a crash left: every edit is wholly done or wholly undone after this."""
        recovered = self._journaled(lambda journal: journal.recover())
        for path in recovered.restored:
            logger.warning("%s: restored after an interrupted change", path)
        for conflict in recovered.conflicts:
            logger.warning("%s: %s", conflict.path, conflict.reason)
        for sentence in recovered.damaged:
            logger.warning("%s", sentence)

    def changed_files(self) -> tuple[str, ...]:
        """Paths that the task has changed so far."""
        return self._journaled(lambda journal: journal.changed())

    def watch(self) -> Callable[[], tuple[str, ...]]:
        """Record what somebody else does to the project, until the returned function is called.

        Returns:
            A function that ends the watch and gives the paths that changed; called again, none.
        """
        work = self._journaled(lambda journal: journal.begin_external())
        journal = self.journal

        def close() -> tuple[str, ...]:
            if work.applied is not None:
                return ()
            work.applied = journal.end_external(work)
            return work.applied.paths

        return close

    def _journaled(self, work: Callable[[Journal], _T]) -> _T:
        """Work with the journal; where it cannot be written, go on with one in memory."""
        try:
            return work(self.journal)
        except StoreError as error:
            logger.warning(
                "Could not persist: %s. Going on; `loki undo` will not know of it.", error
            )
            self.journal = Journal(None, self.root)
            return work(self.journal)

    # --- the phases ---------------------------------------------------------------------------------

    def _run_checks(self, _effect: RunChecks) -> Event:
        self._report = self._checks.run(self.task.checks, self._tell_check)
        first = self._report.first_failure
        self._failed_check = first.check if first else None
        seen = self.seen_failing | self._report.failing_tests
        if seen != self.seen_failing:
            self.seen_failing = seen
            self.save_task(None)
        return Checked(self._report)

    def _tell_check(self, result: CheckResult) -> None:
        said = "passed" if result.passed else "failed"
        self._log(f'check="{result.check.name}" {said} duration_ms={round(result.seconds * 1000)}')

    def _log(self, message: str) -> None:
        logger.info("[closed-loop] task=%s %s", self.task.id, message)

    def _validate(self, effect: Validate) -> Event:
        change = effect.proposal.change.based_on(self._shown())
        return Validated(gate.validate(change, self.root, self._shown()))

    def shown_digest(self) -> str:
        """Digest of the project as the agent was shown it; equal trees have equal digests."""
        entries = sorted(self._shown().entries.items())
        return hashlib.sha256(repr(entries).encode("utf-8", "backslashreplace")).hexdigest()

    def _shown(self) -> Tree:
        """The project as the agent was shown it."""
        if self._seen is None:
            self._seen = Tree.scan(self.root)
        return self._seen

    def _execute(self, effect: Execute) -> Event:
        change = effect.proposal.change.based_on(self._shown())
        files: tuple[str, ...] = ()
        if not effect.commands_only:
            try:
                files = self._journaled(lambda journal: journal.apply(change)).paths
            except (LokiError, OSError) as error:
                refused = Failure.of(str(error), tool="loki", error_code="not-applied")
                return Executed((), (), refused)
        commands: list[Mapping[str, Any]] = []
        for command in change.commands:
            ran, touched, failure = self._run_command(command)
            files = tuple(dict.fromkeys((*files, *touched)))
            if ran is not None:
                commands.append(ran)
            if failure is not None:
                return Executed(files, tuple(commands), failure)
        return Executed(files, tuple(commands), self._config_failure(files))

    def _run_command(
        self, command: tuple[str, ...]
    ) -> tuple[Mapping[str, Any] | None, tuple[str, ...], Failure | None]:
        shown = shlex.join(command)
        if not any(fnmatch.fnmatchcase(shown, glob) for glob in self.allowed):
            message = (
                f"the command `{shown}` is not allowed here; allowed are: "
                f"{', '.join(self.allowed) or 'none'}"
            )
            return None, (), Failure.of(message, tool="loki", error_code="command-not-allowed")
        try:
            finished, files = self._in_project(command)
        except UsageError as error:
            return None, (), Failure.of(str(error), tool="loki", error_code="command-not-found")
        ran = {
            "command": shown,
            "exit_code": finished.exit_code,
            "stdout": shorten(finished.stdout.decode("utf-8", "replace")),
            "stderr": shorten(finished.stderr.decode("utf-8", "replace")),
        }
        if finished.is_success:
            return ran, files, None
        failure = recognize(
            finished.output,
            command=shown,
            exit_code=finished.exit_code,
            root=str(self.root),
            patterns=self.patterns,
        )
        if not failure.message:
            failure = Failure.of(f"`{shown}` ended with exit code {finished.exit_code}")
        return ran, files, failure

    def _in_project(self, command: tuple[str, ...]) -> tuple[Finished, tuple[str, ...]]:
        """Run a command in the project; what it changes is recorded and can be undone."""
        close = self.watch()
        try:
            finished = process.run(
                command, cwd=self.root, timeout=self.command_seconds, cancelled=self.cancelled
            )
        finally:
            files = close()
        return finished, files

    def _config_failure(self, files: Sequence[str]) -> Failure | None:
        """Configs that a command wrote must parse too; proposed ones were checked before."""
        found = gate.broken_files(self.root, files)
        return found.failure(self.patterns) if not found.passed else None

    def _help(self, effect: Help) -> Event:
        self._log(f"strategy={effect.strategy}")
        situation = strategy.Situation(
            self.root,
            effect.failure,
            self._failed_check,
            self.patterns,
            self._in_project,
            lambda check: self._checks.run_one(check).passed,
        )
        return strategy.carry_out(effect.strategy, situation)

    def _wait(self, effect: Wait) -> Event:
        self._log(f"waiting {effect.seconds:.1f} s: {effect.reason}")
        self.clock.wait(effect.seconds, self.cancelled)
        return Waited()

    # --- memory ---------------------------------------------------------------------------------------

    def _keep(self, effect: Keep) -> None:
        branch, commit = self.position()
        self._history.append(replace(effect.attempt, branch=branch, commit=commit))

    def _amend(self, effect: Amend) -> None:
        self._history.amend(effect.attempt, effect.strategy)

    def _observe(self, effect: Observe) -> None:
        sighting = self.signs.observe(effect.failure, effect.approach, self.task.id)
        if sighting.count >= ARMED:
            self._log(f"sign seen={sighting.count} failure={effect.failure.signature}")

    def _say(self, effect: Say) -> None:
        level = logging.WARNING if effect.warning else logging.INFO
        logger.log(level, "[closed-loop] %s", effect.message, extra={"loki": dict(effect.fields)})

    # --- the end --------------------------------------------------------------------------------------

    def _finish(self, effect: Finish) -> None:
        now = isoformat(self.clock.now())
        outcome, attempts = effect.outcome, self._history.attempts()
        made = [a for a in attempts if a.execution == self.execution]
        likeness = None
        if outcome.status == "failed" and outcome.page and effect.failure:
            reason = outcome.trigger or "retry_budget_exhausted"
            letter = DeadLetter(
                self.task.id, self.task.title, made, effect.failure, reason, now, outcome.files
            )
            likeness = letter.likeness
            self.store.put(outcome.page, render_dead_letter(letter, self._similar(likeness)))
        if outcome.status == "escalated" and outcome.page:
            self.store.put(outcome.page, self._escalation_page(outcome, effect.failure, made))
        self._history.write_page(status=outcome.status, title=self.task.title, updated_at=now)
        self.save_task(outcome, likeness)

    def _escalation_page(
        self, outcome: Outcome, failure: Failure | None, made: Sequence[Attempt]
    ) -> str:
        checks = " ".join(f"--check {shlex.quote(c.name)}" for c in self.task.checks)
        command = f"loki run --task {shlex.quote(self.task.title)} {checks}".strip()
        return render_escalation(
            Escalation(
                self.task.id,
                self.task.title,
                outcome.trigger,
                outcome.reason,
                failure,
                made,
                outcome.files,
                command,
            )
        )

    def _similar(self, likeness: Mapping[str, Any]) -> list[str]:
        found = []
        for name in self.store.names("tasks/"):
            if not name.endswith("/task.json") or name == f"tasks/{self.task.id}/task.json":
                continue
            other = load_task(self.store, name.split("/")[1])
            if other.get("dead_letter") and alike(likeness, other["dead_letter"]):
                found.append(f"{other.get('id')}: {other.get('title')}")
        return found

    def save_task(self, outcome: Outcome | None, likeness: Mapping[str, Any] | None = None) -> None:
        """Keep what the task is and how it stands."""
        data = {
            "version": 1,
            "id": self.task.id,
            "title": self.task.title,
            "kind": self.task.kind,
            "complexity": self.task.complexity,
            "checks": [{"kind": c.kind, "command": list(c.command)} for c in self.task.checks],
            "max_retries": self.task.max_retries,
            "execution": self.execution,
            "updated_at": isoformat(self.clock.now()),
            "seen_failing": sorted(map(list, self.seen_failing)),
            "outcome": outcome.to_dict() if outcome else None,
            "dead_letter": likeness,
        }
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        self.store.put(f"tasks/{self.task.id}/task.json", text)


def load_task(store: Store, task_id: str) -> dict[str, Any]:
    """What is kept of a task; empty where there is none or it is damaged."""
    text = store.get(f"tasks/{task_id}/task.json")
    try:
        data = json.loads(text) if text else {}
    except ValueError:
        logger.warning("tasks/%s/task.json is damaged; begun anew", task_id)
        data = {}
    return data if isinstance(data, dict) else {}
