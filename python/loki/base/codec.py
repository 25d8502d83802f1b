"""Dataclasses as JSON and back: the one converter of what loki keeps on disk. Pure.

A class says its form by its annotations (``Annotated`` with a function that gives a value back, perhaps
mended, or raises ValueError); `kept` says what differs; a named tuple is a list. `read` is total: what
does not fit spoils only itself. `parse` refuses it, and takes null for "not said". A field ``other`` has
all fields that the class does not know, such as a newer version's, and `write` gives them back; a field
``flaws`` has what `read` found.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from loki.base.time import isoformat, moment

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, SchemaValidator

T = TypeVar("T")


def _time(text: str) -> str:
    if text:
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    return text


def _positive(number: int) -> int:
    if number < 1:
        raise ValueError("expected 1 or more")
    return number


IsoTime = Annotated[str, _time]
"""A time in ISO 8601 as it stands, or ""."""

Positive = Annotated[int, _positive]
"""A number from 1."""

LARGEST = 2**53
"""Numbers beyond are no count of anything, and other programs cannot hold them (RFC 8259, 6)."""

OTHER, FLAWS = "other", "flaws"
"""The fields that have what a class does not know, and what did not fit."""

_BESIDE = frozenset({OTHER, FLAWS})


def kept(
    *,
    name: str = "",
    default: Any = MISSING,
    default_factory: Any = MISSING,
    plain: Any = MISSING,
    omit: bool = False,
    form: Any = None,
) -> Any:
    """A field of a dataclass, where its form is not what its annotation says alone.

    Args:
        name: in JSON, where it is another.
        default, default_factory: as of `dataclasses.field`.
        plain: what it is where nothing is said, or what is said does not fit; else the default.
        omit: whether it is left out where it is as by default.
        form: what JSON may hold, where that is more than the annotation says.
    """
    about = {"name": name, "plain": plain, "omit": omit, "form": form}
    return field(
        metadata={"kept": about},
        **({} if default is MISSING else {"default": default}),
        **({} if default_factory is MISSING else {"default_factory": default_factory}),
    )


def read(cls: type[T], data: object) -> tuple[T | None, tuple[str, ...]]:
    """What is kept, with a plain value for each field that does not fit.

    Args:
        cls: a dataclass.
        data: what JSON holds.

    Returns:
        None where it is no such thing at all; and a sentence about each field that does not fit.

    Example:
        >>> from loki.base.tokens import TokenUsage
        >>> found, flaws = read(TokenUsage, {"input": 12, "output": "many"})
        >>> found.total, flaws
        (12, ("output: found 'many', expected a whole number",))
    """
    from pydantic_core import ValidationError

    try:
        return _validator(cls).validate_python(data), ()  # type: ignore[arg-type]
    except ValidationError as error:
        flaws = tuple(dict.fromkeys(map(_flaw, error.errors(include_url=False))))
    except RecursionError:
        return None, ("it is nested too deeply",)
    try:
        value = _validator(cls, lenient=True).validate_python(data)  # type: ignore[arg-type]
    except (ValidationError, RecursionError):
        return None, flaws
    if hasattr(cls, FLAWS):
        object.__setattr__(value, FLAWS, flaws)
    return value, flaws


def parse(cls: type[T], data: object, what: str = "") -> T:
    """What is kept, where all of it fits.

    Args:
        cls: a dataclass.
        data: what JSON holds.
        what: what it ought to be, for the error; the class's name where nothing is said.

    Raises:
        ValueError: a field does not fit.

    Example:
        >>> from loki.base.tokens import TokenUsage
        >>> parse(TokenUsage, {"input": "many"})
        Traceback (most recent call last):
        ValueError: no TokenUsage: input: found 'many', expected a whole number
    """
    from pydantic_core import ValidationError

    try:
        return _validator(cls, drops_null=True).validate_python(data)  # type: ignore[no-any-return,arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"no {what or cls.__name__}: {_flaw(first)}") from error


def write(value: Any) -> Any:
    """What is kept of a dataclass, or of anything in one, as JSON takes it; its fields in their order.

    Example:
        >>> from loki.base.tokens import TokenUsage
        >>> write(TokenUsage(12))
        {'input': 12, 'output': 0, 'cache_read': 0, 'cache_write': 0}
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, (tuple, list)):
        return [write(one) for one in value]
    if is_dataclass(kind) or hasattr(kind, "to_dict"):
        return value.to_dict() if hasattr(kind, "to_dict") else fields_of(value)
    if isinstance(value, datetime):
        return isoformat(value)
    if isinstance(value, (frozenset, set)):
        return sorted(map(write, value))
    return value.value if isinstance(value, Enum) else value


