"""Which settings of command-line agents name programs to run; the data: ``hook-settings.yml``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from loki.action.processes.protected_rules import Watched, keys_of

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FILE = Path(__file__).with_name("hook-settings.yml")


def hook_settings(project: Path, environment: Mapping[str, str]) -> Iterator[Watched]:
    """The settings that decide what runs beside agents in a project.

    Args:
        project: its folder.
        environment: variables, some of which say where a user's settings are.
    """
    known = _known()
    for name in known["project"]:
        yield Watched(str(project / name))
    part = partial(keys_of, tuple(known["keys"]))
    for one in known["user"]:
        folder = environment.get(one["variable"]) or os.path.expanduser(one["folder"])
        yield Watched(os.path.join(folder, one["file"]), part)


@cache
def _known() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.load(_FILE.read_bytes(), Loader=_Loader)  # noqa: S506 - the safe one
    return found
