"""What pydantic refuses, in one wording: where, what was found, what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from loki.base.text_format import did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel

_SHOWN = 60

_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "string_too_short": "text of {min_length} character or more",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "too_short": "{min_length} or more entries",
    "too_long": "{max_length} entries at most",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
}
"""By the type of an error (https://docs.pydantic.dev/latest/errors/validation_errors/)."""


def sentence(problem: Mapping[str, Any]) -> str:
    """One of pydantic's errors, with the dotted way to what it is about."""
    where = ".".join(map(str, problem["loc"]))
    return f"{where}: {complaint(problem)}" if where else complaint(problem)


def complaint(problem: Mapping[str, Any], found: str = "") -> str:
    """What was found and what was expected, of one of pydantic's errors.

    Args:
        problem: the error.
        found: what stands there, where the text has it otherwise than Python.
    """
    if problem["type"] == "missing":
        return "found nothing, expected a value"
    message = str(problem["msg"])
    if problem["type"] in {"value_error", "refused"}:  # sentences of our own validators
        return message.removeprefix("Value error, ")
    return f"found {found or _shown(problem['input'])}, expected {_expected(problem)}"


def _expected(problem: Mapping[str, Any]) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", context["expected"])
        several = f"one of {', '.join(names)}" if len(names) > 1 else context["expected"]
        return several.replace("'", "") + did_you_mean(str(problem["input"]), names)
    if kind in _EXPECTED:
        numbers = (key for key, value in context.items() if isinstance(value, float))
        whole = {key: int(context[key]) for key in numbers if context[key].is_integer()}
        return _EXPECTED[kind].format(**{**context, **whole})
    return str(problem["msg"]).removeprefix("Input should be ")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "nothing" if value is None else repr(value)[:_SHOWN]


def known_keys(model: type[BaseModel], keys: Sequence[str | int]) -> list[str]:
    """The names that a mapping may have; none where they are not told by the model."""
    inner = [model]
    for key in keys:
        fields = [pair for one in inner for pair in one.model_fields.items()]
        named = [field.annotation for name, field in fields if (field.alias or name) == key]
        # Else it is an index, a free key or the name of an alternative, which leads into them.
        inner = [found for kind in named for found in _models(kind)] if named else inner
    return [field.alias or name for one in inner[:1] for name, field in one.model_fields.items()]


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    """The models in an annotation."""
    if hasattr(kind, "model_fields"):
        yield kind
    for part in get_args(kind):
        yield from _models(part)
