"""YAML as loki reads and writes it, and pages that people and programs read.

It is written in block style, in the given order, Unicode as it is where a reader sees it. A page is YAML
between two ``---`` lines, then Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from loki.base.text_format import INVISIBLE

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, as in names of files that are not UTF-8: nothing that YAML can say."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Texts of several lines in double quotes: no line of them can end a page's head or a fence."""


class _Indented(yaml.SafeDumper):
    """The same; indents lists under their keys, too."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: yaml.representer.SafeRepresenter, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() and not INVISIBLE.search(text) else '"'
    plain = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", plain, style=style)


for _kind in (_Dumper, _Indented):
    _kind.add_representer(str, _text)


def dump(data: Any, *, indented: bool = False, width: int = 100) -> str:
    """The YAML of plain data; whatever a text holds, it is read back as it was.

    Args:
        data: what JSON can hold.
        indented: whether lists stand further right than their keys.
        width: characters of a line, where it can be broken.

    Example:
        >>> dump({"a": ["ü", "- no list"]})
        "a:\\n- ü\\n- '- no list'\\n"
    """
    dumper = _Indented if indented else _Dumper
    text = yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True, width=width)
    return INVISIBLE.sub(_escape, str(text))


def _escape(found: re.Match[str]) -> str:
    """As double quotes have it: no other scalar holds an invisible character."""
    code = ord(found[0])
    return f"\\U{code:08X}" if code > 0xFFFF else f"\\u{code:04X}"  # noqa: PLR2004


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str) -> Any:
    """The plain data in a YAML text.

    Raises:
        yaml.YAMLError: it is none.

    Example:
        >>> load("a: [1, b]")
        {'a': [1, 'b']}
    """
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader


def load_file(path: Path) -> Any:
    """The plain data in a file of loki's own."""
    return load(path.read_text("utf-8"))


# --- Pages ------------------------------------------------------------------------------------------

_HEAD = re.compile(r"\A---\r?\n(.*?)^---[ \t]*\r?\n?", re.DOTALL | re.MULTILINE)


def entity(namespace: str, name: str, category: str) -> dict[str, Any]:
    """The fields with which the head of most pages begins.

    Example:
        >>> entity("memory.ledgers", "t1", "ledger")["entity_name"]
        'memory.ledgers.t1'
    """
    return {"entity_name": f"{namespace}.{name}", "namespace": namespace, "category": category}


def page(fields: Mapping[str, Any], parts: Iterable[str]) -> str:
    """A page: its head, and the parts below it that say something, in Markdown.

    Example:
        >>> print(page({"id": "a"}, ["# A", "", "Text."]), end="")
        ---
        id: a
        ---
        <BLANKLINE>
        # A
        <BLANKLINE>
        Text.
    """
    return f"{front_matter(fields)}\n" + "\n\n".join(filter(None, parts)) + "\n"


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
        fields = load(found[1])
    except yaml.YAMLError as error:
        raise ValueError(f"found front matter that is no YAML: {error}") from error
    if not isinstance(fields, dict):
        raise ValueError("found front matter that is no mapping, expected keys and values")
    return {str(key): value for key, value in fields.items()}, text[found.end() :].lstrip("\n")
