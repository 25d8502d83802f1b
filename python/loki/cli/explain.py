"""``loki explain``: what failed, whether it was seen before, what to do."""

from __future__ import annotations

import codecs
import json as jsonlib
import os
import shlex
import signal
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from loki.base.error import UsageError
from loki.cli.common import fail, load_project, show_json
from loki.cli.options import CommandRun, Json

if TYPE_CHECKING:
    from loki.action.processes.interactive_command import InteractiveResult
    from loki.adapters.explanation import Asked, Explanation
    from loki.workspace import Workspace

_COMMAND = "loki.command"
_LOOKED_AT = 8192  # bytes in which a binary file shows itself
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\a\x1b"))
_FEW = 0.02  # share of control characters that an output may have; chosen, not measured


class Command(TyperCommand):
    """Takes what stands after ``--`` as a command of its own, options and all."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Cut the arguments at the first ``--``."""
        if "--" in args:
            at = args.index("--")
            args, ctx.meta[_COMMAND] = args[:at], args[at + 1 :]
        elif len(args) > 1 and not args[0].startswith("-") and not os.path.lexists(args[0]):
            from loki.action.processes.command_line import find_program

            if find_program(args[0]):
                fail(f"no file {args[0]!r}; to run it: loki explain -- {shlex.join(args)}", 2)
        return list(super().parse_args(ctx, args))


def command(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="The output to explain; - or nothing is stdin.",
            show_default=False,
            readable=False,  # not asked beforehand: reading says it better
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="The output itself.", metavar="TEXT")] = None,
    command: CommandRun = None,
    exit_code: Annotated[
        int | None, typer.Option(help="How it ended; after 0 there is nothing to explain.")
    ] = None,
    project: Annotated[Path, typer.Option(help="The project that it came from.")] = Path(),
    root: Annotated[
        str | None,
        typer.Option(help="Where the project was when it ran elsewhere, as paths in a CI log say."),
    ] = None,
    json: Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the explanation to this file.")
    ] = None,
) -> None:
    """Say what failed: where, of what kind and why, seen before or not, and what to do next.

    Of an output that is there already:

        pytest 2>&1 | loki explain
        loki explain build.log
        loki explain --command "npm test" --json ci.log
        loki explain --text "TypeError: unsupported operand type(s) for +: 'int' and 'str'"

    Or of a command, which is run as if loki were not there: its output, its signals (Ctrl-C) and
    its exit code pass through. Where it fails, the explanation follows on stderr.

        loki explain -- pytest -q
        loki explain -- make -j4
        loki explain -o why.json --json -- sh -c "npm ci && npm test"

    The project's memory (.loki/) is asked, never written to.

    Exit codes: 0 explained, 1 loki itself could not work, 2 usage. After `--` the command's own:
    128 + n where signal n ended it, 127 where there is no such program, 126 where it cannot start.
    """
    from loki.adapters.explanation import explain

    words = ctx.meta.get(_COMMAND)
    _only_one(file, text, words, command, exit_code)
    workspace = load_project(project)
    if words is not None:
        _run(workspace, words, json, output)
    said = explain(workspace, _asked(file, text, command, exit_code, root))
    _show(said, json, output, error=False)


def _only_one(
    file: Path | None,
    text: str | None,
    words: list[str] | None,
    command: str | None,
    exit_code: int | None,
) -> None:
    """Refuse two things to explain at once.

    Raises:
        UsageError: there are two, or no command after ``--``.
    """
    if file is not None and text is not None:
        raise UsageError("found --text and a file, expected one of them")
    if words is None:
        return
    if not words:
        raise UsageError("found nothing after --, expected a command: loki explain -- make test")
    if file is not None or text is not None:
        found = "--text" if file is None else f"the file {file}"
        raise UsageError(f"found {found} and a command after --, expected one of them")
    if command is not None or exit_code is not None:
        raise UsageError("--command and --exit-code are for output that is there already")


def _show(said: Explanation, json: bool, output: Path | None, *, error: bool) -> None:
    from loki.adapters.explanation import tell

    if output is not None:
        from loki.recognition.text import clean

        written = jsonlib.dumps(said.to_dict(), indent=2) if json else clean(tell(said))
        try:
            output.write_text(f"{written}\n", "utf-8")
        except OSError as problem:
            raise UsageError(f"cannot write {output}: {problem.strerror or problem}") from problem
    elif json:
        show_json(said.to_dict(), error=error)
    else:
        typer.echo(tell(said), err=error)


# --- A command ----------------------------------------------------------------------------------------


