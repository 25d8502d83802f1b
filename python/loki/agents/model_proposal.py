"""The form of a model's answer, and what becomes of it: a change that is based on what was shown.

Models' JSON is repaired where that loses nothing: fences and words round it, commas too many, line
breaks inside strings, JSON inside a string. An answer that was cut off is never completed: half a file
would look like a whole one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from loki.action.changes.change import Change, Edit
from loki.action.changes.tree import Tree
from loki.action.llm_protocol import Answer, Tool
from loki.action.processes.command_line import split_command_line
from loki.agents.model_context import Context
from loki.base.error import UsageError
from loki.memory.quote import quoted

NULLABLE = ["string", "null"]

TOOL = Tool(
    "propose_change",
    "Propose the change that fulfils the task. Call it exactly once.",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["description", "edits", "commands", "confidence"],
        "properties": {
            "description": {
                "type": "string",
                "description": "What the change does and why, in one to three sentences.",
            },
            "edits": {
                "type": "array",
                "description": "Edits of files, in order. Empty where nothing is to be changed.",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["path", "action", "content", "old", "new"],
                    "properties": {
                        "path": {
                            "type": "string",
                            "description": "Relative to the project, like src/app.py.",
                        },
                        "action": {
                            "type": "string",
                            "enum": ["write", "replace", "delete"],
                            "description": "write: `content` becomes the whole file, which may be "
                            "new. replace: `old`, which occurs exactly once in the file, becomes "
                            "`new`. delete: the file goes.",
                        },
                        "content": {"type": NULLABLE, "description": "For write, else null."},
                        "old": {"type": NULLABLE, "description": "For replace, else null."},
                        "new": {"type": NULLABLE, "description": "For replace, else null."},
                    },
                },
            },
            "commands": {
                "type": "array",
                "description": "Commands to run after the edits, without a shell; only if needed.",
                "items": {"type": "string"},
            },
            "confidence": {
                "type": ["number", "null"],
                "description": "How sure you are that the checks will pass, 0 to 1.",
            },
        },
    },
)
"""What a model calls to answer. All is required and nothing else allowed, so that providers that
enforce schemas can."""

CANDIDATES = 20
"""Places in a text where JSON may begin, at most. Chosen, not measured."""


class Unusable(Exception):
    """An answer that no change can be made of; ``problems`` are sentences for the model."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def _inner(value: Any) -> Any:
    """A list that was sent as JSON text."""
    if isinstance(value, str):
        try:
            return json.loads(value, strict=False)
        except (ValueError, RecursionError):
            return value
    return [] if value is None else value


class _Edit(BaseModel):
    model_config = ConfigDict(extra="ignore")

    path: str
    action: Literal["write", "replace", "delete"] | None = None
    content: str | None = None
    old: str | None = None
    new: str | None = None


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore")

    description: str = ""
    edits: Annotated[list[_Edit], BeforeValidator(_inner)]
    commands: Annotated[list[str | list[str]], BeforeValidator(_inner)] = []
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """What an answer says."""

    change: Change
    description: str
    confidence: float | None


def read(answer: Answer, context: Context) -> Read:
    """The change that an answer describes.

    Args:
        answer: of a model that was asked with `TOOL`.
        context: what it was shown: edits are based on that.

    Raises:
        Unusable: there is none; says everything that is wrong.
    """
    form = _form(answer)
    files, problems = _Files(context), list[str]()
    for number, edit in enumerate(form.edits, 1):
        if problem := files.take(edit):
            problems.append(f"edit {number} ({quoted(edit.path)}): {problem}")
    commands: list[tuple[str, ...]] = []
    for number, command in enumerate(form.commands, 1):
        try:
            commands.append(
                split_command_line(command) if isinstance(command, str) else tuple(command)
            )
        except UsageError as error:
            problems.append(f"command {number}: {error}")
    if problems:
        raise Unusable(*problems)
    description = form.description.strip().encode("utf-8", "replace").decode("utf-8")
    return Read(Change(files.edits(), tuple(commands)), description, form.confidence)


def _form(answer: Answer) -> _Form:
    said = answer.arguments if answer.arguments is not None else answer.text
    try:
        values = loads(said)
    except ValueError as error:
        if answer.ending == "length":
            raise Unusable(
                "the answer was cut off, as it was too long: use replace instead of write"
            ) from error
        if answer.arguments is None:
            raise Unusable(f"{TOOL.name} was not called") from error
        raise Unusable(f"the arguments are no JSON: {error}") from error
    try:
        return _Form.model_validate(values)
    except ValidationError as error:
        raise Unusable(*(_problem(one) for one in error.errors()[:10])) from error


