"""How commands of agents and checks run in a project: in a box, and what decides there is looked after.

A test can write ``allow_commands = ["*"]`` into the configuration, or a git hook that runs with the next
commit. A command of an agent or a check changes no such file: what it did to one is undone, what it left
there is kept aside, and a person is told, who may have changed it in the same moment and can have it back.
Why it is so: ``docs/design/safety.md``.

A workspace says what holds for its folders (`loki.action.processes.command_guard_provider`); whoever runs
a command asks by the folder that it is run for. Which settings of command-line agents name programs to
run is data, ``hook-settings.yml``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from loki.action.changes.git import git_folder, setting_files
from loki.action.gates.data_parsers import plain_json
from loki.action.processes.command_guard_provider import registered
from loki.action.processes.sandbox import (
    Purpose,
    Sandbox,
    Wall,
    expanded,
    has_own,
    knowledge,
    make,
    tree_of,
    wall,
    writable,
)
from loki.base import atomic_file, codec
from loki.base.error import StoreError, UsageError
from loki.base.manual_clock import clock_of
from loki.base.path_containment import is_part, part
from loki.base.secret import mask_secrets
from loki.base.time import Clock, isoformat
from loki.config import SandboxConfig

# --- What decides how loki works: put back where a command changed it ---------------------------------

LOG = "logs/rules.jsonl"
"""What was put back, in the workspace's folder; answers to it are appended."""

ASIDE = "set-aside"
"""Folder of what commands had left in such places."""

FILES = ("config.toml", "verification-gates.yml", "failure-patterns.yml", "learned-patterns.yml")
"""What a person wrote in ``.loki/``, or approved."""

OF_TASK = ("approvals.jsonl", "undo/journal.jsonl", "judged.json", "before.json", "baseline.json")
"""What says of a task at work what people approved, what it changed, and what had failed before it."""

RUNS = ("command", "agent", "pass_environment")
"""What of a recurring task says what runs, with all rights of the user; the rest is the dispatcher's."""

Part = Callable[[bytes], Any]
"""What of a file decides, to be compared."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A file that decides something.

    Attributes:
        path: absolute.
        part: what of it decides; None: all of it.
    """

    path: str
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class State:
    """How a file is.

    Attributes:
        kind: file, link, other, or "" where there is none.
        data: its content, or where it links to.
        mode: its permission bits.
    """

    kind: str = ""
    data: bytes = b""
    mode: int = 0o600

    @property
    def digest(self) -> str:
        """Of its kind and content; "" where there is none."""
        whole = self.kind.encode() + b"\0" + self.data
        return hashlib.sha256(whole).hexdigest() if self.kind else ""


NONE = State()


@dataclass(frozen=True, slots=True)
class RestoredRule:
    """A file that a command changed, and that is as it was.

    Attributes:
        id: by which a person answers; the same for the same change.
        at: when, ISO 8601 UTC.
        path: the file, absolute.
        command: the command.
        found, restored: digests of what it was made, and of what it is again; "" for no file.
        kept: where what it was made is kept, relative to ``.loki/``; "" where it was deleted.
    """

    id: str
    at: str
    path: str
    command: str
    found: str
    restored: str
    kept: str = ""

    @property
    def is_asked(self) -> bool:
        """Whether a person may have it as the command left it: not what loki itself keeps of a task."""
        return not self.path.endswith(tuple(f"/{name}" for name in OF_TASK[1:]))


@dataclass
class RuleSnapshot:
    """How all of it was at one moment.

    Attributes:
        states: by path.
        size: of the log then: what others put back since stands behind it.
        is_link: whether ``.loki`` itself was a link to another place.
        hooks: the folders of git's hooks.
    """

    states: Mapping[str, State]
    size: int
    is_link: bool = False
    hooks: tuple[str, ...] = ()


