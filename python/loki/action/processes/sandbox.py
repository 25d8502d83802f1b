"""The box that commands of agents and checks run in: where they may write, and what they may not read.

Two walls, the first that holds: Landlock, which a kernel since 5.13 has, and ``bwrap``, where it is
installed. What tools and agents write beside their tree is data, ``sandbox.yml``. Why it is so:
``docs/design/sandbox.md``.

Walls tell a program nothing but "permission denied", as the system's own rights do. Where that was the
box, a person is told how to allow it: the path is one that the box does not let be written, and that
loki's user could write without it.
"""

from __future__ import annotations

import glob
import logging
import marshal
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from loki.action.changes.git import git_folder, setting_files
from loki.action.processes import landlock
from loki.base.path_containment import is_below
from loki.base.secret import mask_secrets
from loki.base.yaml_text import load_file

# --- The box ------------------------------------------------------------------------------------------

Wall = Literal["landlock", "bwrap"]
Purpose = Literal["check", "command", "agent"]
"""A check; a command of a proposal or of loki's own, which may install something; an agent."""

_MADE = frozenset(f"/dev/{name}" for name in
                  ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm"])  # fmt: skip
"""Devices that ``bwrap --dev`` makes itself, terminals that fit together among them."""

_PROBE = 30.0  # seconds that bwrap may take to show that it works; chosen, as its answer is kept
_WORDS = re.compile(r"[^\s/;|&()'\"=]+")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What one command may do.

    Attributes:
        wall: what keeps it in.
        write: paths that it may write, each with all below it.
        deny: of these, what it may not write all the same, as far as the wall can tell.
        secret: paths that it may not read.
        network: whether it may use the network.
    """

    wall: Wall
    write: tuple[str, ...]
    deny: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    network: bool = True

    def may_write(self, path: str) -> bool:
        """Whether the box lets a path be written.

        Example:
            >>> Sandbox("landlock", ("/app",)).may_write("/app/a/b"), Sandbox("bwrap", ()).may_write("/x")
            (True, False)
        """
        inside = any(is_below(path, one) for one in self.write)
        return inside and not (self.wall == "bwrap" and any(is_below(path, d) for d in self.deny))

    def hides(self, path: str) -> bool:
        """Whether the box lets a path not even be read."""
        return any(is_below(path, one) for one in self.secret)

    def keeps(self, path: str) -> bool:
        """Whether nothing inside can have changed a file: whoever did was outside."""
        version = landlock.version() if self.wall == "landlock" else 0
        is_tight = self.wall == "bwrap" or version >= landlock.TRUNCATE_SINCE
        return is_tight and not self.may_write(path)

    def words(self, cwd: str) -> tuple[str, ...]:
        """What comes before a command's own words; () where the supervisor puts it into the box."""
        return tuple(_bwrap(self, cwd)) if self.wall == "bwrap" else ()

    def said(self) -> bytes:
        """What the supervisor is told; nothing where `words` do it."""
        if self.wall != "landlock":
            return b""
        read = tuple(_readable(self.secret)) if self.secret else None
        return marshal.dumps({"write": self.write, "read": read, "network": self.network})


def wall(*, network: bool = True) -> Wall | None:
    """The wall that this machine has.

    Args:
        network: whether commands may use it: only ``bwrap`` takes all of it away.
    """
    version = landlock.version()
    if version and network:
        return "landlock"
    if _bwrap_works(shutil.which("bwrap")):
        return "bwrap"
    return "landlock" if version >= landlock.NETWORK_SINCE or (version and network) else None


def read_only() -> Sandbox | None:
    """A box for programs that only look at something; None where the machine has no wall."""
    kind = wall()
    return Sandbox(kind, ("/dev/null",)) if kind is not None else None


def writable(
    trees: Sequence[str],
    borrowed: Sequence[str],
    command: Sequence[str],
    purpose: Purpose,
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    """Where a command may write: its tree, the temp folder, caches, and an agent its own state.

    Args:
        trees: the folders that it works in.
        borrowed: folders of dependencies that its tree links to.
        command: its words.
        purpose: what it is run for.
        environment: variables, some of which say where tools keep what.
    """
    known = knowledge("sandbox.yml")
    words = {word for one in command for word in _WORDS.findall(one)}
    found = [*trees, tempfile.gettempdir()]
    found += _paths([*known["temporary"], *known["devices"]], environment)
    if os.getuid() != 0:  # to root, /proc is the machine
        found.append("/proc")
    for one in known["caches"]:
        programs = one.get("programs", ())
        for path in _paths(one["write"], environment):
            if "*" in programs or not words.isdisjoint(programs):
                make(path)
            found.append(path)
    found += _caches_in(borrowed, known["borrowed"])
    if purpose == "command":
        found += borrowed
        found += _paths(known["environments"], environment)
    if purpose == "agent":
        found += _state(command, known["agents"], environment)
    real = dict.fromkeys(os.path.realpath(path) for path in found if os.path.exists(path))
    return tuple(path for path in real if path != "/")


def has_own(command: Sequence[str]) -> bool:
    """Whether an agent keeps its commands in a sandbox of its own, which does not go with ours.

    Example:
        >>> has_own(["/usr/bin/codex", "exec"]), has_own(["codex", "--yolo", "exec"]), has_own(["sh"])
        (True, False, False)
    """
    known = knowledge("sandbox.yml")["own"]
    names = [os.path.basename(word) for word in command if "\n" not in word]
    return any(name in known and set(command).isdisjoint(known[name]) for name in names)


def expanded(path: str, environment: Mapping[str, str]) -> str:
    """A path of the data: `~`, and the first of several whose variable is set; "" where none is.

    Example:
        >>> expanded("$GOPATH/pkg|/go/pkg", {}), expanded("$GOPATH/pkg|/go/pkg", {"GOPATH": "/g"})
        ('/go/pkg', '/g/pkg')
    """
    for one in path.split("|"):
        name, _, rest = one.partition("/")
        if not name.startswith("$"):
            return os.path.expanduser(one)
        value = environment.get(name[1:], "")
        if os.path.isabs(value):
            return os.path.join(value, rest) if rest else value
    return ""


def _paths(said: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    found = (expanded(one, environment) for one in said)
    return [p for path in found if path for p in (glob.glob(path) if "*" in path else [path])]


def tree_of(project: Path) -> tuple[str, ...]:
    """The work tree that a project is in, and where git keeps what belongs to it.

    To be asked before anything ran in it: what runs there could say that it lies elsewhere.
    """
    found = git_folder(str(project))
    if found is None or is_below(os.path.expanduser("~"), os.path.dirname(found)):
        return (str(project),)  # a home folder, or all of the machine, under git is no project
    places = [str(project), os.path.dirname(found)]
    if os.path.isfile(found):  # a work tree beside others
        places += [os.path.dirname(path) for path in setting_files(str(project))]
    return tuple(places)


def _caches_in(borrowed: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """What tools cache in dependencies that a copy only links to."""
    for folder in borrowed:
        for name in names:
            path = os.path.join(folder, name)
            if os.path.basename(folder) == "node_modules":
                make(path)
            yield path


def _state(
    command: Sequence[str], known: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[str]:
    names = {os.path.basename(word) for word in command if "\n" not in word}
    own = []
    for name in names & set(known["programs"]):
        own += known["programs"][name]
        for folder in _paths(known["programs"][name][:1], environment):
            make(folder)
    first = next((os.path.basename(w) for w in command if "=" not in w), "")
    if first and re.fullmatch(r"[A-Za-z][\w-]*", first):
        own += [path.replace("{name}", first) for path in known["any"]]
    yield from _paths(own, environment)


def make(path: str) -> None:
    """Make a folder where nothing is, as no wall can give leave to what is not there."""
    try:
        if not os.path.lexists(path):
            os.makedirs(path, mode=0o700)
    except OSError:
        return  # then the tool says what it misses


# --- Walls ------------------------------------------------------------------------------------------


def _bwrap(box: Sandbox, cwd: str) -> Iterator[str]:
    yield from ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev")
    if os.getuid() != 0:
        yield from ("--dev-bind", "/proc", "/proc")
    for path in sorted(box.write):  # a folder comes before what is in it
        if path in _MADE:
            continue
        kind = "--dev-bind-try" if is_below(path, "/dev") else "--bind-try"
        yield from (kind, path, path)
    for path in box.deny:
        yield from ("--ro-bind-try", path, path)
    for path in box.secret:
        yield from ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", "/dev/null", path)
    if not box.network:
        yield "--unshare-net"
    yield from ("--chdir", cwd, "--")


@cache
def _bwrap_works(program: str | None) -> bool:
    if program is None:
        return False
    words = (program, "--ro-bind", "/", "/", "--dev", "/dev", "--", "true")
    try:
        done = subprocess.run(words, capture_output=True, timeout=_PROBE, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _readable(secret: Sequence[str]) -> Iterator[str]:
    """Everything but what is secret: all that stands beside it, and beside what it is in."""
    hidden = set(secret)
    above = {os.path.dirname(path) for path in hidden}
    waiting, seen = ["/"], set[str]()
    while waiting:
        folder = waiting.pop()
        try:
            # A link would give leave to what it leads to, which may be above what is secret.
            entries = [one.path for one in os.scandir(folder) if not one.is_symlink()]
        except OSError:
            continue
        for path in entries:
            if path in hidden or path in seen:
                continue
            seen.add(path)
            if any(is_below(one, path) for one in above):
                waiting.append(path)
            else:
                yield path


@cache
def knowledge(file: str) -> Mapping[str, Any]:
    """What a file of loki's own says, which stands beside this one."""
    found: Mapping[str, Any] = load_file(Path(__file__).with_name(file))
    return found


# --- What a box refused a command, and how to allow it ------------------------------------------------

logger = logging.getLogger("loki")

_SAYS = re.compile(
    r"permission denied|read-only file system|operation not permitted|access ?denied|\bEACCES\b|\bEROFS\b"
    r"|\bEPERM\b|(?:could not|cannot|failed to|unable to) (?:create|write|open|save)|not writable"
    r"|os error (?:1|13|30)\b|\[Errno (?:1|13|30)\]",
    re.IGNORECASE,
)
_ENDS = r"[\s'\"`(),:;\]\0]"
_PATH = re.compile(  # not the file of a frame of Python's
    rf"(?:^|(?<=[\s'\"`(:=\[]))~?/(?:(?!{_ENDS}).){{1,4000}}(?={_ENDS}|$)(?!\", line \d)"
)
_AROUND = 2  # lines before and after: Rust's tools say the path above the reason; chosen
_MOST = 200  # places of an output that are looked at; chosen
_READ = 1 << 20  # bytes of an output that are looked at, its end; chosen

_RIGHTS = re.compile(r"permission denied|read-only file system|\bEACCES\b|\bEROFS\b", re.IGNORECASE)
MAYBE = "it ran in a sandbox, which may be why it was refused: see [sandbox] in .loki/config.toml"
"""Where the output does not say of which file; relative names do not."""

_told: set[str] = set()


def sandbox_denials(output: str, cwd: str, box: Sandbox) -> tuple[str, ...]:
    """The paths that a command could not write, or not read, because of its box.

    Args:
        output: what it printed.
        cwd: where it ran.
        box: what it ran in.
    """
    found: dict[str, None] = {}
    for said in _paths_near(output):
        path = os.path.realpath(os.path.join(cwd, os.path.expanduser(said)))
        if box.hides(path) or (not box.may_write(path) and _could_write(path)):
            found[path] = None
    return tuple(found)


def denial_advice(paths: tuple[str, ...], box: Sandbox) -> str:
    """A sentence for people: what was refused, and how it is allowed.

    Args:
        paths: what `refused` found.
        box: what refused it.
    """
    hidden = [path for path in paths if box.hides(path)]
    if hidden:
        return f"The sandbox lets nothing read {', '.join(hidden)}: [sandbox] secret names it."
    home, first = os.path.expanduser("~"), paths[0]
    place = first
    if first.startswith(home + "/"):
        inside = first[len(home) + 1 :].split("/")
        place = "~/" + "/".join(inside[: 2 if inside[0] in {".config", ".local"} else 1])
    shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")  # noqa: PLR2004
    return (
        f"The sandbox refused to have {shown} written: to allow it, say [sandbox] "
        f'write = ["{place}"] in .loki/config.toml'
    )


def log_denials(output: bytes, program: str, cwd: str, box: Sandbox) -> str:
    """What a command was refused and how that is allowed, told to a person once; "" for nothing."""
    text = output[-_READ:].decode("utf-8", "replace")
    found = sandbox_denials(text, cwd, box)
    if not found:
        return MAYBE if _RIGHTS.search(text) else ""
    sentence = mask_secrets(denial_advice(found, box))
    if sentence not in _told:
        _told.add(sentence)
        logger.warning("%s: %s", program, sentence)
    return sentence


def _paths_near(output: str) -> Iterator[str]:
    if _SAYS.search(output) is None:
        return
    lines = output.splitlines()
    places = [number for number, line in enumerate(lines) if _SAYS.search(line)][:_MOST]
    for place in places:
        # Its own line says most; only where it names no path do those around it count.
        own = _PATH.findall(lines[place])
        near = range(max(0, place - _AROUND), min(len(lines), place + _AROUND + 1))
        yield from own or (path for number in near for path in _PATH.findall(lines[number]))


def _could_write(path: str) -> bool:
    """Whether this process could write there: its nearest folder that is there."""
    if path.startswith(("/proc/", "/sys/")):  # of the kernel, which says no by itself
        return False
    if os.path.exists(path):
        return os.access(path, os.W_OK) or os.access(os.path.dirname(path), os.W_OK)
    folder = os.path.dirname(path)
    while not os.path.isdir(folder) and folder != "/":
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK)
