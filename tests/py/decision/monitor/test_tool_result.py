"""What a tool answered, as text and exit code."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from loki.decision.monitor.tool_result import DEEPEST, ToolResult, text_blocks, tool_result


class Ran(BaseModel):
    exit_code: int
    stdout: str = ""
    stderr: str = ""


@dataclass
class Found:
    names: list[str]
    picture: bytes = b""


@pytest.mark.parametrize(
    ("value", "text", "code"),
    [
        ("1 failed in 0.02s", "1 failed in 0.02s", None),
        (b"caf\xe9", "caf�", None),
        (None, "null", None),
        (3, "3", None),
        ({"a": [1, "b"]}, '{"a": [1, "b"]}', None),
        (["one", "two"], '["one", "two"]', None),
        ({"b", "a", "c"}, '["a", "b", "c"]', None),
        ({"exit_code": 2, "stdout": "out\n", "stderr": "err\n"}, "out\nerr\n", 2),
        ({"exit_code": 0, "output": "fine"}, "fine", 0),
        ('{"returncode": 1, "stdout": "boom"}', "boom", 1),
        ('{"returncode": 1, "stdout": ', '{"returncode": 1, "stdout": ', None),
        ({"exit_code": True, "stdout": "x"}, '{"exit_code": true, "stdout": "x"}', None),
        ({"exit_code": "1", "stdout": "x"}, '{"exit_code": "1", "stdout": "x"}', None),
        (Ran(exit_code=3, stderr="no"), "no", 3),
        (Ran(exit_code=0), "", 0),
        (Found(["a.py"], b"\x89PNG"), '{"names": ["a.py"], "picture": "<4 bytes>"}', None),
    ],
)
def test_what_tools_return(value: Any, text: str, code: int | None) -> None:
    assert tool_result(value) == ToolResult(text, code)


def test_a_finished_process() -> None:
    done = subprocess.CompletedProcess(["check"], 4, stdout="no\n", stderr="")
    assert tool_result(done) == ToolResult("no\n", 4)


def test_no_value_is_too_much() -> None:
    class Rude:
        def __str__(self) -> str:
            raise RuntimeError("no")

    round_and_round: list[Any] = []
    round_and_round.append(round_and_round)
    assert tool_result(Rude()).text == "<Rude>"
    assert tool_result(round_and_round).text == "[" * DEEPEST + '"<list>"' + "]" * DEEPEST
    assert tool_result({"x": Ran}).text.startswith('{"x": ')
    assert tool_result("{" * 100_000 + '"exit_code"').exit_code is None


@pytest.mark.parametrize(
    "blocks",
    [
        {"type": "text", "text": "1 failed"},
        [{"type": "image", "data": "x"}, {"type": "text", "text": "1 failed"}],
    ],
)
def test_text_of_content_blocks_is_what_a_tool_said(blocks: Any) -> None:
    assert tool_result(blocks) == ToolResult("1 failed")


def test_a_commands_answer_in_a_block_has_its_exit_code() -> None:
    said = '{"exit_code": 2, "stdout": "1 failed"}'
    assert tool_result({"type": "text", "text": said}) == ToolResult("1 failed", 2)


@pytest.mark.parametrize("value", [[], ["a"], {"text": "a"}, [{"type": "image"}], None])
def test_what_has_no_text_blocks(value: Any) -> None:
    assert text_blocks(value) is None
