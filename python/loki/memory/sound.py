"""What documents of ``.loki/`` must look like: the one validator that whoever reads them goes through.

A person or another program may have changed any file. A field of another form than expected spoils
only itself: it is left out, or has its plain value, with a sentence. What is no document at all is
set aside with one. A file stays as it is while it is only read; before it is written anew, it is kept
under `ASIDE`, as it was (`loki.stores.files`). Pure. Under test: ``tests/py/memory/test_sound.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema, from_json

ASIDE = "set-aside"
"""Where damaged files are kept, in ``.loki/``, before something is written in their place."""

FLAWS = "damaged"
"""The field of a damaged document, while it is read, that says what is wrong with it."""

SHOWN = 3
"""Flaws of a file that are told; chosen, not measured."""


class _Kit:
    """Makes schemas: strict ones, or ones in which what does not fit has its plain value."""

    def __init__(self, *, lenient: bool) -> None:
        self.lenient = lenient

    def _or(self, schema: CoreSchema, plain: Any) -> CoreSchema:
        how: Literal["default", "raise"] = "default" if self.lenient else "raise"
        return core_schema.with_default_schema(schema, default=plain, on_error=how)

    def text(self, plain: str = "") -> CoreSchema:
        # Not a string of pydantic's: names of files that are no UTF-8 hold lone surrogates.
        return self._or(core_schema.is_instance_schema(str), plain)

    def whole(self, plain: int = 0) -> CoreSchema:
        return self._or(core_schema.int_schema(strict=True, ge=-LARGEST, le=LARGEST), plain)

    def number(self, plain: float = 0.0) -> CoreSchema:
        return self._or(core_schema.float_schema(strict=True, allow_inf_nan=False), plain)

    def flag(self, *, plain: bool = False) -> CoreSchema:
        return self._or(core_schema.bool_schema(strict=True), plain)

    def moment(self, plain: str = "") -> CoreSchema:
        return self._or(core_schema.no_info_plain_validator_function(_moment), plain)

    def maybe(self, schema: CoreSchema) -> CoreSchema:
        return self._or(core_schema.nullable_schema(schema), None)

    def many(self, schema: CoreSchema) -> CoreSchema:
        if self.lenient:
            schema = core_schema.with_default_schema(schema, on_error="omit")
        return self._or(core_schema.list_schema(schema, strict=True), [])

    def table(self, schema: CoreSchema) -> CoreSchema:
        names = core_schema.is_instance_schema(str)
        return self._or(core_schema.dict_schema(names, schema, strict=True), {})

    def some(self, **fields: CoreSchema) -> CoreSchema:
        """An object of these fields, all of them there afterwards, and perhaps more."""
        known = {name: core_schema.typed_dict_field(one) for name, one in fields.items()}
        return core_schema.typed_dict_schema(known, extra_behavior="allow", strict=True)


LARGEST = 2**53
"""Numbers beyond are no count of anything, and other programs cannot hold them (RFC 8259, 6)."""


def _moment(text: object) -> str:
    from datetime import datetime

    if not isinstance(text, str) or (text and not _is_moment(text, datetime.fromisoformat)):
        raise ValueError("expected a time in ISO 8601")
    return text


def _is_moment(text: str, read: Callable[[str], object]) -> bool:
    try:
        read(text.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True


def _bare(schema: CoreSchema) -> CoreSchema:
    """A schema without its plain value, for items of lists and values of tables: what does not fit goes."""
    return schema["schema"] if schema["type"] == "default" else schema


def _texts(kit: _Kit) -> CoreSchema:
    return kit.many(_bare(kit.text()))


def _outcome(kit: _Kit) -> CoreSchema:
    texts = ("failure_pattern", "page", "breaker", "review", "retry_at")
    return kit.some(
        task_id=kit.text(), status=kit.text("unknown"), attempts=kit.whole(), files_modified=_texts(kit),
        reason=kit.text(), duration_ms=kit.number(), trigger=kit.text(), awaiting=_texts(kit),
        **{name: kit.maybe(_bare(kit.text())) for name in texts},
    )  # fmt: skip


def _agent(kit: _Kit) -> CoreSchema:
    return kit.some(
        name=kit.text(), command=_texts(kit), preset=kit.maybe(_bare(kit.text())),
        briefing=kit.maybe(_bare(kit.text())), timeout=kit.maybe(_bare(kit.number())),
        reflect=kit.flag(), pass_environment=kit.maybe(_bare(_texts(kit))),
    )  # fmt: skip


def _check(kit: _Kit) -> CoreSchema:
    return kit.some(
        kind=kit.text("command"), command=_texts(kit), name=kit.text(), timeout=kit.number(600.0)
    )


def _task(kit: _Kit) -> CoreSchema:
    counts = ("attempts", "tokens")
    budget = {name: kit.maybe(_bare(kit.whole())) for name in counts}
    budget |= {name: kit.maybe(_bare(kit.number())) for name in ("seconds", "cost")}
    pair = core_schema.tuple_schema([_bare(kit.text())] * 2, strict=False)
    words = {name: kit.text() for name in ("kind", "context", "status")}
    counts_ = {"execution": kit.whole(1), "attempt": kit.whole()}
    answer = kit.some(at=_bare(kit.moment()), **counts_, **words)
    return kit.some(
        title=kit.text("(its record is damaged)"), checks=kit.many(_check(kit)), kind=kit.text("bug_fix"),
        complexity=kit.text("medium"), max_retries=kit.maybe(_bare(kit.whole())), run=kit.text(),
        budget=kit.maybe(kit.some(**budget)), wait=kit.maybe(_bare(kit.flag())), scope=_texts(kit),
        agent=kit.maybe(_agent(kit)), execution=kit.whole(1), updated_at=kit.moment(),
        seen_failing=kit.many(pair), failing_files=_texts(kit), tree=kit.text(),
        interventions=kit.many(answer), outcome=kit.maybe(_outcome(kit)),
        dead_letter=kit.maybe(core_schema.dict_schema()),
    )  # fmt: skip


def _pipeline(kit: _Kit) -> CoreSchema:
    word, moment = _bare(kit.text()), _bare(kit.moment())
    words = ("task", "marker", "digest", "context", "reason", "trigger")
    maybe = {name: kit.maybe(moment) for name in ("retry_at", "begun", "ended")}
    maybe |= {name: kit.maybe(word) for name in ("pattern", "page")}
    stage = kit.some(
        id=word, status=kit.text("waiting"), round=kit.whole(1), tries=kit.whole(), attempts=kit.whole(),
        spent=kit.number(), approval=kit.maybe(core_schema.dict_schema()), outputs=_texts(kit),
        files=_texts(kit), **{name: kit.text() for name in words}, **maybe,
    )  # fmt: skip
    step = kit.some(**{name: kit.text() for name in ("kind", "subject", "result", "detail")})
    words = ("pipeline", "file", "status", "reason", "trigger", "phase")
    maybe = {name: kit.maybe(moment) for name in ("begun", "seen")}
    maybe |= {name: kit.maybe(word) for name in ("at", "resumes_in")}
    return kit.some(
        updated_at=kit.moment(), spent=kit.number(), max_attempts=kit.maybe(_bare(kit.whole())),
        max_seconds=kit.maybe(_bare(kit.number())), parameters=kit.table(word), stages=kit.many(stage),
        rollback=kit.many(step), **{name: kit.text() for name in words}, **maybe,
    )  # fmt: skip


def _baseline(kit: _Kit) -> CoreSchema:
    table = kit.table(_bare(kit.text()))
    results = core_schema.dict_schema(
        core_schema.is_instance_schema(str), kit.some(outcomes=table, files=table), strict=True
    )
    return kit.some(
        targets=_texts(kit), asked=_texts(kit), captured_at=kit.moment(), results=kit._or(results, {}),
        dependents=kit.table(_bare(_texts(kit))),
    )  # fmt: skip


def _any(_: _Kit) -> CoreSchema:
    return core_schema.dict_schema(core_schema.is_instance_schema(str), core_schema.any_schema())


DOCUMENTS: tuple[tuple[str, Callable[[_Kit], CoreSchema]], ...] = (
    (r"tasks/[^/]+/task\.json", _task),
    (r"tasks/[^/]+/baseline\.json", _baseline),
    (r"pipelines/[^/]+/pipeline\.json", _pipeline),
)
"""By the name of a document, its form; those of other names are an object, or what their reader says."""


@lru_cache(maxsize=512)
def _form(name: str) -> Callable[[_Kit], CoreSchema] | None:
    return next((form for pattern, form in DOCUMENTS if re.fullmatch(pattern, name)), None)


@lru_cache(maxsize=32)
def _validators(form: Callable[[_Kit], CoreSchema]) -> tuple[SchemaValidator, SchemaValidator]:
    return SchemaValidator(form(_Kit(lenient=False))), SchemaValidator(form(_Kit(lenient=True)))


def has_form(name: str) -> bool:
    """Whether a document's form is said here."""
    return _form(name) is not None