@dataclass
class Rules:
    """The files that decide in one project.

    Args:
        project: the project's folder.
        folder: its ``.loki``.
        more: further files, such as settings that name loki's hooks.
        tasks: ids of the tasks at work here, of which no command changes what is kept.
    """

    project: Path
    folder: Path
    more: Sequence[Watched] = ()
    tasks: set[str] = field(default_factory=set)
    _known: dict[str, tuple[tuple[int, ...], State]] = field(default_factory=dict, repr=False)

    def look(self) -> RuleSnapshot:
        """How they are now; only what has another time or size than before is read."""
        hooks = self._hooks()
        states = {one.path: self._state(one.path) for one in self._watched(hooks)}
        return RuleSnapshot(states, _size(self.folder / LOG), self.folder.is_symlink(), hooks)

    def paths(self) -> list[str]:
        """All of them that are there."""
        found = [one.path for one in self._watched(self._hooks())]
        return [path for path in found if os.path.lexists(path)]

    def decides(self, path: str) -> bool:
        """Whether a path, as a record of `LOG` has it, is one of theirs, there or not."""
        hooks, (home, name) = self._hooks(), os.path.split(path)
        if home in hooks or path in {one.path for one in self._watched(hooks)}:
            return is_part(name)
        folder = f"{self.folder}/"
        match path.removeprefix(folder).split("/") if path.startswith(folder) else ():
            case ["tasks", task, name] if name in OF_TASK:
                return is_part(task)
            case ["recurring", task, "task.json"]:
                return is_part(task)
        return False

    def finish(
        self,
        before: RuleSnapshot,
        command: str,
        at: str,
        keeps: Callable[[str], bool] | None = None,
    ) -> list[RestoredRule]:
        """Put back what has changed since a look.

        Args:
            before: the look.
            command: what ran meanwhile, as it is told.
            at: now, ISO 8601 UTC.
            keeps: whether nothing that ran can have changed a file: then a person did, and it stays.

        Returns:
            What was put back, each kept in the log.

        Raises:
            OSError, StoreError: it could not be.
        """
        if not before.is_link and self.folder.is_symlink():
            self.folder.unlink()
        parts = {one.path: one.part for one in self._watched(before.hooks)}
        changed = []
        for path in sorted({*before.states, *parts}):
            was, now = before.states.get(path, NONE), self._state(path)
            if was == now or _alike(parts.get(path), was, now):
                continue
            if keeps is None or was.mode != now.mode or not keeps(os.path.realpath(path)):
                changed.append((path, was, now))
        if not changed:
            return []
        # Another command that ran at the same time may have been the one; then this is what it was
        # before that one, and stays.
        others = {(one.path, one.restored) for one in self._put_back_since(before.size)}
        return [
            self._put_back(path, was, now, command, at)
            for path, was, now in changed
            if (path, now.digest) not in others
        ]

    def _hooks(self) -> tuple[str, ...]:
        """The folders that git takes hooks from: its own, and one that the settings name."""
        settings = setting_files(str(self.project))
        if not settings:
            return ()
        tree = os.path.dirname(git_folder(str(self.project)) or "")
        data = b"\n".join(self._state(path).data for path in settings)
        said = [os.path.expanduser(os.fsdecode(one).strip('" ')) for one in _HOOKS.findall(data)]
        own = os.path.join(os.path.dirname(settings[0]), "hooks")
        return (own, *(os.path.normpath(os.path.join(tree, one)) for one in said))

    def _watched(self, hooks: Sequence[str]) -> Iterator[Watched]:
        folder = str(self.folder)
        for name in FILES:
            yield Watched(os.path.join(folder, name))
        for task in sorted(self.tasks):
            for name in OF_TASK:
                yield Watched(os.path.join(folder, "tasks", part(task), name))
        recurring = os.path.join(folder, "recurring")
        for id_ in _names(recurring):
            yield Watched(os.path.join(recurring, id_, "task.json"), partial(keys_of, RUNS))
        for path in setting_files(str(self.project)):
            yield Watched(path, git_part)
        for place in hooks:
            for name in _names(place):
                if not name.endswith(".sample"):
                    yield Watched(os.path.join(place, name))
        found = git_folder(str(self.project))
        if found is not None and os.path.isfile(found):  # says where the settings are
            yield Watched(found)
        yield from self.more

    def _state(self, path: str) -> State:
        try:
            status = os.lstat(path)
        except OSError:
            return NONE
        # The time of change cannot be set by hand, as that of the content can.
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        found = _read(path, status)
        self._known[path] = stamp, found
        return found

    # --- Putting back ----------------------------------------------------------------------------

    def _put_back(self, path: str, was: State, now: State, command: str, at: str) -> RestoredRule:
        again = "" if now.kind in {"", "file"} else at  # of what is no file, each is its own
        change = f"{path}\0{now.digest}\0{was.digest}\0{again}".encode("utf-8", "surrogateescape")
        id_ = "rule-" + hashlib.sha256(change).hexdigest()[:6]
        kept = f"{ASIDE}/{id_}-{os.path.basename(path)}" if now.kind else ""
        atomic_file.make_folder(self.folder)
        _give_way(os.path.dirname(path), self.project)
        if now.kind:
            atomic_file.make_folder(self.folder / ASIDE)
            os.rename(path, self.folder / kept)
        put(path, was)
        done = RestoredRule(id_, at, path, command, now.digest, was.digest, kept)
        line = json.dumps(codec.write(done), ensure_ascii=False).encode("utf-8", "backslashreplace")
        atomic_file.make_folder((self.folder / LOG).parent)
        atomic_file.append_line(self.folder / LOG, line)
        return done

    def _put_back_since(self, size: int) -> Iterator[RestoredRule]:
        for said in self._log(size):
            with suppress(ValueError):
                yield codec.parse(RestoredRule, said)

    def asked(self, before: RuleSnapshot) -> dict[str, bool]:
        """What a person had been asked before a look, by id, and whether the answer was no."""
        found: dict[str, bool] = {}
        for said in self._log(0, before.size):
            if "answered" in said:
                found[str(said["answered"])] = said.get("accepted") is False
            elif "id" in said:
                found.setdefault(str(said["id"]), False)
        return found

    def _log(self, begin: int, end: int | None = None) -> Iterator[dict[str, Any]]:
        try:
            with open(self.folder / LOG, "rb") as log:
                log.seek(begin)
                lines = log.read(None if end is None else end - begin).splitlines()
        except OSError:
            return
        for line in lines:
            with suppress(ValueError, RecursionError):
                said = json.loads(line)
                if isinstance(said, dict):
                    yield said


