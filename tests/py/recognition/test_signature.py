"""Normalization and fingerprints, through the public names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from loki.base.secret import masked

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


def test_a_failure_that_was_kept_masked_is_the_same_failure() -> None:
    """What a later version computes anew of it is what it would compute of the output itself."""
    for key in ("ghp_" + "a1B2" * 9, "sk-ant-api03-" + "a1B2" * 12, "password=hunter22"):
        failure = loki.recognize(f"ValueError: cannot log in with {key}")
        kept = masked(failure.to_dict()) | {"recognizer_version": 0}
        assert key not in str(kept)
        assert loki.Failure.from_dict(kept).fingerprint == failure.fingerprint
