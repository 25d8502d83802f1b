"""What a box refused a command, as far as its output tells; and how to allow it.

Walls tell a program nothing but "permission denied", as the system's own rights do. It was the box where
the path is one that it does not let be written, and that loki's user could write without it.
"""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING

from loki.base.secret import mask_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.processes.sandbox import Sandbox

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
        if _is_secret(path, box) or (not box.may_write(path) and _could_write(path)):
            found[path] = None
    return tuple(found)


def denial_advice(paths: tuple[str, ...], box: Sandbox) -> str:
    """A sentence for people: what was refused, and how it is allowed.

    Args:
        paths: what `refused` found.
        box: what refused it.
    """
    hidden = [path for path in paths if _is_secret(path, box)]
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


def _is_secret(path: str, box: Sandbox) -> bool:
    return any(path == one or path.startswith(one + "/") for one in box.secret)


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
