"""Any command-line agent: it works in a copy of the project; what it leaves is its change.

Under test: ``tests/py/agents/test_command.py``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
import stat
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from loki.action.agent import Briefing, Proposal, ReflectionRequest
from loki.action.change import Change
from loki.action.process import Finished, run
from loki.action.specification import kept_command
from loki.action.tree import Tree
from loki.action.words import assignments, split
from loki.agents.last_words import is_outage, wait_asked
from loki.base.error import AgentError, UsageError
from loki.base.time import Duration, argument_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

DESCRIPTION_LINES = 5
"""Last lines of what the agent prints that become the description. Chosen, not measured."""

DESCRIPTION_LENGTH = 500
"""Characters of the description, at most. Chosen, not measured."""

TAIL = 1500
"""Characters of the end of its output that an error shows: what attempts keep of a stream."""

SHOWN = 5
"""Files that a message names. Chosen, not measured."""

SERVICES = {
    "claude": "api/claude",
    "claude-code": "api/claude",
    "codex": "api/openai",
    "gemini": "api/gemini",
    "gemini-cli": "api/gemini",
}
"""Names of circuit breakers by program: of the service that it is known to call."""

LAUNCHERS = frozenset(
    {"sh", "bash", "dash", "zsh", "env", "python", "python3", "node", "npx", "uvx"}
)
"""Programs behind which the agent's own name comes."""

_PLACEHOLDER = "{briefing}"
_STALE = 60.0  # seconds: a younger scratch folder may be one that is just being set up


