"""From what an agent's hook says to what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.adapters.hooks.hook_handler import IN_A_RUN, answer, project_of
from loki.adapters.hooks.hooked_agents import AGENTS

Said = Mapping[str, Any]

FAILED = "E       KeyError: 'next'\nFAILED test_login.py::test_redirect - KeyError: 'next'"


class Claude:
    """Claude Code's events of one session."""

    name, end = "claude-code", "Stop"

    def check(self) -> Said:
        return {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
                "tool_input": {"command": "pytest -q"}, "error": f"Exit code 1\n{FAILED}"}  # fmt: skip

    def passes(self) -> Said:
        return {"hook_event_name": "PostToolUse", "tool_name": "Bash",
                "tool_input": {"command": "pytest -q"}, "tool_response": {"stdout": "1 passed", "stderr": ""}}  # fmt: skip

    def edit(self, text: str) -> Said:
        return {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_response": {},
                "tool_input": {"file_path": "login.py", "old_string": "x", "new_string": text}}  # fmt: skip

    def before(self) -> Said:
        return {"hook_event_name": "PreToolUse", "tool_name": "Bash",
                "tool_input": {"command": "pytest -q"}}  # fmt: skip

    def ends(self, message: str) -> Said:
        return {"hook_event_name": self.end, "last_assistant_message": message}


class Codex(Claude):
    """Codex's."""

    name = "codex"

    def check(self) -> Said:
        return {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": f"{FAILED}\nExit code: 1",
                "tool_input": {"command": "pytest -q"}}  # fmt: skip

    def passes(self) -> Said:
        return {**self.check(), "tool_response": "1 passed\nExit code: 0"}

    def edit(self, text: str) -> Said:
        return {"hook_event_name": "PostToolUse", "tool_name": "apply_patch", "tool_response": "Exit code: 0",
                "tool_input": {"command": f"*** Update File: login.py\n+{text}"}}  # fmt: skip


class Gemini(Claude):
    """Gemini CLI's."""

    name, end = "gemini", "AfterAgent"

    def check(self) -> Said:
        return {"hook_event_name": "AfterTool", "tool_name": "run_shell_command", "tool_input": {"command": "pytest -q"},
                "tool_response": {"llmContent": f"Output: {FAILED}\nExit Code: 1", "returnDisplay": FAILED}}  # fmt: skip

    def passes(self) -> Said:
        return {
            **self.check(),
            "tool_response": {"llmContent": "Output: 1 passed", "returnDisplay": "1 passed"},
        }

    def edit(self, text: str) -> Said:
        return {"hook_event_name": "AfterTool", "tool_name": "replace", "tool_response": {"llmContent": "ok"},
                "tool_input": {"file_path": "login.py", "old_string": "x", "new_string": text}}  # fmt: skip

    def before(self) -> Said:
        return {
            **super().before(),
            "hook_event_name": "BeforeTool",
            "tool_name": "run_shell_command",
        }

    def ends(self, message: str) -> Said:
        return {"hook_event_name": self.end, "prompt_response": message}


TWELVE = "abcdefghijkl"
SPEAKERS = [Claude(), Codex(), Gemini()]
BY_NAME = pytest.mark.parametrize("agent", SPEAKERS, ids=lambda one: one.name)
Tell = Callable[..., "Said | None"]


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    def one(agent: Claude, said: Said, turn: str = "t1", **environment: str) -> Said | None:
        whole = {
            "session_id": "s",
            "cwd": str(tmp_path),
            "prompt_id": turn,
            "turn_id": turn,
            **said,
        }
        return answer(agent.name, whole, environment)

    return one


@BY_NAME
def test_a_failure_that_comes_back_is_told_and_far_out_stopped(agent: Claude, tell: Tell) -> None:
    told = []
    for text in TWELVE:
        told.append(tell(agent, agent.check()))
        assert tell(agent, agent.edit(text)) is None
    assert told[:2] == [None, None]
    for nudge in told[2:11]:
        assert nudge is not None
        assert "KeyError: 'next'" in nudge["hookSpecificOutput"]["additionalContext"]
    assert told[11] is not None
    assert told[11]["continue"] is False
    assert "KeyError: 'next'" in told[11]["stopReason"]


@BY_NAME
def test_the_very_same_call_is_stopped_sooner(agent: Claude, tell: Tell) -> None:
    told = [tell(agent, agent.check()) for _ in range(6)]
    assert told[:2] == [None, None]
    assert all("with nothing new in between" in str(one) for one in told[2:])
    assert [one is not None and one.get("continue") is False for one in told].index(True) == 5


