"""The forms of documents: each field of them, strict, or with a plain value where it does not fit. Pure.

Loaded where a document has one (`loki.memory.document_validation`): what makes and runs schemas takes long
to import.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from pydantic_core import CoreSchema, SchemaValidator, core_schema


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
        return self._or(core_schema.list_schema(self._alone(schema), strict=True), [])

    def table(self, schema: CoreSchema) -> CoreSchema:
        names = core_schema.is_instance_schema(str)
        return self._or(core_schema.dict_schema(names, self._alone(schema), strict=True), {})

    def _alone(self, schema: CoreSchema) -> CoreSchema:
        """An item that goes, and nothing beside it, where it does not fit."""
        if not self.lenient:
            return schema
        return core_schema.with_default_schema(schema, on_error="omit")

    def some(self, **fields: CoreSchema) -> CoreSchema:
        """An object of these fields, all of them there afterwards, and perhaps more."""
        known = {name: core_schema.typed_dict_field(one) for name, one in fields.items()}
        return core_schema.typed_dict_schema(known, extra_behavior="allow", strict=True)


LARGEST = 2**53
"""Numbers beyond are no count of anything, and other programs cannot hold them (RFC 8259, 6)."""


def _moment(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError("expected a time in ISO 8601")
    if text:
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    return text


def bare(schema: CoreSchema) -> CoreSchema:
    """A schema without its plain value, for items of lists and values of tables: what does not fit goes."""
    return schema["schema"] if schema["type"] == "default" else schema


def _texts(kit: _Kit) -> CoreSchema:
    return kit.many(bare(kit.text()))


def _pair(kit: _Kit) -> CoreSchema:
    return core_schema.tuple_schema([bare(kit.text())] * 2, strict=False)


def pipeline(kit: _Kit) -> CoreSchema:
    """A run of a pipeline (`loki.action.pipelines.pipeline_record`)."""
    word, moment = bare(kit.text()), bare(kit.moment())
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
        updated_at=kit.moment(), spent=kit.number(), max_attempts=kit.maybe(bare(kit.whole())),
        max_seconds=kit.maybe(bare(kit.number())), parameters=kit.table(word), stages=kit.many(stage),
        rollback=kit.many(step), **{name: kit.text() for name in words}, **maybe,
    )  # fmt: skip


def baseline(kit: _Kit) -> CoreSchema:
    """How tests did before a task (`loki.action.checks.baseline`)."""
    table = kit.table(bare(kit.text()))
    return kit.some(
        targets=_texts(kit), asked=_texts(kit), captured_at=kit.moment(),
        results=kit.table(kit.some(outcomes=table, files=table)),
        dependents=kit.table(bare(_texts(kit))),
    )  # fmt: skip


def judged(kit: _Kit) -> CoreSchema:
    """What failed in a task's life (`loki.action.checks.judging.judging_watch`)."""
    return kit.some(failed=kit.many(_pair(kit)), files=_texts(kit))


def before(kit: _Kit) -> CoreSchema:
    """How checks did before a task (`loki.action.checks.feature_evidence`)."""
    return kit.some(execution=kit.whole(-1), failed=_texts(kit), tests=kit.table(bare(_texts(kit))))


def refused(kit: _Kit) -> CoreSchema:
    """A change that was refused (`loki.action.loop.refused_proposal_store`)."""
    return kit.some(execution=kit.whole(-1), told=kit.text(), change=kit.table(_ANYTHING))


def withheld(kit: _Kit) -> CoreSchema:
    """A change that waits for a person (`loki.action.loop.human_review_check`)."""
    maybe = {name: kit.maybe(bare(kit.text())) for name in ("agent", "model")}
    return kit.some(
        review=kit.text(), description=kit.text(), confidence=kit.maybe(bare(kit.number())),
        change=kit.table(_ANYTHING), **maybe,
    )  # fmt: skip


def handled(kit: _Kit) -> CoreSchema:
    """How many lines of a signal's log are done (`loki.people.signals`)."""
    return kit.some(handled=kit.table(bare(kit.whole())))


def seen(kit: _Kit) -> CoreSchema:
    """What stood in files of signals (`loki.people.signal_overwrites`)."""
    word = bare(kit.text())
    one = core_schema.tuple_schema([word, word, word, bare(kit.flag())], strict=False)
    return kit.some(files=kit.table(kit.some(seen=kit.many(one), done=_texts(kit))))


def merging(kit: _Kit) -> CoreSchema:
    """A merge that is under way (`loki.jobs.signals.branch_merge`)."""
    return kit.some(head=kit.text(), merged=kit.text(), branch=kit.text())


def numbers(kit: _Kit) -> CoreSchema:
    """Numbers of what waits (`loki.jobs.inbox.inbox_numbers`)."""
    one = core_schema.tuple_schema([bare(kit.whole()), bare(kit.text())], strict=False)
    return kit.some(next=kit.whole(), given=kit.table(one), left=_texts(kit))


_ANYTHING = core_schema.any_schema()


@lru_cache(maxsize=32)
def validators(form: str) -> tuple[SchemaValidator, SchemaValidator]:
    """What tells whether a form fits, and what makes it fit.

    Args:
        form: the name of a function of this module.
    """
    make: Callable[[_Kit], CoreSchema] = globals()[form]
    return SchemaValidator(make(_Kit(lenient=False))), SchemaValidator(make(_Kit(lenient=True)))