def _problem(error: Any) -> str:
    where = ".".join(map(str, error["loc"]))
    return f"{where}: {error['msg']}" if where else error["msg"]


def loads(text: str) -> dict[str, Any]:
    """The JSON object in a text, repaired where that loses nothing.

    Raises:
        ValueError: there is none; says where it breaks off.

    Example:
        >>> loads('Here it is:\\n```json\\n{"edits": [1, 2,],}\\n```')
        {'edits': [1, 2]}
    """
    first: ValueError | None = None
    starts = [match.start() for match in re.finditer(r"\{", text)][:CANDIDATES]
    for start in starts:
        for candidate in (text[start:], _without_commas(text[start:])):
            try:
                value, _ = json.JSONDecoder(strict=False).raw_decode(candidate)
            except RecursionError:
                raise ValueError("it is nested too deep") from None
            except ValueError as error:
                first = first or error
                continue
            if isinstance(value, dict) and (start == starts[0] or "edits" in value):
                return value
    raise first or ValueError("it holds no object")


_MARK = re.compile(r'\\.|"|,(?=\s*[\]}])', re.DOTALL)


def _without_commas(text: str) -> str:
    """JSON without commas before a closing bracket; strings stay as they are. In one pass."""
    is_inside = False

    def keep(match: re.Match[str]) -> str:
        nonlocal is_inside
        if match[0] == '"':
            is_inside = not is_inside
        return "" if match[0] == "," and not is_inside else match[0]

    return _MARK.sub(keep, text)


class _Files:
    """Files as the edits leave them, one after the other."""

    def __init__(self, context: Context) -> None:
        self._tree = context.tree
        self._whole = context.whole
        self._after: dict[str, str | None] = {}

    def take(self, edit: _Edit) -> str:
        """Apply an edit; what stands against it, or ""."""
        path = edit.path = _plain(edit.path)
        action = edit.action or _action(edit)
        if action == "replace":
            return self._replace(path, edit.old, edit.new)
        if action == "delete":
            self._after[path] = None
            return ""
        if edit.content is None:
            return "write needs `content`"
        if path in self._tree.entries and path not in self._whole and path not in self._after:
            return (
                "it exists, and you were not shown all of it as it is: use replace, which keeps the "
                "rest"
            )
        self._after[path] = edit.content
        return ""

    def _replace(self, path: str, old: str | None, new: str | None) -> str:
        if not old or new is None:
            return "replace needs `old`, which is not empty, and `new`"
        text = self._after[path] if path in self._after else _text(self._tree, path)
        if text is None:
            return "there is no such file of text in the project"
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
        count = text.count(old)
        if count != 1:
            times = f"occurs {count} times" if count else "does not occur"
            return f"`old` {times} in it: expected exactly once, white space included"
        self._after[path] = text.replace(old, new)
        return ""

    def edits(self) -> tuple[Edit, ...]:
        """What all edits amount to, each with the hash of what was shown."""
        entries = self._tree.entries
        return tuple(
            Edit(
                path,
                None if text is None else self._bytes(path, text),
                entries[path].hash if path in entries else None,
            )
            for path, text in self._after.items()
        )

    def _bytes(self, path: str, text: str) -> bytes:
        """A file's new content, with the line ends that it had."""
        if _has_crlf(self._tree, path):
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return text.encode("utf-8", "surrogatepass")


def _plain(path: str) -> str:
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


def _action(edit: _Edit) -> str:
    if edit.content is not None:
        return "write"
    return "replace" if edit.old is not None else "write"


def _raw(tree: Tree, path: str) -> bytes | None:
    entry = tree.entries.get(path)
    if entry is None or entry.is_symlink:
        return None
    try:
        return tree.read(path)
    except OSError:
        return None


def _text(tree: Tree, path: str) -> str | None:
    """A file's text, lines ended by line feeds."""
    raw = _raw(tree, path)
    try:
        return None if raw is None else raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def _has_crlf(tree: Tree, path: str) -> bool:
    raw = _raw(tree, path)
    return raw is not None and b"\r\n" in raw and raw.count(b"\n") == raw.count(b"\r\n")
