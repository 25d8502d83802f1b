"""What documents of ``.loki/`` must look like: the one validator that whoever reads them goes through.

A person or another program may have changed any file. A field of another form than expected spoils
only itself: it is left out, or has its plain value, with a sentence. What is no document at all is
set aside with one. A file stays as it is while it is only read; before it is written anew, it is kept
under `ASIDE`, as it was (`loki.stores.file_store`). Pure. Under test:
``tests/py/memory/test_document_validation.py``.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, TypeVar

from loki.base import codec
from loki.base.codec import shown

T = TypeVar("T")

ASIDE = "set-aside"
"""Where damaged files are kept, in ``.loki/``, before something is written in their place."""

FLAWS = "damaged"
"""The field of a damaged document, while it is read, that says what is wrong with it."""

SHOWN = 3
"""Flaws of a file that are told; chosen, not measured."""

FORMS: tuple[tuple[str, str], ...] = (
    (r"tasks/[^/]+/task\.json", "task"),
    (r"tasks/[^/]+/(baseline|judged|before|refused|withheld)\.json", ""),
    (r"pipelines/[^/]+/pipeline\.json", "pipeline"),
    (r"state/signals\.json", "handled"),
    (r"state/signals-seen\.json", "seen"),
    (r"state/merging\.json", "merging"),
    (r"state/waiting\.json", "numbers"),
)
"""By the name of a document, its form in `loki.memory.document_schemas` ("": what the group says); those of
other names are an object, or what their reader says."""


def has_form(name: str) -> bool:
    """Whether a document's form is said here; what its reader says alone, that sets aside itself."""
    return bool(_form(name))


@lru_cache(maxsize=512)
def _form(name: str) -> str:
    """The form of a document, "" where none is said."""
    for pattern, form in FORMS:
        if found := re.fullmatch(pattern, name):
            return form or found[1]
    return ""


def document(name: str, text: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """What a document says, in the form that it must have, and what is wrong with it.

    Args:
        name: the document's, relative to ``.loki/``.
        text: what it holds.

    Returns:
        Its object, None where it holds none; and sentences about what does not fit in it.

    Example:
        >>> document("tasks/a/task.json", '{"title": 5}')[1]
        ('title: found 5, expected text',)
    """
    try:
        data = parsed(text)
    except ValueError as error:
        return None, (f"it is no JSON: {error}",)
    if not isinstance(data, dict):
        return None, (f"found {shown(data)}, expected an object",)
    form = _form(name)
    return _fitted(form, data) if form else (data, ())


def _fitted(form: str, data: dict[str, Any]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The same of an object in a form that is said here."""
    if form == "task":
        from loki.memory.task_record import TaskRecord

        record, unfit = codec.read(TaskRecord, data)
        return (None if record is None else codec.write(record)), unfit[:SHOWN]
    from pydantic_core import ValidationError

    from loki.memory.document_schemas import validators

    strict, lenient = validators(form)
    try:
        return strict.validate_python(data), ()
    except ValidationError as error:
        flaws = dict.fromkeys(_flaw(one) for one in error.errors(include_url=False))
    try:
        return lenient.validate_python(_named(data)), tuple(flaws)[:SHOWN]
    except (ValidationError, RecursionError):
        return None, tuple(flaws)[:SHOWN]


def read(cls: type[T], text: str) -> tuple[T | None, tuple[str, ...]]:
    """The same of a document whose form is a dataclass (`loki.base.codec`)."""
    try:
        data = parsed(text)
    except ValueError as error:
        return None, (f"it is no JSON: {error}",)
    value, flaws = codec.read(cls, data)
    return value, flaws[:SHOWN]


def _named(value: Any) -> Any:
    """The same without fields whose names hold half a character."""
    if isinstance(value, dict):
        return {name: _named(one) for name, one in value.items() if _is_text(name)}
    return [_named(one) for one in value] if isinstance(value, list) else value


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _flaw(error: Any) -> str:
    return f"{'.'.join(str(part) for part in error['loc']) or 'it'}: found {shown(error['input'])}"


def parsed(text: str | bytes) -> Any:
    """JSON, by the quicker parser where that can read it.

    Raises:
        ValueError: it is none, or nests too deeply.
    """
    from pydantic_core import from_json

    try:
        return from_json(text, cache_strings="keys", allow_inf_nan=False)
    except ValueError:
        try:
            return json.loads(text)  # also half a surrogate pair, which our own writer escapes
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
