"""What the commands of a line do."""

from __future__ import annotations

import pytest

from loki.decision.tool_call import ToolCall, known, went_well


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
def test_a_check_whose_exit_code_nobody_sees_is_known(command: str, hidden: bool) -> None:
    call = known(ToolCall("Bash", {"command": command}))
    assert call.is_hidden is hidden
    assert went_well(call, None, 0) is (None if hidden else True)
    assert went_well(call, None, 1) is False


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
def test_no_is_an_answer(command: str, code: int, well: bool) -> None:
    assert went_well(known(ToolCall("Bash", {"command": command})), None, code) is well


@pytest.mark.parametrize(
    ("command", "waits"),
    [
        ("curl -sf localhost:3000/health", True),
        ("gh pr checks 12", True),
        ("sleep 5 && python manage.py migrate", True),
        ("curl -s https://api.example.com", False),
        ("sleep 1; pytest -q", False),
        ("gh pr create", False),
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
