"""Check and try out the files that say how failures are recognized.

A pattern file says which texts show which kind of failure, and what answers it:

```yaml
version: 2
extends: default            # on top of the built-in patterns
patterns:
  - id: flux-error
    description: The flux capacitor is out.
    strategy: retry_with_backoff
    signals:
      - {word: FluxError}              # strong: enough alone
      - {literal: capacitor, w: weak}  # only supports others
    examples: ['FluxError: no capacitor']
    near_misses: ['no capacitor in stock']
```

Save it as `.loki/failure-patterns.yml`, and say

`loki patterns check` — is every line of it right, do its examples come out?

`loki patterns test --text 'FluxError at 88 mph'` — what matches, and why?

`loki patterns test build.log` — the same for the output of a tool.
"""

from __future__ import annotations

import codecs
import dataclasses
import json as jsonlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base import path_containment
from loki.base.error import ConfigError, UsageError
from loki.base.secret import mask_secrets, masked
from loki.cli.common import picked, show_json
from loki.cli.options import CommandRun, Json, Project, command_group
from loki.recognition.pattern import DEFAULT_STRATEGY, LEARNED, LEAST, OWN, PatternSet, band
from loki.recognition.text import clean

if TYPE_CHECKING:
    from loki.recognition.match_explanation import (
        MatchExplanation,
        PatternExplanation,
        SignalExplanation,
    )


# --- Which patterns match a text, and why the others do not -------------------------------------------

_ROUND = 60
"""Characters shown on either side of a hit."""
_LISTED = 8


