"""Cases about likeness: overlap, templates of lines, the index of failures."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from itertools import islice
from typing import Any

from benchmarks import corpus, references
from benchmarks.job import Data, Family, Job
from benchmarks.text_families import Parameters

PERMUTATIONS = 128
THRESHOLD = 0.8
BATCH = 10_000
MOST_FOR_LSH = 20_000


def _texts(parameters: Parameters) -> tuple[list[str], list[str]]:
    """The texts that sets are made of, and those that are compared with them."""
    count = parameters["sets"]
    made = [text for text, _ in corpus.failures(1, count + parameters["queries"])]
    return made[:count], made[count:]


def _overlap_loki(parameters: Parameters, _: Data) -> Job:
    import loki

    texts, queries = _texts(parameters)
    sets = loki.TokenSets(texts)
    return Job(
        lambda: [sets.overlaps(text) for text in queries],
        parameters["sets"] * len(queries),
        lambda found: [[round(value, 6) for value in row] for row in found],
    )


def _overlap_python(parameters: Parameters, _: Data) -> Job:
    """The sets are there; the query is normalized by loki, off the clock, and made a set on it."""
    import loki

    texts, queries = ([loki.normalize(text) for text in half] for half in _texts(parameters))
    sets = [references.tokens(text) for text in texts]
    return Job(
        lambda: [references.overlaps(references.tokens(text), sets) for text in queries],
        parameters["sets"] * len(queries),
        lambda found: [[round(value, 6) for value in row] for row in found],
    )


def _overlap_rapidfuzz(parameters: Parameters, _: Data) -> Job:
    """Both sides are normalized by loki, off the clock; `token_set_ratio` is another measure."""
    from rapidfuzz import fuzz, process

    import loki

    texts, queries = ([loki.normalize(text) for text in half] for half in _texts(parameters))
    return Job(
        lambda: [process.cdist([text], texts, scorer=fuzz.token_set_ratio) for text in queries],
        parameters["sets"] * len(queries),
        lambda found: [[round(float(value) / 100, 2) for value in rows[0]] for rows in found],
    )


def _rankings_agree(mine: list[list[float]], other: list[list[float]]) -> float:
    """The share of values that are equal; where the measure is another, of queries whose most
    similar set is among the other's most similar ones."""
    values = [
        (a, b)
        for left, right in zip(mine, other, strict=True)
        for a, b in zip(left, right, strict=True)
    ]
    same = sum(abs(a - b) < 2e-6 for a, b in values) / len(values)
    if same > 0.9:
        return same
    best = [max(range(len(row)), key=row.__getitem__) for row in mine]
    return sum(row[at] >= max(row) - 1e-9 for at, row in zip(best, other, strict=True)) / len(best)


def _labelled(parameters: Parameters, data: Data) -> tuple[list[str], list[int]]:
    """Generated lines with the number of their template, or lines of the logs without."""
    if parameters["data"] == "lines":
        return data.lines[: parameters["count"]], []
    made = list(corpus.lines(3, parameters["count"]))
    import loki

    return [loki.clean(line) for line, _ in made], [template for _, template in made]


def _group_loki(threads: int) -> Callable[[Parameters, Data], Job]:
    def ready(parameters: Parameters, data: Data) -> Job:
        import loki

        lines, truth = _labelled(parameters, data)
        return Job(lambda: loki.group(lines, threads=threads), len(lines), _judged(truth))

    return ready


def _group_drain(parameters: Parameters, data: Data) -> Job:
    """The parser alone, with its defaults and no masks: what is quickest for it."""
    from drain3.drain import Drain

    lines, truth = _labelled(parameters, data)

    def run() -> list[int]:
        drain = Drain()
        return [drain.add_log_message(line)[0].cluster_id for line in lines]

    return Job(run, len(lines), _judged(truth))


def _judged(truth: list[int]) -> Callable[[list[int]], dict[str, Any]]:
    def judge(groups: list[int]) -> dict[str, Any]:
        found: dict[str, Any] = {"groups": len(set(groups)), "group of each": groups}
        if truth:
            found["accuracy"] = references.grouping_accuracy(groups, truth)
        return found

    return judge


