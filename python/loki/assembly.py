"""Joins the rooms that a task of a workspace needs: what performs the loop's effects, and its checks."""

from __future__ import annotations

import getpass
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loki.base.environment import passed_environment
from loki.base.error import UsageError
from loki.base.time import isoformat
from loki.recognition.definition import hint
from loki.stores.files import FileStore

if TYPE_CHECKING:
    from loki.action.agent import Reviewer
    from loki.action.check import Check
    from loki.action.detection import Command
    from loki.action.performer import Performer
    from loki.action.task import TaskSpec
    from loki.action.undo import Undone
    from loki.agents.command import CommandAgent
    from loki.agents.fallback import FallbackAgent
    from loki.agents.model import ModelAgent
    from loki.base.time import Duration
    from loki.config import AgentConfig
    from loki.people.approval import Approval
    from loki.workspace import Workspace

logger = logging.getLogger("loki")

NO_CHECK = (
    "nothing can tell when the task is done: no command of the project was found for it. Name at least "
    "one check that must exit with 0, like 'pytest -q', or 'approval: what a person has to approve'"
)


def performer(
    workspace: Workspace, spec: TaskSpec, execution: int, cancelled: threading.Event
) -> Performer:
    """What performs the loop's effects in a project.

    Args:
        workspace: the project.
        spec: the task.
        execution: which execution of the task it is, 1 or more.
        cancelled: ends whatever runs when set.
    """
    from loki.action.briefing import Limits
    from loki.action.check_runner import CheckRunner
    from loki.action.executor import Executor
    from loki.action.judge import Judge
    from loki.action.performer import Performer
    from loki.action.recorder import Recorder
    from loki.action.regression import RegressionCheck
    from loki.action.work import Work
    from loki.people.approval import Approvals
    from loki.people.command_approval import CommandApprovals

    root, patterns, config = workspace.root, workspace.patterns, workspace.config
    store, clock, loop = workspace.store, workspace.clock, workspace.config.loop
    executor = Executor(
        root,
        workspace.journal(spec.id),
        patterns,
        config.execute.allow_commands,
        loop.command_timeout,
        CommandApprovals(store, spec.id),
        cancelled,
    )
    work = Work(executor)
    recorder = Recorder(
        spec,
        store,
        workspace.signs(workspace.position()[0]),
        clock,
        execution,
        workspace.position,
        patterns=patterns,
        changes=executor.changes,
        digest=work.digest,
        diff=work.diff,
    )
    checks = CheckRunner(
        root,
        patterns,
        cancelled,
        loop.check_parallelism,
        loop.test_reports,
        passed_environment(os.environ, loop.pass_environment),
    )
    judge = Judge(
        spec, root, patterns, Approvals(store, spec.id), work.digest, work.diff, cancelled=cancelled
    )
    regressions = RegressionCheck(
        spec.id,
        spec.checks,
        work,
        checks,
        store,
        clock,
        workspace.gates.regression_detection,
        lambda: _test_command(workspace),
    )
    return Performer(
        spec,
        executor,
        recorder,
        checks,
        judge,
        regressions,
        patterns,
        clock,
        workspace.gates,
        cancelled,
        Limits(**config.briefing.model_dump()),
    )


def commands(workspace: Workspace) -> Mapping[str, Command]:
    """The commands that a project checks, builds and mends itself with, by kind."""
    from loki.action.detection import detect
    from loki.action.imports import Files
    from loki.action.tree import Tree

    own = {str(kind): words for kind, words in workspace.gates.commands.items()}
    return detect(Files.of(Tree.scan(workspace.root)), own)


def _test_command(workspace: Workspace) -> tuple[str, ...] | None:
    """The project's own test command, where it can run."""
    from loki.action.words import unrunnable

    found = commands(workspace).get("test")
    if found is None or unrunnable(found.words, workspace.root) is not None:
        return None
    return found.words


def default_checks(
    workspace: Workspace, kind: str, complexity: str, reviewer: Reviewer | None
) -> tuple[Check, ...]:
    """The checks of a task that names none; where they come from is logged.

    Args:
        workspace: the project.
        kind: of the task; complexity: low, medium or high.
        reviewer: judges what no command can check.

    Raises:
        UsageError: nothing can tell when such a task is done.
    """
    from loki.action.criterion import default_criteria

    found = default_criteria(
        kind,
        workspace.patterns.success_criteria.get(kind, ()),
        commands(workspace),
        workspace.root,
        has_reviewer=reviewer is not None,
        with_builds=complexity in workspace.gates.build_checks.enabled_for_complexity,
        timeout=workspace.config.loop.check_timeout,
    )
    for note in found.notes:
        logger.info("[closed-loop] %s", note)
    for warning in found.warnings:
        logger.warning("[closed-loop] %s", warning)
    if not found.checks:
        raise UsageError(NO_CHECK)
    return found.checks


