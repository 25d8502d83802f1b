"""Pattern files that are wrong."""

from __future__ import annotations

import pytest

import loki

HEAD = "version: 2\npatterns:\n  - id: p\n    strategy: escalate\n    description: d\n"
"""A pattern without its signals; the next line is the sixth."""


def said_of(content: str | bytes) -> str:
    """The error that a pattern file is refused with."""
    with pytest.raises(loki.ConfigError) as caught:
        loki.PatternSet.loads(content, name="mine.yml")
    return str(caught.value)
