"""Settings of what judges: which of them a change has touched. Pure."""

from __future__ import annotations

import configparser
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from loki.action.checks.judging.judging_rules import Setting, knowledge
from loki.action.checks.judging.seen_failures import SeenFailures
from loki.base import glob

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def settings_touched(
    path: str, before: str | None, after: str | None, seen: SeenFailures
) -> list[str]:
    """The settings in a file that decide how checks of some kinds judge, and that have changed.

    Args:
        path: of the file.
        before, after: what it held and holds; None: it was not, or is not there.
        seen: which checks failed, and what they start.

    Returns:
        Their names; the file's where all of it counts, or it cannot be read.

    Example:
        >>> text = '[tool.pytest.ini_options]\\naddopts = "--deselect tests/test_a.py"\\n'
        >>> settings_touched("pyproject.toml", "", text, SeenFailures(frozenset({"test"})))
        ['tool.pytest.ini_options.addopts']
    """
    found: list[str] = []
    for setting in knowledge().settings:
        if setting.programs and not setting.programs & seen.programs:
            continue
        if setting.kinds & seen.kinds and glob.matches(path, setting.files):
            found += _touched(path, before or "", after or "", setting)
    return list(dict.fromkeys(found))


def _touched(path: str, before: str, after: str, setting: Setting) -> list[str]:
    if setting.parts is None:
        return [path]
    try:
        old, new = _parts(path, before), _parts(path, after)
    except (ValueError, configparser.Error, RecursionError):
        return [path]
    names = [*old, *(name for name in new if name not in old)]
    changed = [name for name in names if old.get(name) != new.get(name)]
    return [name for name in changed if setting.parts.fullmatch(name)]


def _parts(path: str, text: str) -> dict[str, Any]:
    """What a file says, by dotted name; of a section of an INI file, all of it."""
    if not text.strip():
        return {}
    ending = PurePosixPath(path).suffix
    if ending in {".toml", ".json"}:
        data = tomllib.loads(text) if ending == ".toml" else json.loads(text)
        return dict(_flat(data, "")) if isinstance(data, dict) else {}
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    return {section: dict(parser[section]) for section in parser.sections()}


def _flat(data: Mapping[str, Any], head: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        name = f"{head}.{key}" if head else str(key)
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        else:
            yield name, value
