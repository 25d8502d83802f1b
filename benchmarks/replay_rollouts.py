"""Rollouts of NeMo Gym taken apart: which calls they hold, what came of each, what was said at the end.

Three forms: items of OpenAI's Responses API, messages of mini-swe-agent (its own trajectory, or commands in a
message's text), and batches of Terminus, where several calls share one result.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

EXIT_CODES = tuple(
    re.compile(said, re.MULTILINE)
    for said in (
        r"^\s*<returncode>(-?\d+)</returncode>",
        r'"returncode"\s*:\s*(-?\d+)',
        r'"exit_code"\s*:\s*(-?\d+)',
        r"(?:Process exited with code|Command exited with code|[Ee]xit code:?"
        r"|\[Command finished with exit code) (-?\d+)",
        r"\[The command completed with exit code (-?\d+)\.?\]",
    )
)
ENDS = 600
"""Characters at both ends of a result where its wrapper tells the exit code; a file is in the middle."""

Step: TypeAlias = dict[str, Any]
Item: TypeAlias = Mapping[str, Any]
Found: TypeAlias = tuple[list[Step], "str | None"]


def of_items(output: list[Item]) -> Found:
    """Steps and last words, from items of the Responses API."""
    results: dict[Any, list[str]] = {}
    for item in output:
        if item.get("type") == "function_call_output":
            results.setdefault(item.get("call_id"), []).append(_text(item.get("output")))
    steps: list[Step] = []
    final, batch = None, list[Item]()
    for item in [*output, {}]:
        if item.get("type") == "function_call":
            batch.append(item)
            final = None
            continue
        steps += _of_batch(batch, results)
        batch = []
        if item.get("type") == "message" and item.get("role") == "assistant":
            final = _text(item.get("content"))
    return steps, final


def _of_batch(batch: list[Item], results: dict[Any, list[str]]) -> Iterator[Step]:
    """The steps of calls that were made at once; Terminus answers all of them with one screen."""
    given = [results.get(one.get("call_id")) or [] for one in batch]
    told = [one for one in given if one]
    names = {one.get("name") for one in batch}
    if len(batch) > 1 and len(told) == 1 and names <= {"bash_command", "mark_task_complete"}:
        sent = [_arguments(one.get("arguments")) for one in batch]
        keys = "".join(one.get("keystrokes", "") for one in sent)
        yield _step("bash_command", {"keystrokes": keys, "commands": sent}, told[0].pop(0))
        return
    for call, answers in zip(batch, given, strict=True):
        arguments = _arguments(call.get("arguments"))
        yield _step(call.get("name"), arguments, answers.pop(0) if answers else "")


def of_text(output: list[Item]) -> Found:
    """The same where a message holds one command in a block, and the next message what came of it."""
    steps: list[Step] = []
    final = None
    for item, following in itertools.pairwise([*output, {}]):
        if item.get("type") == "message" and item.get("role") == "assistant":
            final = _text(item.get("content"))
            commands = re.findall(r"```bash\s*\n(.*?)\n?```", final, re.DOTALL)
            answer = _text(following.get("content"))
            if len(commands) == 1 and "<returncode>" in answer:
                steps.append(_step("bash", {"command": commands[0]}, answer))
                final = None
    return steps, final


def of_messages(messages: Iterable[Item]) -> Found:
    """The same of mini-swe-agent's own trajectory: responses as a whole, and their calls' outputs."""
    items: list[Item] = []
    for message in messages:
        if message.get("type") == "function_call_output":
            items.append(message)
        elif message.get("role") == "tool":
            call = message.get("tool_call_id")
            output = {"call_id": call, "output": message.get("content")}
            items.append({"type": "function_call_output", **output})
        elif message.get("output"):
            items += message["output"]
        elif message.get("role") == "assistant":
            items.append({"type": "message", **message})
            for call in message.get("tool_calls") or []:
                items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return of_items(items)


def _step(tool: Any, arguments: Any, result: str) -> Step:
    failed = True if result.lstrip().startswith("<tool_use_error>") else None
    code = _exit_code(result)
    said = {"tool": tool, "args": arguments, "result": result}
    return {**said, "exit_code": code, "is_error": failed}


def _exit_code(result: str) -> int | None:
    ends = result if len(result) < 2 * ENDS else f"{result[:ENDS]}\n\0\n{result[-ENDS:]}"
    found = (regex.search(ends) for regex in EXIT_CODES)
    return next((int(match[1]) for match in found if match), None)


def _arguments(given: Any) -> dict[str, Any]:
    try:
        said = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return {"_raw": given}
    return said if isinstance(said, dict) else {"value": said}


def _text(content: Any) -> str:
    """Content as text: a string, or parts of which some are text."""
    if isinstance(content, list):
        parts = [one if isinstance(one, dict) else {"text": str(one)} for one in content]
        texts = [one.get("text") or _text(one.get("content")) for one in parts]
        return "\n".join(one for one in texts if one)
    return content if isinstance(content, str) else "" if content is None else json.dumps(content)
