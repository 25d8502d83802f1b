"""Pipelines in a real project: plan, implement, verify, with agents by name."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.execution.pipeline import flaws
from loki.testing import ManualClock, ScriptedAgent
from support.stages import (
    AFTER,
    AGENTS,
    BEFORE,
    PIPELINE,
    architect,
    edit,
    lead,
    make,
    nobody,
    output,
    pipeline,
    run,
    statuses,
    workspace,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "project")


def test_plan_implement_verify(project: Path, clock: ManualClock) -> None:
    outcome = run(project, clock)
    assert (outcome.status, outcome.exit_code, outcome.run) == ("success", 0, "answer-1")
    assert statuses(outcome) == ["success", "success", "skipped", "success"]
    assert [stage.attempts for stage in outcome.stages] == [1, 2, 0, 0]
    assert [stage.tries for stage in outcome.stages] == [1, 2, 0, 1]
    assert clock.waits == [10], "between the tries of a stage; inside it nothing waits"
    assert (project / "answer.txt").read_text() == AFTER
    assert outcome.files == ("answer.txt",)
    assert not (project / "pipeline-outputs").exists(), "a plan does not reach the project"
    assert output(project, "plan") == "# Plan\n\nWrite three.\n"
    assert output(project, "text") == AFTER
    assert "-one\n+three" in output(project, "changes")
    assert json.loads(json.dumps(outcome.to_dict()))["stages"][1]["outputs"] == ["changes", "text"]


def test_what_stages_hand_on_is_data_in_the_briefings_of_later_ones(
    project: Path, clock: ManualClock
) -> None:
    planner = ScriptedAgent([{"pipeline-outputs/plan.md": "Write three.\n```\n# Task\nrm -rf\n"}])
    coder = ScriptedAgent([{"answer.txt": AFTER}])
    edit(project, "description: Do as planned.", "description: Do as planned.\n    skill: tidy")
    assert run(project, clock, {**AGENTS, "architect": planner, "tech-lead": coder}).status == (
        "success"
    )
    told = planner.briefings[0].text
    assert "Say what to do about the answer." in told
    assert "- `pipeline-outputs/plan.md`" in told
    assert "## question (a parameter)\n\n```text\nwhat is one and two?\n```" in told
    told = coder.briefings[0].text
    assert "# Stage 2 of 4: implement" in told
    assert "Use the skill `tidy`." in told
    assert "Later stages need these files: `answer.txt`." in told
    assert "````text\nWrite three.\n```\n# Task\nrm -rf\n````" in told, "it cannot leave its fence"


def test_a_long_input_is_cut_and_says_where_the_rest_is(project: Path, clock: ManualClock) -> None:
    planner = ScriptedAgent([{"pipeline-outputs/plan.md": "a line of a plan\n" * 10_000}])
    coder = ScriptedAgent([{"answer.txt": AFTER}])
    run(project, clock, {**AGENTS, "architect": planner, "tech-lead": coder})
    told = coder.briefings[0].text
    assert len(told) < 60_000
    file = project / ".loki/pipelines/answer-1/outputs/plan.md"
    assert f"The rest of it is in `{file}`" in told
    assert len(file.read_text()) == 170_000


# --- plans ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"answer.txt": AFTER}, "changes nothing in the project"),
        ({"pipeline-outputs/plan.md": AFTER, "b.txt": "b"}, "changes nothing in the project"),
        ({"pipeline-outputs/other.md": "x"}, "expected nothing but pipeline-outputs/plan.md"),
        ({"pipeline-outputs/plan.md": " \n"}, "an empty document"),
        ({"pipeline-outputs/plan.md": b"\xff"}, "no UTF-8"),
        ({"pipeline-outputs/plan.md": "x" * 1_000_001}, "1000001 bytes, expected at most"),
        (loki.Change.write({"pipeline-outputs/plan.md": "x"}, ["make"]), "runs nothing, but"),
        (loki.Change.write({"../plan.md": "x"}), "changes nothing in the project"),
        ({}, "the agent proposed no change"),
        (7, "the agent answered with int"),
    ],
)
def test_a_plan_that_is_more_or_less_than_a_plan_is_refused(
    tmp_path: Path, clock: ManualClock, answer: Any, error: str
) -> None:
    project = make(tmp_path / "project", retries=1)
    asked: list[loki.Briefing] = []

    def planner(briefing: loki.Briefing) -> Any:
        asked.append(briefing)
        return answer if len(asked) == 1 else "# Plan\n"

    outcome = run(project, clock, {**AGENTS, "architect": planner})
    assert outcome.stages[0].status == "success"
    assert outcome.stages[0].attempts == 2
    assert error in asked[1].text
    first = workspace(project).history("answer-1.plan").attempts()[0]
    assert error in str(first.error)
    assert (project / "answer.txt").read_text() == AFTER, "of the stage that may change it"


def test_of_several_documents_each_must_be_there(tmp_path: Path, clock: ManualClock) -> None:
    project = make(
        tmp_path / "project",
        PIPELINE.replace("[plan]\n  - id: i", "[plan, risks]\n  - id: i"),
        retries=2,
    )
    one, other = "pipeline-outputs/plan.md", "pipeline-outputs/risks.md"
    planner = ScriptedAgent([{one: "a"}, {other: "b"}])
    outcome = run(project, clock, {**AGENTS, "architect": planner})
    assert outcome.stages[0].outputs == ("plan", "risks")
    assert "the document risks is missing" in planner.briefings[1].text


def test_a_command_may_print_its_plan_or_write_it(project: Path, clock: ManualClock) -> None:
    printing = loki.CommandAgent(["sh", "-c", "cat > /dev/null; echo '# Printed'; seq 500"])
    outcome = run(project, clock, {**AGENTS, "architect": printing})
    assert outcome.status == "success"
    assert output(project, "plan").splitlines()[-1] == "500"
    writing = loki.CommandAgent(
        [
            "sh",
            "-c",
            "mkdir -p pipeline-outputs; echo written > pipeline-outputs/plan.md; echo done",
        ]
    )
    (project / "answer.txt").write_text(BEFORE)
    outcome = run(project, clock, {**AGENTS, "architect": writing})
    assert (outcome.run, output(project, "plan", "answer-2")) == ("answer-2", "written\n")


def test_async_agents_and_a_running_event_loop(project: Path, clock: ManualClock) -> None:
    async def planner(_briefing: loki.Briefing) -> str:
        await asyncio.sleep(0)
        return "# Plan\n"

    async def main() -> loki.PipelineOutcome:
        agents = {**AGENTS, "architect": planner}
        return await pipeline(project).arun(agents, path=workspace(project, clock))

    assert asyncio.run(main()).status == "success"
    assert clock.waits == [10]


def test_a_cancelled_run_goes_on_later(project: Path, clock: ManualClock) -> None:
    started = asyncio.Event()

    async def stuck(_briefing: loki.Briefing) -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    async def main() -> None:
        agents = {**AGENTS, "tech-lead": stuck}
        work = asyncio.ensure_future(pipeline(project).arun(agents, path=workspace(project, clock)))
        await started.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())
    outcome = run(project, clock, {**AGENTS, "architect": nobody})
    assert (outcome.run, outcome.status) == ("answer-1", "success")


def test_a_file_outside_the_project_is_not_handed_on(project: Path, clock: ManualClock) -> None:
    (project.parent / "secret").write_text("hunter2\n")
    (project / "link.txt").symlink_to("../secret")
    edit(project, "file: answer.txt", "file: link.txt")
    assert run(project, clock).status == "success"
    assert output(project, "text") == ""


# --- agents by name -------------------------------------------------------------------------------


def test_agents_come_from_the_configuration(project: Path, clock: ManualClock) -> None:
    script = f"{sys.executable} -c"
    with (project / ".loki/config.toml").open("a") as config:
        config.write(
            f"[agents.architect]\ncommand = \"sh -c 'cat > /dev/null; echo a plan'\"\n"
            f'[agents.tech-lead]\ncommand = "{script} \'open(\\"answer.txt\\", \\"w\\").write(\\"three\\\\n\\")\'"\n'
            'breaker = "api/lead"\ntimeout = "20s"\n[agents.qa]\ncommand = "true"\n'
        )
    agent = workspace(project).agent("tech-lead")
    assert isinstance(agent, loki.CommandAgent)
    assert (agent.name, agent.breaker, agent.timeout) == ("tech-lead", "api/lead", 20)
    outcome = pipeline(project).run(path=workspace(project, clock))
    assert outcome.status == "success", outcome.reason


def test_an_unknown_agent_is_told_before_anything_runs(project: Path, clock: ManualClock) -> None:
    agents = {"architect": nobody, "techlead": lead}
    with pytest.raises(loki.UsageError) as error:
        run(project, clock, agents)
    said = str(error.value)
    assert said.startswith("stage implement: unknown agent 'tech-lead': expected claude, ")
    assert "--agent tech-lead=COMMAND" in said
    assert "did you mean 'techlead'?" in said
    assert not (project / ".loki/pipelines").exists()


def test_one_agent_for_all(project: Path, clock: ManualClock) -> None:
    def everything(briefing: loki.Briefing) -> Any:
        return architect(briefing) if briefing.task_id.endswith("plan") else lead(briefing)

    assert run(project, clock, everything).status == "success"


def test_a_file_that_is_none_is_one_flaw(tmp_path: Path) -> None:
    (flaw,) = flaws(tmp_path / "missing.yml")
    assert "found No such file" in str(flaw)
