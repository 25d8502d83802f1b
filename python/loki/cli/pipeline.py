"""Work in stages: plan, implement, verify; each in its own closed loop.

A pipeline is a YAML file. Its stages run in their order; each may have a condition, wait for a
person's approval, be tried again after it failed, and be rolled back. A run is on disk at every
step: whatever ends it, the same command goes on from there.

`loki pipeline check feature.yml` — all that is wrong with it

`loki pipeline run feature.yml --agent-command "claude -p"` — run it, or go on with it

`loki pipeline show` — what has run here, and how each stage stands

`loki pipeline resume feature-1 --approve` — let the stage begin that waits for you
"""

from __future__ import annotations

import json as jsonlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import UsageError
from loki.base.text_format import amount
from loki.base.time import isoformat
from loki.cli.common import (
    colored,
    columns,
    find,
    load_project,
    log_to_console,
    name_and_value,
    picked,
    present,
    project_option,
    take_signals,
)
from loki.cli.options import (
    Context,
    Decider,
    Json,
    MaxTime,
    Note,
    Project,
    Wait,
    command_group,
    with_options,
)
from loki.cli.review import reminder

if TYPE_CHECKING:
    from loki.action.loop.agent_call import AnyAgent
    from loki.action.pipelines.pipeline_state import PipelineOutcome, StageOutcome
    from loki.execution.pipeline import Pipeline
    from loki.runtime import Runtime

# --- What is said of a run ----------------------------------------------------------------------------

NO_RUN = "No pipeline has run here yet: see `loki pipeline run --help`."


def summary(outcome: PipelineOutcome, project: Path, agents: str) -> Iterator[str]:
    """What happened, and what to do next."""
    yield from map(_stage_line, outcome.stages)
    yield ""
    count = amount(outcome.attempts, "attempt")
    yield f"{colored(outcome.status)} after {count}: {outcome.reason}."
    if outcome.files:
        yield f"changed: {', '.join(outcome.files)}"
    for step in outcome.rollback:
        detail = f", {step.detail}" if step.detail else ""
        yield f"rollback: {step.kind} {step.subject}: {step.result}{detail}"
    if outcome.page:
        yield f"read:    {project / '.loki' / outcome.page}"
    where = project_option(project)
    resume = f"loki pipeline resume {outcome.run}{where}{agents}"
    if outcome.trigger == "approval" and outcome.status == "escalated":
        yield f"approve: {resume} --approve"
        yield f"reject:  loki pipeline resume {outcome.run}{where} --reject --note WHY"
    elif outcome.status == "escalated":
        yield f"resume:  {resume} --context WHAT-YOU-KNOW"
    elif outcome.status in {"paused", "interrupted"}:
        when = f"   (from {isoformat(outcome.retry_at)} on)" if outcome.retry_at else ""
        yield f"resume:  {resume}{when}"
    yield f"details: loki pipeline show {outcome.run}{where}"
    worked = [stage for stage in outcome.stages if stage.attempts]
    if worked:
        yield f"         loki show {worked[-1].task_id}{where}"
    if due := reminder(project):
        yield due


def _stage_line(stage: StageOutcome) -> str:
    tries = f"{stage.tries} tr{'y' if stage.tries == 1 else 'ies'}, " if stage.tries > 1 else ""
    work = f"  {tries}{stage.attempts} att., {stage.seconds:.1f} s" if stage.tries else ""
    why = f"  {stage.reason}" if stage.reason and stage.status != "success" else ""
    return f"  {stage.id:<16} {colored(stage.status, 11)}{work}{why}"


def told(data: Mapping[str, Any], project: Path) -> Iterator[str]:
    """How a run's stages stand, and where its pages are."""
    yield f"{data['run']}: {_standing(data)}"
    yield f"  file        {data['file'] or '(none)'}"
    for name, value in data["parameters"].items():
        yield f"  {name:<11} {_short(value)}"
    yield ""
    head = ("stage", "status", "tries", "attempts", "time", "task", "why")
    yield from columns(map(_row, data["stages"]), head)
    for step in data["rollback"]:
        result = step["result"] or "to be done"
        yield f"rollback: {step['kind']} {step['subject']}: {result} {step['detail']}".rstrip()
    folder = project / ".loki"
    for stage in data["stages"]:
        for name in stage["outputs"]:
            yield f"output: {folder / 'pipelines' / data['run'] / 'outputs' / name}.md"
        if stage["page"]:
            yield f"page:   {folder / stage['page']}"


