"""What a terminal would show, and the way back."""

import unicodedata
from bisect import bisect_right
from codecs import BOM_UTF16_BE, BOM_UTF16_LE

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from loki import _core
from loki.recognition.text import Text, visible
from support import terminal

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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext ü 中 👍🏽 👩\ufe0f\n", "plain\n\ttext ü 中 👍🏽 👩\ufe0f\n"),
        ("\x1b[31mred\x1b[0m\r\n", "red\n"),
        ("a\u200bb\u202ec\u2066d\ufeff", "a\\u200bb\\u202ec\\u2066d\\ufeff"),
        ("a\u2028b\x85c\x0bd\x0ce", "a\\u2028b\\x85c\\x0bd\\x0ce"),
        ("\U000e0041\U000e0142\xad", "\\U000e0041\\U000e0142\\xad"),
        ("nul\x00del\x7fcsi\x9b", "nul\\x00del\\x7fcsi\\x9b"),
    ],
)
def test_what_nobody_sees_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


SEEN_MARKS = (
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Format characters that are drawn (Unicode: Prepended_Concatenation_Mark)."""


def test_nothing_invisible_is_left() -> None:
    hidden = {"Cc", "Cf", "Zl", "Zp"}
    every = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) in hidden]
    left = [c for c in every if c in visible(f"a{c}b") and c not in "\n\t"]
    assert "".join(left) == SEEN_MARKS


@given(st.text())
def test_what_is_written_out_stays_so(text: str) -> None:
    assert visible(visible(text)) == visible(text)


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


hostile = st.lists(
    st.one_of(
        st.text(alphabet="ab \u00e9\u4e2d\U0001f600\ud800\udfff\x00\x7f\x9b\r\b\n", max_size=4),
        st.sampled_from(
            [
                "\x1b[K",
                "\x1b[1K",
                "\x1b[2K",
                "\x1b[31m",
                "\x1b[2D",
                "\x1b[D",
                "\x1b[G",
                "\x1b[1A",
                "\x1b[9999999999D",
                "\x1b[0;1K",
                "\x1b]0;t\x07",
                "\x1b]8;;u\x1b\\",
                "\x1b]8;;u",
                "\x1bPq\x1b\\",
                "\x1b_a\x1b\\",
                "\x1b]",
                "\x1b^",
                "\x1bX",
                "\x1b",
                "\x1b[",
                "\x1b[3",
                "\x1b(B",
                "\x1b=",
                "\r\n",
                "\r\r\n",
                "\r\x1b[0K",
                "##[group]",
                "::group::",
                "section_end:1:x",
                "travis_time:end:1",
                "2024-01-31T10:11:12.1234567Z ",
            ]
        ),
    ),
    max_size=14,
).map("".join)


@given(hostile)
def test_cleaning_equals_the_slow_terminal(text: str) -> None:
    assert loki.clean(text) == terminal.shown(text)


@given(hostile)
def test_bytes_are_cleaned_as_the_text_that_they_encode(text: str) -> None:
    assert loki.clean(text.encode("utf-8", "surrogatepass")) == loki.clean(text)


@given(hostile)
def test_lines_are_counted_by_newlines_or_else_by_carriage_returns(text: str) -> None:
    counted = text.count("\n") if "\n" in text else text.count("\r")
    assert loki.clean(text).count("\n") == counted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("travis_fold:start:before\r\x1b[0Ktravis_time:start:1\r\x1b[0K$ make\r\n", "$ make\n"),
        ("section_start:1700000000:build\r\x1b[0K\x1b[36mBuild\x1b[0m\n", "Build\n"),
        (
            "2024-01-31T10:11:12.1234567Z ##[error]exit code 1\r\n",
            "2024-01-31T10:11:12.1234567Z ##[error]exit code 1\n",
        ),
        (
            "##[group]Run make\n::group::x\n##[endgroup]\n",
            "##[group]Run make\n::group::x\n##[endgroup]\n",
        ),
        ("section_end:1700000000:build\r\x1b[0K\n", "\n"),
        ("\ufeffwith a mark\n", "\ufeffwith a mark\n"),
        (
            "   \u2501\u2501 1.0/2.0 MB\r   \u2501\u2501 2.0/2.0 MB\n",
            "   \u2501\u2501 2.0/2.0 MB\n",
        ),
        ("[\u2588  ] 1/2\x1b[K\r[\u2588\u2588] 2/2\x1b[K\n", "[\u2588\u2588] 2/2\n"),
        ("\x1b[2K\x1b[1Gyarn 1/2\x1b[2K\x1b[1Gdone\n", "done\n"),
        ("   Building 1/9: a\r   Building 2/9: b\r\x1b[K    Finished\n", "    Finished\n"),
        ("a1b2: Pull 1%\x1b[1A\x1b[2K\ra1b2: done\n", "a1b2: done\n"),
        (" 12% 1.0M=1s\b\b\b\b 99% 9s\n", " 12% 1.0 99% 9s\n"),
        ("\x1b]0;title\x1b\\text\x1bPq#0\x1b\\ \x1b_apc\x1b\\end\n", "text end\n"),
        ("\x1b]0;open\nError: x\n", "0;open\nError: x\n"),
        ("one\x1b]0;open\rtwo\x07", "one0;open\ntwo\x07"),
        ("\u009b31mred\n", "\u009b31mred\n"),  # C1 controls in UTF-8 are characters for us
        ("a\x00b\n", "a\x00b\n"),
        ("\U0001f600\bx\n", "x\n"),
    ],
)
def test_what_ci_and_progress_bars_write(text: str, shown: str) -> None:
    assert loki.clean(text) == shown


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xc0\xaf", "\ufffd\ufffd"),  # overlong
        (b"\xe0\x80\xaf", "\ufffd\ufffd\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),  # cut short
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),  # beyond Unicode
        (b"\x9b31m\n", "\ufffd31m\n"),
        (b"\xed\xa0\x80", "\ufffd"),
    ],
)
def test_bytes_that_encode_nothing(data: bytes, shown: str) -> None:
    assert loki.clean(data) == shown


class Cleaned:
    """A cleaned text with the way back to the original: code points of a str, bytes of bytes."""

    def __init__(self, text: Text) -> None:
        self.text, self.runs = _core.clean_with_runs(text)
        self._starts = [run[0] for run in self.runs]
        self._encoding = None
        if not isinstance(text, str):
            is_utf16 = bytes(text[:2]) in (BOM_UTF16_LE, BOM_UTF16_BE)
            self._encoding = "utf-16-le" if is_utf16 else "utf-8"

    def original(self, position: int) -> int:
        """Where the character at a position of the cleaned text stands in the original."""
        if not self.runs:
            return 0
        start, original, length = self.runs[bisect_right(self._starts, position) - 1]
        shown = position - start
        if self._encoding:
            shown = len(self.text[start:position].encode(self._encoding))
        return original + min(shown, length)


@given(st.binary(max_size=80))
def test_the_map_of_bytes_points_into_them(data: bytes) -> None:
    cleaned = Cleaned(data)
    for at, shown in enumerate(cleaned.text):
        original = cleaned.original(at)
        encoded = shown.encode()
        assert data[original : original + len(encoded)] == encoded or shown in "\ufffd\n"


@given(st.one_of(noise, hostile))
def test_cleaning_is_idempotent_and_the_map_is_exact(text: str) -> None:
    cleaned = Cleaned(text)
    assert loki.clean(cleaned.text) == cleaned.text
    for at, shown in enumerate(cleaned.text):
        original = text[cleaned.original(at)]
        surrogate = "\ud800" <= original <= "\udfff" and shown == "\ufffd"
        assert shown == original or surrogate or (shown, original) == ("\n", "\r")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@given(text=hostile)
def test_utf16_is_the_text_that_it_encodes(encoding: str, text: str) -> None:
    data = ("\ufeff" + text).encode(encoding, "surrogatepass")
    joined = data.decode(encoding, "surrogatepass")[1:]  # two surrogates may be one character
    cleaned = Cleaned(data)
    assert cleaned.text == loki.clean(joined)
    for at, shown in enumerate(cleaned.text):
        encoded = shown.encode(encoding)
        found = data[cleaned.original(at) :][: len(encoded)]
        assert found == encoded or shown in "\ufffd\n"


def test_what_failed_in_utf16_is_found_where_it_stands() -> None:
    text = (
        "geht\U0001f600\r\n" + 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n'
    )
    text += "ValueError: no such flavour\n"
    failure = loki.recognize(text.encode("utf-16"))
    assert (failure.error_type, failure.output_line) == ("ValueError", 4)
    assert loki.clean(b"\xff\xfea\x00b") == "a\ufffd"


def test_an_empty_text_has_a_map() -> None:
    assert Cleaned("").original(0) == 0


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="expected str or a bytes-like object, found int"):
        loki.clean(3)  # type: ignore[arg-type]


def test_buffers_are_borrowed() -> None:
    data = bytearray(b"\x1b[1mx")
    assert loki.clean(memoryview(data)) == "x"
    data.extend(b"y")  # a buffer that was still held would refuse
