"""The cases, as data: what is measured, against whom, and what loki aims at."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import group_families, pattern_families, text_families
from benchmarks.job import Case, Family
from benchmarks.pattern_families import AHO_RE2

LSH = "datasketch MinHashLSH"

FAMILIES: dict[str, Family] = {
    "normalize": text_families.NORMALIZE,
    "recognize": text_families.RECOGNIZE,
    "match": pattern_families.MATCH,
    "compile": pattern_families.COMPILE,
    "overlap": group_families.OVERLAP,
    "group": group_families.GROUP,
    "index": group_families.INDEX,
}

_EXTRAPOLATED = (
    f"{LSH} is measured on 20,000 with the same share of kinds; its rate is taken to stay."
)
_ENGINES = ((AHO_RE2, 1.0), ("hyperscan", 1.0))
_MATCHES = {
    "60 patterns": "sixty",
    "the built-in patterns": "built-in",
    "3,000 signals": 1000,
}


def _match_rows() -> list[Case]:
    rows = []
    for said, patterns in _MATCHES.items():
        for data in ("logs", "texts"):
            where = "whole logs" if data == "logs" else "2 KB texts"
            rows.append(
                Case(
                    f"match, {said}, {where}",
                    "match",
                    {"patterns": patterns, "data": data},
                    _ENGINES,
                    limit=15e-6 if data == "texts" else None,
                )
            )
    return rows


ROWS = (
    Case(
        "normalize and fingerprint, 2 KB texts",
        "normalize",
        {"data": "texts"},
        (("re", 50),),
        least=0.95,
    ),
    Case(
        "normalize and fingerprint, whole logs",
        "normalize",
        {"data": "logs"},
        (("re", 50),),
        least=0.95,
    ),
    *_match_rows(),
    Case("recognize, whole logs", "recognize", {"data": "logs"}, (("memcpy", 0.01),)),
    Case(
        "recognize, 2 KB texts",
        "recognize",
        {"data": "texts", "as": "str"},
        limit=100e-6,
        rivals=("loki",),
    ),
    Case("compile 3,000 signals", "compile", {"patterns": 1000}, limit=0.1),
    Case(
        "overlap with 10,000 sets",
        "overlap",
        {"sets": 10_000, "queries": 5},
        (("python sets", 20), ("rapidfuzz cdist token_set_ratio", 50)),
        least=0.9,
    ),
    Case(
        "group generated lines",
        "group",
        {"data": "generated", "count": 50_000},
        (("drain3", 10),),
        least=0,
        note="Both are right where `accuracy` is 1: each template's lines are one group.",
    ),
    Case(
        "group lines of the logs",
        "group",
        {"data": "lines", "count": 100_000},
        (("drain3", 10),),
        least=0,
        note="What is right is not known here; `same answer` says how often both agree.",
    ),
    Case(
        "index 1,000,000 messages",
        "index",
        {"count": 1_000_000, "of": "messages"},
        least=0.95,
        rivals=("loki", "loki, all cores", LSH),
        note="From the text on: loki recognizes each, datasketch's side masks and cuts it into words. "
        + _EXTRAPOLATED,
    ),
    Case(
        "index 1,000,000 failures",
        "index",
        {"count": 1_000_000, "of": "messages", "ready": True},
        ((LSH, 50),),
        least=0.95,
        note="loki gets failures that it recognized, datasketch sets of tokens. " + _EXTRAPOLATED,
    ),
    Case(
        "index 20,000 outputs of tools",
        "index",
        {"count": 20_000, "of": "failures"},
        least=0,
        note="loki compares what its rules find in an output, datasketch all of its words.",
    ),
)

_TEXT_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
_PATTERN_COUNTS = (10, 30, 100, 300, 1_000, 3_000)
_FAILURE_COUNTS = (1_000, 10_000, 100_000, 1_000_000)


def _text_series() -> list[Case]:
    points = []
    for size in _TEXT_SIZES:
        slow = size <= 1_000_000
        normalizers = ("loki", "re") if slow else ("loki",)
        data = {"data": size}
        sixty = {**data, "patterns": "sixty"}
        points += [
            Case(
                "normalize by size of text",
                "normalize",
                data,
                least=0.9,
                rivals=normalizers,
                series=("normalize", size),
            ),
            Case(
                "recognize by size of text",
                "recognize",
                data,
                rivals=("loki", "memcpy"),
                series=("recognize", size),
            ),
            Case(
                "match by size of text",
                "match",
                sixty,
                rivals=("loki", AHO_RE2, "hyperscan"),
                least=0,
                series=("match", size),
            ),
        ]
    return points


def _pattern_series() -> list[Case]:
    return [
        Case(
            "match by number of patterns",
            "match",
            {"patterns": count, "data": 2_000_000},
            rivals=("loki", AHO_RE2, "hyperscan"),
            least=0,
            series=("patterns", count),
        )
        for count in _PATTERN_COUNTS
    ]


def _failure_series() -> list[Case]:
    points = []
    for count in _FAILURE_COUNTS:
        rivals = ("loki", LSH) if count <= 10_000 else ("loki",)
        points.append(
            Case(
                "index by number of failures",
                "index",
                {"count": count, "of": "messages"},
                rivals=rivals,
                least=0.9,
                series=("failures", count),
            )
        )
    return points


SERIES = (*_text_series(), *_pattern_series(), *_failure_series())

_SMALL = {"count": 2_000, "sets": 500, "queries": 2}


def _smaller(case: Case) -> Case:
    """The same case on what takes well under a second."""
    small = {
        key: min(value, _SMALL[key]) for key, value in case.parameters.items() if key in _SMALL
    }
    parameters = {**case.parameters, **small}
    if parameters == case.parameters:
        return case
    name = f"{case.name} (cut to {', '.join(f'{value:,}' for value in small.values())})"
    return replace(case, name=name, parameters=parameters)


def cases(quick: bool) -> list[Case]:
    """All cases, or those of a bounded smoke run: smaller, and few points of each series."""
    if not quick:
        return [*ROWS, *SERIES]
    points = [
        case
        for case in SERIES
        if case.series and case.series[1] in {10, 300, 1_000, 100_000} and _smaller(case) == case
    ]
    return [*map(_smaller, ROWS), *points]
