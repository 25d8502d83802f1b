"""How an agent of LangChain's is asked: each gives the text of its last message."""

from __future__ import annotations

import asyncio
from typing import Any


def by_invoke(agent: Any) -> str:
    return str(agent.invoke({"messages": [("user", "Hello")]})["messages"][-1].content)


def by_ainvoke(agent: Any) -> str:
    return str(
        asyncio.run(agent.ainvoke({"messages": [("user", "Hello")]}))["messages"][-1].content
    )


def by_tokens(agent: Any) -> str:
    pieces = agent.stream({"messages": [("user", "Hello")]}, stream_mode="messages")
    return "".join(str(message.text) for message, _ in pieces)
