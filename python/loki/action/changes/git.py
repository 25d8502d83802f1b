"""git, asked so that nothing of what a repository names is run; and what it tells of a project.

A repository's own settings and hooks may come from whoever worked in it: an agent, or a test that ran its
code. Settings can name programs (a file system monitor, filters, drivers of merges and diffs, hooks, an
ssh, a signer), so each call says otherwise, whatever stands in them. The person's own settings (global
ones) hold for what keeps files right, filters above all. Why each is there: ``docs/design/safety.md``.

Of a branch only what git can tell for certain counts: one that was squashed or rebased into another looks
unmerged, and one that was never worked on looks merged from its first day, which is why it matters
where it stood when its run began.

Which code a run had say a commit and a hash of what the working tree has beside it. What only tools
write (caches, compiled files, loki's own) does not count; every other file does that git lists as
changed or new.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loki.base.secret import clean_environment

# --- Asking git ---------------------------------------------------------------------------------------

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


# --- Where it stands: branch and commit, asked again where something has changed ----------------------

Stamps = tuple[tuple[int, int, int] | None, ...]

_PLACES = ("HEAD", "packed-refs", "reftable/tables.list")
"""What git writes anew when a branch or commit becomes another; the branch's own file comes to it."""


class GitHead:
    """Branch and commit of a project.

    Two questions to git take some milliseconds, which is much for each attempt's record.

    Args:
        root: the project's folder.

    Example:
        >>> import tempfile
        >>> GitHead(tempfile.mkdtemp())()
        (None, None)
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._folders: tuple[str, ...] = ()
        self._repository: str | None = None
        self._stamps: Stamps | None = None
        self._answer: tuple[str | None, str | None] = (None, None)

    def __call__(self) -> tuple[str | None, str | None]:
        """(branch, commit); None for each that there is not."""
        repository = git_folder(self._root)
        if repository is None:
            return None, None
        if repository != self._repository or not self._folders:
            self._repository, self._folders = repository, self._find()
            self._stamps = None
        # Looked at before git is asked: what changes in between is seen the next time.
        stamps = self._look()
        if stamps is None or stamps != self._stamps:
            self._answer = self._ask()
            self._stamps = stamps if self._look() == stamps else None
        return self._answer

    def _find(self) -> tuple[str, ...]:
        """The work tree's own folder of git, and the one that it shares with others."""
        found = git(self._root, "rev-parse", "--absolute-git-dir", "--git-common-dir")
        if found is None:
            return ()
        lines = os.fsdecode(found).splitlines()
        return tuple(dict.fromkeys(os.path.join(self._root, line) for line in lines))

    def _ask(self) -> tuple[str | None, str | None]:
        branch = git(self._root, "symbolic-ref", "--short", "-q", "HEAD")
        commit = git(self._root, "rev-parse", "-q", "--verify", "HEAD")
        return _text(branch), _text(commit)

    def _look(self) -> Stamps | None:
        """Stamps of what git writes when it moves; None where that cannot be told."""
        if not self._folders:
            return None
        branch = self._answer[0]
        places = (*_PLACES, f"refs/heads/{branch}") if branch else _PLACES
        paths = [os.path.join(folder, place) for folder in self._folders for place in places]
        return tuple(map(_stamp, paths))


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _text(output: bytes | None) -> str | None:
    return (output or b"").decode("utf-8", "replace").strip() or None


# --- What became of a branch --------------------------------------------------------------------------

DEFAULTS = ("main", "master", "trunk", "develop")
"""Names of the branch that others are merged into, where the remote does not say which it is."""

MERGED, DELETED, MERGED_INTO, OLD = "merged", "deleted", "merged into", "old"
"""How a run's branch stands when the run is over; the last two are of the default branch."""


