"""What stands in a signal's file: read as other programs write it, unknown fields kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from loki.base.validation import sentence
from loki.people.signal import MAX_SIZE, Form

CLIPPED = 4_000
"""Characters that are read of a request for a person that is too large. Chosen, not measured."""


def _lowered(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _decided(value: Any) -> Any:
    words = {"approved": True, "approve": True, "rejected": False, "reject": False}
    return words.get(_lowered(value), value) if isinstance(value, str) else value


def _urgent(value: Any) -> Any:
    """A request for a person comes through whatever its writer calls its severity."""
    return value if str(_lowered(value)) in {"low", "medium", "critical"} else "high"


Severity = Annotated[Literal["low", "medium", "high", "critical"], BeforeValidator(_lowered)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)


class Drift(_Body):
    """A line of ``DRIFT_DETECTED``."""

    timestamp: str = ""
    task_id: str = ""
    planned_action: str = ""
    detected_drift: str = Field(min_length=1)
    severity: Severity = "medium"
    agent: str = ""
    original_goal: str = ""
    drift_distance: int = Field(default=1, ge=0)
    """How far off: 1 adjacent, 3 and more severe."""


class Review(_Body):
    """``HUMAN_REVIEW_NEEDED``."""

    id: str = Field(default="", validation_alias=AliasChoices("id", "request_id"))
    timestamp: str = ""
    reason: str = "not said"
    task_id: str = ""
    context: str = ""
    severity: Annotated[Severity, BeforeValidator(_urgent)] = "high"
    agent: str = ""
    blocking: bool = True
    alternatives_considered: tuple[str, ...] = ()


class Decision(_Body):
    """``HUMAN_APPROVED``."""

    request_id: str = Field(
        default="", validation_alias=AliasChoices("request_id", "request", "review_id")
    )
    approved: Annotated[bool, BeforeValidator(_decided)] = Field(
        default=True, validation_alias=AliasChoices("approved", "decision")
    )
    by: str = Field(
        default="", validation_alias=AliasChoices("by", "decided_by", "approved_by", "who")
    )
    note: str = Field(
        default="", validation_alias=AliasChoices("note", "reason", "comment", "context")
    )
    timestamp: str = ""


_MODELS: Mapping[Form, type[_Body]] = {"log": Drift, "review": Review, "decision": Decision}


def read(form: Form, text: str) -> tuple[dict[str, Any], str]:
    """What a signal of a form says, and what is wrong with it; whatever the text is.

    Args:
        form: of its kind.
        text: the file, or a line of a log.

    Returns:
        Its fields, and "" or what was expected. Where presence is enough, a text that is no JSON is
        its ``description``.

    Example:
        >>> read("presence", ""), read("notice", "The API has changed")
        (({}, ''), ({'description': 'The API has changed'}, ''))
        >>> read("log", '{"detected_drift": "x", "severity": "urgent"}')[1]
        "severity: found 'urgent', expected one of low, medium, high, critical"
    """
    if len(text) > MAX_SIZE and form == "review":  # a person has to see that somebody asks
        text = f"{text[:CLIPPED]}…"
    if len(text) > MAX_SIZE:
        return {}, f"is too large: {len(text):,} characters, expected at most {MAX_SIZE:,}"
    data = _object(text)
    model = _MODELS.get(form)
    if model is None:
        return _plain(text) if data is None else data, ""
    if data is None and model is Review:  # better read as text than not at all
        data = {"context": text.strip()}
    if data is None:
        return {}, "is no JSON object"
    try:
        return {**data, **model.model_validate(data).model_dump(mode="json")}, ""
    except ValidationError as error:
        if model is Review:  # better without what nobody can read of it
            wrong = {part for one in error.errors() for part in one["loc"][:1]}
            rest = {key: value for key, value in data.items() if key not in wrong}
            with suppress(ValidationError):
                return {**data, **Review.model_validate(rest).model_dump(mode="json")}, ""
        return data, sentence(error.errors()[0])


def _plain(text: str) -> dict[str, Any]:
    said = text.strip()
    return {"description": said} if said else {}


def _object(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
