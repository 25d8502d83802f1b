"""Pages by templates, files that stand beside the code that fills them: whatever they print stays text."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def filled(file: Path, plain: Callable[[str], str], **data: Any) -> str:
    """A page by its template (Jinja2); what ends with ``.html.j2`` or ``.svg.j2`` is escaped.

    Args:
        file: the template; it may include others of its folder.
        plain: each text that is printed goes through it, but what is marked as safe.
        data: what the template names.
    """
    return _environment(file.parent, plain).get_template(file.name).render(data)


@cache
def _environment(folder: Path, plain: Callable[[str], str]) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
    from markupsafe import Markup  # much to load for who writes no page

    def finalized(value: Any) -> Any:
        return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=select_autoescape(("html.j2", "svg.j2"), default=False),
        finalize=finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