def start_of(root: str, branch: str | None) -> dict[str, Any]:
    """How a branch stands, to be kept when its run begins; empty outside git.

    Args:
        root: the project's folder.
        branch: its name, or None.
    """
    refs = _refs(root) if branch else None
    tip = _tip(refs, branch) if refs and branch else None
    if refs is None or branch is None or tip is None:
        return {}
    return {"commit": tip, "contained": _is_contained(root, refs, branch, tip)}


def has_taken_in(root: str, branch: str, start: Mapping[str, Any]) -> bool:
    """Whether another branch was merged into one, the default branch, since its run began.

    Args:
        root: the project's folder.
        branch: its name.
        start: what `start_of` said when its run began.
    """
    begun = str(start.get("commit") or "")
    if not re.fullmatch("[0-9a-f]{40,64}", begun) or branch != default_branch(root):
        return False
    found = git(root, "rev-list", "--merges", "--first-parent", "--max-count=1",
                f"{begun}..refs/heads/{branch}")  # fmt: skip
    return bool(found and found.strip())


def end_of(root: str, branch: str, start: Mapping[str, Any]) -> str:
    """How a branch ended: merged, deleted, or "" where it has not, or nobody can tell.

    Args:
        root: the project's folder.
        branch: its name.
        start: what `start_of` said when its run began.
    """
    refs = _refs(root)
    if refs is None or not start:
        return ""
    tip = _tip(refs, branch)
    if tip is None:
        return DELETED
    has_moved = tip != start.get("commit")
    if (has_moved or not start.get("contained")) and _is_contained(root, refs, branch, tip):
        return MERGED
    return ""


def default_branch(root: str) -> str:
    """Name of the branch that others are merged into, as far as git or the remote tells; "" else."""
    refs = _refs(root) or {}
    heads = (ref for ref in _defaults(refs) if ref.startswith("refs/heads/"))
    return next(heads, "").removeprefix("refs/heads/")


def _refs(root: str) -> Mapping[str, str] | None:
    """Commits by name of ref; None outside git and where git cannot be asked."""
    if git_folder(root) is None:
        return None
    found = git(root, "for-each-ref", "--format=%(objectname) %(refname) %(symref)",
                "refs/heads", "refs/remotes")  # fmt: skip
    if found is None:
        return None
    refs = {}
    for line in os.fsdecode(found).splitlines():
        commit, name, *target = line.split(" ")
        refs[name] = commit
        if name.endswith("/HEAD") and target and target[0]:
            refs[name] = target[0]
    return refs


def _tip(refs: Mapping[str, str], branch: str) -> str | None:
    # Where a tag has the same name, git calls the branch heads/<name>.
    return refs.get(f"refs/heads/{branch}") or refs.get(f"refs/{branch}")


def _is_contained(root: str, refs: Mapping[str, str], branch: str, tip: str) -> bool:
    """Whether the default branch, here or at its remote, contains a commit."""
    return any(
        git(root, "merge-base", "--is-ancestor", tip, refs[ref]) is not None
        for ref in _defaults(refs)
        if ref not in {f"refs/heads/{branch}", f"refs/{branch}"} and not ref.endswith(f"/{branch}")
    )


def _defaults(refs: Mapping[str, str]) -> list[str]:
    told = [target for name, target in refs.items() if name.endswith("/HEAD")]
    names = [ref.split("/", 3)[3] for ref in told if ref.count("/") >= 3]  # noqa: PLR2004
    names = names or [name for name in DEFAULTS if f"refs/heads/{name}" in refs][:1]
    wanted = [*told, *(f"refs/heads/{name}" for name in names)]
    return [ref for ref in dict.fromkeys(wanted) if ref in refs]


# --- Which code it was --------------------------------------------------------------------------------

LARGE = 1_000_000
"""Bytes of a file from which on its size and time stand for its content. Chosen, not measured."""

MOST = 5_000
"""Changed files from which on nothing is said: to hash them would take too long. Chosen."""

_CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis",
                     ".tox", ".nox", ".loki", ".git"})  # fmt: skip
