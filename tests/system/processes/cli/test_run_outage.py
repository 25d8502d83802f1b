"""`loki run` while its agent cannot be reached: real processes that share a circuit breaker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.command import LOKI, Ended, loki
from support.project import RIGHT, WRONG, make_project

NAME = "agent/agent.sh"
CHECK = "grep 'a + b' calc.py"

AGENT = """\
#!/bin/sh
# Fails as long as there are outages left to have; each call is a line in `calls`.
cat > /dev/null
echo "$LOKI_TASK $LOKI_ATTEMPT" >> {folder}/calls
left=$(cat {folder}/outages)
if [ "$left" -gt 0 ]; then
    echo $((left - 1)) > {folder}/outages
    echo 'API Error: 529 {{"type":"error","error":{{"type":"overloaded_error"}}}}' >&2
    exit 1
fi
sed -i 's/a - b/a + b/' calc.py
echo turned the sign
"""


class Shop:
    """A project, its agent, and `loki run`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.project = folder, make_project(folder / "calc")
        self.state = self.project / ".loki/state/circuit-breakers.json"
        (self.project / ".loki").mkdir()
        # No test sleeps: the waits between two failures are next to nothing.
        (self.project / ".loki/config.toml").write_text('[loop]\nbackoff = "1ms"\n')
        self.agent = folder / "agent.sh"
        self.agent.write_text(AGENT.format(folder=folder))
        self.agent.chmod(0o755)
        self.outages(0)

    def outages(self, count: int) -> None:
        (self.folder / "outages").write_text(f"{count}\n")

    def calls(self) -> int:
        path = self.folder / "calls"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def command(self, *arguments: str, task: str = "make add add") -> list[str]:
        agent = ("--agent-command", str(self.agent))
        return [*LOKI, "run", "--task", task, "--check", CHECK, *agent, *arguments]

    def run(self, *arguments: str, task: str = "make add add") -> Ended:
        return loki(*self.command(*arguments, task=task)[len(LOKI) :], cwd=self.project)

    def breaker(self) -> dict[str, Any]:
        return json.loads(self.state.read_text())[NAME]  # type: ignore[no-any-return]

    def let_the_cooldown_pass(self) -> None:
        """As another program may: by writing what it knows."""
        data = json.loads(self.state.read_text())
        data[NAME]["cooldown_until"] = "2020-01-01T00:00:00Z"
        self.state.write_text(json.dumps(data))

    def attempts(self) -> list[tuple[int, str, bool]]:
        (path,) = self.project.glob(".loki/tasks/*/attempts.jsonl")
        kept = map(json.loads, path.read_text().splitlines())
        made = [record for record in kept if "attempt" in record]
        return [(a["attempt"], a["result"], a["infrastructure"]) for a in made]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


OUTAGE = [(1, "failed", True), (2, "failed", True), (3, "failed", True)]


def test_three_failures_stop_it_and_after_the_cooldown_it_goes_on(shop: Shop) -> None:
    shop.outages(3)
    code, out, err = shop.run("--max-attempts", "1")
    assert (code, shop.calls(), shop.breaker()["state"]) == (6, 3, "OPEN")
    until = shop.breaker()["cooldown_until"]
    first, *lines = out.splitlines()
    assert first.startswith(
        f"paused after 3 attempts: the circuit breaker {NAME} lets no call through until "
    )
    assert "overloaded_error" in first
    assert until[:16] in first
    assert lines[0].startswith("resume:  the same command from ")
    assert "--wait" in lines[0]
    assert lines[1] == f"breaker: loki breakers show {NAME}"
    assert "status=paused" in err
    assert (shop.project / "calc.py").read_text() == WRONG

    code, out, _ = shop.run("--max-attempts", "1", "--json")
    said = json.loads(out)
    assert (code, said["status"], said["attempts"], said["breaker"]) == (6, "paused", 3, NAME)
    assert said["retry_at"][:16] == until[:16]
    assert (shop.calls(), shop.attempts()) == (3, OUTAGE), "nobody was asked, no attempt counts"

    shop.let_the_cooldown_pass()
    code, out, err = shop.run("--max-attempts", "1")
    assert code == 0, err
    assert out.startswith("success after 4 attempts")
    assert (shop.project / "calc.py").read_text() == RIGHT
    assert shop.attempts() == [*OUTAGE, (4, "success", False)]
    assert (shop.breaker()["state"], shop.breaker()["success_count"]) == ("HALF_OPEN", 1)


