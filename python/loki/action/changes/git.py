"""git, asked so that nothing of what a repository names is run.

A repository's own settings and hooks may come from whoever worked in it: an agent, or a test that ran its
code. Settings can name programs (a file system monitor, filters, drivers of merges and diffs, hooks, an
ssh, a signer), so each call says otherwise, whatever stands in them. The person's own settings (global
ones) hold for what keeps files right, filters above all. Why each is there: ``docs/design/safety.md``.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence

from loki.base.environment import clean_environment

GIT_TIMEOUT = 120.0
"""Seconds that one question to git may take. Chosen, not measured."""

_SETTINGS = (
    # Who owns a project does not matter where nothing of it is run; a folder that only looks like a
    # repository (a proposal can make one) is none.
    "safe.directory=*", "safe.bareRepository=explicit",
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "core.editor=true",
    "sequence.editor=true", "core.askPass=", "credential.helper=", "core.sshCommand=false",
    "core.alternateRefsCommand=true", "protocol.allow=never", "commit.gpgSign=false",
    "tag.gpgSign=false", "merge.verifySignatures=false", "log.showSignature=false",
    # git starts itself in submodules, without what is said here.
    "submodule.recurse=false", "diff.submodule=short",
)  # fmt: skip

_FIXED = ("git", "--no-pager", *(word for one in _SETTINGS for word in ("-c", one)))

_PLAIN = ("--ignore-submodules=dirty", "--no-ext-diff", "--no-textconv")
_ARGUMENTS = {
    "clone": ("--template=", "--no-recurse-submodules"),
    "init": ("--template=",),
    "status": _PLAIN[:1],
    "diff": _PLAIN,
    "log": _PLAIN[1:],
    "show": _PLAIN[1:],
}
"""What subcommands must be told, as no setting says it."""

_MAY_CLONE = ("-c", "protocol.file.allow=always")  # from a folder of this machine

# Sections whose names are the repository's own, so that they have to be looked up to be overruled.
_NAMED = re.compile(rb"\[\s*(?:filter|merge|hook|include|includeif)\b", re.IGNORECASE)

_OVERRULED = {
    ("filter", "clean"): ("clean=", "required=false"),
    ("filter", "smudge"): ("smudge=", "required=false"),
    ("filter", "process"): ("process=", "required=false"),
    # It fails: to take one side in silence would lose the other.
    ("merge", "driver"): ("driver=false",),
    ("hook", "command"): ("enabled=false",),
}

_LARGEST = 1 << 20  # bytes of settings that are looked through; larger ones are git's to read


def git(
    root: str, *arguments: str, data: bytes | None = None, seconds: float = GIT_TIMEOUT
) -> bytes | None:
    """What git prints about a folder, or None where it fails, takes too long or is missing.

    Args:
        root: the folder to ask in.
        arguments: git's own, the subcommand first.
        data: its standard input.
        seconds: that it may take.
    """
    try:
        done = run_git(root, *arguments, data=data, seconds=seconds)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def run_git(
    root: str,
    *arguments: str,
    data: bytes | None = None,
    seconds: float = GIT_TIMEOUT,
    writes: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder; nothing that the repository names is run.

    Args:
        root: the folder.
        arguments: git's own, the subcommand first.
        data: its standard input.
        seconds: that it may take.
        writes: it writes into a person's own work tree: the machine's settings hold, as the filters that
            they name make files what they are.

    Raises:
        OSError: it cannot be started, or the repository names a program that cannot be overruled.
        subprocess.TimeoutExpired: it took too long.
    """
    return subprocess.run(
        [*_words(root, arguments)],
        cwd=root,
        env=git_environment(writes=writes),
        input=data if data is not None else b"",
        capture_output=True,
        timeout=seconds,
        check=False,
    )


def git_environment(*, writes: bool = False) -> dict[str, str]:
    """The environment for git: no variable that says which repository it is, nothing that asks.

    Args:
        writes: as for `run_git`.
    """
    # Hooks and `git rebase --exec` set GIT_DIR and GIT_INDEX_FILE: they would answer for another
    # repository than the one of the folder that we ask in. Others name programs.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    if writes:
        return {**clean_environment(kept), **own}
    return {**kept, **own, "GIT_OPTIONAL_LOCKS": "0", "GIT_CONFIG_NOSYSTEM": "1"}


def git_folder(root: str) -> str | None:
    """The nearest ``.git`` at or above a folder, a file in worktrees; None outside of git."""
    folder = os.path.abspath(root)
    while True:
        candidate = os.path.join(folder, ".git")
        if os.path.lexists(candidate):
            return candidate
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def setting_files(root: str) -> tuple[str, ...]:
    """The files of a repository's own settings, whether or not they are there; () outside of git."""
    found = git_folder(root)
    if found is None:
        return ()
    folder = found
    if os.path.isfile(found):
        said = _read(found).partition(b"gitdir:")[2].strip()
        folder = os.path.join(os.path.dirname(found), os.fsdecode(said))
    common = os.path.join(folder, os.fsdecode(_read(os.path.join(folder, "commondir")).strip()))
    return tuple(
        os.path.normpath(path)
        for path in (os.path.join(common, "config"), os.path.join(folder, "config.worktree"))
    )


def _words(root: str, arguments: Sequence[str]) -> Iterator[str]:
    yield from _FIXED
    if arguments[0] == "clone":
        yield from _MAY_CLONE
    for setting in _overruling(root):
        yield from ("-c", setting)
    yield arguments[0]
    yield from _ARGUMENTS.get(arguments[0], ())
    yield from arguments[1:]


def _overruling(root: str) -> Iterator[str]:
    """Settings against the programs that a repository gives names of its own."""
    if not any(_NAMED.search(_read(path)) for path in setting_files(root)):
        return  # as nearly always: git need not be asked
    try:
        listed = subprocess.run(
            [*_FIXED, "config", "--list", "-z", "--name-only", "--show-scope"],
            cwd=root, env=git_environment(), capture_output=True, timeout=GIT_TIMEOUT, check=False,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return
    words = os.fsdecode(listed).split("\0")
    for scope, name in zip(words[::2], words[1::2], strict=False):
        section, _, rest = name.partition(".")
        inner, _, key = rest.rpartition(".")
        if scope in {"local", "worktree"} and (section, key) in _OVERRULED:
            if "=" in inner:  # it would end the name in the argument that overrules it
                raise PermissionError(f"{root}: git's settings name a program for {name!r}")
            for value in _OVERRULED[section, key]:
                yield f"{section}.{inner}.{value}"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_LARGEST)
    except OSError:
        return b""