_WRITTEN = (".pyc", ".pyo", ".coverage")


@dataclass(frozen=True, slots=True)
class CodeState:
    """Which code it was.

    Attributes:
        branch: git's branch, or "".
        commit: id of the commit that is checked out, or "".
        tree: hash of what the working tree has beside it, 32 hex digits; "" where it is not known.
    """

    branch: str = ""
    commit: str = ""
    tree: str = ""


def code_state(root: str, ignored: frozenset[str] = frozenset()) -> CodeState:
    """Which code a folder holds; all "" outside of git.

    Args:
        root: the project's folder.
        ignored: absolute paths of files that do not count, reports for instance.

    Example:
        >>> import tempfile
        >>> code_state(tempfile.mkdtemp())
        CodeState(branch='', commit='', tree='')
    """
    said = git(root, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
    top = git(root, "rev-parse", "--show-toplevel")
    if said is None or top is None:
        return CodeState()
    head: dict[str, str] = {}
    changed: list[str] = []
    entries = iter(os.fsdecode(said).split("\0"))
    for entry in entries:
        if entry.startswith("# "):
            name, _, value = entry[2:].partition(" ")
            head[name] = value
        elif entry:
            changed.append(_path(entry))
            if entry.startswith("2 "):  # renamed: where it was comes behind
                changed.append(next(entries, ""))
    commit, branch = head.get("branch.oid", ""), head.get("branch.head", "")
    folder = os.fsdecode(top).rstrip("\n")
    return CodeState(
        "" if branch == "(detached)" else branch,
        "" if commit == "(initial)" else commit,
        _hash(folder, [path for path in changed if _counts(folder, path, ignored)]),
    )


_FIELDS = {"1": 8, "2": 9, "u": 10}
"""Spaces before the path in a line of git's porcelain format 2, by what it begins with."""


def _path(entry: str) -> str:
    kind = entry[:1]
    return entry.split(" ", _FIELDS[kind])[-1] if kind in _FIELDS else entry[2:]


def _counts(folder: str, path: str, ignored: frozenset[str]) -> bool:
    return (
        _CACHES.isdisjoint(path.split("/"))
        and not path.endswith(_WRITTEN)
        and os.path.join(folder, path) not in ignored
    )


def _hash(folder: str, paths: list[str]) -> str:
    if len(paths) > MOST:
        return ""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(os.fsencode(path) + b"\0" + _content(os.path.join(folder, path)) + b"\0")
    return found.hexdigest()[:32]


def _content(path: str) -> bytes:
    """What stands for a file's content: its hash, or size and time of a large one."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return b"link " + os.fsencode(os.readlink(path))
        if not stat.S_ISREG(status.st_mode):
            return b"other"
        if status.st_size > LARGE:
            return f"{status.st_size} {status.st_mtime_ns}".encode()
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).digest()
    except OSError:
        return b"gone"


# --- Which files of a project differ from a commit ----------------------------------------------------

PATIENCE = 3.0
"""Seconds that git may take: nobody waits for this. Chosen."""

_COMMIT = re.compile(r"[0-9a-f]{7,64}")


def files_since(root: str, commit: str) -> tuple[str, ...] | None:
    """Files below a folder that differ from a commit, those included that are not committed yet.

    Args:
        root: the project's folder.
        commit: id of a commit.

    Returns:
        Paths relative to the folder, sorted; files that git was never told of are not among them. None
        where git does not know the commit, is missing, or takes too long.

    Example:
        >>> import tempfile
        >>> files_since(tempfile.mkdtemp(), "1a2b3c4")
    """
    if not _COMMIT.fullmatch(commit):
        return None
    wanted = ("--name-only", "-z", "--no-renames", "--no-ext-diff", "--relative", commit, "--", ".")
    said = git(root, "diff", *wanted, seconds=PATIENCE)
    if said is None:
        return None
    return tuple(sorted(path for path in os.fsdecode(said).split("\0") if path))