class ProjectTouched(AgentError):
    """The project itself changed while the agent worked in its copy.

    Attributes:
        paths: the files.
    """

    def __init__(self, name: str, paths: Sequence[str], output: str = "") -> None:
        """Args: name: of the agent; paths: the files; output: what it printed."""
        self.paths = tuple(paths)
        rest = len(paths) - SHOWN
        shown = ", ".join(paths[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
        super().__init__(
            f"files of the project itself changed while {name} worked: {shown}; "
            "agents change only their copy, and what changed is left as it is",
            retryable=False,
            output=output,
        )


class CommandAgent:
    """An agent that is a program: claude, codex, gemini, aider, a shell script.

    It gets the briefing on its standard input or as an argument, and works in a scratch copy of the
    project as it is, uncommitted and untracked files included; ignored files are not copied. What
    is different afterwards is its change, the end of what it printed the description. Its
    environment has ``LOKI_TASK`` and ``LOKI_ATTEMPT``.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> agent = CommandAgent(["sh", "-c", "cat > note.txt; echo noted"])
        >>> agent.propose(Briefing("Remember this", "task-1", 1, Path(folder))).change.paths
        ('note.txt',)
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        timeout: Duration = "30m",
        briefing: Literal["stdin", "argument"] | None = None,
        name: str | None = None,
        breaker: str | None = None,
        pass_environment: Iterable[str] = ("*",),
        reflect: bool = False,
    ) -> None:
        """An agent; whether its program exists is seen when it is asked.

        Args:
            command: its words, or text that is split as a shell would. ``{briefing}`` in a word
                stands for the text of the briefing.
            timeout: how long it may work.
            briefing: how it gets the briefing; None: as an argument where ``{briefing}`` is in
                the command, else on standard input. An argument without placeholder comes last.
            name: shown in attempts; None: the program's.
            breaker: name of the circuit breaker that its calls pass; None: that of the service
                which the program is known to call (``api/claude``), else ``agent/<program>``.
            pass_environment: names, or globs of names, of variables that it gets although they
                look like secrets. All of them by default: agents need the keys of their models.
            reflect: ask it once more after each attempt that failed, with a small prompt, what went
                wrong; it then works in an empty folder, and what it leaves there is thrown away.

        Raises:
            UsageError: the command names no program, or needs a shell; or no duration.
        """
        self.command = split(command) if isinstance(command, str) else tuple(command)
        words = assignments(self.command)[1]
        if not words:
            raise UsageError(f"{command!r} names no program: expected the command of an agent")
        has_placeholder = any(_PLACEHOLDER in word for word in self.command)
        self.briefing = briefing or ("argument" if has_placeholder else "stdin")
        self.name = name or os.path.basename(words[0])
        self.breaker = breaker or breaker_of(words)
        self.timeout = argument_seconds("timeout", timeout)
        self.pass_environment = tuple(pass_environment)
        self.reflect = self._reflect if reflect else None

    def to_dict(self) -> dict[str, Any]:
        """What is kept of it with a task, JSON-able; ``masked`` where its command holds a secret."""
        return {
            "name": self.name,
            **kept_command(self.command),
            "briefing": self.briefing,
            "timeout": self.timeout,
            "reflect": self.reflect is not None,
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> CommandAgent:
        """The agent that `to_dict` told of.

        Raises:
            UsageError: it was no command, or one that held a secret.
        """
        if kept.get("masked"):
            raise UsageError(
                f"the agent's command `{' '.join(kept['command'])}` holds a secret, which loki does "
                "not keep: say it again (--agent-command)"
            )
        if not kept.get("command"):
            raise UsageError(
                "the task was not worked on by a command or a model, so loki cannot start its agent "
                "again: say which (--agent or --agent-command)"
            )
        command = tuple(map(str, kept["command"]))
        return cls(
            command,
            timeout=kept["timeout"],
            briefing=kept["briefing"],
            name=kept["name"],
            reflect=bool(kept.get("reflect")),
        )

    def propose(self, briefing: Briefing) -> Proposal:
        """What the agent does about a briefing.

        Raises:
            AgentError: it could not be started, failed, ran out of time or was stopped.
            ProjectTouched: the project itself changed meanwhile.
        """
        before = Tree.scan(briefing.root)
        with _scratch() as folder:
            try:
                start = before.copy_to(
                    os.path.join(folder, os.path.basename(before.root) or "project")
                )
            except OSError as error:
                raise AgentError(f"could not copy the project for {self.name}: {error}") from error
            done: Finished | UsageError
            try:
                done = self._run(briefing, start.root)
            except UsageError as error:
                done = error
            touched = before.difference(Tree.scan(briefing.root, previous=before)).paths
            if touched:
                raise ProjectTouched(self.name, touched, _tail(done))
            self._check(done, briefing)
            end = Tree.scan(start.root, previous=start, also=start.entries)
            change = Change.between(start, end)
        printed = done.stdout.decode("utf-8", "replace") if isinstance(done, Finished) else ""
        return Proposal(change, _description(done), agent=self.name, output=printed)

    def answer(self, briefing: Briefing) -> bytes:
        """What the program prints about a text, in a copy of the project that is thrown away.

        Raises:
            AgentError: as `propose` does.
        """
        with _scratch() as folder:
            tree = Tree.scan(briefing.root)
            try:
                copy = tree.copy_to(os.path.join(folder, os.path.basename(tree.root) or "project"))
                done: Finished | UsageError = self._run(briefing, copy.root)
            except OSError as error:
                raise AgentError(f"could not copy the project for {self.name}: {error}") from error
            except UsageError as error:
                done = error
            self._check(done, briefing)
        assert isinstance(done, Finished)
        return done.stdout

    def _reflect(self, request: ReflectionRequest) -> str:
        """The end of what it prints about an attempt that failed."""
        before = Tree.scan(request.root)
        with _scratch() as folder:
            done: Finished | UsageError
            try:
                done = self._run(request, Path(folder))
            except UsageError as error:
                done = error
            touched = before.difference(Tree.scan(request.root, previous=before)).paths
            if touched:
                raise ProjectTouched(self.name, touched, _tail(done))
            self._check(done, request)
        return _tail(done)

    def _run(self, briefing: Briefing | ReflectionRequest, scratch: Path) -> Finished:
        text = str(briefing)
        is_argument = self.briefing == "argument"
        return run(
            self._words(text, briefing.root, scratch) if is_argument
            else self._words(None, briefing.root, scratch),
            cwd=scratch,
            timeout=self.timeout,
            stdin=None if is_argument else text.encode("utf-8", "replace"),
            environment={
                "LOKI_TASK": briefing.task_id,
                "LOKI_ATTEMPT": str(briefing.attempt),
                "PWD": str(scratch),  # what we inherit names the project
                "OLDPWD": str(scratch),
            },
            pass_environment=self.pass_environment,
            cancelled=briefing.cancelled,
        )  # fmt: skip

    def _words(self, text: str | None, root: Path, scratch: Path) -> tuple[str, ...]:
        environment, words = assignments(self.command)
        given = tuple(f"{name}={value}" for name, value in environment.items())
        # An agent's script that git ignores is not in the copy.
        program = words[0]
        if "/" in program and not (scratch / program).exists() and (root / program).is_file():
            words = (str(Path(root, program).absolute()), *words[1:])
        if text is None:
            return (*given, *words)
        text = text.replace("\0", "")
        if any(_PLACEHOLDER in word for word in words):
            return (*given, *(word.replace(_PLACEHOLDER, text) for word in words))
        return (*given, *words, text)

    def _check(self, done: Finished | UsageError, briefing: Briefing | ReflectionRequest) -> None:
        if isinstance(done, UsageError):
            raise AgentError(f"{self.name}: {done}", retryable=False) from done
        if done.is_success:
            return
        if done.cancelled or briefing.cancelled.is_set():
            what, retryable = "was stopped", False
        elif done.timed_out:
            what, retryable = f"was not done after {self.timeout:g} s", True
        elif done.signal is not None:
            what, retryable = f"was ended by signal {done.signal}", True
        else:
            what, retryable = f"failed with exit code {done.exit_code}", True
        tail = _tail(done)
        if done.exit_code is not None and not done.timed_out:
            retryable = retryable and is_outage(tail, done.exit_code, shlex.join(self.command))
        said = f"; it said last: {tail.splitlines()[-1].strip()}" if tail.strip() else ""
        raise AgentError(
            f"{self.name} {what}{said}",
            retryable=retryable,
            output=tail,
            retry_after=wait_asked(tail, datetime.now(timezone.utc)),
        )


def breaker_of(words: Sequence[str]) -> str:
    """Name of the circuit breaker for a command.

    Args:
        words: the command's, without assignments.

    Example:
        >>> breaker_of(["npx", "@openai/codex", "exec"]), breaker_of(["python", "tools/agent.py"])
        ('api/openai', 'agent/agent.py')
    """
    program = os.path.basename(words[0])
    if program in LAUNCHERS:
        names = (word for word in words[1:] if not word.startswith("-") and "=" not in word)
        own = next(names, "")
        # What follows `-c` is a whole script.
        program = os.path.basename(own) if own and not own.split()[1:] else program
    return SERVICES.get(program, f"agent/{program}")


def _tail(done: Finished | UsageError) -> str:
    if isinstance(done, UsageError):
        return ""
    return done.output.decode("utf-8", "replace").rstrip()[-TAIL:]


def _description(done: Finished | UsageError) -> str:
    if isinstance(done, UsageError):
        return ""
    lines = done.stdout[-TAIL * 4 :].decode("utf-8", "replace").splitlines()
    last = [line.rstrip() for line in lines if line.strip()][-DESCRIPTION_LINES:]
    return "\n".join(last)[-DESCRIPTION_LENGTH:]


# --- the folder ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _scratch() -> Iterator[str]:
    """A folder that is gone afterwards; if loki is killed, the next one removes it."""
    parent = os.path.join(tempfile.gettempdir(), f"loki-scratch-{os.getuid()}")
    os.makedirs(parent, mode=0o700, exist_ok=True)
    status = os.lstat(parent)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise AgentError(f"{parent} belongs to somebody else: expected a folder of this user")
    _remove_stale(parent)
    folder = tempfile.mkdtemp(dir=parent)
    handle = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        _remove(folder)
        os.close(handle)


def _remove_stale(parent: str) -> None:
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        try:
            if time.time() - os.lstat(folder).st_mtime < _STALE:
                continue
            handle = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
        except OSError:
            pass  # its loki is alive
        finally:
            os.close(handle)


def _remove(folder: str) -> None:
    def unlock(remove: Callable[..., Any], path: str, _: object) -> None:
        # Agents leave folders that cannot be written, such as module caches.
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                remove(path)

    shutil.rmtree(folder, onerror=unlock)
