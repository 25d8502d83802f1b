"""From output to a failure: what the other wings rely on."""

import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from loki.recognition.failure import RECOGNIZER_VERSION, Failure

TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/app.py", line 3, in main
    load()
  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode
    raise JSONDecodeError
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
"""


def test_every_field_is_plain_data_and_survives_json() -> None:
    failure = loki.recognize(TRACEBACK, exit_code=1, root="/srv/shop")
    again = loki.Failure.from_dict(json.loads(json.dumps(failure.to_dict())))
    assert again == failure
    assert failure.frames[0].path == "app.py"
    assert [frame.in_project for frame in failure.frames] == [True, False]
    assert str(failure).startswith("app.py:3: json.decoder.JSONDecodeError: Expecting value")
    assert "runtime-error" in repr(failure)


def test_a_code_that_the_message_says_is_not_said_twice() -> None:
    silent = loki.Failure.of("false ended with exit code 1", error_code="1")
    assert str(silent) == "false ended with exit code 1"
    assert str(loki.Failure.of("unused import", error_code="F401")) == "F401 unused import"


def test_a_stored_failure_of_another_version_is_fingerprinted_anew() -> None:
    stored = loki.recognize(TRACEBACK).to_dict()
    right = stored["fingerprint"]
    stored |= {"fingerprint": "old", "normalized": "old", "recognizer_version": 0, "unheard_of": 1}
    again = loki.Failure.from_dict(stored)
    assert (again.fingerprint, again.recognizer_version) == (right, RECOGNIZER_VERSION)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"message": "x", "frames": [3]},
        {"message": "x", "matches": 3},
        {"message": "x", "recognizer_version": None},
    ],
)
def test_what_is_no_failure_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        loki.Failure.from_dict(value)


def test_a_failure_that_loki_states() -> None:
    failure = loki.Failure.of(
        "unexpected indent", tool="syntax_check", pattern="syntax-error", path="src/a.py", line=3
    )
    assert (failure.pattern_id, failure.confidence, failure.extension) == (
        "syntax-error",
        1.0,
        "py",
    )
    assert failure.signature == "syntax-error:py:unexpected_indent"
    assert loki.Failure.of("No module named 'x'").kind == "import-not-found"
    with pytest.raises(ValueError, match="unknown pattern 'nonsense'"):
        loki.Failure.of("x", pattern="nonsense")


def test_nothing_said() -> None:
    failure = loki.recognize("")
    assert (failure.output_line, failure.excerpt_lines, failure.message, failure.match) == (
        None,
        None,
        "",
        None,
    )
    assert failure.signature == "unknown:none:"
    assert (failure.kind, failure.confidence, failure.strategy) == (
        "unknown",
        0.0,
        "analyze_then_fix",
    )


def test_unknown_output_still_has_a_message_and_a_line() -> None:
    failure = loki.recognize("hm\nthe frobnicator is wedged\n\n  \n")
    assert (failure.message, failure.output_line) == ("the frobnicator is wedged", 2)


def test_str_and_bytes_say_the_same() -> None:
    text = "caf\u00e9 \x1b[31m" + TRACEBACK
    assert loki.recognize(text) != loki.recognize(text.encode())  # spans index what was passed
    a, b = loki.recognize(text).to_dict(), loki.recognize(text.encode()).to_dict()
    a.pop("matches")
    b.pop("matches")
    assert a == b


def test_spans_point_at_the_evidence() -> None:
    text = "caf\u00e9\x1b[31m\nModuleNotFoundError: No module named 'flask'\n"
    match = loki.recognize(text).match
    assert match is not None
    assert "ModuleNotFoundError: " in [text[begin:end] for begin, end in match.spans]


@given(st.one_of(st.text(max_size=300), st.binary(max_size=300)))
def test_any_content_is_taken(text: str | bytes) -> None:
    failure = loki.recognize(text)
    assert failure.excerpt_lines is None or failure.excerpt_lines[0] <= failure.excerpt_lines[1]


def test_odd_large_inputs_end() -> None:
    for text in (
        "error " * 1_500_000,
        "E   assert x\n" * 100_000,
        "\x1b]" * 1_000_000,
        "a\b" * 1_000_000,
        "____ x ____\n" * 100_000,
        "a\r" * 1_000_000,
        "x\r\n" * 500_000,
        "\x00" * 3_000_000,
        "[" * 1_000_000,
    ):
        loki.recognize(text)


def test_threads_get_the_same_answer() -> None:
    expected = loki.recognize(TRACEBACK * 200)
    answers: list[loki.Failure] = []
    threads = [
        threading.Thread(target=lambda: answers.append(loki.recognize(TRACEBACK * 200)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 4


def test_lone_surrogates_anywhere_do_no_harm() -> None:
    odd = "a\udcffb"
    failure = loki.recognize(odd, command=odd, root="/" + odd, language=odd)
    assert failure.message == "a\ufffdb"
    stated = loki.Failure.of(odd, error_type=odd, error_code=odd, path=odd, tests=[odd])
    assert loki.same_failure(stated, stated)


def test_many_equal_one_by_one() -> None:
    texts: list[str | bytes] = [
        "KeyError: 'a'",
        b"ValueError: \xff",
        "",
        "größe: \x1b[31merror: disk is full\x1b[0m",
        "\ud800 lone",
    ] * 9
    for threads in (1, 4):
        assert loki.recognize_many(texts, threads=threads) == [loki.recognize(t) for t in texts]
    assert loki.recognize_many(iter(())) == []
    many = loki.recognize_many(["tests/test_a.py::test_b FAILED"], command="pytest -q")
    assert many == [loki.recognize("tests/test_a.py::test_b FAILED", command="pytest -q")]
    with pytest.raises(TypeError, match="found NoneType"):
        loki.recognize_many(["a", None])  # type: ignore[list-item]


def test_a_type_is_said_once() -> None:
    """A message may be a value alone; one that names its type already is enough."""
    assert Failure.of("6", error_type="KeyError").said == "KeyError: 6"
    told = Failure.of("the agent raised ValueError: x", error_type="ValueError")
    assert told.said == "the agent raised ValueError: x"
    assert Failure.of("it failed").said == "it failed"