def put(path: str, state: State) -> None:
    """Make a file what a state says.

    Raises:
        OSError, StoreError: it cannot be written.
    """
    if state.kind == "link":
        os.symlink(os.fsdecode(state.data), path)
    elif state.kind == "file":
        atomic_file.write_atomic(path, state.data, state.mode)


_HARMLESS = re.compile(
    rb"^[ \t]*\[[ \t]*(?:branch|gc|maintenance)\b(?:[^\n\"]|\"(?:[^\"\\\n]|\\.)*\")*\][ \t]*\n"
    rb"(?:(?![ \t]*\[)[^\n]*(?:\n|$))*?(?=[ \t]*\[|\Z)",
    re.MULTILINE | re.IGNORECASE,
)


_HOOKS = re.compile(rb"^[ \t]*hooksPath[ \t]*=[ \t]*([^\n#;]+)", re.MULTILINE | re.IGNORECASE)


def git_part(settings: bytes) -> bytes:
    """What of a repository's settings can name a program or another place: all but upkeep.

    `git push -u`, which a person may well do meanwhile, changes a section that names a branch only.

    Example:
        >>> git_part(b'[core]\\n bare = false\\n[branch "main"]\\n remote = origin\\n[alias]\\n x = y\\n')
        b'[core]\\n bare = false\\n[alias]\\n x = y\\n'
    """
    if b"\\\n" in settings:  # a line that goes on could hide a section in what looks like a value
        return settings
    return _HARMLESS.sub(b"", settings)


