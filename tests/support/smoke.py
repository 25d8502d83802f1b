"""A project that is looked after by the real ``loki`` command, at times that a test says."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from support import command

START = datetime(2026, 4, 4, 10, 0, 30, tzinfo=timezone.utc)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def at(text: str) -> datetime:
    """A moment of a file."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


class Smoke:
    """A project with recurring tasks, and the command that looks after it.

    Attributes:
        root: the project; now: the time at which the next command starts.
        said: what the last command wrote to stderr.
    """

    def __init__(self, root: Path) -> None:
        """Args: root: an empty folder."""
        self.root, self.now, self.said = root, START, ""
        self.tools = root.parent / f"{root.name}-tools"
        self.tools.mkdir(parents=True)
        (root / ".loki").mkdir(parents=True)

    def config(self, agent: str | None = None, **settings: Any) -> None:
        """Settings of ``[recurrence]``, and who is told; agent: the script of the triage agent ``doc``."""
        lines = [
            "[recurrence]",
            *(f"{name} = {json.dumps(value)}" for name, value in settings.items()),
        ]
        if agent is not None:
            program = json.dumps(str(self.program("doc", agent)))
            lines += ['triage_agent = "doc"', "[agents.doc]", f"command = {program}"]
        told = json.dumps(str(self.program("tell", "cat >> $TOOLS/told; echo >> $TOOLS/told")))
        lines += ["[notify]", f"command = {told}"]
        (self.root / ".loki" / "config.toml").write_text("\n".join(lines) + "\n")

    def told(self) -> list[dict[str, str]]:
        """What people were told."""
        path = self.tools / "told"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line]

    def program(self, name: str, script: str) -> Path:
        """An executable outside the project; it runs with ``$TOOLS``, their folder."""
        path = self.tools / name
        path.write_text(f"#!/bin/sh\nTOOLS={self.tools}\n{script}\n")
        path.chmod(0o755)
        return path

    def loki(self, *words: str, status: int = 0) -> str:
        """Run ``loki``, which must end with ``status``; what it printed."""
        environment = dict.fromkeys(name for name in os.environ if name.startswith("LOKI_"))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        said = {"LOKI_NOW": self.now.isoformat(), "COLUMNS": "200", "PATH": path}
        code, out, self.said = command.loki(
            *words, cwd=self.root, environment={**environment, **said}
        )
        assert code == status, (words, out, self.said)
        return out

    def here(self, *words: str) -> str:
        """The same with the test's variables and from its folder, and what was said is as before."""
        said = {"LOKI_NOW": self.now.isoformat()}
        code, out, err = command.loki(*words, "--project", str(self.root), environment=said)
        assert code == 0, (words, out, err)
        return out

    def add(self, id_: str = "backup", *words: str, script: str = "exit 3") -> None:
        """A recurring task of a shell; every minute where nothing else is said."""
        when = words or ("--cron", "* * * * *", "--zone", "UTC")
        self.here("recur", "add", "--id", id_, *when, "--shell", script)

    def watch(self, span: timedelta) -> str:
        """Let the dispatcher run for so long; what it wrote to stderr."""
        end = self.now + span
        self.loki("tick", "--watch", "--until", end.isoformat())
        self.now = end
        return self.said

    def show(self, id_: str = "backup") -> dict[str, Any]:
        """All about a task."""
        data: dict[str, Any] = json.loads(self.here("show", id_, "--json"))
        return data

    def task(self, id_: str = "backup") -> dict[str, Any]:
        """Its file, which is quicker than `show`."""
        path = self.root / ".loki" / "recurring" / id_ / "task.json"
        data: dict[str, Any] = json.loads(path.read_text())
        return data

    def runs(self, id_: str = "backup") -> list[dict[str, Any]]:
        """All its runs."""
        lines = (self.root / ".loki" / "recurring" / id_ / "runs.jsonl").read_text().splitlines()
        by_number = {run["number"]: run for run in map(json.loads, lines)}
        return [by_number[number] for number in sorted(by_number)]

    def times(self, id_: str = "backup") -> list[datetime]:
        """When its runs were to begin."""
        return [at(run["scheduled_at"]) for run in self.runs(id_)]

    def log(self, event: str) -> list[dict[str, Any]]:
        """Lines of the scheduler's log."""
        lines = (self.root / ".loki" / "logs" / "scheduler.jsonl").read_text().splitlines()
        return [one for one in map(json.loads, lines) if one["event"] == event]

    def queue(self) -> list[dict[str, Any]]:
        """The tasks that wait."""
        path = self.root / ".loki" / "queue" / "pending.json"
        tasks: list[dict[str, Any]] = json.loads(path.read_text())["tasks"] if path.exists() else []
        return tasks


def verdict(kind: str, cause: str = "the endpoint moved", before: str = "") -> str:
    """A script that reads what it is asked, does something and gives a verdict."""
    return (
        f"cat > $TOOLS/asked; {before or ':'}\n"
        f"printf 'VERDICT={kind}\\nROOT_CAUSE: {cause}\\nEVIDENCE: see above\\nACTION_TAKEN: none\\n'"
    )


def is_about(value: timedelta, expected: timedelta) -> bool:
    """Whether a delay is an expected one, give or take the jitter."""
    return 0.9 * expected <= value <= 1.1 * expected
