"""``loki show``: a task and its attempts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base import codec
from loki.base.error import StoreError, UsageError
from loki.base.text_format import amount, line, span
from loki.cli.common import colored, find, load_project, present
from loki.cli.history import shown_result
from loki.cli.options import Json, Project
from loki.memory import task_record
from loki.memory.task_record import TaskRecord

if TYPE_CHECKING:
    from loki.memory.attempt import Attempt, CheckRecord
    from loki.workspace import Workspace

NONE = "No task here yet: see `loki run --help`."


def command(
    task: Annotated[
        str | None, typer.Argument(help="Id of the task, or how it begins; all tasks where none.")
    ] = None,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Only the attempt of this number.")
    ] = None,
    output: Annotated[
        bool, typer.Option("--output", help="Also what checks and commands printed.")
    ] = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Show what was tried on a task, what came of it, and where its pages are.

    Example: `loki show fix-login`; `loki show fix-login --attempt 2 --output`

    Of a recurring task: its failures, its next attempt, its last triage and its last runs.

    `loki history` lists the attempts of all tasks, `loki report` says what they amount to.
    """
    from loki.cli import queue, recur_show  # which find tasks as this does

    workspace = load_project(project)
    if task is not None and task.startswith(".triage-"):
        recur_show.show_triage(workspace, task, json=json)
        return
    if task is not None and (recurring := recur_show.recurring_id(workspace, task)):
        recur_show.show(workspace, recurring, json=json)
        return
    if task is None:
        records = [_record(workspace, id_) for id_ in workspace.tasks()]
        rows = (
            line(f"{record.id}  {record.status or 'running or interrupted'}  {record.title}")
            for record in records
        )
        present(list(map(_as_json, records)), rows, json=json, nothing=NONE)
        return
    tasks = workspace.tasks()
    is_begun = any(id_.startswith(task) for id_ in tasks)
    if not is_begun and queue.show_unbegun(workspace, task, json=json):
        return
    id_ = find(tasks, task)
    record, attempts = _record(workspace, id_), workspace.history(id_).attempts()
    if attempt is not None:
        attempts = _only(attempts, attempt)
    notes = list(workspace.store.scan(f"tasks/{id_}/reflections.jsonl"))
    data = {
        **_as_json(record),
        "attempts": [one.to_dict() for one in attempts],
        "reflections": notes,
    }
    lines = [*_head(record, attempts, _who(workspace, record))]
    for one in attempts:
        lines += _tell(one, notes, output=output)
    present(data, [*lines, *_pages(workspace, id_, attempts, project)], json=json)


def _record(workspace: Workspace, task: str) -> TaskRecord:
    """What is kept of a task; its id alone where its record is damaged or was never written."""
    found = task_record.load(workspace.store, task)
    return found or replace(found, title="(no record of it)")


def _as_json(record: TaskRecord) -> dict[str, Any]:
    return codec.write(record) if record else {"id": record.id, "title": record.title}


def _only(attempts: list[Attempt], number: int) -> list[Attempt]:
    found = [one for one in attempts if one.attempt == number]
    if not found:
        there = f"it has {amount(len(attempts), 'attempt')}"
        raise UsageError(f"no attempt {number} of this task; {there}")
    return found


def _who(workspace: Workspace, record: TaskRecord) -> str:
    """Who works on a task that has not ended, as far as the queue knows."""
    from loki.cli import queue

    if record.outcome:
        return ""
    try:
        return queue.holder(workspace, record.id)
    except StoreError:
        return ""


def _head(record: TaskRecord, attempts: Sequence[Attempt], who: str) -> Iterator[str]:
    from loki.memory.task_record import DONE

    outcome = record.outcome
    yield typer.style(line(record.title), bold=True)
    what = f" ({record.kind}, {record.complexity})" if record else ""
    yield f"  id      {record.id}{what}"
    for check in record.checks:
        yield f"  check   {line(shlex.join(check.command))} ({check.kind})"
    if outcome:
        yield f"  status  {line(outcome.status)}: {line(outcome.reason)}"
        if files := outcome.files:
            yield f"  files   {line(', '.join(files))}"
            commit = next((one.commit for one in attempts if one.commit), None)
            if commit:
                yield f"  diff    git diff {commit[:12]} -- {line(shlex.join(files))}"
    elif who:
        yield f"  status  in progress: {who}"
    else:
        yield "  status  not ended: it runs, or it was killed; run it again to go on"
    if record.status not in DONE and not who:
        yield f"  resume  loki resume {shlex.quote(record.id)}"
    for one in record.interventions:
        said = f": {line(one.context)}" if one.context else ""
        yield f"  person  {one.at}, after attempt {one.attempt}: {one.kind}{said}"
    tokens = sum(int(one.tokens or 0) for one in attempts)
    cost = sum(one.cost or 0 for one in attempts)
    if tokens or cost:
        yield f"  took    {_price(tokens, cost)}"


def _tell(attempt: Attempt, notes: Sequence[Mapping[str, Any]], *, output: bool) -> Iterator[str]:
    result = shown_result(attempt)
    shown = colored(line(result))
    yield f"\nattempt {attempt.attempt}  {shown}  {line(attempt.timestamp)}  {span(attempt.duration_ms)}"
    yield from _work(attempt)
    yield from _validation(attempt.validation or {})
    for ran in attempt.commands:
        yield f"  command {line(str(ran.get('command')))}: exit code {ran.get('exit_code')}"
        yield from quote(f"{ran.get('stdout') or ''}\n{ran.get('stderr') or ''}") if output else ()
    for check in attempt.checks:
        yield f"  check   {line(check.name)}: {_verdict(check)}"
        yield from quote(check.output) if output else ()
    yield from _regression(attempt.regression or {})
    yield from _failure(attempt, notes)


