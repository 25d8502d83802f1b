"""Sessions of Claude Code that get on, event by event: none hears anything, and each may end.

False alarms are the measure.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.claude_session import ClaudeSession as Session
from support.claude_session import going
from support.tool_calls import pytest_fails, red_before

Play = Callable[[Session], None]
HEALTHY: dict[str, Play] = {}

OK = "3 passed in 0.02s"
RED = pytest_fails("test_a", "AssertionError: assert 5 == 4")
TASK = going("b1", "pytest -q")
SLOW = "curl: (22) The requested URL returned error: 503"


def healthy(play: Play) -> Play:
    HEALTHY[play.__name__] = play
    return play


@healthy
def red_first(s: Session) -> None:
    s.prompt("add a discount, test first")
    s.read("shop/cart.py")
    s.edit("tests/test_cart.py", "def test_a(): ...")
    s.bash("pytest -q", pytest_fails(), 1)
    s.stop("I've added a failing test. It fails as expected: `total()` has no discount yet. Go on?")
    s.prompt("yes")
    s.edit("shop/cart.py", "discount=0")
    s.bash("pytest -q", RED, 1)
    s.edit("shop/cart.py", "- discount")
    s.bash("pytest -q", OK)
    s.bash(
        "ruff check . && mypy .", "All checks passed!\nSuccess: no issues found in 3 source files"
    )
    s.stop("Done. All 3 tests pass, and ruff and mypy are clean.")


@healthy
def only_the_tests(s: Session) -> None:
    s.prompt("write the tests only")
    s.write("tests/test_inv.py")
    s.bash(
        "pytest -q tests/test_inv.py",
        "E   ModuleNotFoundError: No module named 'shop.inventory'\nERROR tests/test_inv.py\n1 error in 0.1s",
        2,
    )
    s.stop("The tests are written: 6, all red since `shop.inventory` does not exist yet.")


@healthy
def searches_without_hits(s: Session) -> None:
    s.prompt("is legacy_auth used anywhere?")
    for command in (
        "grep -rn legacy_auth src",
        "rg -n legacy_auth",
        "git grep legacy_auth",
        "lsof -i :8000",
        "lsof -i :8000",
    ):
        s.bash(command, "", 1)
    s.tool("Grep", {"pattern": "legacy_auth"}, {"filenames": [], "numFiles": 0})
    s.stop("No: `legacy_auth` is not used anywhere. Everything works without it.")


@healthy
def a_build_that_is_mended(s: Session) -> None:
    first = "src/api.ts(14,7): error TS2322: Type 'string' is not assignable to type 'number'.\n"
    second = "src/b.ts(3,1): error TS2304: Cannot find name 'foo'.\n"
    s.prompt("fix the build")
    s.bash("npm run build", first + second, 2)
    s.edit("src/api.ts")
    s.bash("npm run build", second, 2)
    s.edit("src/b.ts")
    s.bash("npm run build", "> tsc -p .")
    s.stop("The build is fixed: `npm run build` passes now.")


@healthy
def a_server_in_the_background(s: Session) -> None:
    s.prompt("add /users")
    s.edit("app/main.py")
    s.background("uvicorn app.main:app --port 8000", "b1")
    s.bash("sleep 2 && curl -sf localhost:8000/users", "", 7)
    s.tool(
        "BashOutput", {"bash_id": "b1"}, {"shellId": "b1", "status": "running", "stdout": "INFO"}
    )
    s.bash("curl -sf localhost:8000/users", "", 7)
    s.bash("curl -sf localhost:8000/users", "", 7)
    s.bash("curl -s localhost:8000/users", "[]")
    s.stop("`curl localhost:8000/users` answers `[]`. It works now.", [going("b1", "uvicorn")])


@healthy
def a_deployment_is_waited_for(s: Session) -> None:
    s.prompt("deploy to staging, wait until it is up")
    s.bash("fly deploy --remote-only", "==> Building image")
    for _ in range(6):
        s.bash("curl -sf https://staging.example.com/health", SLOW, 22)
        s.bash("sleep 20 && curl -sf https://staging.example.com/", SLOW, 22)
        s.bash(
            "kubectl rollout status deploy/app --timeout=30s",
            "error: timed out waiting for the condition",
            1,
        )
        s.bash("kubectl get pods | grep Running", "", 1)
        s.bash("gh pr checks 12", "build\tpending", 8)
    s.bash("curl -sf https://staging.example.com/health", "ok")
    s.stop("Staging is up: the health check answers ok. Everything works now.")


@healthy
def texts_only(s: Session) -> None:
    s.prompt("document the cache")
    s.edit("README.md")
    s.write("docs/cache.rst")
    s.write("docs/flow.svg")
    s.edit(".gitignore")
    s.edit("LICENSE")
    s.bash("git add -A && git commit -qm 'Document the cache'")
    s.stop("Done: README and docs/cache.rst describe the cache now, and everything is in order.")


@healthy
def a_question(s: Session) -> None:
    s.prompt("how does the retry logic work?")
    s.read("app/retry.py")
    s.bash("git log --oneline -5 app", "abc fix")
    s.stop(
        "Everything that raises `TimeoutError` is tried thrice. It works correctly; all tests pass on main."
    )


@healthy
def a_plan(s: Session) -> None:
    s.prompt("plan a migration")
    s.read("app/db.py")
    s.write("/home/me/.claude/plans/happy-otter.md")
    s.tool("ExitPlanMode", {"plan": "1. migrate 2. run the tests until all tests pass"})
    s.stop(
        "Here is the plan. Once approved I migrate module by module; after each one all tests pass."
    )


@healthy
def a_subagent_runs_the_tests(s: Session) -> None:
    s.prompt("review and fix")
    s.edit("app/a.py")
    s.agent = "a1"
    s.bash("pytest -q", OK)
    s.stop("All tests pass: 3 passed in 0.02s.")
    s.agent = ""
    s.tool(
        "Agent",
        {"prompt": "run the tests", "subagent_type": "test-runner"},
        {"status": "completed"},
    )
    s.stop("Fixed. All tests pass (3 passed, run by the test-runner agent).")


@healthy
def subagents_make_the_change(s: Session) -> None:
    s.prompt("fix, with helpers")
    for name in "ab":
        s.agent = name
        s.edit(f"app/{name}.py")
        s.bash(f"pytest -q tests/test_{name}.py 2>&1 | tail -3", OK)
        s.stop("Done. All tests pass.")
    s.agent = ""
    s.bash("pytest -q", OK)
    s.stop("Both are done. All tests pass.")


@healthy
def compacted(s: Session) -> None:
    s.prompt("a long task")
    s.bash("pytest -q", RED, 1)
    s.edit("shop/cart.py")
    s.bash("pytest -q", OK)
    s.start("compact")
    s.edit("shop/b.py")
    s.bash("pytest -q", OK)
    s.stop("All done, all tests pass.")


@healthy
def resumed_the_next_day(s: Session) -> None:
    s.prompt("fix")
    s.bash("pytest -q", RED, 1)
    s.edit("shop/cart.py")
    s.stop("A first change, not verified yet.")
    s.start("resume")
    s.prompt("go on")
    s.bash("git status --short", " M shop/cart.py")
    s.bash("pytest -q", OK)
    s.stop("All tests pass now.")


@healthy
def writes_beside_the_project(s: Session) -> None:
    s.prompt("fix")
    s.bash("pytest -q", RED, 1)
    s.write("/tmp/repro.py")
    s.bash("python /tmp/repro.py", "5")
    s.bash("pytest -q", RED, 1)
    s.edit("a.py")
    s.bash("pytest -q", OK)
    s.write("/tmp/report.html")
    s.stop("All tests pass.")


@healthy
def keeps_lists_and_opens_issues(s: Session) -> None:
    s.prompt("look it up")
    s.edit("a.py")
    s.bash("pytest -q", OK)
    s.tool("TaskUpdate", {"taskId": "1", "status": "completed"})
    s.tool("mcp__github__create_issue", {"title": "x"})
    s.tool("TaskCreate", {"subject": "x"})
    s.tool(
        "WebFetch",
        {"url": "https://docs.example.org/a"},
        error="Request failed with status code 404",
    )
    s.stop("I've opened the issue. All tests pass, and everything is in order.")


@healthy
def formats_before_it_commits(s: Session) -> None:
    s.prompt("x")
    s.edit("a.c")
    s.bash("make -j8 && ctest", "100% tests passed")
    s.bash("make format")
    s.bash("git commit -qam x")
    s.stop("All tests pass.")


@healthy
def checks_in_the_background(s: Session) -> None:
    s.prompt("fix")
    s.edit("a.py")
    s.background("pytest -q", "b1")
    s.stop(
        "The bug is fixed. The tests run in the background; I report once they are done.", [TASK]
    )
    s.bash("git add -A && git commit -qm 'Fix it'")
    s.ended("b1", 0, OK)
    s.read("b1.output")
    s.stop("All tests pass.")


@healthy
def checks_in_the_background_of_which_nobody_tells(s: Session) -> None:
    s.prompt("fix")
    s.edit("a.py")
    s.background("pytest -q", "b1")
    s.tool("BashOutput", {"bash_id": "b1"}, {"status": "completed", "exitCode": 0, "stdout": OK})
    s.stop("All tests pass.")


@healthy
def a_test_that_was_red_before(s: Session) -> None:
    s.prompt("fix the cart")
    s.bash("pytest -q", red_before(20), 1)
    s.edit("app/cart.py")
    s.bash("pytest -q tests/test_cart.py", OK)
    s.bash("pytest -q", red_before(21), 1)
    s.stop(
        "The bug is fixed: tests/test_cart.py passes. `test_zone` still fails, as it did before."
    )


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_session_hears_nothing(session: Session, name: str) -> None:
    HEALTHY[name](session)
    session.start("resume")
    assert session.said == []