def _row(stage: Mapping[str, Any]) -> tuple[str, ...]:
    counted = (str(stage["tries"]), str(stage["attempts"]), f"{stage['spent']:.1f} s")
    task = stage["task"] if stage["tries"] else ""
    return (stage["id"], colored(stage["status"]), *counted, task, _why(stage))


def _standing(data: Mapping[str, Any]) -> str:
    reason = f": {data['reason']}" if data.get("reason") else ""
    return f"{colored(str(data['status']))}{reason}"


def _short(value: str) -> str:
    shown = jsonlib.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:60] + "…"  # noqa: PLR2004


def _why(stage: Mapping[str, Any]) -> str:
    approval = stage["approval"]
    leave = f"approved by {approval['by']} at {approval['at']}" if approval else ""
    if approval and approval["note"]:
        leave += f" ({approval['note']})"
    return "; ".join(part for part in (leave, str(stage["reason"])) if part)


# --- The commands -------------------------------------------------------------------------------------

app = command_group(__doc__)

File = Annotated[Path, typer.Argument(help="The pipeline's file.")]
Run = Annotated[
    str, typer.Argument(help="Id of the run, or how it begins; a pipeline's name for its last.")
]


@dataclass(frozen=True)
class RunOptions:
    """Who works for the stages, and what all of them together may take."""

    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="[NAME=]COMMAND",
            help="Who works for the stages that name this agent: a command, claude, codex, gemini, "
            "aider, or a model like anthropic:claude-opus-4-5; repeat it for more. Without a name: for "
            "all others (a command that begins with an assignment: --agent-command). "
            "[default: [agents.NAME] in .loki/config.toml]",
        ),
    ] = None
    agent_command: Annotated[
        str | None,
        typer.Option(
            help="Who works for all stages whose agent no --agent names: a command, run as you say it, "
            "or a model."
        ),
    ] = None
    max_attempts: Annotated[
        int | None,
        typer.Option(min=1, help="Attempts of all stages together. [default: the file's]"),
    ] = None
    max_time: MaxTime = None
    wait: Wait = None

    @property
    def words(self) -> str:
        """Those that say who works, for a command that can be copied."""
        words = [f"--agent {shlex.quote(given)}" for given in self.agent or ()]
        if self.agent_command is not None:
            words.append(f"--agent-command {shlex.quote(self.agent_command)}")
        return "".join(f" {word}" for word in words)

    @property
    def limits(self) -> dict[str, Any]:
        """What a run takes of them."""
        return picked(self, "max_attempts", "max_time", "wait")


@app.command("run")
@with_options
def run(
    file: File,
    options: RunOptions,
    from_stage: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="STAGE",
            help="Begin the last run again at this stage; those before it stay done.",
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of the pipeline; repeat it for more."),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Begin another run, whatever became of the last.")
    ] = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Run a pipeline, or go on with its last run where that has not ended.

    Exit codes: 0 success, 1 loki itself could not work, 2 usage, 3 a person is needed, 4 a stage
    failed, 5 out of attempts or time, 6 paused, 130 interrupted.

    Example: `loki pipeline run feature.yml --agent tech-lead="claude -p" --param feature="dark mode"`
    """
    pipeline, workspace = _ready(file, project)
    outcome = pipeline.run(
        _agents(options, workspace, pipeline),
        path=workspace,
        parameters=dict(
            name_and_value("--param", given, "what it stands for") for given in param or ()
        ),
        from_stage=from_stage,
        new=new,
        **options.limits,
    )
    _report(outcome, project, json, options.words)


@app.command("resume")
@with_options
def resume(
    run: Run,
    options: RunOptions,
    approve: Annotated[
        bool, typer.Option("--approve", help="Let the stage begin that waits for approval.")
    ] = False,
    reject: Annotated[bool, typer.Option("--reject", help="End the run.")] = False,
    note: Note = "",
    by: Decider = "",
    context: Context = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Go on with a run that waits for you, was paused, interrupted or killed.

    Leave that you give is for that stage of that run alone, and kept with your name.

    Example: `loki pipeline resume feature-1 --context "the staging key is in the vault"`
    """
    workspace = load_project(project)
    data = _find(workspace, run)
    if not data.get("file"):
        raise UsageError(f"run {data['run']} has no file: go on with it where it was begun")
    pipeline, workspace = _ready(workspace.root / str(data["file"]), project)
    outcome = pipeline.resume(
        _agents(options, workspace, pipeline),
        run=str(data["run"]),
        path=workspace,
        approve=approve,
        reject=reject,
        by=by,
        note=note,
        context=context or "",
        **options.limits,
    )
    _report(outcome, project, json, options.words)