def document(name: str, text: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """What a document says, in the form that it must have, and what is wrong with it.

    Args:
        name: the document's, relative to ``.loki/``.
        text: what it holds.

    Returns:
        Its object, None where it holds none; and sentences about what does not fit in it.

    Example:
        >>> document("tasks/a/task.json", '{"title": 5}')[1]
        ('title: found 5',)
    """
    try:
        data = parsed(text)
    except ValueError as error:
        return None, (f"it is no JSON: {error}",)
    if not isinstance(data, dict):
        return None, (f"found {shown(data)}, expected an object",)
    form = _form(name)
    if form is None:
        return data, ()
    strict, lenient = _validators(form)
    try:
        return strict.validate_python(data), ()
    except ValidationError as error:
        flaws = dict.fromkeys(_flaw(one) for one in error.errors(include_url=False))
    try:
        return lenient.validate_python(_named(data)), tuple(flaws)[:SHOWN]
    except (ValidationError, RecursionError):
        return None, tuple(flaws)[:SHOWN]


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
    try:
        return from_json(text, cache_strings="keys", allow_inf_nan=False)
    except ValueError:
        try:
            return json.loads(text)  # also half a surrogate pair, which our own writer escapes
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def shown(value: object) -> str:
    """A value in a sentence: short.

    Example:
        >>> shown([1] * 100)
        '[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,…'
    """
    try:
        text = ascii(value)
    except (RecursionError, ValueError):  # nested too deeply; a number of too many digits
        text = type(value).__name__
    return text if len(text) <= 40 else f"{text[:39]}…"  # noqa: PLR2004 - as long as it reads well
