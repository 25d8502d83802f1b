"""Templates of lines and groups of failures, whatever the order, the threads and the bytes."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from loki import StoreError, _core

WORDS = [
    "read",
    "node",
    "failed",
    "for",
    "user",
    "ann",
    "bob",
    "12",
    "7.5s",
    "/tmp/x",
    "`q`",
    "a=b",
]
messages = st.lists(st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join), max_size=40)


def partition(numbers: list[int]) -> list[frozenset[int]]:
    groups: dict[int, set[int]] = {}
    for index, number in enumerate(numbers):
        groups.setdefault(number, set()).add(index)
    return sorted((frozenset(group) for group in groups.values()), key=min)


@given(messages, st.randoms(use_true_random=False))
def test_the_order_of_the_lines_does_not_matter(lines: list[str], rng: random.Random) -> None:
    order = list(range(len(lines)))
    rng.shuffle(order)
    shuffled = loki.group([lines[i] for i in order])
    back = [0] * len(lines)
    for number, index in zip(shuffled, order, strict=True):
        back[index] = number
    assert partition(back) == partition(loki.group(lines))


@given(messages)
def test_threads_do_not_matter(lines: list[str]) -> None:
    assert loki.group(lines, threads=1) == loki.group(lines, threads=4)


@given(messages)
def test_equal_lines_are_one_template_numbered_by_appearance(lines: list[str]) -> None:
    numbers = loki.group(lines)
    assert all(
        a == b
        for x, a in zip(lines, numbers, strict=True)
        for y, b in zip(lines, numbers, strict=True)
        if x == y
    )
    first_seen = list(dict.fromkeys(numbers))
    assert first_seen == sorted(first_seen) == list(range(len(first_seen)))


@given(st.lists(st.one_of(st.binary(max_size=60), st.text(max_size=60)), max_size=20))
def test_any_bytes_and_any_text_have_a_group(texts: list[bytes | str]) -> None:
    assert len(loki.group(texts)) == len(texts)


def test_messages_of_different_length_and_with_different_first_words() -> None:
    lines = [
        "10.0.0.1 lost nodes 1, 2 and 3 today",
        "host-17 lost nodes 4 today",
        "host-17 found nodes 4 today",
    ]
    assert loki.group(lines) == [0, 0, 1]


NAMES = [
    "".join(part) for part in itertools.product("bdg", ["an", "ort", "ui"], "klm", ["ap", "e"])
]


@pytest.mark.parametrize(
    "template",
    [
        "Compiling {} v1.2",  # one word stays
        "{}: error budget left",  # a label
        "--- PASS: {}",
        "renamed {} to {} in the registry",  # no two are equal but for one word
        "{} asks {} for {} again",
    ],
)
def test_very_many_words_are_arguments_whatever_stands_round_them(template: str) -> None:
    rng = random.Random(1)
    lines = [template.format(*rng.sample(NAMES, template.count("{}"))) for _ in range(200)]
    others = ["Compiling is done", "error budget left", "renamed it", "asks again and again"]
    groups = loki.group([*lines, *others])
    assert len(set(groups[:200])) == 1
    assert len(set(groups)) == 5
    order = list(range(len(lines)))
    rng.shuffle(order)
    assert len(set(loki.group([lines[i] for i in order]))) == 1


def test_a_rule_of_equal_signs_gives_no_value() -> None:
    first, second, third = loki.group(["=== RUN   TestA", "=== RUN   TestB/b_c", "=== PAUSE TestA"])
    assert first != third
    assert first == second or second != third


def test_a_message_that_came_once_stays_alone() -> None:
    common = [f"worker {i} finished its job" for i in range(100)]
    assert loki.group([*common, "worker pool cannot be started"])[-1] == 1


def test_str_and_bytes_are_the_same_message() -> None:
    assert loki.group(["größe 5", "größe 6".encode()]) == [0, 0]


def test_no_text() -> None:
    with pytest.raises(TypeError, match="expected str or a bytes-like object, found int"):
        loki.group(["a", 5])  # type: ignore[list-item]


FAILURES = [
    "KeyError: 'port' is not in settings of node 17",
    "KeyError: 'port' is not in settings of node 23",
    "KeyError: 'host' is not in settings of node 23",
    "ValueError: the basket of the customer is empty again",
    "",
    "app.py:1: error: Name 'x' is not defined  [name-defined]",
    "app.py:7: error: Name 'y' is not defined  [name-defined]",
    "FAILED t.py::test_a - ValueError: the basket of the customer is empty",
    "FAILED t.py::test_a - ValueError: the basket of the customer is",
    "FAILED t.py::test_a - KeyError: 'pear'\nFAILED t.py::test_b - KeyError: 'plum'",
    "FAILED t.py::test_b - ValueError: 17\nFAILED t.py::test_a - KeyError: 'pear'",
]
picks = st.lists(st.sampled_from(FAILURES), max_size=12)


def brute_force(texts: list[str], threshold: float = 0.8) -> list[int]:
    """Groups by comparing with every first member."""
    firsts: list[loki.Failure] = []
    known: dict[str, int] = {}
    answer = []
    for failure in map(loki.recognize, texts):
        same = [
            i
            for i, first in enumerate(firsts)
            if site_overlap(failure, first) > threshold
            and loki.same_failure(failure, first, threshold)
        ]
        group = known.get(failure.fingerprint)
        if group is None and same:
            group = max(same, key=lambda i: (site_overlap(failure, firsts[i]), -i))
        if group is None:
            group = len(firsts)
            firsts.append(failure)
        known[failure.fingerprint] = group
        answer.append(group)
    return answer


def site_overlap(a: loki.Failure, b: loki.Failure) -> float:
    def tokens(f: loki.Failure) -> set[str]:
        functions = [frame.function or "" for frame in f.frames if frame.in_project]
        parts = [f.error_type or "", f.error_code or "", f.normalized, *functions, *f.tests]
        return set(_core.tokens(" ".join(parts)))

    shared, size = tokens(a) & tokens(b), min(len(tokens(a)), len(tokens(b)))
    if size < 3:  # SPEC section 2: of so few only equality counts
        return float(tokens(a) == tokens(b))
    return len(shared) / len(tokens(a) | tokens(b))


@given(picks)
def test_the_index_equals_brute_force(texts: list[str]) -> None:
    index = loki.FailureIndex()
    assert [index.add(text, "k") for text in texts] == brute_force(texts)


@given(picks, st.randoms(use_true_random=False), st.sampled_from([1, 4]))
def test_the_order_of_a_batch_does_not_matter(
    texts: list[str], rng: random.Random, threads: int
) -> None:
    keys = [f"k{i}" for i in range(len(texts))]
    order = list(range(len(texts)))
    rng.shuffle(order)
    straight, shuffled = loki.FailureIndex(), loki.FailureIndex()
    groups = straight.add_many(texts, keys, threads=1)
    others = shuffled.add_many([texts[i] for i in order], [keys[i] for i in order], threads=threads)
    assert [groups[i] for i in order] == others
    for group in set(groups):
        assert sorted(straight.keys(group)) == sorted(shuffled.keys(group))


def test_failures_and_their_texts_are_indexed_alike() -> None:
    texts, failures = loki.FailureIndex(), loki.FailureIndex()
    keys = list(FAILURES)
    assert texts.add_many(FAILURES, keys) == failures.add_many(
        [loki.recognize(text) for text in FAILURES], keys
    )


def test_the_report_counts() -> None:
    index = loki.FailureIndex()
    index.add_many(FAILURES[:4] * 2, list("abcdefgh"))
    report = index.report()
    assert (report.failures, report.groups) == (8, 3)
    assert len(index) == 3
    assert report.queries == 3  # the other five had a known fingerprint
    assert report.candidates <= report.queries * report.groups


def test_saving_and_loading_keeps_all(tmp_path: Path) -> None:
    index = loki.FailureIndex(0.7)
    index.add_many(FAILURES, [f"größe {i}" for i in range(len(FAILURES))])
    index.save(tmp_path / "index")
    loaded = loki.FailureIndex.load(tmp_path / "index")
    assert loaded.threshold == 0.7
    for text in FAILURES:
        assert loaded.nearest(text, 9) == index.nearest(text, 9)
        group = loaded.add(text, "again")
        assert group == index.add(text, "again")
        assert loaded.keys(group) == index.keys(group)


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Could not read .*none: No such file"):
        loki.FailureIndex.load(tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"\xff\n")
    with pytest.raises(StoreError, match="bad, line 1: found no JSON, expected the head of"):
        loki.FailureIndex.load(tmp_path / "bad")


HEAD = '{"format":"loki failure index","groups":1,"threshold":0.8,"version":1}'
GROUP = '{"code":"","fingerprints":["%032x"],"keys":["k"],"pattern":"","specific":true,"tests":[],"tokens":[0]}'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["[]"], "line 1: found array, expected the head"),
        ([HEAD.replace("0.8", "7"), "[]"], "line 1: found 7 as 'threshold', expected the head"),
        ([HEAD.replace('"groups":1', '"groups":0.5')], "line 1: found 0.5 as 'groups'"),
        ([HEAD.replace('"version":1', '"version":9')], "line 1: found another head"),
        ([HEAD, '{"a":1}'], "line 2: found object, expected the list of tokens"),
        ([HEAD, "[7,7]"], "line 2: found a token twice"),
        ([HEAD, "[7]", GROUP % 1, GROUP % 2], "line 3: found more text, expected the end"),
        ([HEAD, "[7]"], "line 3: found the end, expected a group"),
        ([HEAD, "[7]", (GROUP % 1).replace("[0]", "[0.7]")], "line 3: found .* as 'tokens'"),
        (
            [HEAD, "[7]", (GROUP % 1).replace("[0]", "[4294967296]")],
            "line 3: found an unknown token",
        ),
        ([HEAD, "[7]", (GROUP % 1).replace("[0]", "[0,0]")], "line 3: found one of 'tokens' twice"),
        (
            [HEAD, "[7]", (GROUP % 1).replace('"tests":[]', '"tests":["b","a"]')],
            "'tests' that do not rise",
        ),
        ([HEAD, "[7]", (GROUP % 1).replace('"code":""', '"code":5')], "line 3: found 5 as 'code'"),
        (
            [HEAD.replace('"groups":1', '"groups":2'), "[7]", GROUP % 1, GROUP % 1],
            "line 4: found a fingerprint twice",
        ),
        ([HEAD, "[7]", (GROUP % 1).replace('"keys"', '"kees"')], "line 3: found no 'keys'"),
    ],
)
def test_what_is_no_index_is_refused(tmp_path: Path, lines: list[str], said: str) -> None:
    path = tmp_path / "index"
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(StoreError, match=said):
        loki.FailureIndex.load(path)


def test_texts_beside_failures_are_recognized_with_the_same_patterns() -> None:
    signals = [{"word": "FluxError"}]
    rest = {"strategy": "escalate", "description": "", "max_auto_retries": 0, "auto_fixable": False}
    patterns = loki.PatternSet(
        {"version": 2, "patterns": [{"id": "flux", "signals": signals, **rest}]}
    )
    texts = ["FluxError: no capacitor in the engine", "FluxError: a capacitor in the engine"]
    alone, mixed = loki.FailureIndex(), loki.FailureIndex()
    expected = alone.add_many(texts, ["a", "b"], patterns=patterns)
    recognized = loki.recognize(texts[1], patterns=patterns)
    assert mixed.add_many([texts[0], recognized], ["a", "b"], patterns=patterns) == expected
    assert mixed._core.save() == alone._core.save()


@pytest.mark.parametrize(
    "call",
    [
        lambda: loki.group("one text"),
        lambda: loki.recognize_many(b"one text"),  # type: ignore[arg-type]
        lambda: loki.TokenSets("one text"),
        lambda: loki.FailureIndex().add_many("ab", ["c", "d"]),
        lambda: loki.FailureIndex().add("a", b"key"),  # type: ignore[arg-type]
        lambda: loki.FailureIndex().add_many(["a"], [7]),  # type: ignore[list-item]
    ],
)
def test_one_text_is_no_list_and_a_key_is_a_str(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"^found \w+(?: as a key)?, expected"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: loki.group(["a"], threads=-1),
        lambda: loki.recognize_many(["a"], threads=-1),
        lambda: loki.TokenSets(["a"], threads=-1),
        lambda: loki.FailureIndex().keys(-1),
        lambda: loki.FailureIndex().nearest("a", -1),
        lambda: loki.same_failure("a", "b", float("nan")),
        lambda: loki.same_failure("a", "b", 5),
    ],
)
def test_numbers_out_of_range(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="expected 0"):
        call()


def test_misuse_of_the_index() -> None:
    with pytest.raises(ValueError, match="expected 0 to 1"):
        loki.FailureIndex(1.1)
    with pytest.raises(ValueError, match="no group 3: expected one of 0, counted from 0"):
        loki.FailureIndex().keys(3)
    with pytest.raises(ValueError, match="found 2 keys: expected one for each of 1 failures"):
        loki.FailureIndex().add_many(["a"], ["x", "y"])
    with pytest.raises(TypeError, match="found int"):
        loki.FailureIndex().add_many([5], ["x"])  # type: ignore[list-item]
