"""A session of Claude Code as its hooks tell it, with the fields that 2.1.330 sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loki.adapters.hooks.hook_handler import answer

RUN = {"stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}


def going(task: str, command: str) -> Mapping[str, str]:
    """A task in the background, as an end tells of it."""
    return {
        "id": task,
        "type": "shell",
        "status": "running",
        "description": "x",
        "command": command,
    }


@dataclass
class ClaudeSession:
    """Plays what happens, and keeps what loki said.

    Attributes:
        root: the project.
        agent: the subagent that works now, or "".
        said: what loki said: the event, and the answer.
    """

    root: Path
    agent: str = ""
    turn: int = 0
    calls: int = 0
    said: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def refused(self) -> list[str]:
        """Why ends were refused."""
        return [str(told["reason"]) for event, told in self.said if event.endswith("Stop")]

    @property
    def told(self) -> list[tuple[str, Mapping[str, Any]]]:
        """What else was said."""
        return [one for one in self.said if not one[0].endswith("Stop")]

    def tell(self, event: str, **more: Any) -> None:
        """One event."""
        data = {
            "session_id": "f9a36196-35bc-421f-af10-2f8772a0c7b2",
            "transcript_path": str(self.root.parent / "transcript.jsonl"),
            "cwd": str(self.root),
            "prompt_id": f"prompt-{self.turn}",
            "permission_mode": "default",
            "effort": {"level": "high"},
            "hook_event_name": event,
            **more,
        }
        if self.agent:
            data |= {"agent_id": self.agent, "agent_type": "general-purpose"}
        told = answer("claude-code", data, {"CLAUDE_PROJECT_DIR": str(self.root)})
        if told is not None:
            self.said.append((event, told))

    def start(self, source: str = "startup") -> None:
        """It begins, goes on, or was compacted."""
        self.tell("SessionStart", source=source)

    def prompt(self, prompt: str) -> None:
        """A person asks."""
        self.turn += 1
        self.tell("UserPromptSubmit", prompt=prompt)

    def tool(self, name: str, asked: Mapping[str, Any], gave: Any = None, error: str = "") -> None:
        """A call of a tool."""
        self.calls += 1
        call = {"tool_name": name, "tool_input": asked, "tool_use_id": f"toolu_{self.calls}"}
        self.tell("PreToolUse", **call)
        if error:
            self.tell("PostToolUseFailure", error=error, is_interrupt=False, **call)
        else:
            self.tell("PostToolUse", tool_response={} if gave is None else gave, **call)

    def bash(self, command: str, output: str = "", code: int = 0) -> None:
        """A command."""
        asked = {"command": command, "description": "x"}
        if code:
            self.tool("Bash", asked, error=f"Exit code {code}\n{output}")
        else:
            self.tool("Bash", asked, {"stdout": output, **RUN})

    def background(self, command: str, task: str) -> None:
        """A command in the background."""
        asked = {"command": command, "description": "x", "run_in_background": True}
        self.tool("Bash", asked, {"stdout": "", "backgroundTaskId": task, **RUN})

    def ended(self, task: str, code: int | None, output: str = "") -> None:
        """A task in the background has ended; None: it was stopped."""
        printed = self.root.parent / f"{task}.output"
        printed.write_text(output)
        how = {0: ("completed", "completed (exit code 0)"), None: ("killed", "was stopped")}
        status, summary = how.get(code, ("failed", f"failed with exit code {code}"))
        self.tell(
            "UserPromptSubmit",
            prompt=f"<task-notification>\n<task-id>{task}</task-id>\n<tool-use-id>toolu_1</tool-use-id>\n"
            f"<output-file>{printed}</output-file>\n<status>{status}</status>\n"
            f'<summary>Background command "exit code 7" {summary}</summary>\n</task-notification>',
        )

    def edit(self, path: str, new: str = "x = 1") -> None:
        """An edit of a file of the project."""
        file = str(self.root / path)
        asked = {"file_path": file, "old_string": "pass", "new_string": new, "replace_all": False}
        self.tool("Edit", asked, {"filePath": file, "structuredPatch": [], "userModified": False})

    def write(self, path: str, content: str = "x = 1") -> None:
        """A new file; an absolute path may be anywhere."""
        file = str(self.root / path)
        asked = {"file_path": file, "content": content}
        self.tool("Write", asked, {"type": "create", "filePath": file, "structuredPatch": []})

    def read(self, path: str) -> None:
        """A look into a file."""
        file = str(self.root / path)
        self.tool("Read", {"file_path": file}, {"type": "text", "file": {"filePath": file}})

    def stop(self, message: str, tasks: Sequence[Mapping[str, str]] = ()) -> None:
        """Its last words of a turn."""
        event = "SubagentStop" if self.agent else "Stop"
        more = {"stop_hook_active": False, "background_tasks": list(tasks), "session_crons": []}
        self.tell(event, last_assistant_message=message, **more)
