"""``loki report``: Markdown, and one HTML page that needs nothing else and lets nothing through."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from loki import cli
from loki.base.time_axis import MOST, axis
from loki.cli.app import app
from loki.cli.report import render
from loki.cli.report.document import (
    Bars,
    Block,
    Curve,
    Document,
    Facts,
    Link,
    Section,
    Stacks,
    Table,
    Text,
)
from loki.memory import task_record
from loki.memory.attempt import Attempt, CheckRecord, History
from loki.stores.file_store import FileStore
from support.hostile import HOSTILE, make_hostile
from support.task import task_of

VOID = {"meta", "br", "hr", "img", "link", "input"}

SECTIONS = [
    "Overview",
    "Outcomes over time",
    "By pattern",
    "By strategy",
    "Chains into failure",
    "Caught before anything was written",
    "Regressions",
    "Dead letters and escalations",
    "Slowest checks",
    "Infrastructure",
    "Cost and tokens",
]


def loki(*words: str) -> str:
    """What it prints; it must succeed."""
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


class Page(HTMLParser):
    """Reads a page and insists that it is well-formed; keeps elements, texts and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def svgs(page: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def assert_harmless(page: str) -> Page:
    """Well-formed, self-contained, and without a script or a handler."""
    read = Page(page)
    assert {tag for tag, _ in read.elements}.isdisjoint(
        {"script", "iframe", "object", "link", "img", "form"}
    )
    for tag, attributes in read.elements:
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("src", "data", "action", "style", "xlink:href"):
            assert name not in attributes, tag
        target = attributes.get("href") or "#"
        assert target.startswith("#") or re.match(r"(\.\./)*[.\w]", target), target
        assert ":" not in target
    style = "".join(text for tag, text in read.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style
    raw = re.sub(r">[^<]*<", "><", page)
    assert not re.search(r"https?://", raw), "nothing is fetched from elsewhere"
    for drawn in svgs(page):
        assert drawn.get("role") == "img"
        named = [child.get("id") for child in drawn if child.tag in {"title", "desc"}]
        assert drawn.get("aria-labelledby") == " ".join(map(str, named))
        assert all((drawn.find(tag).text or "").strip() for tag in ("title", "desc"))  # type: ignore[union-attr]
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    return read


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Twelve tasks: one use each of a strategy that seldom helps, and one that always does."""
    root = tmp_path / "shop"
    store = FileStore(root / ".loki")
    for number in range(12):
        task = f"task-{number:02}"
        history = History(store, task)
        fields: dict[str, Any] = {
            "pattern_matched": "type-error",
            "phase": "evaluate",
            "agent": "claude",
            "model": "large",
            "tokens": 1000,
            "cost": 0.5,
            "checks": (CheckRecord("tsc", "type", "tsc", False, 2, 2000), CheckRecord("jest", "test", "jest", True, 0, 9000)),
        }  # fmt: skip
        day = f"2026-04-{number + 1:02}"
        history.append(
            Attempt(
                1,
                f"{day}T10:00:00.000Z",
                "a",
                "failed",
                error="x",
                strategy_used="context_expand",
                **fields,
            )
        )
        history.append(
            Attempt(
                2,
                f"{day}T10:05:00.000Z",
                "b",
                "failed",
                error="x",
                strategy_used="analyze_then_fix",
                **fields,
            )
        )
        if number < 11:
            fields = {**fields, "pattern_matched": None, "phase": "", "checks": ()}
            history.append(Attempt(3, f"{day}T10:10:00.000Z", "c", "success", **fields))
            outcome: dict[str, Any] = {
                "status": "success",
                "page": None,
                "reason": "every check passes",
            }
        else:
            validation = {
                "passed": False,
                "gates": ["syntax_check"],
                "violations": ["x [syntax_check]"],
            }
            fields = {**fields, "phase": "validate", "validation": validation}
            history.append(Attempt(3, f"{day}T10:10:00.000Z", "c", "failed", error="y", **fields))
            outcome = {
                "status": "failed",
                "page": f"tasks/{task}/dead-letter-{task}.md",
                "reason": "all spent",
            }
        history.end(1, outcome, title=f"Mend {task}", at=f"{day}T10:11:00.000Z")
        task_record.save(
            store,
            task_of({"id": task, "title": f"Mend {task}", "execution": 1, "outcome": outcome}),
        )
    return root


def test_markdown_says_all_there_is(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    page = loki("report")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == SECTIONS
    for part in (
        "# loki report: shop",
        "Attempts from 2026-04-01 10:00 to 2026-04-12 10:10 (UTC).",
        "- **Tasks**: 12",
        "- **Succeeded**: 92 % (11)",
        "- **Dead letters**: 8 % (1)",
        "- **Attempts to success**: 3.0 (mean)",
        "- **Time to success**: 10m (mean, with waits)",
        "| 04-12 | 0 | 3 |",
        "| type-error | 25 | 12 | 92 % | 3.0 |",
        "| context_expand | weak: under 30 % | 12 | 0 | 12 | 0 % | 92 % | 3.0 |",
        "| analyze_then_fix | reliable: over 80 % | 12 | 11 | 0 | 100 % | 92 % | 3.0 |",
        "| context_expand → analyze_then_fix | 1 | 12 | 8 % |",
        "- **Failures caught**: 4 % (1 of 25 failed attempts)",
        "| syntax_check | 1 |",
        "| 2026-04-12 10:11 | [Mend task-11](.loki/tasks/task-11/dead-letter-task-11.md) | all spent |",
        "| jest | 25 | 0 (0 %) | 9.0 s | 9.0 s | 3m 45s |",
        "| tsc | 25 | 25 (100 %) | 2.0 s | 2.0 s | 50.0 s |",
        "- **Tokens**: 36,000 (3,273 for each success)",
        "| claude large | 36 | 36,000 | 18.00 |",
    ):
        assert part in page, part
    head, rule, *rows = [line for line in page.splitlines() if line.startswith("|")][:4]
    assert len({line.count("|") for line in (head, rule, *rows)}) == 1


def test_html_is_one_page_that_needs_nothing_else(project: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "report.html"
    target.parent.mkdir()
    done = CliRunner().invoke(app, ["report", "--project", str(project), "-o", str(target)])
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"wrote {target}\n")
    page = target.read_text("utf-8")
    read = assert_harmless(page)
    assert [text for tag, text in read.texts if tag == "h2"] == SECTIONS
    assert len(svgs(page)) == 6
    (link,) = [a["href"] for a in read.all("a") if not str(a["href"]).startswith("#")]
    assert link == "../shop/.loki/tasks/task-11/dead-letter-task-11.md"
    assert all(th.get("scope") == "col" for th in read.all("th"))
    assert read.all("html") == [{"lang": "en"}]
    for media in ("prefers-color-scheme: dark", "@media print"):
        assert media in page


def test_html_is_asked_for_by_option_or_by_name(project: Path, tmp_path: Path) -> None:
    words = ("report", "--project", str(project))
    assert loki(*words, "--html").startswith("<!doctype html>")
    for name, beginning in (("r.htm", "<!doctype"), ("r.md", "# loki"), ("r.txt", "# loki")):
        loki(*words, "-o", str(tmp_path / name))
        assert (tmp_path / name).read_text().startswith(beginning)


def test_only_a_task_or_a_time(project: Path) -> None:
    words = ("report", "--project", str(project), "--json")
    assert json.loads(loki(*words, "--task", "task-03"))["tasks"] == 1
    assert json.loads(loki(*words, "--since", "2026-04-10"))["tasks"] == 3
    assert json.loads(loki(*words, "--since", "1m"))["tasks"] == 0
    assert "Only the task task-03." in loki(*words[:-1], "--task", "task-03")


def test_json_has_every_figure(project: Path) -> None:
    data = json.loads(loki("report", "--project", str(project), "--json"))
    assert data["executions"] == {"success": 11, "failed": 1}
    assert data["strategies"]["context_expand"]["flag"] == "weak"
    assert data["chains_into_failure"] == [
        {"strategies": ["context_expand", "analyze_then_fix"], "executions": 12, "failures": 1}
    ]
    assert data["dead_letters"][0]["page"] == "tasks/task-11/dead-letter-task-11.md"
    assert data["pre_validation_catch_rate"] == 1 / 25


def test_without_attempts_it_says_so(tmp_path: Path) -> None:
    page = loki("report", "--project", str(tmp_path))
    assert "No attempt was made here yet" in page
    assert_harmless(loki("report", "--project", str(tmp_path), "--html"))


def test_a_place_that_cannot_be_written_is_told(project: Path) -> None:
    done = CliRunner().invoke(app, ["report", "--project", str(project), "-o", "/nowhere/r.md"])
    assert done.exit_code == 2
    assert "cannot write /nowhere/r.md: No such file" in done.stderr


# --- what others said stays text ----------------------------------------------------------------------


def test_nothing_hostile_gets_through(tmp_path: Path) -> None:
    make_hostile(tmp_path)
    target = tmp_path / "report.html"
    loki("report", "--project", str(tmp_path), "-o", str(target))
    read = assert_harmless(target.read_text("utf-8"))
    assert len(read.all("h1")) == 1
    assert [a for a in read.all("a") if not str(a["href"]).startswith("#")] == [], "no page of ours"
    shown = " ".join(text for _, text in read.texts)
    assert "<script>alert(1)</script>" in shown
    page = loki("report", "--project", str(tmp_path))
    assert not re.search(r"(?<!\\)<", page)
    assert not re.search(r"(?<!\\)\]\(", page)
    assert all(c.isprintable() or c == "\n" for c in page)
    for line in page.splitlines():
        assert line[:1] in {"", "#", "|", "-", "A", "U", "S", "O", "V", "T", "N", "1", "2"}, line


ANY = st.text(max_size=20) | st.just(HOSTILE)


@given(ANY, ANY, ANY, ANY, st.lists(st.floats(0, 1e12), min_size=1, max_size=5))
def test_whatever_it_says_the_page_is_well_formed(
    title: str, name: str, word: str, target: str, values: list[float]
) -> None:
    times = [f"{word}{i}" for i in range(len(values))]
    blocks: list[Block] = [
        Text(word),
        Facts([(name, word, title)]),
        Table((name, word), [(Link(word, target), name)]),
        Bars(title or "x", [(name, value, word or "x") for value in values], None, [(0.5, word)]),
        Stacks(title or "x", times, [("success", values), (name, values)]),
        Curve(title or "x", times, values),
    ]
    document = Document(title, word, [Section(name, blocks)])
    page = render.html(document)
    page.encode("utf-8")
    read = Page(page)
    assert len(read.all("svg")) == len(svgs(page)) == 3
    assert not read.all("script")
    (link,) = [a["href"] for a in read.all("a") if not str(a["href"]).startswith("#part-")]
    assert unquote(str(link), errors="surrogateescape") is not None
    told = render.markdown(document)
    table = [line for line in told.splitlines() if line.startswith("| ")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in table)


# --- charts and time axes ---------------------------------------------------------------------------


def _rectangles(drawn: ElementTree.Element, kind: str) -> list[tuple[float, float, float]]:
    found = [r for r in drawn.iter("rect") if r.get("class") == kind]
    return [
        (float(r.get("y", 0)), float(r.get("width", 0)), float(r.get("height", 0))) for r in found
    ]


def _drawn(chart: Block) -> ElementTree.Element:
    (found,) = svgs(render.html(Document("a", "b", [Section("c", [chart])])))
    return found


def test_bars_are_as_long_as_their_values() -> None:
    drawn = _drawn(Bars("t", [("a", 50, "50"), ("b", 100, "100"), ("c", 0, "0")]))
    half, whole, none = (width for _, width, _ in _rectangles(drawn, "bar"))
    assert half == pytest.approx(whole / 2, abs=0.1)
    assert none == 1, "a bar of nothing can still be seen"


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=60))
def test_stacks_stand_on_one_another_inside_the_chart(values: list[tuple[float, float]]) -> None:
    series = [("success", [a for a, _ in values]), ("failed", [b for _, b in values])]
    drawn = _drawn(Stacks("t", [str(i) for i in range(len(values))], series))
    grid = [float(line.get("y1", 0)) for line in drawn.iter("line") if line.get("class") == "grid"]
    for name in ("of-success", "of-failed"):
        for y, _, height in _rectangles(drawn, name):
            assert y >= min(grid) - 0.2
            assert y + height <= max(grid) + 0.2


@pytest.mark.parametrize(
    ("hours", "unit", "count"),
    [
        ([], "hour", 0),
        (["2026-04-04T10"], "hour", 1),
        (["2026-04-04T10", "2026-04-06T21"], "hour", 60),
        (["2026-04-04T10", "2026-04-06T22"], "day", 3),
        (["2026-01-01T00", "2026-03-31T00"], "week", 14),
        (["2024-12-31T23", "2026-03-31T00"], "month", 16),
        (["1970-01-01T00", "2199-12-31T23"], "year", 230),
        (["2026-04-04T10", "9999-12-31T23", "0001-01-01T00", "yesterday at 10", ""], "hour", 1),
    ],
)
def test_a_time_axis_is_as_fine_as_can_be_read(hours: list[str], unit: str, count: int) -> None:
    found = axis(hours)
    assert (found.unit, len(found.starts)) == (unit, count)
    assert count <= MOST or unit == "year"


@given(
    st.lists(
        st.datetimes(min_value=axis(["2000-01-01T00"]).starts[0].replace(tzinfo=None)), max_size=9
    )
)
def test_a_time_axis_loses_nothing(times: list[Any]) -> None:
    hours = [at.strftime("%Y-%m-%dT%H").rjust(13, "0") for at in times if at.year < 2200]
    counted = {hour: float(hours.count(hour)) for hour in hours}
    found = axis(hours)
    assert sum(found.spread(counted)) == len(hours)
    assert len(found.names) == len(set(found.starts))
    assert list(found.starts) == sorted(found.starts)


def test_a_narrow_terminal_cuts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is cut cannot be opened, and strategies that are cut are alike."""
    monkeypatch.setenv("COLUMNS", "40")
    page = Link("make it work", ".loki/escalations/20260404T100000.000Z-make-it-work.md")
    table = Table(("When", "Task", "Why"), [("2026-04-04", page, "analyze_then_fix_and_go_on")], 3)
    told = render.terminal(Document("a", "b", [Section("c", [table])]))
    assert "…" not in told
    lines = told.splitlines()
    (head,) = [line for line in lines if "Task" in line]
    shown = "".join(line[head.index("Task") : head.index("Why")].strip() for line in lines)
    assert f"({page.target})" in shown


def test_no_command_needs_what_the_extra_for_tables_brings() -> None:
    """pyarrow, which loki.analysis is made of, is not there in a plain installation."""
    folder = Path(cli.__file__).parent
    assert not [path for path in folder.rglob("*.py") if "loki.analysis" in path.read_text("utf-8")]