def _work(attempt: Attempt) -> Iterator[str]:
    if attempt.delay_ms:
        yield f"  waited  {span(attempt.delay_ms)} before it"
    yield f"  did     {line(attempt.action) or '(nothing)'}"
    if who := " ".join(part for part in (attempt.agent, attempt.model) if part):
        price = _price(int(attempt.tokens or 0), attempt.cost or 0)
        yield f"  agent   {line(who)}{': ' if price else ''}{price}"
    if attempt.files_modified:
        yield f"  files   {line(', '.join(attempt.files_modified))}"
    for finding in attempt.findings:
        evidence = f"; recorded: {finding['evidence']}" if finding.get("evidence") else ""
        told = f"{finding.get('id')}: {finding.get('quote')}{evidence}"
        yield f"  said    {line(told)}"


def _failure(attempt: Attempt, notes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if attempt.error:
        yield f"  error   {line(attempt.error)}"
    if attempt.signature:
        sure = "" if attempt.confidence is None else f", confidence {attempt.confidence:.2f}"
        yield f"  kind    {line(attempt.signature)}{sure}"
    for note in notes:
        if note.get("attempt") == attempt.attempt:
            yield from _reflection(note)
    if attempt.decision:
        then = attempt.strategy_used or str(attempt.decision.get("action"))
        yield f"  then    {line(then)}: {line(str(attempt.decision.get('reason')))}"


def _verdict(check: CheckRecord) -> str:
    took = span(check.duration_ms)
    if check.passed:
        return f"passed after {took}"
    end = "stopped before it ended" if check.exit_code is None else f"exit code {check.exit_code}"
    return f"failed after {took}, {end}"


def _validation(validation: Mapping[str, Any]) -> Iterator[str]:
    if validation.get("skipped"):
        yield "  gates   skipped: the caller edits by itself"
    elif validation:
        said = "passed" if validation.get("passed") else "failed"
        yield f"  gates   {said}: {line(', '.join(map(str, validation.get('gates') or [])))}"
    for violation in validation.get("violations") or []:
        yield f"          {line(_violation(violation))}"
    for warning in validation.get("warnings") or []:
        yield f"          warning: {line(str(warning))}"


def _violation(violation: Any) -> str:
    if not isinstance(violation, Mapping):
        return str(violation)
    named = (violation.get(key) for key in ("file", "line", "column"))
    where = ":".join(str(part) for part in named if part) or "change"
    about = f"{violation.get('gate')}, {violation.get('severity')}"
    fix = violation.get("suggested_fix")
    return f"{where}: {violation.get('description')} [{about}]{f'; {fix}' if fix else ''}"


def _regression(said: Mapping[str, Any]) -> Iterator[str]:
    if said.get("skipped"):
        yield f"  regress {line(str(said.get('unchecked') or 'skipped'))}"
    elif said.get("ran"):
        count = said.get("regressions") or 0
        mended = "; those of before are mended" if said.get("fixed") else ""
        besides = f"; {said['unchecked']}" if said.get("unchecked") else ""
        yield f"  regress {line(amount(int(count), 'regression') + mended + besides)}"


def _reflection(note: Mapping[str, Any]) -> Iterator[str]:
    """A note as whoever wrote it shaped it: its texts, by their names."""
    told = {k: v for k, v in note.items() if isinstance(v, str) and k not in {"timestamp", "by"}}
    for name, text in told.items():
        yield f"  note    {line(name.replace('_', ' '))}: {line(text)}"


def _pages(
    workspace: Workspace, task: str, attempts: Sequence[Attempt], project: Path
) -> Iterator[str]:
    from loki.memory.sign import PAGE, Signs, folder_of

    folder = project / ".loki"
    for named in dict.fromkeys(one.branch for one in attempts):
        branch = named and named.encode("utf-8", "replace").decode()
        signs = [s for s in Signs(workspace.store, branch).armed if task in s.tasks]
        for sign in signs:
            yield f"sign: seen {sign.count} times: {line(sign.failure.said)}"
        if signs:
            yield f"page: {folder / folder_of(branch) / PAGE}"
    for name in workspace.store.keys(f"tasks/{task}/"):
        if name.endswith(".md"):
            yield f"page: {folder / name}"
        elif name.endswith(".patch"):
            yield f"unfinished, not in the project: {folder / name}: loki resume {task} brings it in"
    if (folder / "tasks" / task / "undo").is_dir():
        yield f"kept: {folder / 'tasks' / task / 'undo'}, its files before and after: loki undo {task}"


def _price(tokens: int, cost: float) -> str:
    parts = [f"{tokens:,} tokens"] if tokens else []
    return ", ".join(parts + ([f"cost {cost:,.2f}"] if cost else []))


def quote(text: str) -> Iterator[str]:
    """What a tool printed, without what a terminal obeys."""
    from loki.recognition.text import clean

    for told in str(clean(text)).rstrip().splitlines():
        yield "        | " + "".join(c if c.isprintable() or c == "\t" else " " for c in told)
