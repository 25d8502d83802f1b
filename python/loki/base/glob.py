"""Globs over paths with ``/``, as they are written in configurations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_PART = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|[^*?]+")
_MEANS = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matches(path: str, globs: Iterable[str]) -> bool:
    """Whether a path fits one of the globs.

    Args:
        path: relative, with ``/``.
        globs: ``*`` and ``?`` stay inside a name, ``**`` is any number of folders; a glob without
            ``/`` fits the name in any folder, as in ``.gitignore``.

    Example:
        >>> matches("a.test.ts", ["**/*.test.ts"]), matches("src/mocks/x/y.ts", ["**/mocks/**"])
        (True, True)
        >>> matches("src/deep/a.py", ["src/*.py"]), matches("src/deep/a.py", ["*.py"])
        (False, True)
    """
    return any(_compiled(glob).fullmatch(path) for glob in globs)


@lru_cache(maxsize=1024)
def _compiled(glob: str) -> re.Pattern[str]:
    anchored = glob.removeprefix("./") if "/" in glob else "**/" + glob
    anchored = anchored + "**" if anchored.endswith("/") else anchored
    parts = _PART.findall(anchored.removeprefix("/"))
    return re.compile("".join(_MEANS.get(part) or re.escape(part) for part in parts), re.DOTALL)
