"""Public runs of coding agents for `benchmarks.replay`: the example rollouts of NVIDIA's NeMo Gym.

Its source distributions (Apache-2.0) hold a few rollouts of each agent that it knows, for people to look at.
They become one run a line, as `loki.adapters.monitor.recorded_run` reads it; `replay_rollouts` takes
them apart.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from benchmarks.replay_rollouts import Item, Step, of_items, of_messages, of_text

PACKAGE, VERSIONS = "nemo-gym", ("0.7.0", "0.5.1", "0.2.1")
"""Later versions dropped rollouts that earlier ones had; the others have nothing more."""

FILES = ("*rollout*.jsonl", "example_output*.jsonl", "example_ope*.jsonl")

FAKE = {"local/fake-model", "scripted-relief", "example-model", "x", "synthetic", "synthetic-example",
        "example_model", "stub"}  # fmt: skip
"""Models of rollouts that nobody ran: written by hand, or by a script."""

AGENTS = {
    "swe_agents": "opencode", "mini_swe_agent": "mini-swe-agent", "anyswe_agent": "", "anyterminal_agent": "",
    "harbor_agent": "terminus-2", "terminal_bench": "mini-swe-agent", "deepswe": "opencode",
    "vibench": "opencode", "job_bench": "pi", "workspace_bench": "pi", "biomnibench_da": "terminus-2",
    "claude_code_math": "claude-code", "claude_code_agent": "claude-code", "/hermes_agent/": "hermes",
    "/opencode_agent/": "opencode", "/pi_agent/": "pi", "/openclaw_agent/": "openclaw", "cline_math": "cline",
    "codex_math": "codex", "hermes_math": "hermes", "kilocode_math": "kilocode", "openclaw_math": "openclaw",
    "opencode_math": "opencode", "pi_math": "pi", "simple_strands_math": "strands",
    "math_with_code": "python-tool", "ns_tools": "python-tool", "terminus_2": "terminus-2",
    "pinchbench": "openclaw", "legal_agent_bench": "harbor", "aviary_bixbench": "notebook-agent",
}  # fmt: skip
"""Which agent worked, by the first of these that a file's path holds; "": the file's name says it. What
holds none of them is no coding agent: games, searches, tools that are played by models."""


def get(folder: Path) -> Path:
    """The file of runs in a folder; fetched by pip, as it is set up here, where it is not there."""
    target = folder / f"{PACKAGE}.jsonl.gz"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    runs: list[dict[str, Any]] = []
    seen: set[str] = set()
    for version in VERSIONS:
        archive = folder / f"{PACKAGE.replace('-', '_')}-{version}.tar.gz"
        if not archive.exists():
            # It asks for a newer Python than is needed for reading its data.
            options = ["-q", "--no-deps", "--ignore-requires-python", "--no-binary", PACKAGE]
            wanted = ["-d", str(folder), f"{PACKAGE}=={version}"]
            subprocess.run([sys.executable, "-m", "pip", "download", *options, *wanted], check=True)
        prefix = "" if version == VERSIONS[0] else f"nemo_gym-{version}/"
        runs += converted(archive, prefix, seen)
    partial = target.with_suffix(".partial")
    with gzip.open(partial, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(run, ensure_ascii=False) + "\n" for run in runs)
    partial.rename(target)
    return target


def converted(archive: Path, prefix: str, seen: set[str]) -> Iterator[dict[str, Any]]:
    """The runs of an sdist, but those that were seen: examples are copied from folder to folder."""
    with tarfile.open(archive) as file:
        wanted = [m for m in file if any(fnmatch(PurePosixPath(m.name).name, one) for one in FILES)]
        for member in sorted(wanted, key=lambda one: one.name):
            name, stream = member.name.partition("/")[2], file.extractfile(member)
            agent = agent_of(prefix + name)
            if stream is None or agent is None:
                continue
            for number, line in enumerate(stream):
                run = _run(json.loads(line), f"{prefix}{name}#{number}", agent)
                key = run and json.dumps([run["steps"], run["final"]], sort_keys=True)
                if run and key and key not in seen:
                    seen.add(key)
                    yield run


def agent_of(path: str) -> str | None:
    """The agent whose rollouts a file holds; None: no coding agent."""
    found = next((agent for part, agent in AGENTS.items() if part in path), None)
    if found == "":
        named = re.search(r"rollouts_(\w+)\.jsonl", path)
        return named[1].replace("_", "-") if named else "unknown"
    return found


def _run(said: dict[str, Any], name: str, agent: str) -> dict[str, Any] | None:
    """A line of a file as a run; None: nobody ran it, or it called nothing."""
    response = said.get("response")
    if not isinstance(response, dict) or response.get("model") in FAKE:
        return None
    output = response.get("output") or []
    if output and isinstance(output[-1], list):  # for each request, all that went before
        output = max(output, key=len)
    output = [one for one in output if isinstance(one, dict)]
    steps, final = of_items(output)
    if not steps:
        steps, final = of_text(output)
    if trajectory := said.get("mini_swe_trajectory"):
        whole = json.loads(trajectory) if isinstance(trajectory, str) else trajectory
        other = of_messages(whole.get("messages") or [])
        if _answered(other[0]) > _answered(steps):  # the items have the calls, seldom the results
            steps, final = other
    if not _answered(steps):
        return None
    return {"id": name, "agent": agent, "resolved": _resolved(said), "steps": steps, "final": final}


def _answered(steps: list[Step]) -> int:
    return sum(bool(one["result"]) for one in steps)


def _resolved(said: Item) -> bool | None:
    """Whether a task was done: as it says, or by a reward of 1 or of 0; between them nobody knows."""
    if isinstance(said.get("resolved"), bool):
        return bool(said["resolved"])
    reward = said.get("reward")
    if reward is None or 0 < reward < 1:
        return None
    return bool(reward >= 1)
