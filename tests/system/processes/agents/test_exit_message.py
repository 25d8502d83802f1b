"""What the last words of a program that failed mean for asking it again: with processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.agent_protocol import Briefing
from loki.agents.command_agent import CommandAgent
from loki.base.error import AgentError

LIMITED = (
    'API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'
)
WRONG_KEY = (
    'API Error: 401 {"type":"error","error":{"type":"authentication_error",'
    '"message":"invalid x-api-key"}}'
)


def test_an_agent_tells_both(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    briefing = Briefing("Do it", "task-1", 1, tmp_path)
    for said, retryable, hint in [
        (f"{LIMITED} retry-after: 90", True, 90.0),
        (WRONG_KEY, False, None),
    ]:
        agent = CommandAgent(["sh", "-c", 'echo "$1" >&2; exit 1', "agent", said])
        with pytest.raises(AgentError) as caught:
            agent.propose(briefing)
        assert (caught.value.retryable, caught.value.retry_after) == (retryable, hint)
