"""``loki patterns``: check and try out the files that say how failures are recognized."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from loki.base import path_containment
from loki.base.error import ConfigError, UsageError
from loki.base.secret import mask_secrets
from loki.cli import pattern_explanation
from loki.cli.common import Json, Project, show_json

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help=(
        "Check and try out the files that say how failures are recognized.\n\n"
        "A pattern file says which texts show which kind of failure, and what answers it:\n\n"
        "```yaml\n"
        "version: 2\n"
        "extends: default            # on top of the built-in patterns\n"
        "patterns:\n"
        "  - id: flux-error\n"
        "    description: The flux capacitor is out.\n"
        "    strategy: retry_with_backoff\n"
        "    signals:\n"
        "      - {word: FluxError}              # strong: enough alone\n"
        "      - {literal: capacitor, w: weak}  # only supports others\n"
        "    examples: ['FluxError: no capacitor']\n"
        "    near_misses: ['no capacitor in stock']\n"
        "```\n\n"
        "Save it as `.loki/failure-patterns.yml`, and say\n\n"
        "`loki patterns check` — is every line of it right, do its examples come out?\n\n"
        "`loki patterns test --text 'FluxError at 88 mph'` — what matches, and why?\n\n"
        "`loki patterns test build.log` — the same for the output of a tool."
    ),
)

_COLORS = {"error": "red", "warning": "yellow", "example": "red"}
_SUFFIXES = (".yml", ".yaml")


@app.command("check")
def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Pattern files, tool files, folders of them, or - for stdin; "
            "the project's .loki/failure-patterns.yml where none is named.",
        ),
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Say everything that is wrong with pattern files and tool files, by file, line and column.

    Examples, near misses and samples in the files are run, too.

    Exit codes: 0 nothing is wrong (there may be warnings), 1 an example does not come out as the
    file says, 2 a file cannot be used.

    Example: `loki patterns check .loki/failure-patterns.yml`
    """
    from loki.recognition.definition_inspection import inspect, unreadable

    found = []
    for path in _paths(files or [], project):
        try:
            found.append(inspect(_content(path), _name(path)))
        except ConfigError as problem:
            found.append(unreadable(problem))
    if json:
        show_json({"files": [_as_data(one) for one in found]})
    else:
        for one in found:
            _tell(one)
    if any(one.of("error") for one in found):
        raise typer.Exit(2)
    if any(one.of("example") for one in found):
        raise typer.Exit(1)


app.command("test")(pattern_explanation.command)


def _paths(files: list[Path], project: Path) -> list[Path]:
    """The files to check; of folders those that end like YAML."""
    if not files:
        own = project / ".loki" / "failure-patterns.yml"
        if not own.exists():
            raise UsageError(f"no {own} here: name a file, as in `loki patterns check mine.yml`")
        return [own]
    paths = []
    for path in files:
        if not path.is_dir():
            paths.append(path)
            continue
        found = (path / name for name in path_containment.files(path))
        inside = sorted(p for p in found if p.suffix in _SUFFIXES and p.is_file())
        if not inside:
            raise UsageError(f"no file in {path} ends with {' or '.join(_SUFFIXES)}")
        paths += inside
    return paths


def _content(path: Path) -> bytes:
    from loki.recognition.definition_file import content
    from loki.recognition.definition_source import MAX_BYTES

    return sys.stdin.buffer.read(MAX_BYTES + 1) if str(path) == "-" else content(path)


def _name(path: Path) -> str:
    return "<stdin>" if str(path) == "-" else str(path)


def _as_data(one: Any) -> dict[str, Any]:
    return {
        "file": one.file,
        "kind": one.kind or None,
        "ok": not one.of("error") and not one.of("example"),
        "counts": one.counts,
        "findings": [
            {
                "severity": finding.severity,
                "line": finding.line or None,
                "column": finding.column or None,
                "reason": mask_secrets(finding.reason),
            }
            for finding in one.findings
        ],
    }


def _tell(one: Any) -> None:
    for finding in one.findings:
        typer.secho(mask_secrets(str(finding)), fg=_COLORS[finding.severity])
    counted = [_plural(number, name) for name, number in one.counts.items() if number]
    checked = f"{', '.join(counted) or 'nothing'} checked"
    wrong = [
        _plural(len(one.of(severity)), name)
        for severity, name in (
            ("error", "errors"),
            ("example", "examples that do not come out"),
            ("warning", "warnings"),
        )
        if one.of(severity)
    ]
    if one.of("error"):
        typer.echo(f"{one.file}: cannot be used: {', '.join(wrong)}")
    elif wrong:
        typer.echo(f"{one.file}: {', '.join(wrong)}; {checked}")
    else:
        typer.echo(f"{one.file}: fine; {checked}")


def _plural(number: int, names: str) -> str:
    if number != 1:
        return f"{number} {names}"
    single = {
        "strategies": "strategy",
        "regexes": "regex",
        "near misses": "near miss",
        "examples that do not come out": "example that does not come out",
    }
    return f"1 {single.get(names, names.removesuffix('s'))}"