_PLAIN = frozenset({str, int, float, bool, type(None), dict})


def fields_of(value: Any) -> dict[str, Any]:
    """The same of a dataclass, also of one that has a ``to_dict`` of its own."""
    data = {}
    for attribute, name, leaves_out, plain, is_table in _plan(type(value)):  # type: ignore[arg-type]
        one = getattr(value, attribute)
        if leaves_out and one == plain:
            continue
        if is_table:
            data[name] = {key: write(each) for key, each in one.items()}
        else:
            data[name] = one if type(one) in _PLAIN else write(one)
    for name, one in getattr(value, OTHER, {}).items():
        data.setdefault(name, one)
    return data


@cache
def _plan(cls: type) -> tuple[tuple[str, str, bool, Any, bool], ...]:
    hints = typing.get_type_hints(cls)
    return tuple(
        (
            one.name,
            _name(one),
            bool(_about(one).get("omit")),
            _default(one),
            _is_table(hints[one.name]),
        )
        for one in fields(cls)
        if one.name not in _BESIDE
    )


def _is_table(hint: Any) -> bool:
    """Whether it is a table of what has a form of its own."""
    origin, inner = get_origin(hint), get_args(hint)
    is_mapping = isinstance(origin, type) and issubclass(origin, Mapping)
    return is_mapping and inner[1] not in {str, int, float, bool, Any}


def _about(one: Field[Any]) -> Mapping[str, Any]:
    about: Mapping[str, Any] = one.metadata.get("kept", {})
    return about


def _name(one: Field[Any]) -> str:
    return str(_about(one).get("name") or one.name)


def _default(one: Field[Any]) -> Any:
    if one.default is not MISSING:
        return one.default
    return one.default_factory() if one.default_factory is not MISSING else MISSING


_EXPECTED: Mapping[str, str] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "none_required": "null",
}


def _flaw(error: Any) -> str:
    """An error of a validator, in a sentence: where, what, what was expected."""
    where = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{where}: is missing"
    expected, context = _EXPECTED.get(error["type"], ""), error.get("ctx", {})
    if error["type"] == "is_instance_of":
        expected = "text" if context["class"] == "str" else "an object"
    elif said := context.get("error") or context.get("expected"):
        expected = str(said).removeprefix("expected ")
    if not expected.startswith("found "):
        expected = f"found {shown(error['input'])}{expected and f', expected {expected}'}"
    return f"{where}: {expected}" if where else expected


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


# --- Forms ------------------------------------------------------------------------------------------


@cache
def _validator(cls: type, *, lenient: bool = False, drops_null: bool = False) -> SchemaValidator:
    from pydantic_core import SchemaValidator

    return SchemaValidator(_Forms(lenient=lenient, drops_null=drops_null).of_class(cls))


def _leaf(hint: Any) -> CoreSchema | None:
    from pydantic_core import core_schema

    if hint is str:
        # Not a string of pydantic's: names of files that are no UTF-8 hold lone surrogates.
        return core_schema.is_instance_schema(str)
    if hint is int:
        return core_schema.int_schema(strict=True, ge=-LARGEST, le=LARGEST)
    if hint is float:
        return core_schema.float_schema(strict=True, allow_inf_nan=False)
    if hint is bool:
        return core_schema.bool_schema(strict=True)
    if hint is datetime or hasattr(hint, "from_dict"):
        reader = _moment if hint is datetime else _own_reader(hint)
        return core_schema.no_info_plain_validator_function(reader)
    return core_schema.any_schema() if hint is Any else None


def _own_reader(cls: Any) -> Callable[[Any], Any]:
    """How a class reads itself, whatever it raises where that cannot be."""

    def reader(data: Any) -> Any:
        try:
            return cls.from_dict(data)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"expected {cls.__name__}: {error!r}") from None

    return reader