@app.command("check")
def check(file: File, project: Project = Path(), json: Json = False) -> None:
    """Say all that is wrong with a pipeline: in its file, and with this project.

    Example: `loki pipeline check feature.yml`
    """
    from loki.execution.pipeline import Pipeline, flaws

    found = [str(flaw) for flaw in flaws(file)]
    spec = None
    if not found:
        pipeline = Pipeline.load(file)
        spec = pipeline.spec
        found = [f"{file}: {sentence}" for sentence in pipeline.problems(load_project(project))]
    if spec is None or found:
        lines = (*found, f"{file}: cannot be used: {amount(len(found), 'problem')}")
    else:
        agents = ", ".join(dict.fromkeys(stage.agent for stage in spec.stages))
        stages = " → ".join(stage.id for stage in spec.stages)
        lines = (f"{file}: fine; {stages}; agents: {agents}",)
    present({"file": str(file), "problems": found}, lines, json=json)
    raise typer.Exit(2 if found else 0)


@app.command("show")
def show(
    run: Annotated[
        str | None,
        typer.Argument(help="Id of the run, or the pipeline's name for its last; all where none."),
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Show how the stages of a run stand, or which runs there are.

    Example: `loki pipeline show feature-1`
    """
    from loki.action.pipelines import pipeline_record

    workspace = load_project(project)
    if run is None:
        found = pipeline_record.runs(workspace.store)
        rows = (f"{data['run']}  {_standing(data)}" for data in found)
        present(found, rows, json=json, nothing=NO_RUN)
        return
    data = _find(workspace, run)
    present(data, told(data, project), json=json)


# --- What their arguments say -------------------------------------------------------------------------


def _ready(file: Path, project: Path) -> tuple[Pipeline, Runtime]:
    from loki.execution.pipeline import Pipeline

    log_to_console()
    take_signals()
    return Pipeline.load(file), load_project(project)


def _agents(options: RunOptions, workspace: Runtime, pipeline: Pipeline) -> Mapping[str, AnyAgent]:
    from loki.agents.preset import presets
    from loki.agents.providers import is_model
    from loki.execution import resolve
    from loki.execution.pipeline_session import EVERY_OTHER

    names, command = {stage.agent for stage in pipeline.spec.stages}, options.agent_command
    named = [given for given in options.agent or () if _has_name(given, names)]
    others = [given for given in options.agent or () if not _has_name(given, names)]
    if len(others) + (command is not None) > 1:
        raise UsageError(
            "who works for all stages that nothing else names is said more than once: expected one "
            "--agent without a name, or --agent-command"
        )
    said = dict(name_and_value("--agent", given, "what it stands for") for given in named)
    if others or command is not None:
        said[EVERY_OTHER] = others[0] if others else str(command)
    found: dict[str, AnyAgent] = {}
    for name, words in said.items():
        if is_model(words):
            found[name] = workspace.agent(words)
            continue
        own_name = None if name == EVERY_OTHER else name
        is_as_said = name == EVERY_OTHER and not others  # of --agent-command
        known = words if not is_as_said and words in presets() else None
        found[name] = resolve.program(workspace, words, preset=known, name=own_name)
    return found


def _has_name(given: str, names: set[str]) -> bool:
    """Whether a name stands before what ``--agent`` says: a stage's, or a word that may be meant so."""
    name, equals, _ = given.partition("=")
    return bool(equals) and (name.strip() in names or len(name.split()) <= 1)


def _find(workspace: Runtime, wanted: str) -> dict[str, Any]:
    from loki.action.pipelines import pipeline_record

    known = pipeline_record.runs(workspace.store)
    named = [data for data in known if data["pipeline"] == wanted]
    if named:
        return named[-1]  # a pipeline's name stands for its last run
    id_ = find([str(data["run"]) for data in known], wanted, "run")
    return next(data for data in known if data["run"] == id_)


def _report(outcome: PipelineOutcome, project: Path, json: bool, agents: str) -> None:
    present(outcome.to_dict(), summary(outcome, project, agents), json=json)
    raise typer.Exit(outcome.exit_code)