def test_what_it_says_of_a_breaker_can_be_done(shop: Shop) -> None:
    """The commands in its last lines work as they stand."""
    shop.outages(3)
    _, out, _ = shop.run()
    (line,) = [line for line in out.splitlines() if line.startswith("breaker: loki ")]
    words = line.removeprefix("breaker: loki ").split()
    shown = loki(*words, cwd=shop.project)
    assert (shown.code, "OPEN" in shown.out) == (0, True)
    assert "paused" in loki("show", cwd=shop.project).out
    assert loki("breakers", "close", NAME, cwd=shop.project).code == 0
    assert shop.run()[0] == 0


def test_another_process_is_not_asked_either(shop: Shop) -> None:
    """Two failures here, one there: the third in all opens it for everybody."""
    shop.outages(2)
    script = (
        "import sys, loki\n"
        f"breaker = loki.Workspace(sys.argv[1]).breakers()[{NAME!r}]\n"
        "for _ in range(2):\n"
        "    breaker.guard().failure('529 overloaded')\n"
    )
    subprocess.run([sys.executable, "-c", script, str(shop.project)], check=True)
    code, _, _ = shop.run()
    assert (code, shop.calls(), shop.breaker()["state"]) == (6, 1, "OPEN")
    code, out, _ = shop.run(task="something else")
    assert (code, shop.calls()) == (6, 1)
    assert out.startswith("paused after 0 attempts: ")


@pytest.fixture
def prober(shop: Shop) -> Iterator[subprocess.Popen[str]]:
    """Another process, whose probe is in flight."""
    script = (
        "import sys, loki\n"
        f"breaker = loki.Workspace(sys.argv[1]).breakers()[{NAME!r}]\n"
        "permit = breaker.guard()\n"
        "print(permit.is_probe, flush=True)\n"
        "sys.stdin.read()\n"
        "permit.success()\n"
    )
    shop.outages(3)
    shop.run()
    shop.let_the_cooldown_pass()
    command = [sys.executable, "-c", script, str(shop.project)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process


def test_while_another_process_probes_it_is_told_to_come_back(
    shop: Shop, prober: subprocess.Popen[str]
) -> None:
    code, out, _ = shop.run()
    assert (code, shop.calls()) == (6, 3)
    assert "lets no call through until" in out
    prober.communicate()
    assert shop.breaker()["success_count"] == 1


def test_a_wait_can_be_interrupted_and_gone_on_with(shop: Shop) -> None:
    shop.outages(3)
    assert shop.run()[0] == 6
    with subprocess.Popen(
        shop.command("--wait"), cwd=shop.project, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "waiting" in line)
        assert f"the circuit breaker {NAME}" in line
        os.kill(process.pid, signal.SIGINT)
        process.stderr.read()
    assert process.returncode == 130
    assert shop.attempts() == OUTAGE
    shop.let_the_cooldown_pass()
    assert shop.run("--wait")[0] == 0


def test_a_time_budget_too_short_for_the_cooldown_pauses(shop: Shop) -> None:
    shop.outages(3)
    code, _, _ = shop.run("--max-time", "1m")
    assert (code, shop.calls()) == (6, 3)


def test_a_wrong_command_is_no_outage(shop: Shop) -> None:
    shop.agent.write_text("#!/bin/sh\necho \"error: unknown option '--fast'\" >&2\nexit 1\n")
    code, out, _ = shop.run()
    assert code == 3
    assert "the agent cannot go on" in out
    assert not shop.state.exists(), "nothing to tell others"


def test_the_help_says_it(shop: Shop) -> None:
    told = loki("run", "--help", environment={"COLUMNS": "200", "NO_COLOR": "1"}).out
    assert "--wait" in told
    assert "6 paused" in told
    assert shop.calls() == 0
