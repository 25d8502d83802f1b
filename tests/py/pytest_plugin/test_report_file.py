"""Reports: JSON with documented fields, Markdown that no text from outside can break."""

from __future__ import annotations

import json
import re

import pytest
from markdown_it import MarkdownIt

from loki.decision.suites.suite_summary import Cause, Label, Member, SuiteSummary
from loki.memory.suites.suite_history import SuiteFailure, SuiteRun
from loki.pytest_plugin.report_file import markdown, render
from loki.recognition.failure import Failure
from support.paths import ROOT

HOSTILE = "a | b `c` </details><script>x</script> [l](http://x) ::error::\n# head"


def summary(
    said: str = "negative amount: 3", test: str = "tests/test_a.py::test_x"
) -> SuiteSummary:
    failure = Failure.of(
        said, error_type="ValueError", path="app/a.py", line=6, excerpt=f"E   {said}"
    )
    label = Label("new", f"passed before; {said}")
    failing = SuiteFailure(test, "call", "failed", failure)
    member = Member(failing, label)
    cause = Cause(failure, label, "app/a.py:6", "runtime-error", (member,), 1, "", f"Look: {said}")
    return SuiteSummary(SuiteRun(id="r", counts={"passed": 3}), (cause,), (member,))


def test_json_has_the_documented_fields() -> None:
    """docs/design/tests.md names each field, and no others are there."""
    data = json.loads(render(summary(), ".json"))
    page = (ROOT / "docs/design/tests.md").read_text("utf-8")
    table = page.split("## The report", 1)[1]
    known = set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))
    found = {*data, *data["run"], *data["causes"][0], *data["causes"][0]["tests"][0]}
    assert found == known


def test_secrets_are_masked() -> None:
    """In every form."""
    said = summary("password=hunter2secret", "t[password=hunter2secret]")
    assert "hunter2secret" not in render(said, ".json") + render(said, ".md")


def test_markdown_holds_hostile_texts() -> None:
    """What is quoted opens no heading, link or tag, and breaks no table."""
    text = markdown(summary(HOSTILE, f"t[{HOSTILE}]"))
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    html = [t.content for t in tokens if t.type == "html_block"]
    assert all("script" not in one for one in html)
    inline = [child for token in tokens for child in token.children or ()]
    assert not [child for child in inline if child.type in {"link_open", "html_inline"}]
    assert [t.tag for t in tokens if t.type == "heading_open"] == ["h3", "h4", "h3"]
    cells = [t for t in tokens if t.type == "td_open"]
    assert len(cells) == 6


def test_a_green_run() -> None:
    """A report that was asked for is there, and short."""
    green = SuiteSummary(SuiteRun(id="r", counts={"passed": 3}))
    assert render(green, ".md") == "### loki: 3 tests passed\n"
    assert json.loads(render(green, ".JSON"))["causes"] == []


def test_other_suffixes() -> None:
    """A form that there is none of is an error that names all."""
    with pytest.raises(ValueError, match=r"'\.xml': expected \.json, \.md"):
        render(summary(), ".xml")
