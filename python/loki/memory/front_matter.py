"""Pages that people and programs read: YAML between two ``---`` lines, then Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from loki.base.yaml_dump import dump

_HEAD = re.compile(r"\A---\r?\n(.*?)^---[ \t]*\r?\n?", re.DOTALL | re.MULTILINE)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def front_matter(fields: Mapping[str, Any]) -> str:
    """A page's head: YAML between two ``---`` lines."""
    return f"---\n{dump(fields)}---\n"


def parse(text: str) -> tuple[dict[str, Any], str]:
    """The front matter and the body of a page.

    Args:
        text: what `front_matter` gave, and what stands below it.

    Raises:
        ValueError: there is no front matter, or it is no YAML mapping.

    Example:
        >>> parse("---\\nid: rule-1\\n---\\n\\n# Never\\n")
        ({'id': 'rule-1'}, '# Never\\n')
    """
    found = _HEAD.match(text)
    if found is None:
        raise ValueError("found no front matter, expected YAML between two '---' lines")
    try:
        fields = yaml.load(found[1], Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise ValueError(f"found front matter that is no YAML: {error}") from error
    if not isinstance(fields, dict):
        raise ValueError("found front matter that is no mapping, expected keys and values")
    return {str(key): value for key, value in fields.items()}, text[found.end() :].lstrip("\n")
