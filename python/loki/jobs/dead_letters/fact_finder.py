"""What the program can find out about a dead letter: dependencies, commits, its own history."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from loki.action.changes.git import git, git_folder
from loki.action.processes.command_line import find_program
from loki.action.strategies.dependency.installed import Environment
from loki.action.strategies.dependency.manifest_requirements import (
    Missing,
    ecosystems,
    missing_in,
    of_language,
)
from loki.action.task import safe_id
from loki.base.error import UsageError
from loki.base.time import moment
from loki.jobs.dead_letters.dead_letter_form import letter_of
from loki.jobs.dead_letters.dead_letter_review import Answers, Commit, Dependency, Facts
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.memory import task_record
from loki.memory.attempt import Attempt, History
from loki.memory.dead_letter import DeadLetter
from loki.memory.dead_letter_log import DeadLetterLog
from loki.people.escalation import Case, Escalations, OpenEscalation, shared_causes
from loki.recognition.failure import Failure, recognize

if TYPE_CHECKING:
    from loki.workspace import Workspace

MOST_COMMITS = 500
"""Commits that are looked at, the newest; chosen, not measured."""

MOST_COMMANDS = 50

_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]\b")
"""Names of environment variables as messages have them; one word alone could be anything."""


class FactFinder:
    """Finds facts about dead letters, as they are at one moment.

    Args:
        workspace: the project.

    Attributes:
        lists: the queue's lists.
        letters: the dead letters of the queue by task, with what the log says of their failures.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._store = workspace, workspace.store
        self.lists = queue_of(workspace).lists()
        self.letters = {task.id: self.letter(task) for task in self.lists.of("dead-letter")}

    def task(self, letter: DeadLetter) -> QueuedTask:
        """The task of a dead letter, as the queue has it."""
        return self.lists.find(letter.task_id) or QueuedTask(letter.task_id, letter.title)

    def letter(self, task: QueuedTask) -> DeadLetter:
        """What the queue and the log say of a task."""
        return letter_of(task, self.logged.get(task.id))

    def facts(
        self, letter: DeadLetter, answers: Answers | None = None, task: QueuedTask | None = None
    ) -> Facts:
        """What is known of a dead letter besides itself.

        Args:
            letter: the dead letter.
            answers: what people and reviewers said.
            task: its task; None: as the queue has it.
        """
        task = task or self.task(letter)
        life = self.life(letter.task_id)
        last = self.last_failure(letter)
        return Facts(
            self._case(task, life, last),
            tuple(self._dependencies(task, last)),
            tuple(self._commits(letter, last)),
            tuple(_met(letter, life)),
            str(self.lists.where(letter.simpler_task) or "") if letter.simpler_task else "",
            answers or Answers(),
        )

    def life(self, task_id: str) -> list[Attempt]:
        """The attempts of a task's life that loki recorded."""
        return History(self._store, task_id).attempts() if _is_id(task_id) else []

    def last_failure(self, letter: DeadLetter) -> Failure | None:
        """What it failed with last: as loki kept it, else as its last error reads."""
        if (kept := letter.recognized()) is not None:
            return kept
        said = letter.attempts[-1].error_message if letter.attempts else letter.error_summary
        return recognize(said, patterns=self._workspace.patterns) if said.strip() else None

    def _case(self, task: QueuedTask, life: Sequence[Attempt], last: Failure | None) -> Case:
        ran = [str(one.get("command") or "") for made in life for one in made.commands]
        files = [path for made in life for path in made.files_modified]
        return Case(
            task.id,
            task.title,
            task.description,
            task.kind,
            task.tags,
            last,
            tuple(dict.fromkeys((*ran, *task.checks)))[:MOST_COMMANDS],
            tuple(dict.fromkeys((*files, *task.scope))),
            same_cause=self._causes.get(task.id, ()),
        )

    @cached_property
    def asked(self) -> Mapping[str, OpenEscalation]:
        """By task, the page that asks a person about it."""
        pages = Escalations(self._store, self._workspace.clock).open()
        return {task: one for one in pages for task in one.tasks}

    # --- one root cause -------------------------------------------------------------------------------

    @cached_property
    def logged(self) -> Mapping[str, DeadLetter]:
        """What the log says of each task that loki gave up."""
        letters = DeadLetterLog(self._store, self._workspace.patterns).letters()
        return {letter.task_id: letter for letter in letters}

    @cached_property
    def _causes(self) -> Mapping[str, tuple[str, ...]]:
        """By task, those that fail for one reason: dead letters, and what waits for a person."""
        last = {id_: self.last_failure(letter) for id_, letter in self.letters.items()}
        for id_ in self.asked:
            if id_ not in last:
                made = [one for one in self.life(id_) if one.result == "failed"]
                last[id_] = made[-1].recognized() if made else None
        return shared_causes({id_: failure for id_, failure in last.items() if failure})

    # --- dependencies ---------------------------------------------------------------------------------

    def _dependencies(self, task: QueuedTask, last: Failure | None) -> Iterator[Dependency]:
        for name in task.dependencies:
            yield self._named(name)
        if last is None:
            return
        if last.kind == "env-missing":
            for name in dict.fromkeys(_VARIABLE.findall(last.message)):
                is_set = bool(os.environ.get(name))
                state = "is set now" if is_set else "is not set"
                yield Dependency(
                    name, "available" if is_set else "missing", "", state, was_missing=True
                )
        if last.kind == "import-not-found":
            yield from self._imported(last)

    def _named(self, name: str) -> Dependency:
        """Something that a task says it depends on: another task, a package or a program."""
        where, task = self.lists.where(name), self.lists.find(name)
        if where == "completed" and task is not None:
            at = str(task.raw.get("completed_at") or "")
            return Dependency(name, "available", at, f"the task is completed{at and f', {at}'}")
        if where == "abandoned":
            return Dependency(name, "never", "", "the task was abandoned")
        if where is not None:
            return Dependency(name, "waiting", "", f"the task is in {where}")
        if _is_id(name):
            record = task_record.load(self._store, name)
            if record.status == "success":
                at = record.updated_at
                return Dependency(name, "available", at, f"the task succeeded, {at}")
        there = next(self._installed(name), "")
        return Dependency(name, "available" if there else "missing", "", there or "nobody knows it")

    def _installed(self, name: str) -> Iterator[str]:
        root = self._workspace.root
        for known in ecosystems():
            environment = Environment(known, root)
            version = environment.version(name)
            if version is not None:
                yield f"installed in {environment.name}{version and f', version {version}'}"
        if "/" not in name and find_program(name, root):
            yield f"the program {find_program(name, root)}"

    def _imported(self, last: Failure) -> Iterator[Dependency]:
        """What the last failure missed, and whether it is there by now."""
        for known in of_language(last.language):
            missing = missing_in((last.message, last.excerpt), known)
            if missing is None:
                continue
            name = missing.package or missing.module
            environment = Environment(known, self._workspace.root, near=last.path)
            version = environment.version(missing.package or missing.module.split(".")[0])
            if version is None and known.name == "python" and missing.module:
                version = "" if environment.provider(missing.module) else None
            own = self._own(missing) if known.name == "python" else ""
            there = own or (version is not None and f"installed in {environment.name}") or ""
            # A name that lacks in a module that is there is no dependency that may come.
            if not missing.name:
                state = there or f"not installed in {environment.name}"
                yield Dependency(
                    name, "available" if there else "missing", "", state, was_missing=True
                )
            return

    def _own(self, missing: Missing) -> str:
        """The project's own module of that name, where it has one now."""
        path = missing.module.replace(".", "/")
        places = [f"{src}{path}{end}" for src in ("", "src/") for end in (".py", "/__init__.py")]
        there = (name for name in places if path and (self._workspace.root / name).is_file())
        return next((f"{name} is in the project" for name in there), "")

    # --- commits --------------------------------------------------------------------------------------

    def _commits(self, letter: DeadLetter, last: Failure | None) -> Iterator[Commit]:
        """Commits since its last failure that name the task, or touch what fails, oldest first."""
        since = moment(letter.last_failure)
        if since is None:
            return
        own = {frame.path for frame in last.frames if frame.in_project} if last else set()
        failing = {path for path in (*own, last.path if last else None) if path}
        names = re.compile(rf"(?<![\w-]){re.escape(letter.task_id)}(?![\w-])")
        for commit, message, files in self._log:
            at = moment(commit.at)
            if at is None or at <= since:
                continue
            touched = sorted(failing.intersection(files))
            if names.search(message):
                yield replace(commit, why="its message names the task")
            elif touched:
                yield replace(commit, why=f"it touches {touched[0]}, where the task fails")

    @cached_property
    def _log(self) -> Sequence[tuple[Commit, str, frozenset[str]]]:
        """(commit, whole message, files) of the newest commits, oldest first; none outside git."""
        root = str(self._workspace.root)
        times = [at for letter in self.letters.values() if (at := moment(letter.last_failure))]
        if not times or git_folder(root) is None:
            return []
        form = "--format=%x1e%H%x1f%cI%x1f%B%x1f"
        printed = git(
            root, "log", form, "--name-only", "--relative", "-z", f"--max-count={MOST_COMMITS}",
            f"--since={min(times).isoformat()}",
        )  # fmt: skip
        found = []
        for entry in (printed or b"").decode("utf-8", "replace").split("\x1e")[1:]:
            name, when, message, files = (*entry.split("\x1f"), "", "", "", "")[:4]
            subject = message.strip().partition("\n")[0]
            paths = frozenset(path.strip("\n") for path in files.split("\0") if path.strip("\n"))
            found.append((Commit(name, subject, when), message, paths))
        return list(reversed(found))


def _met(letter: DeadLetter, life: Sequence[Attempt]) -> Iterator[tuple[str, Failure]]:
    """(approach, failure) of the attempts that count, oldest first."""
    failed = [one for one in life if one.result == "failed" and not one.infrastructure]
    if failed:
        for one in failed[-letter.failure_count :] if letter.failure_count else ():
            if (failure := one.recognized()) is not None:
                yield one.action, failure
        return
    for told in letter.attempts[-letter.failure_count :] if letter.failure_count else ():
        if told.error_message.strip():
            yield told.approach, recognize(told.error_message)


def _is_id(text: str) -> bool:
    """Whether it can name a task's folder; other programs name tasks as they like."""
    try:
        return bool(safe_id(text))
    except (UsageError, IndexError):
        return False
