"""Conditions: what their forms say of earlier stages and of parameters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from loki.action.pipelines.pipeline_file import Condition, StageView

STAGES = {
    "plan": StageView("success", (), {"verdict": "ship it\n"}),
    "code": StageView("skipped", ("src/a.py", "b.py")),
}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"stage": "plan", "status": "success"}, True),
        ({"stage": "code", "status": "success"}, False),
        ({"stage": "code", "status": "success", "not": True}, True),
        ({"stage": "plan", "output": "verdict", "equals": "ship it"}, True),
        ({"stage": "plan", "output": "verdict", "equals": "ship"}, False),
        ({"stage": "plan", "output": "verdict", "contains": "ship"}, True),
        ({"stage": "plan", "output": "other", "equals": ""}, True),
        ({"stage": "code", "changed": "src/*"}, True),
        ({"stage": "code", "changed": "docs/*"}, False),
        ({"parameter": "to", "equals": "all"}, True),
        ({"parameter": "to", "contains": "nobody"}, False),
    ],
)
def test_it_says_what_is_true(said: dict[str, Any], expected: bool) -> None:
    assert Condition(**said).holds(STAGES, {"to": "all"}) is expected


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"not": True},
        {"stage": "plan"},
        {"stage": "plan", "status": "success", "changed": "a"},
        {"stage": "plan", "output": "verdict"},
        {"stage": "plan", "equals": "x"},
        {"stage": "plan", "parameter": "to", "equals": "x"},
        {"parameter": "to", "status": "success"},
        {"stage": "plan", "output": "verdict", "equals": "a", "contains": "b"},
    ],
)
def test_what_is_no_form_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(
        ValidationError, match="expected one of: stage and status; stage and changed;"
    ):
        Condition(**said)


def test_it_is_shown_as_it_was_said() -> None:
    said: dict[str, Any] = {"stage": "plan", "status": "failed", "not": True}
    assert str(Condition(**said)) == "stage: plan, status: failed, not: true"


def test_a_text_is_shown_as_it_is() -> None:
    assert str(Condition(parameter="flag", equals="True")) == "parameter: flag, equals: True"


_KEYS = ("stage", "parameter", "status", "changed", "output", "equals", "contains", "not")
_VALUES = st.sampled_from(["plan", "code", "to", "success", "verdict", "*", "", True])


@given(st.dictionaries(st.sampled_from(_KEYS), _VALUES))
def test_what_is_accepted_can_always_be_decided(said: dict[str, Any]) -> None:
    try:
        condition = Condition(**said)
    except ValidationError:
        return
    if condition.stage in {"", *STAGES}:
        assert condition.holds(STAGES, {"to": "all"}) in {True, False}
