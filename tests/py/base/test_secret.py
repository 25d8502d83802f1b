"""Secrets are masked, in every text and every kind; what only looks like one stays."""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found, unused-ignore]
import re._parser as parser  # type: ignore[import-not-found, unused-ignore]
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.base import secret
from loki.base.secret import clean_environment, mask_secrets, masked, unnamed
from support.secrets import Labelled, innocent, secrets

HOSTILE = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from([one.text for one in secrets()]),
        st.sampled_from([one.text[: len(one.text) // 2] for one in secrets()]),
        st.sampled_from(innocent()),
        st.sampled_from(
            ["<secret>", "<secret:cookie>", "password=", "token: ", "'", '"', "\\n", "\n", "\x1b[31m",
             "\0", "\ue000", "<\ue000>", "://", "@", "Authorization: Bearer ", "\\", "=", " ", "é"]
        ),
    ),
    max_size=6,
).map("".join)  # fmt: skip


@pytest.mark.parametrize("case", secrets(), ids=lambda case: f"{case.kind}-{len(case.text)}")
def test_a_secret_is_masked_and_its_kind_is_told(case: Labelled) -> None:
    """Alone, in a sentence, in quotes, coloured, in a repr, on one of many lines."""
    mask = "<secret>" if case.kind == "secret" else f"<secret:{case.kind}>"
    for text in (
        case.text,
        f"first\n{case.text}\nlast",
        f"\x1b[31m{case.text}\x1b[0m",
        "x" * 5000 + f"\n{case.text}\n" + "y" * 5000,
    ):
        shown = mask_secrets(text)
        assert not case.leaks(shown)
        assert mask in shown
        assert mask_secrets(shown) == shown


@pytest.mark.parametrize("text", innocent())
def test_what_only_looks_so_stays(text: str) -> None:
    """A false mask hides what a failure is about."""
    assert mask_secrets(text) == text
    assert mask_secrets(f"a\n{text}\nb") == f"a\n{text}\nb"


def test_every_kind_is_labelled() -> None:
    """And there are more than 25 of them; the core leaves every mask alone."""
    kinds = {kind.name for kind in secret.knowledge().kinds}
    assert kinds <= {case.kind for case in secrets()}
    assert len(kinds) >= 25
    for kind in kinds:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind)
        for text in (
            f"<secret:{kind}>",
            f"password=<secret:{kind}>",
            f'"token": "<secret:{kind}>"',
        ):
            assert mask_secrets(text) == text
            assert unnamed(text) == text.replace(f"secret:{kind}", "secret")


def test_every_kind_names_its_source_and_is_found_by_its_literals() -> None:
    """A literal that is not in the text would hide the secret from the regex."""
    for kind in secret.knowledge().kinds:
        assert len(kind.source) > 8, kind
        found = [case.text for case in secrets() if kind.regex.search(case.text)]
        for text in found:
            lower = text.lower() if kind.any_case else text
            literals = [one.lower() if kind.any_case else one for one in kind.literals]
            assert any(literal in lower for literal in literals), (kind.name, text)


def test_every_regex_reads_a_text_once() -> None:
    """Repetitions have an end, but for the last; none repeats what repeats: so the work for a place
    where a match could begin is bounded, and where it goes far, the next place is behind it."""
    for kind in secret.knowledge().kinds:
        assert (
            _cost(parser.parse(kind.regex.pattern.removesuffix("[A-Za-z0-9]*")), is_last=True)
            < 40_000
        ), kind.name
    assert _cost(parser.parse(secret.knowledge().innocent.pattern), is_last=False) < 40_000


def _cost(items: Any, *, is_last: bool) -> int:
    """Most characters that are read for one beginning; each end of a repetition may be tried."""
    cost = 1
    for number, (kind, value) in enumerate(items):
        is_end = is_last and number == len(items) - 1
        if kind in {sre.MAX_REPEAT, sre.MIN_REPEAT}:
            _, most, inner = value
            assert most is not sre.MAXREPEAT or is_end, "a repetition without an end"
            within = _cost(inner, is_last=is_end and most == 1)
            cost += within if most is sre.MAXREPEAT else int(most) * within
        elif kind is sre.SUBPATTERN:
            cost += _cost(value[-1], is_last=is_end)
        elif kind is sre.BRANCH:
            cost += max(_cost(branch, is_last=is_end) for branch in value[1])
        elif kind in {sre.ASSERT, sre.ASSERT_NOT}:
            cost += _cost(value[1], is_last=False)
    return cost


@given(HOSTILE)
def test_masking_twice_is_masking_once(text: str) -> None:
    """And the core finds nothing more in what was masked."""
    once = mask_secrets(text)
    assert mask_secrets(once) == once


@given(st.text())
def test_a_text_without_a_secret_stays(text: str) -> None:
    """Every character, escape sequences and lone surrogates too."""
    shown = mask_secrets(text)
    assert shown == text or "<secret" in shown


def test_data_is_masked_in_every_text_of_it() -> None:
    """Long names of fields, too; what is compared later stays."""
    data = {"a": ["password=hunter2", {"b": ("token=abcd1234", 1, None)}], "digest": "password=hunter2",
            "run --password=hunter2": True}  # fmt: skip
    assert masked(data) == {
        "a": ["password=<secret>", {"b": ["token=<secret>", 1, None]}],
        "digest": "password=hunter2",
        "run --password=<secret>": True,
    }


def test_secrets_stay_out_of_an_environment() -> None:
    """By name and by value; what is passed on purpose passes."""
    environment = dict.fromkeys(
        ["PATH", "PWD", "HOME", "KEYBOARD", "TOKENIZERS_PARALLELISM", "LANG", "SSH_AUTH_SOCK",
         "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "github_token", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD",
         "MYSQL_PWD", "GOOGLE_APPLICATION_CREDENTIALS", "API_KEY_2", "DB_PASSWD", "GH_PAT", "SMTP_PASS"],
        "x",
    )  # fmt: skip
    kept = clean_environment(environment, ["GITHUB_*"])
    assert list(kept) == [
        "PATH", "PWD", "HOME", "KEYBOARD", "TOKENIZERS_PARALLELISM", "LANG", "SSH_AUTH_SOCK",
        "GITHUB_TOKEN",
    ]  # fmt: skip
    assert clean_environment(environment, ["*"]) == environment
    for case in secrets():
        assert clean_environment({"PLAIN": case.text, "OTHER": "1"}) == {"OTHER": "1"}
    plain = {f"PLAIN_{i}": text for i, text in enumerate(innocent())}
    assert clean_environment(plain) == plain
