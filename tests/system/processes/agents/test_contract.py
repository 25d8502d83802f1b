"""The contract that others test their models and agents by: it holds for ours, and it can fail: with processes."""

from __future__ import annotations

import loki
from loki.testing import AgentContract


class TestCommandAgent(AgentContract):
    def agent(self) -> loki.Agent:
        return loki.CommandAgent(["sh", "-c", "echo Hello > hello.txt"])

    def broken(self) -> loki.Agent:
        return loki.CommandAgent(["sh", "-c", "exit 3"])