def _run(workspace: Workspace, words: list[str], json: bool, output: Path | None) -> NoReturn:
    """Run a command in the person's place, and end as it ended."""
    from loki.action.processes.interactive_command import NotStarted, run_interactively

    try:
        done = run_interactively(words)
    except NotStarted as error:
        typer.secho(f"loki: {error}", err=True, fg="red")
        raise typer.Exit(error.exit_code) from None
    try:
        _after(workspace, words, done, json, output)
    except BrokenPipeError:
        sys.stderr = None  # nobody listens any more; the exit code still tells
    # What was lost is no success, even where the command did not notice.
    raise typer.Exit(done.exit_code or (1 if done.trouble else 0))


def _after(
    workspace: Workspace, words: list[str], done: InteractiveResult, json: bool, output: Path | None
) -> None:
    from loki.adapters.explanation import Asked, explain

    if done.trouble:
        typer.secho(f"loki: {done.trouble}", err=True, fg="red")
    how = f"{_ending(done)} after {_duration(done.duration)}"
    stopped = done.interrupted or (done.unread and done.signal == signal.SIGPIPE)
    if (done.exit_code == 0 or stopped) and not json and output is None:
        if sys.stderr.isatty():
            typer.secho(f"loki: {how}", err=True, dim=True)
        return
    kept, typed = done.kept, shlex.join(words)
    about = (kept.content(), "command", typed, done.exit_code, done.signal)
    said = explain(workspace, Asked(*about, left_out=kept.left_out, line=kept.line))
    if not json:
        left = f"; {kept.left_out:,} bytes in the middle not looked at" if kept.left_out else ""
        typer.secho(f"\nloki: {typed}: {how}{left}", err=True, dim=True)
    _show(said, json, output, error=True)


def _ending(done: InteractiveResult) -> str:
    if done.interrupted and done.exit_code:
        return "interrupted"
    if done.signal is None:
        return f"exit code {done.exit_code}"
    number = signal.Signals(done.signal)
    return f"ended by signal {number.value} ({number.name}), exit code {done.exit_code}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f} min {rest:.0f} s" if minutes else f"{rest:.1f} s"


# --- An output that is there already ------------------------------------------------------------------


def _asked(
    file: Path | None,
    text: str | None,
    command: str | None,
    exit_code: int | None,
    root: str | None,
) -> Asked:
    from loki.action.processes.interactive_command import MAX_OUTPUT
    from loki.action.processes.process import HeadTailBuffer
    from loki.adapters.explanation import Asked

    if text is not None:
        data = text.encode("utf-8", "surrogateescape")
        return Asked(data, "text", command, exit_code, root=root)
    is_stdin = file is None or str(file) == "-"
    name = "stdin" if is_stdin else str(file)
    kept = HeadTailBuffer(MAX_OUTPUT)
    _read_into(kept, None if is_stdin else file)
    data = kept.content()
    if data.startswith(_MARKS):  # what PowerShell's > writes
        data = data.decode("utf-16", "replace").encode()
    _refuse_binary(name, data)
    if kept.left_out:
        typer.echo(f"loki: {name}: {kept.left_out:,} bytes in the middle not looked at", err=True)
    return Asked(data, name, command, exit_code, root=root, left_out=kept.left_out, line=kept.line)


def _read_into(kept: Any, file: Path | None) -> None:
    """Read a file, or stdin, of any length."""
    try:
        if file is None:
            if sys.stdin.isatty():
                typer.echo("Reading from the terminal; end with Ctrl-D.", err=True)
            handle = os.dup(sys.stdin.fileno())
        else:
            if file.is_dir():
                raise UsageError(f"cannot read {file}: it is a folder, expected a tool's output")
            if stat.S_ISFIFO(file.stat().st_mode) and sys.stderr.isatty():
                typer.echo(f"Waiting for somebody to write to the pipe {file}.", err=True)
            handle = os.open(file, os.O_RDONLY)
        with open(handle, "rb", buffering=0) as stream:
            while chunk := stream.read(1 << 20):
                kept.add(chunk)
    except OSError as error:
        hint = "; a text goes after --text" if _looks_like_text(file, error) else ""
        raise UsageError(
            f"cannot read {file or 'stdin'}: {error.strerror or error}{hint}"
        ) from error


def _looks_like_text(file: Path | None, error: OSError) -> bool:
    has_spaces = any(c in str(file or "") for c in " \n")
    return has_spaces and not isinstance(error, PermissionError)


def _refuse_binary(name: str, data: bytes) -> None:
    """Raise for what is no text.

    Raises:
        UsageError: its beginning is full of control characters.
    """
    start = data[:_LOOKED_AT]
    controls = len(start) - len(start.translate(None, _CONTROLS))
    if controls > max(1, len(start) * _FEW):
        raise UsageError(f"cannot explain {name}: it is binary, expected a tool's output")
