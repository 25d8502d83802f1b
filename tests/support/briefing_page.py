"""What tests of action/test_briefing of both tiers share."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.token import Token

HEADINGS = [
    "Task",
    "What a person added",
    "Signs: binding, whatever else is said below",
    "Learned rules",
    "What failed last",
    "What to do now: context_expand",
    "Already tried",
    "Context",
    "Reflections",
]


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").parse(text)


def headings(text: str) -> list[str]:
    """Every heading, at whatever depth, as a Markdown parser sees it."""
    found = parsed(text)
    return [found[i + 1].content for i, token in enumerate(found) if token.type == "heading_open"]