def explain(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE] [LOG]",
            help="A pattern file (.yml), then the output to try it on; - is stdin.",
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="The text to try it on, instead of LOG.")] = None,
    builtin: Annotated[
        bool, typer.Option("--builtin", help="Use the built-in patterns, not the project's.")
    ] = False,
    command: CommandRun = None,
    language: Annotated[
        str | None, typer.Option(help="Of the project: patterns of others do not compete.")
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Show which patterns match a text, by which signals and where, and what came closest.

    Without FILE the patterns are those in force in the project: its .loki/failure-patterns.yml, or
    the built-in ones, and those that it learned. Without a text the examples and near misses of FILE,
    or of the former, are run.

    Exit codes: 0 a pattern matches (or every example comes out), 1 none does (or one does not),
    2 a file cannot be used.

    Examples: `loki patterns test --text "FluxError: no power"`, `loki patterns test mine.yml build.log`,
    `pytest 2>&1 | loki patterns test -`, `loki patterns test mine.yml`
    """
    from loki.recognition.match_explanation import explain_match

    file, log = _told_apart(files or [], text, builtin)
    own = project / ".loki" / OWN
    is_in_force = file is None and not builtin
    if is_in_force and own.exists():
        file = own
    name = str(file or "the built-in set")
    if log is None and text is None:
        _run_examples(file, name, json)
        return
    if is_in_force:
        known = PatternSet.of_project(own.parent)
        if own.with_name(LEARNED).exists():
            name += f" and {own.with_name(LEARNED)}"
    else:
        known = PatternSet.load(file) if file else PatternSet.default()
    said = text if text is not None else _read(log)
    trial = explain_match(known, said, command, language)
    if json:
        show_json(masked(_explanation_as_data(trial, said)))
    else:
        typer.echo(mask_secrets("\n".join(_tell_explanation(trial, said, name))))
    if not trial.matches:
        raise typer.Exit(1)


def _told_apart(
    files: list[Path], text: str | None, builtin: bool
) -> tuple[Path | None, Path | None]:
    """The pattern file and the output among what was named."""
    is_patterns = bool(files) and files[0].suffix in {".yml", ".yaml"}
    file = files.pop(0) if files and (is_patterns or len(files) > 1 or text is not None) else None
    log = files.pop(0) if files else None
    if files:
        raise UsageError(f"found one file too many ({files[0]}), expected [FILE] [LOG]")
    if file and builtin:
        raise UsageError("found --builtin and a pattern file, expected one of them")
    if log and text is not None:
        raise UsageError("found --text and a file with output, expected one of them")
    return file, log


def _read(log: Path | None) -> str:
    try:
        data = sys.stdin.buffer.read() if str(log) == "-" else Path(str(log)).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {log}: {error.strerror or error}") from error
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return data.decode("utf-16" if data.startswith(marks) else "utf-8", "replace")


# --- The patterns' own examples -----------------------------------------------------------------------


def _run_examples(file: Path | None, name: str, json: bool) -> None:
    wrong, total = _examples(file)
    if json:
        show_json(masked({"patterns": name, "texts": total, "wrong": wrong}))
    elif not total:
        typer.echo(
            f"{name}: no examples. Give a pattern `examples` (texts that it must match) and "
            "`near_misses` (texts that it must not), or try a text: --text TEXT"
        )
    else:
        for one in wrong:
            typer.secho(mask_secrets(one), fg="red")
        typer.echo(f"{name}: {total - len(wrong)} of {total} examples come out as they should")
    if wrong:
        raise typer.Exit(1)


def _examples(file: Path | None) -> tuple[list[str], int]:
    """What does not come out, and how many texts were tried."""
    from loki.base.yaml_document import content
    from loki.recognition.definition_inspection import inspect, wrong_examples

    if file is None:
        known = PatternSet.default()
        patterns = known.patterns.values()
        wrong = [f"{p.id}: {reason}" for p in patterns for _, reason in wrong_examples(known, p)]
        return wrong, sum(len(p.examples) + len(p.near_misses) for p in patterns)
    found = inspect(content(file), str(file))
    for error in found.of("error"):
        raise ConfigError(error.reason, file=error.file, line=error.line, column=error.column)
    counted = ("examples", "near misses", "samples")
    wrong = [str(example) for example in found.of("example")]
    return wrong, sum(found.counts.get(name, 0) for name in counted)


# --- How the answer is shown --------------------------------------------------------------------------


def _tell_explanation(trial: MatchExplanation, text: str, name: str) -> list[str]:
    first, last = trial.lines
    where = f"The excerpt, lines {first} to {last}," if trial.is_excerpt else "The text"
    if trial.matches:
        number = len(trial.matches)
        many = "1 pattern" if number == 1 else f"{number} patterns, best first,"
        lines = [f"{where} matches {many} of {name}:"]
    else:
        lines = [f"Nothing matches: no pattern of {name} reaches {LEAST:.2f}."]
        lines.append(f"The failure is unknown, and answered with {DEFAULT_STRATEGY}.")
    for one in trial.matches or trial.close:
        lines += ["", *_tell_pattern(one, text)]
    return lines if trial.matches else [*lines, "", *_advice(trial)]


def _tell_pattern(one: PatternExplanation, text: str) -> list[str]:
    said = f"came close: {one.reason}"
    if one.match:
        sure = f"{one.score:.2f}, {band(one.score)} confidence"
        said = f"{sure}, coverage {one.match.coverage:.2f} -> {one.match.strategy}"
    lines = [f"{typer.style(one.pattern.id, bold=True)}  {said}"]
    for signal in one.signals:
        if signal.span is not None:
            lines += _tell_hit(signal, text)
    lines += [f"  almost  {s.signal}: {s.almost}" for s in one.signals if s.almost]
    missed = [s.signal for s in one.signals if s.span is None and not s.almost and not s.excludes]
    more = f"\n          and {len(missed) - _LISTED} more" if len(missed) > _LISTED else ""
    if missed:
        lines.append("  not     " + "\n          ".join(missed[:_LISTED]) + more)
    return lines


def _tell_hit(signal: SignalExplanation, text: str) -> list[str]:
    assert signal.span is not None
    weighs = "" if signal.weight is None else f" ({signal.weight:g})"
    head = f"  {'against' if signal.excludes else 'hit    '} {signal.signal}{weighs}"
    begin, end = signal.span
    if begin == end:
        return [f"{head} in the {signal.scope}"]
    line, column = _place(text, begin)
    before, hit, after = _marked(text, begin, end)
    return [
        f"{head} at {line}:{column}",
        f"          | {before}{typer.style(hit, bold=True)}{after}",
        f"          | {' ' * len(before)}{'^' * len(hit)}",
    ]


def _place(text: str, at: int) -> tuple[int, int]:
    """Line and column, from 1; lines end as `recognize` counts them."""
    end = "\n" if "\n" in text else "\r"
    return text.count(end, 0, at) + 1, at - text.rfind(end, 0, at)


def _marked(text: str, begin: int, end: int) -> tuple[str, str, str]:
    """A hit in its line, as one can print it: what stands before it, itself, what follows."""
    first = max(text.rfind("\n", 0, begin), text.rfind("\r", 0, begin)) + 1
    last = next(
        (i for i in range(end, min(end + _ROUND, len(text))) if text[i] in "\r\n"), end + _ROUND
    )
    before, after = text[max(first, begin - _ROUND) : begin], text[end:last]
    hit = text[begin : min(end, begin + 2 * _ROUND)]
    cut = "…" if begin - first > _ROUND else ""
    return cut + _plain(before), _plain(hit), _plain(after)


def _plain(text: str) -> str:
    """Text without what moves the cursor or cannot be printed."""
    return "".join(c if c.isprintable() else " " for c in clean(text))


def _advice(trial: MatchExplanation) -> list[str]:
    """What to do where nothing matches: a signal that would."""
    message = trial.failure.message
    if not message:
        return ["Next: nothing in the text says that something failed; is it the right one?"]
    pieces = re.split(r"<[a-z_:-]+>|['\"`]", trial.failure.normalized)
    literal = max((piece.strip(" :,.") for piece in pieces), key=len) or message
    closest = f"to {trial.close[0].pattern.id}" if trial.close else "to a pattern, or to a new one"
    return [
        f"Next: add what tells this failure from others {closest}, for example",
        f"  - {{literal: {jsonlib.dumps(literal[:_ROUND], ensure_ascii=False)}}}",
        "and keep the text among its `examples`; `loki patterns check` tries them.",
    ]


# --- The same as JSON ---------------------------------------------------------------------------------


def _explanation_as_data(trial: MatchExplanation, text: str) -> dict[str, Any]:
    return {
        "matches": [_pattern_data(one, text) for one in trial.matches],
        "close": [_pattern_data(one, text) for one in trial.close],
        "looked_at": {"excerpt": trial.is_excerpt, "lines": list(trial.lines)},
        "failure": picked(
            trial.failure, "tool", "language", "error_type", "error_code", "message", "output_line"
        ),
    }


def _pattern_data(one: PatternExplanation, text: str) -> dict[str, Any]:
    return {
        "pattern": one.pattern.id,
        "confidence": round(one.match.confidence, 6) if one.match else 0.0,
        "band": one.match.band if one.match else "none",
        "coverage": one.match.coverage if one.match else None,
        "strategy": one.pattern.strategy,
        "score": round(one.score, 6),
        "reason": one.reason or None,
        "signals": [_signal_data(signal, text) for signal in one.signals],
    }


def _signal_data(signal: SignalExplanation, text: str) -> dict[str, Any]:
    data = dataclasses.asdict(signal)
    begin, end = data.pop("span") or (0, 0)
    line, column = _place(text, begin) if end > begin else (None, None)
    return {
        **data,
        "almost": signal.almost or None,
        "hit": signal.span is not None,
        "begin": begin if end > begin else None,
        "end": end if end > begin else None,
        "line": line,
        "column": column,
        "excerpt": text[begin:end] or None,
    }


# --- Whether pattern files and tool files are right ---------------------------------------------------

app = command_group(__doc__)

_COLORS = {"error": "red", "warning": "yellow", "example": "red"}
_SUFFIXES = (".yml", ".yaml")


@app.command("check")
def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Pattern files, tool files, folders of them, or - for stdin; "
            "the project's own and what it learned where none is named.",
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
    for severity, code in (("error", 2), ("example", 1)):
        if any(one.of(severity) for one in found):
            raise typer.Exit(code)


app.command("test")(explain)


def _paths(files: list[Path], project: Path) -> list[Path]:
    """The files to check; of folders those that end like YAML."""
    if not files:
        own = [project / ".loki" / name for name in (OWN, LEARNED)]
        there = [path for path in own if path.exists()]
        if not there:
            raise UsageError(f"no {own[0]} here: name a file, as in `loki patterns check mine.yml`")
        return there
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
    from loki.base.yaml_document import MAX_BYTES, content

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
    names = {"error": "errors", "example": "examples that do not come out", "warning": "warnings"}
    found = {name: len(one.of(severity)) for severity, name in names.items()}
    wrong = [_plural(number, name) for name, number in found.items() if number]
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
        "near misses": "near miss",
        "examples that do not come out": "example that does not come out",
    }
    return f"1 {single.get(names, names.removesuffix('s'))}"
