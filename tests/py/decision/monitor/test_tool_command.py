"""What the commands of a line do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loki import Workspace
from loki.adapters.monitor.monitor import received_call
from loki.decision.monitor.monitor_state import Passed
from loki.decision.monitor.tool_call import ToolCall, known
from loki.decision.monitor.tool_command import Effect


def went_well(project: Path, command: str, output: str, code: int) -> bool:
    call = known(ToolCall("Bash", {"command": command}))
    return isinstance(received_call(Workspace(project), call, output, None, code), Passed)


@pytest.mark.parametrize(
    ("command", "hidden"),
    [
        ("pytest -q", False),
        ("cd app; pytest -q", False),
        ("pytest -q && echo fine", False),
        ("set -o pipefail; pytest -q | tail -3", False),
        ("pytest -q | tail -3", True),
        ("pytest -q; echo $?", True),
        ("pytest -q || true", True),
        ("bash -lc 'pytest -q | tail -3'", True),
        ("for i in 1 2; do pytest -q; done", True),
        ("ls | head", False),
    ],
)
def test_a_check_whose_exit_code_nobody_sees_is_known(
    tmp_path: Path, command: str, hidden: bool
) -> None:
    call = known(ToolCall("Bash", {"command": command}))
    assert call.is_hidden is hidden
    assert went_well(tmp_path, command, "1 failed", 0) is not hidden
    assert not went_well(tmp_path, command, "", 1)


@pytest.mark.parametrize(
    ("command", "code", "well"),
    [
        ("rg -n TODO", 1, True),
        ("rg 'foo('", 2, False),
        ("test -f .env", 1, True),
        ("git diff --quiet", 1, True),
        ("grep -q x a && pytest", 1, False),
        ("cat a.py", 1, False),
    ],
)
def test_no_is_an_answer(tmp_path: Path, command: str, code: int, well: bool) -> None:
    assert went_well(tmp_path, command, "", code) is well


@pytest.mark.parametrize(
    ("command", "waits"),
    [
        ("curl -sf localhost:3000/health", True),
        ("gh pr checks 12", True),
        ("sleep 5 && python manage.py migrate", True),
        ("curl -s https://api.example.com", False),
        ("sleep 1; pytest -q", False),
        ("gh pr create", False),
        ("curl -sf https://staging.example.com/healthz", True),
        ("until curl -sf https://example.com/api; do sleep 5; done", True),
        ("curl -s https://api.example.com/status/updates", False),
    ],
)
def test_who_waits_is_known(command: str, waits: bool) -> None:
    assert known(ToolCall("Bash", {"command": command})).waits is waits


@pytest.mark.parametrize(
    ("command", "is_check"),
    [
        ("bash run_tests.sh", True),
        ("sh ./scripts/test.sh -v", True),
        ("python run_tests.py", True),
        ("node test.js", True),
        ("./run-tests.sh", True),
        ("bash deploy.sh", False),
        ("python fix.py", False),
        ("python -c 'print(1)'", False),
    ],
)
def test_a_script_is_a_check_by_its_name(command: str, is_check: bool) -> None:
    assert known(ToolCall("Bash", {"command": command})).is_check is is_check


@pytest.mark.parametrize(
    "command",
    [
        *("pytest --version", "pytest --collect-only -q", "npx jest --listTests", "ctest -h"),
        *("command -v pytest", "cargo fmt", "npm run format", "npm run lint:fix", "make format"),
        *("just fmt", "./fix.sh", "go version", "gofmt -w ."),
    ],
)
def test_what_tells_of_itself_or_mends_is_no_check(command: str) -> None:
    assert not known(ToolCall("Bash", {"command": command})).is_check


@pytest.mark.parametrize(
    "command",
    [
        *("cargo fmt --check", "npm run format:check", "ruff format --check .", "make check"),
        *("pytest -V -q", "make -j4", "npm run build", "pytest tests/test_fix.py"),
    ],
)
def test_what_only_looks_whether_it_is_in_order_is_a_check(command: str) -> None:
    assert known(ToolCall("Bash", {"command": command})).is_check


@pytest.mark.parametrize(
    ("command", "effect", "edits"),
    [
        ("cat > app/a.py <<'EOF'\nx = 1\nEOF", Effect.WRITE, True),
        ("echo 'x = 1' >> a.ts", Effect.WRITE, True),
        ("echo x | tee src/a.go", Effect.WRITE, True),
        ("echo x > notes.md", Effect.WRITE, False),
        ("pytest -q > out.txt", Effect.RUN, False),
        ("sd old new src/a.py", Effect.WRITE, True),
        ("ast-grep -p old -r new -U", Effect.WRITE, True),
        ("ast-grep -p old", Effect.RUN, False),
        ("gofmt -l .", Effect.RUN, False),
        ("ruff format .", Effect.WRITE, False),
        ("./fix.sh", Effect.WRITE, False),
        ("python scripts/codemod.py src", Effect.WRITE, False),
        ("make format", Effect.WRITE, False),
        ("python load.py", Effect.RUN, False),
        ("pytest --version", Effect.READ, False),
        ("command -v pytest", Effect.READ, False),
    ],
)
def test_what_changes_sources_is_known(command: str, effect: Effect, edits: bool) -> None:
    call = known(ToolCall("Bash", {"command": command}))
    assert (call.effect, call.edits) == (effect, edits)


def test_who_waits_has_no_breaker() -> None:
    """A deployment that comes up answers 503 for minutes: that is no outage to keep away from."""
    for command in ("sleep 20 && curl -sf https://a.example.com", "curl https://a.example.com/up"):
        assert known(ToolCall("Bash", {"command": command})).breaker == ""
    assert known(ToolCall("Bash", {"command": "curl https://a.example.com"})).breaker


@pytest.mark.parametrize(
    ("tool", "arguments", "counts"),
    [
        ("Edit", {"file_path": "a.py"}, True),
        ("apply_patch", {"input": "*** Begin Patch"}, True),
        ("mcp__files__update_file", {"path": "a.py"}, True),
        ("Write", {"file_path": ".gitignore"}, False),
        ("Write", {"file_path": "docs/flow.svg"}, False),
        ("mcp__github__create_issue", {"title": "x"}, False),
        ("update_customer", {"id": 3}, False),
    ],
)
def test_what_no_check_reads_is_known(tool: str, arguments: dict[str, Any], counts: bool) -> None:
    call = known(ToolCall(tool, arguments))
    assert call.effect is Effect.WRITE
    assert call.is_prose is not counts


@pytest.mark.parametrize("tool", ["TaskCreate", "TaskUpdate", "EnterPlanMode", "CronDelete"])
def test_an_agents_own_lists_are_no_change(tool: str) -> None:
    assert known(ToolCall(tool, {"taskId": "1"})).effect is Effect.OTHER


@pytest.mark.parametrize(
    ("command", "effect", "is_check"),
    [
        ("docker compose exec app pytest -q", Effect.RUN, True),
        ("docker compose -f dev.yml run --rm -e CI=1 app npm test", Effect.RUN, True),
        ("docker exec -it web python -m pytest", Effect.RUN, True),
        ("docker run --rm -v $PWD:/w -w /w image pytest", Effect.RUN, True),
        ("kubectl exec pod -- pytest", Effect.RUN, True),
        ("docker compose exec app cat log.txt", Effect.READ, False),
        ("docker compose logs db", Effect.READ, False),
        ("docker compose ps", Effect.READ, False),
        ("docker compose up -d", Effect.WRITE, False),
        ("docker compose -f dev.yml restart app", Effect.WRITE, False),
        ("docker run -d redis", Effect.WRITE, False),
    ],
)
def test_what_runs_in_a_container_is_what_counts(
    command: str, effect: Effect, is_check: bool
) -> None:
    call = known(ToolCall("Bash", {"command": command}))
    assert (call.effect, call.is_check) == (effect, is_check)
