"""The page of failures says what loki says now, and what it says is right."""

from __future__ import annotations

import re
import tempfile

import pytest

from loki import Workspace
from loki.adapters.explanation import Asked, explain
from samples import gallery, logs


@pytest.mark.parametrize("entry", gallery.ENTRIES, ids=lambda entry: entry.title)
def test_every_explanation_is_right(entry: gallery.Entry) -> None:
    said = gallery.show(entry).said
    assert (said.where, said.failure.kind) == entry.expected
    assert said.verdict == "failed"


def test_the_page_is_what_loki_says_now() -> None:
    assert gallery.PAGE.read_text("utf-8") == gallery.page(), "out of date: make gallery"


def test_twenty_failures_of_as_many_tools() -> None:
    assert len({entry.tool or entry.log for entry in gallery.ENTRIES}) == len(gallery.ENTRIES) >= 20


def test_links_of_the_table_lead_somewhere() -> None:
    text = gallery.PAGE.read_text("utf-8")
    headings = [line[4:] for line in text.splitlines() if line.startswith("### ")]
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = re.findall(r"\]\(#(.*?)\)", text)
    assert len(links) == len(gallery.ENTRIES)
    assert set(links) == anchors


def test_a_long_log_is_long_and_always_the_same() -> None:
    text = logs.github_cmake()
    assert text.count("\n") > 3000
    assert text == logs.github_cmake()
    assert text.count(": error: ") == 1


def test_every_key_of_the_json_is_described() -> None:
    with tempfile.TemporaryDirectory() as folder:
        said = explain(Workspace(folder), Asked(b"KeyError: 'a'", "text")).to_dict()
    described = gallery.INTRODUCTION.read_text("utf-8").partition("## As JSON")[2]
    named = set(re.findall(r"`(\w+)`", described))
    assert set(said) <= named
    assert set(said["next"]) <= named
    assert {key for match in said["why"] for key in match} <= named
