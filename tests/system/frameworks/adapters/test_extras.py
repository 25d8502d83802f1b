"""What an adapter says where its framework is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

ADAPTERS = [
    ("openai_agents", "agents", "openai-agents"),
    ("claude_agent_sdk", "claude_agent_sdk", "claude-agent-sdk"),
    ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ("langchain", "langchain", "langchain"),
    ("langgraph", "langgraph", "langchain"),
]


@pytest.mark.parametrize(("adapter", "package", "extra"), ADAPTERS)
def test_a_missing_framework_is_named_with_its_extra(
    adapter: str, package: str, extra: str
) -> None:
    script = f"import sys; sys.modules[{package!r}] = None\nimport loki.adapters.{adapter}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: needs ")
    assert last.endswith(f"pip install 'loki-core[{extra}]'")
