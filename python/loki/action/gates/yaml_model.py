"""YAML that people write, read into pydantic models; what is wrong is said with line and column.

Size, depth and aliases are held to the limits of `loki.recognition.definition_file`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from loki.base.error import ConfigError
from loki.recognition.definition_file import Source, did_you_mean

_M = TypeVar("_M", bound=BaseModel)
_MERGE = "tag:yaml.org,2002:merge"


class Strict(BaseModel):
    """What a file holds: the keys that are known and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_beside(module: str, name: str, model: type[_M]) -> _M:
    """The model that a file of loki's own describes.

    Args:
        module: ``__file__`` of the module that it stands beside.
        name: of the file.
        model: what it looks like.
    """
    return read(Path(module).with_name(name).read_bytes(), name, model)


def read(content: str | bytes, name: str, model: type[_M]) -> _M:
    """The model that a YAML text describes.

    Args:
        content: the text; bytes are UTF-8.
        name: what errors call the file.
        model: what it must look like.

    Raises:
        ConfigError: the first thing that is wrong, with line and column, what was found and what was
            expected.

    Example:
        >>> class Point(BaseModel, extra="forbid"):
        ...     x: int
        >>> read("x: 1", "point.yml", Point)
        Point(x=1)
        >>> read("x: one", "point.yml", Point)
        Traceback (most recent call last):
        loki.base.error.ConfigError: point.yml:1:4: x: found 'one', expected a whole number
    """
    source = Source(content, name)
    root = source.compose()
    try:
        return model.model_validate(plain(root, source))
    except ValidationError as error:
        raise _explain(error, model, root, source) from None


def plain(node: yaml.Node, source: Source) -> Any:
    """The value of a node, as YAML's core schema reads it; keys are text.

    Raises:
        ConfigError: a key twice, a key that is no text, or a merge key.
    """
    if isinstance(node, yaml.SequenceNode):
        return [plain(item, source) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                raise source.error(key.start_mark.index, "found no plain key, expected text as key")
            if key.value in found:
                reason = f"found key {key.value!r} a second time, expected each key once"
                raise source.error(key.start_mark.index, reason)
            found[key.value] = plain(value, source)
        return found
    return _scalar(node)


def _scalar(node: yaml.Node) -> Any:
    if node.tag.endswith((":int", ":float", ":bool", ":null")):
        with suppress(ValueError):  # of an integer of many digits, say
            return yaml.constructor.SafeConstructor().construct_object(node)
    return node.value


def _explain(
    error: ValidationError, model: type[BaseModel], root: yaml.Node, source: Source
) -> ConfigError:
    problem = error.errors(include_url=False)[0]
    keys, forbidden = problem["loc"], problem["type"] == "extra_forbidden"
    is_key = keys[-1:] == ("[key]",)
    keys = keys[:-1] if is_key else keys
    node = node_at(root, keys, key=forbidden or is_key)
    where = ".".join(str(key) for key in keys)
    if forbidden:
        names = _fields(model, keys[:-1])
        known = f"expected one of {', '.join(names)}" if names else "expected no such key"
        reason = f"found the key {keys[-1]!r}, {known}{did_you_mean(str(keys[-1]), names)}"
    elif problem["type"] == "missing":
        reason = f"found no key {where!r}, expected one"
    else:
        reason = f"{where}: {complaint(problem)}"
    return source.error(node.start_mark.index, reason.removeprefix(": "))


def complaint(problem: Mapping[str, Any]) -> str:
    """What was found and what was expected, of one of pydantic's errors."""
    message = str(problem["msg"]).removeprefix("Value error, ")
    if "found " in message:
        return message
    expected = message.removeprefix("Input should be ").replace("'", "")
    return f"found {_shown(problem['input'])}, expected {_EXPECTED.get(problem['type'], expected)}"


_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "nothing" if value is None else repr(value)[:60]


def node_at(node: yaml.Node, keys: Sequence[str | int], *, key: bool = False) -> yaml.Node:
    """The node of a value or, on demand, of its key; the nearest one above where there is none."""
    for count, name in enumerate(keys, 1):
        inside: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            pairs = [pair for pair in node.value if pair[0].value == str(name)]
            inside = pairs[0][0 if key and count == len(keys) else 1] if pairs else None
        elif isinstance(node, yaml.SequenceNode) and isinstance(name, int):
            inside = node.value[name] if name < len(node.value) else None
        if inside is None:
            break
        node = inside
    return node


def _fields(model: type[BaseModel], keys: Sequence[str | int]) -> list[str]:
    """The names that a mapping may have; none where they are not told by the model."""
    inner: Any = model
    for key in keys:
        if _is_model(inner):
            field = inner.model_fields.get(str(key))
            inner = field.annotation if field else None
        else:  # a mapping or a list of models
            inner = next((part for part in get_args(inner) if _is_model(part)), None)
    return [f.alias or name for name, f in inner.model_fields.items()] if _is_model(inner) else []


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
