"""The page that asks for leave: what earlier stages and files are called stays in its place."""

from __future__ import annotations

from loki.people.request import stage_page
from support.hostile import HOSTILE, headings_of


def test_names_of_files_and_what_was_done_stay_in_their_place() -> None:
    page = stage_page(
        "ship-1",
        "ship",
        "deploy",
        "ship-1.deploy",
        HOSTILE,
        "agent",
        "Deploy it\u202e.",
        ["Run commands: `make`."],
        [f"plan: success, changed {HOSTILE}"],
        [HOSTILE],
    )
    assert headings_of(page) == [
        "Approval: stage deploy of ship-1",
        "What would be done",
        "What has been done so far",
        "What it is given",
        "Recommended Options",
        "Awaiting",
    ]
