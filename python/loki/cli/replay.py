"""``loki replay``: what loki would have said about sessions that are over."""

from __future__ import annotations

import json as jsonlib
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loki.base.error import UsageError
from loki.base.text_format import amount, line
from loki.cli.common import picked
from loki.cli.options import JsonLines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.adapters.monitor.recorded_run import Read, RecordedRun, Remark

KINDS = {"nudge": "nudge", "refuse": "refusal", "stop": "stop"}
"""What the monitor says, and what that is called."""

COLORS = {"nudge": "yellow", "refuse": "magenta", "stop": "red"}


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Files of sessions or runs, or folders with such.", show_default=False),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(help=f"Show this kind alone: {', '.join(KINDS)}; may be given again."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="With all that the agent would have been told.")
    ] = False,
    json: JsonLines = False,
    convert: Annotated[
        Path | None,
        typer.Option(help="Write the runs to this file instead, one a line, as loki reads them."),
    ] = None,
) -> None:
    """Say what loki would have said about sessions that are over: where an agent got stuck, and which
    claims nothing bore out.

    Sessions of Claude Code, of a project or of all:

        loki replay ~/.claude/projects/-home-me-shop
        loki replay --only stop --only refuse ~/.claude/projects

    Runs of other agents, one a line: {"id", "steps": [{"tool", "args", "result", "exit_code"}], "final"}:

        loki replay runs.jsonl.gz

    Nothing is called and nothing is changed; an agent that is told something goes on differently, so
    count what is shown as places to look at, not as steps that would have been saved.

    Exit codes: 0 read, 1 loki itself could not work, 2 usage.
    """
    from loki.adapters.monitor.recorded_run import Read, recorded_runs

    wrong = sorted({*(only or ())} - {*KINDS})
    if wrong:
        raise UsageError(f"--only {wrong[0]}: expected one of {', '.join(KINDS)}")
    read = Read()
    if convert is not None:
        _convert(recorded_runs(paths, read), convert)
        _show_left_out(read)
        return
    counts: Counter[str] = Counter()
    for run in recorded_runs(paths, read):
        counts["runs"] += 1
        counts["calls"] += run.calls
        found = [one for one in _remarks(run) if not only or one.kind in only]
        counts.update(one.kind for one in found)
        counts["spoken"] += bool(found)
        _show(run, found, full=full, json=json)
    if not json:
        _sum_up(counts, read)
    _show_left_out(read)


def _remarks(run: RecordedRun) -> list[Remark]:
    from loki.adapters.monitor.recorded_run import remarks

    with tempfile.TemporaryDirectory(prefix="loki-replay-") as project:
        return list(remarks(run, project))


def _show(run: RecordedRun, found: list[Remark], *, full: bool, json: bool) -> None:
    if json:
        for one in found:
            where = {"run": run.id, "file": run.source, "unit": run.unit}
            typer.echo(jsonlib.dumps({**where, **picked(one, *one.__slots__)}))
        return
    if found:
        typer.secho(line(f"{run.source} ({run.id}, {run.calls} calls)"), bold=True)
    for one in found:
        kind = typer.style(f"{one.kind:<6}", fg=COLORS[one.kind])
        left = f" ({amount(one.left, 'call')} later it ended)" if one.left else ""
        typer.echo(f"  {run.unit} {one.place}: {kind} {one.reason}{left}: {line(one.about, 100)}")
        if full:
            for part in one.text.splitlines():
                typer.echo(f"      {line(part)}")


def _sum_up(counts: Counter[str], read: Read) -> None:
    said = ", ".join(amount(counts[kind], KINDS[kind]) for kind in KINDS)
    what = f"{amount(counts['runs'], 'run')}, {amount(counts['calls'], 'call')}"
    silent = counts["runs"] - counts["spoken"]
    typer.echo(f"{what}, {amount(read.files, 'file')}: {said}; {silent} would have heard nothing")


def _show_left_out(read: Read) -> None:
    shown, more = list(map(line, read.left_out[:5])), len(read.left_out[5:])
    for told in (*shown, *([f"{more} more"] if more else [])):
        typer.secho(f"left out: {told}", err=True, fg="yellow")


def _convert(runs: Iterator[RecordedRun], file: Path) -> None:
    import gzip

    from loki.adapters.monitor.recorded_run import as_steps

    text = "".join(f"{jsonlib.dumps(as_steps(run), ensure_ascii=False)}\n" for run in runs)
    data = text.encode("utf-8", "replace")
    file.write_bytes(gzip.compress(data) if file.name.endswith(".gz") else data)
    typer.echo(f"{text.count(chr(10))} runs written to {file}")
