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
}


def write(whole: dict[str, Any], folder: Path) -> list[str]:
    """One SVG for each series with two points or more; none without matplotlib.

    Returns:
        The names of the files.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        return []
    mpl.use("svg")
    return [
        _plotted(name, own, folder) for name, own in points(whole["cases"]).items() if len(own) > 1
    ]


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