def keys_of(keys: Sequence[str], settings: bytes) -> Any:
    """What stands under some keys of JSON with comments; all of it where it is no object.

    Example:
        >>> keys_of(("hooks",), b'{"model": "x", "hooks": {}} // mine')
        {'hooks': {}}
        >>> keys_of(("hooks",), b"")
        {}
    """
    try:
        said = json.loads(plain_json(settings.decode("utf-8")) or "{}")
    except (ValueError, RecursionError):
        return settings
    return {key: said[key] for key in keys if key in said} if isinstance(said, dict) else settings


def _alike(part: Part | None, was: State, now: State) -> bool:
    if part is None or {was.kind, now.kind} - {"", "file"}:
        return False
    if was.kind == now.kind and was.mode != now.mode:
        return False
    return bool(part(was.data) == part(now.data))


def _read(path: str, status: os.stat_result) -> State:
    mode = stat.S_IMODE(status.st_mode)
    try:
        if stat.S_ISLNK(status.st_mode):
            return State("link", os.fsencode(os.readlink(path)), 0o777)
        if not stat.S_ISREG(status.st_mode):
            return State("other", f"{status.st_mode} {status.st_ino}".encode(), mode)
        with open(path, "rb") as handle:
            return State("file", handle.read(), mode)
    except OSError as error:
        return State("other", (error.strerror or "").encode(), mode)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _give_way(folder: str, project: Path) -> None:
    """Make a file's folder one again where something else has taken its place."""
    inside = os.path.relpath(folder, project)
    if not inside.startswith(".."):
        place = str(project)
        for part in inside.split(os.sep):
            place = os.path.normpath(os.path.join(place, part))
            if os.path.lexists(place) and not os.path.isdir(place):
                os.unlink(place)
    os.makedirs(folder, exist_ok=True)


def hook_settings(project: Path, environment: Mapping[str, str]) -> Iterator[Watched]:
    """The settings that decide what runs beside agents in a project.

    Args:
        project: its folder.
        environment: variables, some of which say where a user's settings are.
    """
    known = knowledge("hook-settings.yml")
    for name in known["project"]:
        yield Watched(str(project / name))
    part = partial(keys_of, tuple(known["keys"]))
    for one in known["user"]:
        folder = environment.get(one["variable"]) or os.path.expanduser(one["folder"])
        yield Watched(os.path.join(folder, one["file"]), part)


# --- How commands of agents and checks run ------------------------------------------------------------

logger = logging.getLogger("loki")

_SHOWN = 200  # characters of a command in a message; chosen

AS_ROOT = (
    "loki runs as root, and nothing keeps what agents write and tests run from the rest of this machine: "
    "one `rm -rf` in a test is enough. Run it as another user, or in a container; or install bubblewrap "
    "(Landlock needs Linux 5.13), and leave [sandbox] mode on auto."
)

NO_WALL = (
    "[sandbox] mode is required, and this machine has none: expected Landlock (Linux 5.13 and later), or "
    "bubblewrap (bwrap) installed and allowed to make namespaces{network}"
)