def agent(
    workspace: Workspace,
    name: str,
    timeout: Duration | None = None,
    *,
    reflect: bool = False,
    pass_environment: Sequence[str] = (),
    said: AgentConfig | None = None,
) -> CommandAgent | ModelAgent | FallbackAgent:
    """An agent by its name; `Workspace.agent` says more.

    Args:
        workspace: the project.
        name, timeout, reflect: as there.
        pass_environment: more variables that a program gets although they look like secrets.
        said: what the configuration says of it; None: to be looked up.
    """
    from loki.action.words import unrunnable
    from loki.agents.command import CommandAgent
    from loki.agents.preset import presets
    from loki.resilience import chained, model_agent

    said = said or agent_config(workspace, name)
    if said.fallback:
        return chained(
            workspace, name, said, timeout, reflect=reflect, pass_environment=pass_environment
        )
    if timeout is None:
        timeout = workspace.config.loop.agent_timeout if said.timeout is None else said.timeout
    if said.model is not None:
        return model_agent(workspace, [said], name, timeout, reflect=reflect)
    own = said.pass_environment
    found = CommandAgent(
        said.command or (),
        preset=said.preset,
        timeout=timeout,
        briefing=said.briefing,
        name=name,
        breaker=said.breaker,
        reflect=reflect,
        pass_environment=(*(own or ()), *pass_environment) if own or pass_environment else own,
    )
    if problem := unrunnable(found.command, workspace.root, may_come=False):
        known_program = presets().get(said.preset or "")
        how = f"; install it: {known_program.install}" if known_program else ""
        raise UsageError(f"agent {name}: {problem}{how}")
    return found


def agent_config(workspace: Workspace, name: str) -> AgentConfig:
    """What an agent's name stands for.

    Raises:
        UsageError: there is none of that name.
    """
    from loki.agents.preset import presets
    from loki.agents.providers import EXAMPLES, PROVIDERS, is_model
    from loki.config import AgentConfig

    known = workspace.config.agents
    names = [one.strip() for one in name.split(",")]
    if name in known:
        return known[name]
    if len(names) > 1:
        said = [agent_config(workspace, one) for one in names]
        return said[0].model_copy(update={"fallback": (*said[0].fallback, *names[1:])})
    if is_model(name):
        return AgentConfig(model=name)
    if name in presets():
        return AgentConfig.model_validate({"preset": name})
    provider = name.rstrip(":")
    if provider in PROVIDERS:
        raise UsageError(f"agent {name!r}: expected a model of it, like '{EXAMPLES[provider]}'")
    there = f"there are: {', '.join(known)}" if known else "there is none"
    add = "say one before and after each comma"
    if name:
        add = (
            f"add [agents.{name}] there, with `command = …` or `model = …` "
            f"(a pipeline takes --agent {name}=COMMAND, too)"
        )
    raise UsageError(
        f"unknown agent {name!r}: expected {', '.join(presets())}, a model like "
        f"'{EXAMPLES['anthropic']}', or a name of [agents.NAME] in .loki/config.toml ({there})"
        f"{hint(name, [*known, *presets()])}; {add}"
    )


def abort(workspace: Workspace, record: Mapping[str, Any], *, force: bool) -> Undone:
    """Give a task up; `Workspace.abort` says more."""
    from loki.action.resumption import aborted, must_be_resumable
    from loki.memory import task_record
    from loki.memory.intervention import from_record
    from loki.people.escalation import with_answer

    must_be_resumable(record)
    with workspace.exclusive():
        journal = workspace.journal(str(record["id"]))
        journal.recover()
        undone = journal.undo(force=force)
        if undone.conflicts and not force:
            return undone
        after = aborted(record, isoformat(workspace.clock.now()))
        page = (record.get("outcome") or {}).get("page")
        text = workspace.store.get(page) if page else None
        if page and text and page.startswith("escalations/"):
            workspace.store.put(page, with_answer(text, from_record(after)[-1]))
        task_record.save(workspace.store, after)
    return undone


def approve(
    workspace: Workspace,
    record: Mapping[str, Any],
    criterion: str,
    decision: bool,
    by: str,
    note: str,
) -> Approval:
    """Keep a person's decision; `Workspace.approve` says more.

    Args:
        workspace: the project.
        record: the task's.
        criterion: what is decided on.
        decision: yes or no.
        by: who decides, or "".
        note: why.
    """
    from loki.people.approval import Approval, Approvals
    from loki.people.command_approval import PREFIX, CommandApprovals

    at = isoformat(workspace.clock.now())
    if criterion.startswith(PREFIX):
        commands = CommandApprovals(FileStore(workspace.folder), str(record["id"]))
        words = commands.words(criterion)
        return commands.decide(words, decision, by or _user(), at, note.strip())
    awaited = record.get("approval") or {}
    names = awaited.get("criteria") or []
    if criterion not in names:
        waits = f"it waits for: {', '.join(map(repr, names))}" if names else "it waits for none"
        raise UsageError(
            f"task {record.get('id')} does not wait for an approval of {criterion!r}: {waits}"
            f"{hint(criterion, names)}"
        )
    # Of what the page showed, not of what is there now: that is looked at when the task goes on.
    approval = Approval(
        criterion, decision, by or _user(), at, str(awaited["digest"]), note.strip()
    )
    Approvals(FileStore(workspace.folder), str(record["id"])).add(approval)
    return approval


def with_commands(workspace: Workspace, record: Mapping[str, Any], context: str) -> str:
    """What a person has to say, and which commands they approved since the task stopped."""
    from loki.people.command_approval import CommandApprovals

    commands = CommandApprovals(workspace.store, str(record["id"]))
    told = commands.told(str(record.get("updated_at") or ""))
    return "\n".join(filter(None, (context, told)))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, as in some containers
        return f"uid {os.getuid()}"
