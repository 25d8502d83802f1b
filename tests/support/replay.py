"""Programs that stand in for command-line agents: they print a recorded stream and do what is asked.

The streams are cut down from what Claude Code 2.1.330, Codex 0.169.0, Gemini CLI 0.61.0 and aider 0.86.2
printed when they worked against a service on this machine; `tests/system/toolchains/agents/test_real.py` runs the programs themselves.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Events = Iterable[Mapping[str, Any]]

SESSION = "c23a4c7c-ad92-488a-9e8f-641dc7d4c47f"


def lines(events: Events) -> bytes:
    """Events as a program prints them, one to a line."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def claude_result(**changed: Any) -> dict[str, Any]:
    """The last event of Claude Code, which is also all that ``--output-format json`` prints."""
    usage = {
        "input_tokens": 200,
        "cache_creation_input_tokens": 40,
        "cache_read_input_tokens": 60,
        "output_tokens": 80,
    }
    model = {
        "inputTokens": 200,
        "outputTokens": 80,
        "cacheReadInputTokens": 60,
        "cacheCreationInputTokens": 40,
        "costUSD": 0.002612,
    }
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 2,
        "result": "I wrote the note.",
        "session_id": SESSION,
        "total_cost_usd": 0.002612,
        "usage": usage,
        "modelUsage": {"claude-opus-5-5": model},
        "api_error_status": None,
        **changed,
    }


def claude_events(**result: Any) -> list[dict[str, Any]]:
    """What Claude Code prints with ``--output-format stream-json``."""
    same = {"parent_tool_use_id": None, "session_id": SESSION}
    wrote = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "Write",
        "input": {"file_path": "note.txt"},
    }
    done = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "File created"}
    said = {"type": "text", "text": "I wrote the note."}
    return [
        {"type": "system", "subtype": "init", "model": "claude-opus-5-5", "session_id": SESSION},
        {"type": "assistant", "message": {"role": "assistant", "content": [wrote]}, **same},
        {"type": "user", "message": {"role": "user", "content": [done]}, **same},
        {"type": "assistant", "message": {"role": "assistant", "content": [said]}, **same},
        claude_result(**result),
    ]


def codex_events() -> list[dict[str, Any]]:
    """What ``codex exec --json`` prints."""
    command = {"id": "item_1", "type": "command_execution", "command": "/bin/bash -lc 'echo hello'"}
    fallback = "Model metadata for `gpt-5` not found. Defaulting to fallback metadata."
    return [
        {"type": "thread.started", "thread_id": SESSION},
        {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": fallback}},
        {"type": "turn.started"},
        {"type": "item.started", "item": {**command, "status": "in_progress"}},
        {"type": "item.completed", "item": {**command, "exit_code": 0, "status": "completed"}},
        {
            "type": "item.completed",
            "item": {"id": "item_2", "type": "agent_message", "text": "I wrote the note."},
        },
        {
            "type": "turn.completed",
            "usage": {
                "input_tokens": 200,
                "cached_input_tokens": 60,
                "cache_write_input_tokens": 0,
                "output_tokens": 80,
                "reasoning_output_tokens": 10,
            },
        },
    ]


def codex_failure(message: str) -> list[dict[str, Any]]:
    """What ``codex exec --json`` prints where its service refuses."""
    return [
        {"type": "thread.started", "thread_id": SESSION},
        {"type": "turn.started"},
        {"type": "error", "message": message},
        {"type": "turn.failed", "error": {"message": message}},
    ]


def gemini_events(**result: Any) -> list[dict[str, Any]]:
    """What Gemini CLI prints with ``--output-format stream-json``."""
    counts = {"total_tokens": 290, "input_tokens": 200, "output_tokens": 80, "cached": 60}
    wrote = {"tool_name": "write_file", "tool_id": "1", "parameters": {"file_path": "note.txt"}}
    return [
        {"type": "init", "session_id": SESSION, "model": "gemini-2.5-pro"},
        {"type": "message", "role": "user", "content": "Write a note\n"},
        {"type": "message", "role": "assistant", "content": "I will write it.", "delta": True},
        {"type": "tool_use", **wrote},
        {"type": "tool_result", "tool_id": "1", "status": "success"},
        {"type": "message", "role": "assistant", "content": "I wrote ", "delta": True},
        {"type": "message", "role": "assistant", "content": "the note.", "delta": True},
        {
            "type": "result",
            "status": "success",
            "stats": {**counts, "models": {"gemini-2.5-pro": counts}},
            **result,
        },
    ]


def gemini_document() -> dict[str, Any]:
    """What Gemini CLI prints with ``--output-format json``, over many lines."""
    tokens = {
        "prompt": 200,
        "candidates": 80,
        "total": 290,
        "cached": 60,
        "thoughts": 10,
        "tool": 0,
    }
    models = {"gemini-2.5-pro": {"api": {"totalRequests": 2}, "tokens": tokens}}
    return {"session_id": SESSION, "response": "I wrote the note.", "stats": {"models": models}}


AIDER = """\
Aider v0.86.2
Main model: gpt-4o with diff edit format, infinite output
Weak model: gpt-4o-mini
Git repo: .git with 2 files
Repo-map: using 4096 tokens, auto refresh


I will write the note.

note.txt
```
<<<<<<< SEARCH
=======
hello
>>>>>>> REPLACE
```

Tokens: 1.2k sent, 100 received. Cost: $0.0040 message, $0.0040 session.

note.txt
Applied edit to note.txt
"""
"""What aider 0.86.2 prints."""


def program(
    folder: Path, name: str, printed: bytes, script: str = "", ending: str = "exit 0"
) -> Path:
    """An executable that keeps its briefing and arguments, prints a stream, and runs a script.

    Args:
        folder: where it goes, not the project.
        name: of the program.
        printed: its standard output.
        script: of a shell, run in the copy before anything is printed.
        ending: of a shell, run at the end.
    """
    folder.mkdir(exist_ok=True)
    stream = folder / f"{name}.stream"
    stream.write_bytes(printed)
    path = folder / name
    path.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$@\" > '{folder}/{name}.arguments'\n"
        f"env > '{folder}/{name}.environment'\n"
        f"cat > '{folder}/{name}.stdin'\n{script}\ncat '{stream}'\n{ending}\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
