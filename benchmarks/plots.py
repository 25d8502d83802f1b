"""The series of a run as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.report import points

AXES = {
    "normalize": "characters of text",
    "recognize": "characters of text",
    "match": "characters of text",
    "patterns": "patterns",
    "failures": "failures",
    "threads": "threads",
    "breakers": "breakers in the file",
}


def write(whole: dict[str, Any], folder: Path) -> list[str]:
    """One SVG for each series with two points or more; none without matplotlib.

    Returns:
        The names of the files.
    """
    if not _has_matplotlib():
        return []
    return [
        _plotted(name, own, folder) for name, own in points(whole["cases"]).items() if len(own) > 1
    ]


def overview(whole: dict[str, Any], folder: Path) -> list[str]:
    """What a call costs each rival in each case, and where the aims are; no disks.

    Returns:
        The name of the file; none without matplotlib.
    """
    cases = [
        case
        for case in whole["cases"]
        if case["unit"] == "calls" and not case["waits"] and not case["series"]
    ]
    if not cases or not _has_matplotlib():
        return []
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.4 * len(cases)))
    names = dict.fromkeys(rival for case in cases for rival in case["rivals"])
    colors = pyplot.get_cmap("tab20")
    for number, name in enumerate(names):
        found = [
            (_nanoseconds(case["rivals"][name]), row)
            for row, case in enumerate(cases)
            if "seconds" in case["rivals"].get(name, {})
        ]
        style: dict[str, Any] = (
            {"marker": "D", "s": 60, "zorder": 3} if name == "loki" else {"marker": "o", "s": 30}
        )
        color = "black" if name == "loki" else colors(number % 20)
        axes.scatter(
            [at for at, _ in found], [row for _, row in found], color=color, label=name, **style
        )
    aims = [(min(limits), row) for row, case in enumerate(cases) if (limits := _aims(case))]
    axes.scatter(
        [at for at, _ in aims],
        [row for _, row in aims],
        marker="|",
        s=150,
        color="red",
        label="aim",
    )
    axes.set(xscale="log", xlabel="ns a call", yticks=range(len(cases)))
    axes.set_yticklabels([case["name"] for case in cases])
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(folder / "calls.svg")
    pyplot.close(figure)
    return ["calls.svg"]


def _nanoseconds(result: dict[str, Any]) -> float:
    """What one call costs."""
    nanoseconds: float = result["seconds"] / result["amount"] * 1e9
    return nanoseconds


def _aims(case: dict[str, Any]) -> list[float]:
    """The nanoseconds that a call of loki's should stay below."""
    beside = [
        _nanoseconds(case["rivals"][target["rival"]]) / target["wanted"]
        for target in case["targets"]
    ]
    return beside if case["limit"] is None else [*beside, case["limit"] * 1e9]


def _has_matplotlib() -> bool:
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    mpl.use("svg")
    return True


def _plotted(name: str, own: list[dict[str, Any]], folder: Path) -> str:
    from matplotlib import pyplot

    unit = own[0]["unit"]
    scale, label = (1e6, "MB/s") if unit == "bytes" else (1.0, f"{unit}/s")
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for rival in dict.fromkeys(rival for case in own for rival in case["rivals"]):
        done = [
            (case["series"][1], case["rivals"][rival])
            for case in own
            if "seconds" in case["rivals"].get(rival, {})
        ]
        speeds = [result["amount"] / result["seconds"] / scale for _, result in done]
        axes.plot([at for at, _ in done], speeds, marker="o", label=rival)
    axes.set(xscale="log", yscale="log", xlabel=AXES[name], ylabel=label, title=own[0]["name"])
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(folder / f"{name}.svg")
    pyplot.close(figure)
    return f"{name}.svg"