@dataclass
class CommandGuard:
    """Boxes for commands, and the files that decide while they run.

    Args:
        rules: those files.
        clock: the time.
        tell: told of each file that was put back, beside the log.
        sandbox: what the configuration says of boxes.
        borrowed: folders of dependencies that copies of the project link to.
        is_copy: commands run in copies of the project, not in it.
    """

    rules: Rules
    clock: Clock = field(default_factory=lambda: clock_of(os.environ))
    tell: Callable[[RestoredRule], None] = lambda _: None
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    borrowed: Sequence[str] = ()
    is_copy: bool = False

    def __post_init__(self) -> None:
        """Look where the project lies, before anything runs in it."""
        self._project = tree_of(self.rules.project)

    @contextmanager
    def over(
        self,
        command: Sequence[str],
        tree: str | os.PathLike[str],
        purpose: Purpose = "check",
    ) -> Iterator[Sandbox | None]:
        """Run a command inside ``with``: what it does to the rules is undone afterwards.

        Args:
            command: its words.
            tree: the folder that it works in.
            purpose: what it is run for.

        Returns:
            The box that it is to run in; None: it runs in none.

        Raises:
            UsageError: a box is required, and there is none.
        """
        box = self.box(command, tree, purpose)
        before = self.rules.look()
        try:
            yield box
        finally:
            self._settle(before, mask_secrets(shlex.join(command))[:_SHOWN], box)

    def box(
        self,
        command: Sequence[str],
        tree: str | os.PathLike[str],
        purpose: Purpose = "check",
    ) -> Sandbox | None:
        """The box for a command; `over` says more."""
        if purpose == "agent" and has_own(command):
            return None
        network = self.sandbox.network or purpose == "agent"
        kind = self.sandbox_wall(network=network)
        if kind is None:
            return None
        root = os.path.realpath(tree)
        is_copy = self.is_copy or root != str(self.rules.project)
        borrowed = self.borrowed if is_copy and purpose != "agent" else ()
        trees = (root,) if is_copy else self._project
        write = writable(trees, borrowed, command, purpose, os.environ)
        deny = self.rules.paths() if kind == "bwrap" else ()
        secret = self._paths(self.sandbox.secret)
        return Sandbox(kind, (*write, *self._declared), tuple(deny), secret, network)

    def sandbox_wall(self, *, network: bool = True) -> Wall | None:
        """What keeps commands in; None: nothing does.

        Raises:
            UsageError: a box is required, and there is none.
        """
        kind = None if self.sandbox.mode == "off" else wall(network=network)
        if kind is None and self.sandbox.mode == "required":
            raise UsageError(
                NO_WALL.format(network="" if network else "; network = false needs it")
            )
        if kind is None and os.getuid() == 0:
            _warn_once(AS_ROOT)
        elif kind is None and not network and self.sandbox.mode == "auto":
            _warn_once("[sandbox] network = false cannot be kept here: it needs bubblewrap")
        return kind

    @cached_property
    def _declared(self) -> tuple[str, ...]:
        """What the configuration lets them write; a folder that is not there is made."""
        found = self._paths(self.sandbox.write)
        for path in found:
            make(path)
        return found

    def _paths(self, said: Sequence[str]) -> tuple[str, ...]:
        found = (expanded(one, os.environ) for one in said)
        return tuple(os.path.realpath(self.rules.project / path) for path in found if path)

    def _settle(self, before: RuleSnapshot, command: str, box: Sandbox | None) -> None:
        keeps = box.keeps if box is not None else None
        try:
            found = self.rules.finish(before, command, isoformat(self.clock.now()), keeps)
        except (OSError, StoreError) as error:
            logger.warning(
                "While `%s` ran, what decides here was changed, and it could not be put back: %s. "
                "Look at .loki/config.toml, .git/config and .git/hooks before you go on.",
                command,
                error,
            )
            return
        asked = self.rules.asked(before) if found else {}
        for one in found:
            if asked.get(one.id):  # a person said that it is to stay as it is
                logger.info("%s was put back again, as `%s` ran", one.path, one.command)
                continue
            logger.warning("%s", restored_text(one))
            if one.id not in asked:
                self.tell(one)


def restored_text(one: RestoredRule) -> str:
    """What a person is told of a file that was put back."""
    did = "deleted" if not one.found else "changed" if one.restored else "written"
    kept = f" What it said then is in .loki/{one.kept}." if one.kept else ""
    ran = f"{one.path} was {did} while `{one.command}` ran, which must not: it"
    if not one.is_asked:
        return f"{ran} says what the task did. It is as it was.{kept}"
    return (
        f"{ran} decides how loki or git work. It is as it was.{kept} If that was you: "
        f"`loki approve {one.id}`"
    )


def command_guard_of(root: str | os.PathLike[str]) -> CommandGuard:
    """What looks after a folder: its workspace's, or one that knows no settings.

    Args:
        root: a project's folder, or a copy's.
    """
    project = Path(os.path.realpath(root))
    return registered(project) or CommandGuard(Rules(project, project / ".loki"))


_warned: set[str] = set()


def _warn_once(sentence: str) -> None:
    if sentence not in _warned:
        _warned.add(sentence)
        logger.warning("%s", sentence)
