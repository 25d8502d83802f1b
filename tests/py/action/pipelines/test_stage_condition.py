"""Conditions: what they can say, and that whatever else is said is an error where it stands."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.action.pipelines.pipeline_file import (
    MAX_LENGTH,
    Condition,
    ConditionError,
    Known,
    Scope,
    StageView,
)

SCOPE = Scope({"plan": ("verdict",), "code-it": ()}, ("to",), ("later",))
KNOWN = Known(
    {
        "plan": StageView("success", 2, (), {"verdict": "ship it\n"}),
        "code-it": StageView("skipped", 0, ("a.py", "b.py")),
    },
    {"to": "all"},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('stages.plan.status == "success"', True),
        ("stages.plan.status != 'success'", False),
        ('stages["code-it"].status in ["skipped", "failed"]', True),
        ("stages.plan.attempts >= 2 and stages.plan.attempts < 3", True),
        ("1 < stages.plan.attempts <= 2", True),
        ('"ship" in stages.plan.outputs.verdict', True),
        ('stages.plan.outputs.verdict == "ship it"', True),
        ('"c.py" not in stages["code-it"].files', True),
        ("parameters.to == 'all' or false", True),
        ("not (true and parameters.to == 'nobody')", True),
        ('(\n  stages.plan.status == "success"\n  and true  # always\n)', True),
        ("'a' == \"a\"", True),
    ],
)
def test_it_says_what_is_true(text: str, expected: bool) -> None:
    assert Condition.parse(text, SCOPE).holds(KNOWN) is expected


def test_an_output_of_a_skipped_stage_is_empty() -> None:
    skipped = Known({"plan": StageView("skipped")})
    assert Condition.parse('stages.plan.outputs.verdict == ""', SCOPE).holds(skipped)


@pytest.mark.parametrize(
    ("text", "at", "reason"),
    [
        ("stages.plan.status = 'success'", 0, "found what is no expression"),
        ("stages.plan.status", 0, "found a status, expected a comparison"),
        ("stages.plan.attempts", 0, "found a number, expected a comparison"),
        ("true and stages.plan.files", 9, "found a list, expected a comparison"),
        ("stages.plna.status == 'success'", 0, "unknown stage 'plna', .*did you mean 'plan'"),
        ("stages.later.status == 'success'", 0, "which is no earlier one"),
        ("true and stages.plan.state == 'success'", 9, "expected status, attempts, files or out"),
        ("stages.plan.outputs.verdct == 'x'", 0, "unknown output 'verdct'.*did you mean 'verdict'"),
        ("stages == 1", 0, "expected the id of a stage"),
        ("parameters.two == 'x'", 0, "found 'parameters.two', expected a parameter"),
        ("plan.status == 'x'", 0, "found 'plan', expected stages or parameters"),
        ("stages.plan.status == 'sucess'", 22, "status 'sucess'.*did you mean 'success'"),
        ("stages.plan.status in ['success', 'x']", 22, "found the status 'x'"),
        ("stages.plan.status == 3", 22, "a status and a number, expected two of one kind"),
        ("stages.plan.status > 'success'", 21, "an order of a status and a text, expected two"),
        ("3 in stages.plan.files", 5, "found 'in' with a number and a list"),
        ("stages.plan.status is 'success'", 22, "found 'is', expected '=='"),
        ("'ä' == 'ä' and x.y", 15, "found 'x', expected stages or parameters"),
        ("true and\n  nothing", 11, "found 'nothing'"),
        ("[1, 2] == []", 1, "no text in quotes"),
        ("None == None", 0, "found None"),
        ("b'x' == b'x'", 0, "found b'x'"),
        ("stages.plan.attempts + 1 > 2", 0, "found 'stages.plan.attempts \\+ 1'"),
        ("-1 < 2", 0, "found '-1'"),
        ("__import__('os').system('true') == 0", 0, 'found "__import__'),
        ("stages.plan.__class__ == 1", 0, "expected status, attempts"),
        ("(lambda: true)()", 0, "expected stages"),
        ("[s for s in stages]", 0, "found '"),
        ("true if true else false", 0, "found '"),
        ("(x := true)", 1, "found '"),
        ("f'{stages}' == 'x'", 0, "found"),
        ("true) or (true", None, None),
        (" ", 0, "found nothing"),
        ("true, false", 0, "no text in quotes"),
    ],
)
def test_anything_else_is_an_error_where_it_stands(text: str, at: Any, reason: Any) -> None:
    if reason is None:
        assert Condition.parse(text, SCOPE).holds(KNOWN), "brackets of ours are no secret"
        return
    with pytest.raises(ConditionError, match=reason) as error:
        Condition.parse(text, SCOPE)
    assert error.value.offset == at
    assert 0 <= error.value.offset <= max(len(text) - 1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "not " * 200 + "true",
        "(" * 400 + "true" + ")" * 400,
        "-" * 900 + "1",
        "[" * 500,
        "true" + " and true" * 90,
        "9" * 900 + " > 1",
        "'" + "\\" * 901,
        "\0\0\0",
        "a" * (MAX_LENGTH + 1),
        "\x0c\x0b\r true",
    ],
)
def test_hostile_ones_are_answered_too(text: str) -> None:
    try:
        condition = Condition.parse(text, SCOPE)
    except ConditionError as refused:
        place = refused.offset
    else:
        assert condition.holds(KNOWN) in {True, False}
        place = 0
    assert 0 <= place <= len(text)


_words = st.sampled_from(
    ["stages", ".plan", ".status", "==", '"success"', " and ", " or ", "not ", "(", ")", "1", " in ",
     "[", "]", ",", "true", "parameters", ".to", "'all'", ".outputs", ".verdict", "\n", "<", "é"]
)  # fmt: skip


@given(st.lists(_words, max_size=12).map("".join) | st.text(max_size=40))
def test_what_is_accepted_can_always_be_decided(text: str) -> None:
    try:
        condition = Condition.parse(text, SCOPE)
    except ConditionError:
        return
    assert condition.holds(KNOWN) in {True, False}
