"""Which settings of command-line agents name programs to run; the data: ``hook-settings.yml``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from loki.action.jsonc import plain
from loki.action.rules import Watched

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


def keys_of(keys: tuple[str, ...], settings: bytes) -> Any:
    """What stands under some keys of settings; all of them where they are no JSON object.

    Example:
        >>> keys_of(("hooks",), b'{"model": "x", "hooks": {}} // mine')
        {'hooks': {}}
        >>> keys_of(("hooks",), b"")
        {}
    """
    try:
        said = json.loads(plain(settings.decode("utf-8")) or "{}")
    except (ValueError, RecursionError):
        return settings
    return {key: said[key] for key in keys if key in said} if isinstance(said, dict) else settings


@cache
def _known() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.load(_FILE.read_bytes(), Loader=_Loader)  # noqa: S506 - the safe one
    return found
