"""Normalization and fingerprints, through the public names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from loki.recognition.signature import mask_secrets

pieces = st.lists(
    st.one_of(
        st.text(alphabet="ab019.:-/<>'\"@_= \u00e9\n+%ex", max_size=12),
        st.sampled_from(
            [
                "<int>", "2024-01-31", "12:34:56", "10.0.0.1", "1.2.3", "0x1f", "abc1234", "5m",
                "-5",
                "/tmp/x/y", "/home/me/p", "a@b.co", "http://x.y/z", "f.py:3:4", "'q'", "5 KB",
                "token=abcd1234", "Jan  2 10:00:00", "::1", "C:\\Users\\me\\x",
            ]
        ),
    ),
    max_size=8,
).map("".join)  # fmt: skip


@given(pieces, st.sampled_from(["volatile", "template"]))
def test_normalization_is_idempotent(text: str, level: str) -> None:
    once = loki.normalize(text, level)
    assert loki.normalize(once, level) == once


@given(st.binary(max_size=300))
def test_normalization_takes_any_bytes(data: bytes) -> None:
    loki.normalize(data)
    loki.normalize(data, "template")


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of volatile, template"):
        loki.normalize("x", "fuzzy")


def test_large_inputs_end() -> None:
    for text in (
        "a.a." * 500_000,
        "1" * 2_000_000,
        "'" * 2_000_000,
        "-" * 2_000_000,
        "9:" * 1_000_000,
    ):
        loki.normalize(text, "template")
    assert loki.recognize("x" * 10_000_000).output_line == 1


def test_two_runs_of_one_failure_have_one_fingerprint() -> None:
    run = (
        "Traceback (most recent call last):\n"
        '  File "{0}/app.py", line {1}, in load\n'
        "    f()\n"
        "OSError: cannot read /tmp/{2}/x.db after {3}s"
    )
    a = run.format("/srv/one", 10, "tmpab12", "1.5")
    b = run.format("/srv/two", 12, "tmpcd34", "2.25")
    assert loki.fingerprint(a) == loki.fingerprint(b)
    assert loki.fingerprint(a) != loki.fingerprint(a.replace("OSError", "ValueError"))
    assert loki.fingerprint(loki.recognize(a)) == loki.fingerprint(a)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=hunter22", "password=<secret>"),
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer <secret>"),
        ("key sk-0123456789abcdefghij", "key <secret>"),
        (
            "postgres://me:pa55@db.example.org:5432/x",
            "postgres://me:<secret>@db.example.org:5432/x",
        ),
        ("https://example.org/a:b@c", "https://example.org/a:b@c"),
        ("unexpected token: foo at 3:4 in 2.5 s", "unexpected token: foo at 3:4 in 2.5 s"),
        ("caf\u00e9 \udcff \x1b[31m\r\n", "caf\u00e9 \udcff \x1b[31m\r\n"),
    ],
)
def test_secrets_are_masked_and_nothing_else_changes(text: str, masked: str) -> None:
    assert mask_secrets(text) == masked
    assert mask_secrets(masked) == masked