def test_the_same_answer_time_and_again_is_told(tell: Tell) -> None:
    claude = SPEAKERS[0]
    said = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": {"stdout": "0 rows"},
            "tool_input": {"command": "python show.py"}}  # fmt: skip
    told = [tell(claude, said) for _ in range(5)]
    assert [one is None for one in told] == [True, True, True, False, False]
    assert "gave the same answer 4 times" in str(told[3])


@pytest.mark.parametrize("agent", SPEAKERS[:2], ids=lambda one: one.name)
def test_a_stop_binds_until_a_person_has_spoken(agent: Claude, tell: Tell, tmp_path: Path) -> None:
    for _ in range(6):
        assert tell(agent, agent.before()) is None
        tell(agent, agent.check())
    bound = tell(agent, agent.before())
    assert bound is not None
    assert bound["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert tell(agent, agent.before(), turn="t2") is None
    assert tell(agent, agent.check(), turn="t2") is None, "who was helped begins to count anew"
    assert not list((tmp_path / ".loki" / "state").glob("stops/*"))


@BY_NAME
def test_what_no_check_has_seen_stays_so_after_a_stop(agent: Claude, tell: Tell) -> None:
    for text in TWELVE:
        tell(agent, agent.check())
        tell(agent, agent.edit(text))
    claim = {**agent.ends("All done, the tests pass now."), "prompt": "go on"}
    assert tell(agent, claim, turn="t2") is not None


@BY_NAME
def test_an_end_is_refused_twice_in_a_turn_at_most(agent: Claude, tell: Tell) -> None:
    told = []
    for number in range(6):
        tell(agent, agent.edit(str(number)))
        ends = agent.ends(f"Done. All {number} tests pass now.")
        told.append(tell(agent, {**ends, "prompt": "fix it"}))
    assert [one is not None for one in told] == [True, True, False, False, False, False]


@BY_NAME
def test_a_check_in_the_background_is_no_reason_to_refuse(
    agent: Claude, tell: Tell, tmp_path: Path
) -> None:
    tell(agent, agent.edit("a"))
    transcript = tmp_path / "transcript.jsonl"
    transcript.touch()
    runs: Mapping[str, Said] = {
        "claude-code": {"tool_response": {"stdout": "", "backgroundTaskId": "b1"}},
        "codex": {"transcript_path": str(transcript), "tool_response": "still running"},
        "gemini": {"tool_input": {"command": "pytest -q", "is_background": True}},
    }
    assert tell(agent, {**agent.passes(), **runs[agent.name]}) is None
    assert tell(agent, agent.ends("All done, the tests pass now.")) is None
    tell(agent, agent.edit("b"))
    assert tell(agent, agent.ends("All done, the tests pass now.")) is not None


@BY_NAME
def test_a_claim_without_a_check_is_refused_once(agent: Claude, tell: Tell) -> None:
    tell(agent, agent.edit("a"))
    claim = agent.ends("All done, the tests pass now.")
    refused = tell(agent, claim)
    assert refused is not None
    assert refused["decision"] in {"block", "deny"}
    assert refused["reason"]
    assert tell(agent, claim) is None
    assert tell(agent, {**claim, "stop_hook_active": True}) is None


@BY_NAME
def test_a_healthy_session_hears_nothing(agent: Claude, tell: Tell) -> None:
    said = [
        {"hook_event_name": "SessionStart", "source": "startup"},
        agent.before(),
        agent.check(),
        agent.edit("a"),
        agent.passes(),
        agent.ends("All done, the tests pass now."),
    ]
    assert [tell(agent, one) for one in said] == [None] * len(said)


@BY_NAME
def test_nothing_inside_a_run_of_lokis_own(agent: Claude, tell: Tell, tmp_path: Path) -> None:
    for text in "abc":
        assert tell(agent, agent.check(), **{IN_A_RUN: "task-1"}) is None
        assert tell(agent, agent.edit(text), **{IN_A_RUN: "task-1"}) is None
    assert not (tmp_path / ".loki").exists()


@BY_NAME
def test_a_new_session_is_told_the_signs_that_bind(agent: Claude, tell: Tell) -> None:
    for text in "abc":
        tell(agent, agent.check())
        tell(agent, agent.edit(text))
    told = tell(agent, {"hook_event_name": "SessionStart", "session_id": "other"})
    assert told is not None
    assert "KeyError: 'next'" in told["hookSpecificOutput"]["additionalContext"]


@BY_NAME
def test_a_call_of_what_is_down_is_refused(agent: Claude, tell: Tell, tmp_path: Path) -> None:
    breaker = loki.Workspace(tmp_path).breakers()["tool/example.com"]
    for _ in range(3):
        breaker.guard().failure("503 Service Unavailable")
    fetch = {**agent.before(), "tool_input": {"command": "curl https://example.com/api"}}
    refused = tell(agent, fetch)
    assert refused is not None
    assert "deny" in str(refused)
    assert tell(agent, agent.before()) is None


def test_what_went_well_waits_in_a_file_without_secrets(tell: Tell, tmp_path: Path) -> None:
    claude, key = SPEAKERS[0], "ghp_" + "a1B2" * 9
    tell(claude, claude.check())
    tell(claude, claude.edit(f"token = '{key}'{'x' * 50_000}"))
    (waits,) = (tmp_path / ".loki" / "state" / "passed").iterdir()
    assert key not in waits.read_text()
    assert 100 < waits.stat().st_size < 5_000
    assert waits.stat().st_mode & 0o777 == 0o600
    tell(claude, claude.check())
    assert not waits.exists(), "the edit is known by now"
    tell(claude, claude.edit("b"))
    assert tell(claude, claude.check()) is not None


def test_what_was_torn_is_left_out(tell: Tell, tmp_path: Path) -> None:
    claude = SPEAKERS[0]
    tell(claude, claude.check())
    tell(claude, claude.edit("a"))
    (waits,) = (tmp_path / ".loki" / "state" / "passed").iterdir()
    waits.write_bytes(b'["Edit", {"a"\n\xff\n[1, 2, 3]\n' + waits.read_bytes() + b'["Edi')
    tell(claude, claude.check())
    tell(claude, claude.edit("b"))
    assert tell(claude, claude.check()) is not None


@pytest.mark.parametrize("said", [None, [], 3, {}, {"hook_event_name": 3}])
def test_what_no_hook_says(said: object) -> None:
    with pytest.raises(ValueError, match="hook_event_name"):
        answer("claude-code", said, {})


def test_a_session_of_any_name_stays_in_its_folder(tell: Tell, tmp_path: Path) -> None:
    claude = SPEAKERS[0]
    for text in "abcd":
        tell(claude, {**claude.check(), "session_id": "../../../x/\0y" * 20})
        tell(claude, {**claude.edit(text), "session_id": "../../../x/\0y" * 20})
    assert {path.name for path in tmp_path.iterdir()} == {".loki"}


def test_the_project_is_found_from_below(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert project_of(str(inner), {}) == str(inner)
    (tmp_path / ".git").mkdir()
    assert project_of(str(inner), {}) == str(tmp_path)
    assert project_of("/elsewhere", {"CLAUDE_PROJECT_DIR": str(inner)}) == str(tmp_path)


def test_every_agent_has_what_a_hook_needs() -> None:
    for agent in AGENTS.values():
        module = agent.module()
        assert all(
            callable(getattr(module, name)) for name in ("nudge", "refuse", "stop", "stopped")
        )
        assert agent.events()
        assert agent.default in agent.files


def test_a_check_that_failed_behind_a_pipe_is_heard(tmp_path: Path) -> None:
    piped = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "session_id": "s", "cwd": str(tmp_path),
             "tool_input": {"command": "pytest -q | tail -3"}, "tool_response": {"stdout": FAILED, "stderr": ""}}  # fmt: skip
    (tmp_path / ".loki").mkdir()
    said = []
    for text in "abc":
        edit = {**Claude().edit(text), "session_id": "s", "cwd": str(tmp_path)}
        said += [answer("claude-code", piped, {}), answer("claude-code", edit, {})]
    assert said[0] is said[2] is None
    assert "came back" in str(said[4])


def test_a_failed_call_is_heard_once_by_two_installations(tell: Tell, tmp_path: Path) -> None:
    """In a user's settings and in a project's: each of them calls loki."""
    claude = SPEAKERS[0]
    tell(claude, claude.check())
    log = tmp_path / ".loki" / "logs" / "tool-calls.jsonl"
    before = len(log.read_text().splitlines())
    for number in range(3):
        failed = {**claude.check(), "tool_use_id": f"toolu_{number}"}
        told = [tell(claude, failed), tell(claude, failed)]
        assert told[1] is None
    assert len(log.read_text().splitlines()) == before + 3
    assert (tmp_path / ".loki" / "state" / "heard").is_dir()