def _moment(text: object) -> datetime:
    found = moment(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError("expected a time in ISO 8601")
    return found


class _Forms:
    """Makes schemas: such as refuse what does not fit, or such as have a plain value in its place."""

    def __init__(self, *, lenient: bool, drops_null: bool) -> None:
        self._lenient, self._drops_null = lenient, drops_null

    def of_class(self, cls: Any) -> CoreSchema:
        from pydantic_core import core_schema

        hints = typing.get_type_hints(cls, include_extras=True)
        known = [one for one in fields(cls) if one.name not in _BESIDE]
        schema = core_schema.dataclass_schema(
            cls,
            core_schema.dataclass_args_schema(
                cls.__name__,
                [
                    core_schema.dataclass_field(
                        one.name, self._field(one, hints[one.name]), validation_alias=_name(one)
                    )
                    for one in known
                ],
                extra_behavior="ignore",
            ),
            [one.name for one in known],
            slots=hasattr(cls, "__slots__"),
            post_init=hasattr(cls, "__post_init__"),
        )
        names = frozenset(map(_name, known))
        beside = {one.name for one in fields(cls)} & _BESIDE

        def said(data: Any, handler: Callable[[Any], Any]) -> Any:
            if type(data) is not dict and not isinstance(data, Mapping):
                raise ValueError("expected an object")
            is_known = names.issuperset(data)  # as nearly always
            known = data if is_known else {k: v for k, v in data.items() if k in names}
            if self._drops_null:
                known = {k: v for k, v in known.items() if v is not None}
            value = handler(known)
            if OTHER in beside:
                other = {} if is_known else {k: v for k, v in data.items() if k not in names}
                object.__setattr__(value, OTHER, other)
            if FLAWS in beside:
                object.__setattr__(value, FLAWS, ())
            return value

        return core_schema.no_info_wrap_validator_function(said, schema)

    def _field(self, one: Field[Any], hint: Any) -> CoreSchema:
        from pydantic_core import core_schema

        about = _about(one)
        schema = self.of(about.get("form") or hint)
        plain = about.get("plain", MISSING)
        plain = _default(one) if plain is MISSING else plain
        if plain is MISSING:
            return schema
        how: Literal["default", "raise"] = "default" if self._lenient else "raise"
        return core_schema.with_default_schema(schema, default=plain, on_error=how)

    def of(self, hint: Any) -> CoreSchema:
        from pydantic_core import core_schema

        if (leaf := _leaf(hint)) is not None:
            return leaf
        if is_dataclass(hint):
            return self.of_class(hint)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return core_schema.no_info_plain_validator_function(hint)
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return core_schema.no_info_after_validator_function(inner[1], self.of(inner[0]))
        if origin in {Union, types.UnionType}:
            kinds = [self.of(one) for one in inner if one is not type(None)]
            schema = kinds[0] if len(kinds) == 1 else core_schema.union_schema(list(kinds))
            return core_schema.nullable_schema(schema) if len(kinds) < len(inner) else schema
        return self._generic(hint, origin, inner)

    def _generic(self, hint: Any, origin: Any, inner: tuple[Any, ...]) -> CoreSchema:
        from pydantic_core import core_schema

        if origin is Literal:
            return core_schema.literal_schema(list(inner))
        if isinstance(hint, type) and issubclass(hint, tuple):  # one with names
            parts = [self.of(one) for one in typing.get_type_hints(hint).values()]
            row = core_schema.tuple_schema(parts, strict=False)
            return core_schema.no_info_after_validator_function(lambda one: hint(*one), row)
        if origin is tuple and inner[-1] is not ...:
            return core_schema.tuple_schema([self.of(one) for one in inner], strict=False)
        if origin in {tuple, frozenset, list}:
            listed = core_schema.list_schema(self._item(inner[0]))
            return core_schema.no_info_after_validator_function(origin, listed)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            if inner[1] is Any:
                return core_schema.is_instance_schema(Mapping)
            names = core_schema.is_instance_schema(str)
            return core_schema.dict_schema(names, self._item(inner[1]), strict=True)
        raise TypeError(f"no form for {hint}")

    def _item(self, hint: Any) -> CoreSchema:
        """An item that goes, and nothing beside it, where it does not fit."""
        from pydantic_core import core_schema

        schema = self.of(hint)
        if not self._lenient:
            return schema
        return core_schema.with_default_schema(schema, on_error="omit")
