"""One rival of `benchmarks.calls`, in a process of its own: makes calls and says what became of them.

    python benchmarks/callers/peer.py NAME '{"urls": [...], "calls": 50, "spacing": 3.6, "parallel": 50,
                                           "patience": 300}'

A script, not a module: the rivals may be in another environment than loki.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TIMEOUT = 30.0
"""Seconds for one call over the wire, for all rivals."""


def loki_(job: dict[str, Any]) -> Callable[[], object]:
    """loki as it comes: `ResilientLLM` of one model or more, with the caller's patience."""
    import loki
    from loki.action.agent_protocol import Message, Request

    models = [
        loki.OpenAILLM(f"m{number}", base_url=f"{url}/v1", api_key="none", api="chat")
        for number, url in enumerate(job["urls"])
    ]
    llm = loki.ResilientLLM(*models, wait=job["patience"])
    return lambda: llm.complete(Request((Message("user", "?"),), timeout=TIMEOUT))


def openai_(retries: int) -> Callable[[dict[str, Any]], Callable[[], object]]:
    """OpenAI's client with so many retries of its own; it knows no patience."""

    def made(job: dict[str, Any]) -> Callable[[], object]:
        import openai

        client = openai.OpenAI(
            base_url=f"{job['urls'][0]}/v1", api_key="none", max_retries=retries, timeout=TIMEOUT
        )
        asked: Any = [{"role": "user", "content": "?"}]
        return lambda: client.chat.completions.create(model="m", messages=asked)

    return made


def anthropic_(retries: int) -> Callable[[dict[str, Any]], Callable[[], object]]:
    """Anthropic's client, likewise."""

    def made(job: dict[str, Any]) -> Callable[[], object]:
        import anthropic

        client = anthropic.Anthropic(
            base_url=job["urls"][0], api_key="none", max_retries=retries, timeout=TIMEOUT
        )
        asked: Any = [{"role": "user", "content": "?"}]
        return lambda: client.messages.create(model="m", max_tokens=9, messages=asked)

    return made


def stamina_(job: dict[str, Any]) -> Callable[[], object]:
    """stamina round OpenAI's client: as many attempts as the patience has room for."""
    import openai
    import stamina

    ask = openai_(0)(job)
    retry = stamina.retry(
        on=(openai.APIStatusError, openai.APIConnectionError),
        attempts=None,
        timeout=job["patience"],
    )
    asked: Callable[[], object] = retry(ask)
    return asked


def litellm_(job: dict[str, Any]) -> Callable[[], object]:
    """litellm's Router: its retries and cooldowns; a second model is a fallback."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch one from the internet
    import litellm

    litellm.suppress_debug_info = True
    names = [f"m{number}" for number in range(len(job["urls"]))]
    models = [
        {
            "model_name": name,
            "litellm_params": {
                "model": f"openai/{name}",
                "api_base": f"{url}/v1",
                "api_key": "none",
                "max_retries": 0,
            },
        }
        for name, url in zip(names, job["urls"], strict=True)
    ]
    router = litellm.Router(
        model_list=models,
        num_retries=job.get("retries", 3),
        timeout=TIMEOUT,
        fallbacks=[{names[0]: names[1:]}] if names[1:] else [],
    )
    asked: Any = [{"role": "user", "content": "?"}]
    return lambda: router.completion(model=names[0], messages=asked)


PEERS: dict[str, Callable[[dict[str, Any]], Callable[[], object]]] = {
    "loki": loki_,
    "plain client": openai_(0),
    "openai, its retries (2)": openai_(2),
    "openai, 10 retries": openai_(10),
    "anthropic, its retries (2)": anthropic_(2),
    "stamina": stamina_,
    "litellm Router, 3 retries": litellm_,
    "litellm Router, 10 retries": lambda job: litellm_({**job, "retries": 10}),
}


def main(name: str, job: dict[str, Any]) -> int:
    """Make the calls, each at its time; print what became of them as JSON."""
    logging.disable(logging.CRITICAL)
    try:
        ask = PEERS[name](job)
    except ImportError as error:
        sys.stdout.write(json.dumps({"missing": str(error)}) + "\n")
        return 0
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()  # the service begins now
    began = time.monotonic()

    def one(number: int) -> tuple[bool, str]:
        time.sleep(max(0.0, began + number * job["spacing"] - time.monotonic()))
        try:
            ask()
        except Exception as error:
            return False, type(error).__name__
        return True, ""

    with ThreadPoolExecutor(job["parallel"]) as pool:
        ends = list(pool.map(one, range(job["calls"])))
    lost = [kind for is_good, kind in ends if not is_good]
    took = time.monotonic() - began
    sys.stdout.write(
        json.dumps({"lost": len(lost), "kinds": sorted(set(lost)), "took": took}) + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2])))
