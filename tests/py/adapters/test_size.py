"""How much there is to an adapter of an agent framework: whoever keeps it switched on can read it."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest

import loki.adapters

FOLDER = Path(loki.adapters.__file__).parent

MOST = 150
"""Lines of code of all its files, without blank ones, docstrings and comments."""

ADAPTERS = {
    "pydantic-ai": ["pydantic_ai"],
    "LangChain and LangGraph": ["langchain", "langgraph"],
    "OpenAI Agents SDK": ["openai_agents"],
    "Claude Agent SDK": ["claude_agent_sdk"],
    "models of pydantic-ai: those that fall back, several as one": ["pydantic_ai_resilient"],
    "models of LangChain: those that fall back, several as one": ["langchain_resilient"],
    "several models of the OpenAI Agents SDK as one": ["openai_agents_resilient"],
}

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(path: Path) -> int:
    text = path.read_text("utf-8")
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            code |= set(range(token.start[0], token.end[0] + 1))
    return len(code - prose)


@pytest.mark.parametrize("framework", ADAPTERS)
def test_an_adapter_is_small(framework: str) -> None:
    found = {name: lines_of_code(FOLDER / f"{name}.py") for name in ADAPTERS[framework]}
    assert sum(found.values()) <= MOST, found


def test_each_adapter_of_a_framework_is_measured() -> None:
    known = {name for names in ADAPTERS.values() for name in names}
    beside = {
        "__init__",
        "conversation",
        "explanation",
        "mcp",
        "resilient_calls",
        "telemetry",
        "tracing",
    }
    assert {path.stem for path in FOLDER.glob("*.py")} - beside == known
