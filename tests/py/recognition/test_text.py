"""What a terminal would show, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from loki.recognition.text import Cleaned

noise = st.text(alphabet="ab\u00e9\u4e2d\ud800\r\n\b\x1b[]KmM0127;\x07\\ ", max_size=60)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("plain\n", "plain\n"),
        ("a\r\nb\r\r\n", "a\nb\n"),
        ("10%\r20%\rdone\n", "done\n"),
        ("long line\rX\n", "Xong line\n"),
        ("long line\r\x1b[KX\n", "X\n"),
        ("travis_time:start:0a\r\x1b[0Kcmd\n", "cmd\n"),
        ("ab\x1b[2Kc\n", "c\n"),
        ("abc\b\bX\n", "aXc\n"),
        ("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\\n", "red link\n"),
        ("\x1b]never closed\nnext", "never closed\nnext"),
        ("one\rtwo\rthree", "one\ntwo\nthree"),
        ("\ud800 lone", "\ufffd lone"),
        ("\x1b(Bx\x1b=y", "xy"),
        ("caf\u00e9\rC\n", "Caf\u00e9\n"),
        ("\u4e2d\u6587\b!\n", "\u4e2d!\n"),
    ],
)
def test_a_terminal_shows(text: str, shown: str) -> None:
    assert loki.clean(text) == shown


def test_bytes_that_are_no_utf8() -> None:
    assert loki.clean(b"a\xff\xc3(\xe2\x82") == "a\ufffd\ufffd(\ufffd"


@given(st.binary(max_size=200))
def test_invalid_utf8_is_replaced_as_python_does(data: bytes) -> None:
    """Maximal subparts, as the Unicode standard recommends; surrogates are one character for us."""
    if b"\x1b" in data or b"\r" in data or b"\b" in data or b"\xed" in data:
        return
    assert loki.clean(data) == data.decode("utf-8", "replace")


@given(noise)
def test_lines_are_those_of_the_original(text: str) -> None:
    if "\n" in text:
        assert loki.clean(text).count("\n") == text.count("\n")


@given(noise)
def test_cleaning_is_idempotent_and_the_map_is_exact(text: str) -> None:
    cleaned = Cleaned(text)
    assert loki.clean(cleaned.text) == cleaned.text
    for at, shown in enumerate(cleaned.text):
        original = text[cleaned.original(at)]
        assert shown == original or (shown, original) in {("\ufffd", "\ud800"), ("\n", "\r")}


def test_positions_outside_are_refused() -> None:
    with pytest.raises(IndexError, match="expected 0 to 1"):
        Cleaned("a").original(2)
    assert Cleaned("").original(0) == 0


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="expected str or a bytes-like object, found int"):
        loki.clean(3)  # type: ignore[arg-type]


def test_buffers_are_borrowed() -> None:
    data = bytearray(b"\x1b[1mx")
    assert loki.clean(memoryview(data)) == "x"
    data.extend(b"y")  # a buffer that was still held would refuse
