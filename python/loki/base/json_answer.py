"""The JSON object that an agent's answer is, or that ends it."""

from __future__ import annotations

import json
import re
from typing import Any

MOST = 64
"""Braces that are tried from the front, and from the back; chosen: no answer nests deeper."""


def object_at_end(text: str) -> dict[str, Any] | None:
    """The outermost object that ends a text, also in a fence; None: there is none.

    Example:
        >>> object_at_end('It is {fine}.\\n```json\\n{"approved": true}\\n```')
        {'approved': True}
    """
    plain = re.sub(r"\s*```\s*$", "", text.strip())
    starts = [match.start() for match in re.finditer(r"\{", plain)]
    for start in [*starts[:MOST], *starts[-MOST:]]:
        try:
            found = json.loads(plain[start:])
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return None
