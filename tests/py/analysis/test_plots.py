"""Plots: each says its question and its answer, for none, one and many attempts."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import style
from matplotlib.text import Text

from benchmarks.history import BEGIN, make
from loki import analysis
from loki.analysis import plot_parts, plots
from loki.analysis.plot_parts import PAPER, Plot, plain
from loki.analysis.tables import Tables
from loki.base.time import isoformat

ALL: list[Callable[[Tables], Plot]] = [getattr(plots, name) for name in plots.__all__]

PNG = b"\x89PNG"


def project(folder: Path, attempts: int) -> Tables:
    (folder / ".loki" / "logs").mkdir(parents=True)
    make(folder, attempts)
    return analysis.history(folder)


def words(figure: Plot) -> list[str]:
    return [one.get_text() for one in figure.findobj(Text) if one.get_text()]


@pytest.mark.parametrize("plot", ALL, ids=lambda plot: plot.__name__)
def test_of_nothing_it_says_so(plot: Callable[[Tables], Plot], tmp_path: Path) -> None:
    (tmp_path / ".loki").mkdir()
    figure = plot(analysis.history(tmp_path))
    assert figure.question.endswith("?")
    assert "yet" in figure.answer
    assert figure._repr_png_().startswith(PNG)


@pytest.mark.parametrize("attempts", [1, 5, 250])
def test_of_few_and_many_attempts_it_is_drawn_without_a_warning(
    attempts: int, tmp_path: Path
) -> None:
    tables = project(tmp_path, attempts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for plot in ALL:
            figure = plot(tables)
            assert figure._repr_png_().startswith(PNG)
            assert plain(figure.question) in words(figure)
            assert plain(figure.answer) in words(figure)


def test_a_long_name_does_not_run_off_the_figure(tmp_path: Path) -> None:
    name = "a-pattern-of-the-project-" * 8
    attempt = {"attempt": 1, "timestamp": isoformat(BEGIN), "action": "", "result": "failed"}
    log = tmp_path / ".loki/tasks/t/attempts.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps({**attempt, "pattern_matched": name, "strategy_used": name}) + "\n")
    for plot in ALL:
        figure = plot(analysis.history(tmp_path))
        figure.draw_without_rendering()
        for text in figure.texts:
            assert text.get_window_extent().x1 <= figure.bbox.x1, text.get_text()


@pytest.mark.parametrize("most", [5, 8])
@pytest.mark.parametrize(
    "span",
    [{"seconds": n} for n in (10, 27, 40, 50)]
    + [{"minutes": n} for n in (1, 2, 3, 6.5, 9, 26, 59)]
    + [{"hours": n} for n in (2, 7, 31)]
    + [{"days": n} for n in (1, 4, 16, 90, 400, 2000)],
    ids=str,
)
def test_an_axis_of_moments_has_names(span: dict[str, float], most: int) -> None:
    begin = datetime(2026, 4, 4, 10, 1, 10, tzinfo=timezone.utc)
    axes = Plot("When?", "", 1.0).subplots()
    plot_parts.moments(axes, begin, begin + timedelta(**span), most)
    low, high = axes.get_xlim()
    shown = [at for at in axes.xaxis.get_major_locator()() if low <= at <= high]
    assert 2 <= len(shown) <= most


def test_axes_say_their_units(tmp_path: Path) -> None:
    tables = project(tmp_path, 250)
    assert "US dollars per hour" in words(plots.cost(tables))
    assert any("in minutes" in word for word in words(plots.time_lost(tables)))
    assert "time (UTC)" in words(plots.recurring_failures(tables))
    assert words(plots.where_attempts_go(tables)).count("attempts") == 2


def test_breakers_are_rows_of_their_states(tmp_path: Path) -> None:
    tables = project(tmp_path, 5)
    change = {"breaker": "api/$x$", "before": "CLOSED", "after": "OPEN", "at": isoformat(BEGIN)}
    log = tmp_path / ".loki/logs/breaker-transitions.jsonl"
    log.write_text(json.dumps(change) + "\n", "utf-8")
    figure = plots.breaker_timeline(tables)
    assert figure.answer == "1 breaker, opened 1 time"
    assert {"OPEN", "CLOSED", "HALF_OPEN"} <= set(words(figure))
    assert figure._repr_png_().startswith(PNG)


def test_a_persons_own_style_changes_nothing(tmp_path: Path) -> None:
    tables = project(tmp_path, 5)
    before = [plot(tables)._repr_png_() for plot in ALL]
    with style.context("dark_background"):
        assert [plot(tables)._repr_png_() for plot in ALL] == before


def test_the_ground_is_its_own(tmp_path: Path) -> None:
    figure = plots.where_attempts_go(project(tmp_path, 5))
    assert figure.get_facecolor() == mpl.colors.to_rgba(PAPER)
    assert all(axes.get_facecolor() == mpl.colors.to_rgba(PAPER) for axes in figure.axes)


def test_no_global_state_is_touched(tmp_path: Path) -> None:
    from matplotlib import _pylab_helpers

    for plot in ALL:
        plot(project(tmp_path / plot.__name__, 5))
    assert not _pylab_helpers.Gcf.figs


def test_it_is_saved_as_any_matplotlib_figure(tmp_path: Path) -> None:
    plots.cost(project(tmp_path, 5)).savefig(tmp_path / "cost.svg")
    assert "<svg" in (tmp_path / "cost.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("$x$ of $y$", r"\$x\$ of \$y\$"),
        ("two\nlines\tof it", "two lines of it"),
        ("a\u202eb\x00", r"a\u202eb\x00"),
        ("x" * 300, "x" * 199 + "…"),
    ],
)
def test_texts_from_outside_are_plain(text: str, shown: str) -> None:
    assert plain(text) == shown