def _grouped_alike(mine: dict[str, Any], other: dict[str, Any]) -> float:
    """The share of lines whose groups hold the same lines in both answers."""
    return references.grouping_accuracy(mine["group of each"], other["group of each"])


Add = Callable[[list[Any], int], list[int]]
"""Adds failures to an index, those made ready for it; the number of those before; their groups."""


def _indexed(
    count: int, parameters: Parameters, ready: Callable[[str], Any], make: Callable[[], Add]
) -> Job:
    """So many failures in batches; making them, and making them ready, is not on the clock."""

    def run() -> tuple[float, float, tuple[array[int], array[int]]]:
        add, seconds, cpu = make(), 0.0, 0.0
        groups, kinds = array("q"), array("q")
        made = corpus.failures(5, count, parameters["of"])
        while batch := list(islice(made, BATCH)):
            texts = [ready(text) for text, _ in batch]
            begin, cpu_begin = time.perf_counter(), time.process_time()
            found = add(texts, len(kinds))
            seconds += time.perf_counter() - begin
            cpu += time.process_time() - cpu_begin
            groups.extend(found)
            kinds.extend(kind for _, kind in batch)
        return seconds, cpu, (groups, kinds)

    return Job(run, count, _index_judged, timed=True)


def _index_judged(returned: tuple[array[int], array[int]]) -> dict[str, float]:
    groups, kinds = returned
    precision, recall = references.pairs(groups, kinds)
    return {"groups": len(set(groups)), "precision": precision, "recall": recall}


def _index_loki(threads: int, singly: bool = False) -> Callable[[Parameters, Data], Job]:
    def ready(parameters: Parameters, _: Data) -> Job:
        import loki

        loki.recognize("a line")  # reads the built-in rules: no failure's time or memory

        def make() -> Add:
            index = loki.FailureIndex(threshold=THRESHOLD)

            def add(failures: list[Any], first: int) -> list[int]:
                keys = [str(first + n) for n in range(len(failures))]
                if singly:
                    return [index.add(f, key) for f, key in zip(failures, keys, strict=True)]
                return index.add_many(failures, keys, threads=threads)

            return add

        recognized = parameters.get("ready", False)
        return _indexed(
            parameters["count"], parameters, loki.recognize if recognized else str, make
        )

    return ready


def _index_datasketch(parameters: Parameters, _: Data) -> Job:
    """Each failure joins the group of its most similar candidate over the threshold, if any."""
    from datasketch import MinHash, MinHashLSH

    from benchmarks import masker

    def tokens(text: str) -> frozenset[str]:
        return references.tokens(masker.normalize_quickly(text))

    def make() -> Add:
        lsh = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
        kept: dict[int, frozenset[str]] = {}

        def add(failure: Any) -> int:
            found = tokens(failure) if isinstance(failure, str) else failure
            sketch = MinHash(num_perm=PERMUTATIONS)
            sketch.update_batch([token.encode() for token in found])
            near = [(references.overlap(found, kept[key]), -key) for key in lsh.query(sketch)]
            likeness, key = max(near, default=(0.0, 0))
            if likeness > THRESHOLD:
                return -key
            kept[len(kept)] = found
            lsh.insert(len(kept) - 1, sketch)
            return len(kept) - 1

        return lambda failures, _: [add(failure) for failure in failures]

    count = min(parameters["count"], MOST_FOR_LSH)
    return _indexed(count, parameters, tokens if parameters.get("ready") else str, make)


def _as_precise(mine: dict[str, float], other: dict[str, float]) -> float:
    """How near their precisions are to each other; the sizes of the sets may differ."""
    return 1 - abs(mine["precision"] - other["precision"])


OVERLAP = Family(
    "pairs",
    {
        "loki": _overlap_loki,
        "python sets": _overlap_python,
        "rapidfuzz cdist token_set_ratio": _overlap_rapidfuzz,
    },
    _rankings_agree,
)
GROUP = Family(
    "lines",
    {"loki": _group_loki(1), "loki, all cores": _group_loki(0), "drain3": _group_drain},
    _grouped_alike,
)
INDEX = Family(
    "failures",
    {
        "loki": _index_loki(1),
        "loki, all cores": _index_loki(0),
        "loki, one by one": _index_loki(1, singly=True),
        "datasketch MinHashLSH": _index_datasketch,
    },
    _as_precise,
)
