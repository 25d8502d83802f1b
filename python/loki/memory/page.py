"""Pages that people and programs read: YAML between two ``---`` lines, then Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

_HEAD = re.compile(r"\A---\r?\n(.*?)^---[ \t]*\r?\n?", re.DOTALL | re.MULTILINE)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Dumper(yaml.SafeDumper):
    """Escapes the line breaks that only YAML knows, which it would fold."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    # Lone surrogates, which file names may hold, are nothing that YAML can say.
    value = re.sub("[\ud800-\udfff]", "\ufffd", value)
    style = '"' if re.search("[\x85\u2028\u2029]", value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def front_matter(fields: Mapping[str, Any]) -> str:
    """A page's head: YAML between two ``---`` lines."""
    return f"---\n{dump(fields)}---\n"


def dump(data: Any) -> str:
    """YAML as loki writes it: block style, in the given order, Unicode as it is."""
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return str(text)


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
