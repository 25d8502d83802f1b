"""A run of a pipeline on disk, and on a file that was edited since."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from loki.action.pipelines import pipeline_record
from loki.action.pipelines.pipeline_machine import step
from loki.action.pipelines.pipeline_state import (
    Event,
    Interrupted,
    Phase,
    Resumed,
)
from loki.base.machine import Begin
from support.loop import NOON
from support.pipeline import FAILED, RETRY, at, begun, ended, states


@pytest.mark.parametrize("phase", Phase)
def test_a_run_on_disk_is_the_run(phase: Phase) -> None:
    state = states()[phase]
    text = json.dumps(pipeline_record.to_dict(state, "p.yml", NOON))
    again = pipeline_record.from_dict(json.loads(text), state.spec)
    stages = {stage.id: state.of(stage.id) for stage in state.spec.stages}
    assert again == replace(state, stages=stages)
    assert again.reason == state.reason


@pytest.mark.parametrize(
    "damage", [{"stages": 3}, {"phase": "dancing"}, {"parameters": None}, {"seen": 5}, {"at": None}]
)
def test_a_damaged_record_is_a_value_error(damage: dict[str, Any]) -> None:
    state = states()[Phase.RUNNING]
    data = pipeline_record.to_dict(state, "p.yml", NOON)
    data.update(damage)
    if "at" in damage:
        del data["at"]
    with pytest.raises(ValueError, match=r"found no run|dancing"):
        pipeline_record.from_dict(data, state.spec)


# --- edited files ---------------------------------------------------------------------------------


def test_an_edited_file_is_noticed() -> None:
    old = at(begun("", RETRY, ""), Begin(), ended(), FAILED)
    new = replace(old, spec=begun("description: Other.", "description: New.", "").spec)
    assert pipeline_record.edits(old) == []
    assert pipeline_record.edits(new) == [
        "stage s1 was edited after it was done: --from s1 does it again",
        "stage s2 was edited: it goes on as it is now",
    ]
    gone = replace(old, spec=begun("id: s2").spec)
    assert pipeline_record.edits(gone)[0] == "stage s1 is gone from the file; what it did stays"


@pytest.mark.parametrize(
    ("stages", "next_"),
    [(["", RETRY], "s2"), (["", "id: s3"], "s3"), (["", "id: s4", "id: s2"], "s4"), ([""], None)],
)
def test_a_run_goes_on_where_the_edited_file_has_it(stages: list[str], next_: str | None) -> None:
    old = at(begun("", RETRY), Begin(), ended(), Interrupted())
    state = pipeline_record.revised(replace(old, spec=begun(*stages).spec))
    event: Event = Begin() if state.phase is Phase.NEW else Resumed()
    after, _ = step(state, event, NOON)
    assert after.at == next_
    assert (after.phase is Phase.DONE) == (next_ is None)
