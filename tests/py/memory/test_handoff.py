"""What a session hands to the next."""

from __future__ import annotations

from loki.base import yaml_text
from loki.memory import session_context
from loki.memory.session_context import Handoff


def test_a_handoff_says_why_and_what_was_done_last() -> None:
    said = Handoff(
        "t1", "fix it", "2026-04-04T12:00:00Z", "interrupted", "ann", ["drew"], "a.py", "b"
    )
    fields, body = yaml_text.parse(session_context.render_handoff(said))
    assert said.document == "memory/handoffs/20260404T120000Z-t1.md"
    assert fields["agent"] == "ann"
    for told in ("interrupted", "drew", "a.py", "fix it"):
        assert told in body
