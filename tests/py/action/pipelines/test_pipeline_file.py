"""Pipeline files: what they say, and where each error stands."""

from __future__ import annotations

import re
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.action.pipelines.pipeline_file import inspect, read
from loki.action.pipelines.pipeline_state import Output, Retry
from loki.base.error import ConfigError
from loki.base.yaml_document import MAX_BYTES
from support.paths import ROOT

WHOLE = """\
version: 1
name: feature
description: From an idea to code.
parameters: {idea: null, tone: calm}
checks: [pytest -q, "lint: make style"]
max_attempts: 40
max_time: 2h
stages:
  - id: plan
    agent: architect
    mode: plan
    description: Write a plan.
    inputs: [idea]
    outputs: [plan, verdict]
    timeout_minutes: 10
  - id: implement
    agent: tech-lead
    mode: agent
    description: Implement the feature with automatic recovery
    inputs: [plan, tone]
    outputs:
      - code_changes
      - {name: api, file: ./docs/api.md}
    condition: {stage: plan, output: verdict, equals: go}
    requires_approval: true
    skill: closed-loop-execution
    timeout_minutes: 30
    retry:
      max_attempts: 5
      backoff: exponential
      initial_delay_seconds: 5
    rollback: undo
  - id: verify
    agent: qa
    description: See that it works.
    inputs: [code_changes, api]
    checks: [make test]
    kind: bug_fix
    complexity: high
    rollback: [make clean]
"""


def test_everything_that_can_be_said() -> None:
    spec = read(WHOLE, "p.yml")
    assert (spec.name, spec.max_attempts, spec.max_seconds) == ("feature", 40, 7200)
    assert spec.parameters == {"idea": None, "tone": "calm"}
    plan, implement, verify = spec.stages
    assert (plan.mode, plan.checks, plan.timeout_seconds) == ("plan", (), 600)
    assert plan.outputs == (Output("plan"), Output("verdict"))
    assert implement.outputs == (Output("code_changes"), Output("api", "docs/api.md"))
    assert implement.retry == Retry(5, "exponential", 5)
    assert implement.checks == ("pytest -q", "lint: make style")
    assert implement.requires_approval
    assert [str(one) for one in implement.condition] == ["stage: plan, output: verdict, equals: go"]
    assert (implement.kind, implement.rollback) == ("feature", "undo")
    assert (verify.checks, verify.rollback) == (("make test",), ("make clean",))
    assert (verify.kind, verify.complexity, verify.timeout_seconds) == ("bug_fix", "high", 1800)


def test_what_is_not_said_has_a_default() -> None:
    spec = read(
        "{version: 1, name: p, stages: [{id: s, agent: a, description: Do it., checks: ['true']}]}",
        "p.yml",
    )
    (stage,) = spec.stages
    assert (stage.mode, stage.timeout_seconds, stage.retry) == ("agent", 1800, Retry())
    assert (stage.rollback, stage.skill, stage.condition) == ("none", None, ())
    assert (spec.max_attempts, spec.max_seconds, spec.parameters) == (None, None, {})


def test_the_digest_of_a_stage_changes_with_anything_of_it() -> None:
    before = read(WHOLE, "p.yml").stages
    for old, new in (("Write a plan.", "Write it."), ("make test", "make check"), ("go}", "stop}")):
        after = read(WHOLE.replace(old, new), "p.yml").stages
        assert [a.digest == b.digest for a, b in zip(before, after, strict=True)].count(False) == 1
    shared = read(WHOLE.replace("pytest -q", "pytest -x"), "p.yml").stages
    assert shared[1].digest != before[1].digest, "the checks that it takes over are its own"
    assert [s.digest for s in read(WHOLE, "q.yml").stages] == [s.digest for s in before]


STAGE = "stages:\n  - {id: a, agent: a, description: d, checks: [x]}\n"


@pytest.mark.parametrize(
    ("old", "new", "place", "reason"),
    [
        ("version: 1", "version: 2", "1:10", "found 2, expected 1"),
        ("version: 1\n", "", "1:1", "found no key 'version'"),
        ("name: feature", "name: 'a b'", "2:7", "found 'a b', expected a name"),
        ("name: feature", "name: ../x", "2:7", "found '../x', expected a name"),
        ("max_attempts: 40", "max_atempts: 40", "6:1", "did you mean 'max_attempts'"),
        ("max_time: 2h", "max_time: 7200", "7:11", "found 7200, expected a duration with"),
        ("max_time: 2h", "max_time: 2 weeks", "7:11", "2 weeks"),
        ("calm}", "3}", "4:32", "found 3, expected text"),
        ("{idea: null, tone: calm}", "[idea, tone, 3]", "4:26", "found 3, expected text"),
        ("idea: null", "no way: null", "4:14", "found 'no way', expected a name"),
        ("pytest -q,", "'a | b',", "5:10", "needs a shell"),
        ("mode: plan", "mode: plna", "11:11", "did you mean 'plan'"),
        ("inputs: [idea]", "inputs: [ideas]", "13:14", "no parameter gives.*did you mean 'idea'"),
        ("inputs: [idea]", "inputs: [api]", "13:14", "which only stage 'implement' outputs"),
        ("outputs: [plan, verdict]", "outputs: [plan, plan]", "14:21", "a second time"),
        ("outputs: [plan, verdict]", "outputs: [plan, tone]", "14:21", "which is a parameter"),
        ("timeout_minutes: 10", "timeout_minutes: 0", "15:22", "found 0, expected 0.001 or more"),
        ("timeout_minutes: 10", "timeout_minutes: .nan", "15:22", "found .nan, expected"),
        ("timeout_minutes: 10", "timeout_minutes: 10m", "15:22", "found '10m', expected a number"),
        ("timeout_minutes: 10", "checks: [x]", "15:13", "found checks of a plan, expected none"),
        ("id: implement", "id: plan", "16:9", "found id 'plan' a second time"),
        ("      - code_changes", "      - plan", "22:9", "which stage 'plan' has already"),
        ("./docs/api.md", "../api.md", "23:27", "expected a path inside the project"),
        ("./docs/api.md", "/etc/passwd", "23:27", "expected a path inside the project"),
        ("./docs/api.md", ".loki/x", "23:27", "expected a path inside the project"),
        ("equals: go", "equal: go", "24:47", "did you mean 'equals'"),
        ("equals: go", "changed: go", "24:16", "found stage and changed and output, expected one of"),
        ("{stage: plan", "{stage: plna", "24:24", "expected an earlier stage .plan.; did you mean 'plan'"),
        ("{stage: plan", "{stage: verify", "24:24", "found stage 'verify', expected an earlier stage"),
        ("output: verdict", "output: verdct", "24:38", "did you mean 'verdict'"),
        ("output: verdict, equals: go", "status: sucess", "24:38", "did you mean 'success'"),
        ("stage: plan, output: verdict", "parameter: ton", "24:28", "did you mean 'tone'"),
        ("requires_approval: true", "requires_approval: 1", "25:24", "expected true or false"),
        ("max_attempts: 5", "max_attempts: 11", "29:21", "found 11, expected 10 or less"),
        ("max_attempts: 5", "max_attempts: 0", "29:21", "found 0, expected 1 or more"),
        ("backoff: exponential", "backoff: linar", "30:16", "did you mean 'linear'"),
        ("initial_delay_seconds: 5", "initial_delay_seconds: 301", "31:30", "found 301, expected 300 or less"),
        ("initial_delay_seconds: 5", "delay: 5", "31:7", "found unknown key 'delay'"),
        ("rollback: undo", "rollback: undoo", "32:15", "did you mean 'undo'"),
        ("rollback: undo", "rollback: []", "32:15", "found an empty list"),
        ("rollback: [make clean]", "rollback: ['a; b']", "40:16", "needs a shell"),
        ("description: See that it works.", "description: ' '", "35:18", "text of 1 word or more"),
        ("    agent: qa\n", "", "33:5", "found no key 'agent'"),
        ("kind: bug_fix", "kind: bugfix", "38:11", "did you mean 'bug_fix'"),
        ("complexity: high", "complexity: huge", "39:17", "expected one of low, medium, high"),
        ("checks: [make test]", "checks: []", "37:13", "found an empty list"),
    ],
)  # fmt: skip
def test_each_error_stands_where_it_is(old: str, new: str, place: str, reason: str) -> None:
    assert old in WHOLE
    with pytest.raises(ConfigError, match=reason) as error:
        read(WHOLE.replace(old, new, 1), "p.yml")
    assert f"{error.value.line}:{error.value.column}" == place, str(error.value)


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        ("{id: a, agent: a, description: d}", "without 'checks'"),
        ("{id: a, agent: a, description: d, mode: plan}", "found a plan without 'outputs'"),
        (
            "{id: a, agent: a, description: d, mode: plan, outputs: [{name: x, file: y}]}",
            "found a file of a plan",
        ),
        ("{id: a, agent: a, description: d, checks: [x], inputs: [y]}", "there are none yet"),
        ("", "found an empty list, expected 1 or more entries"),
        ("7", "found 7, expected a mapping"),
    ],
)
def test_what_a_stage_must_have(stage: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        read(f"version: 1\nname: p\nstages: [{stage}]\n", "p.yml")


def test_all_errors_are_found_at_once() -> None:
    shapes = WHOLE.replace("mode: plan", "mode: plna").replace("kind: bug_fix", "knd: bug_fix")
    relations = WHOLE.replace("[idea]", "[ideas]").replace("{stage: plan", "{stage: plna")
    for text, lines in ((shapes, [11, 38]), (relations, [13, 24])):
        spec, problems = inspect(text, "p.yml")
        assert spec is None
        assert [problem.line for problem in problems] == lines


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "stages: 3",
        "{version: 1, name: p, stages: [[], 3, null, {}]}",
        "version: 1\nname: p\nstages: &a [*a]",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nstages: *c",
        "version: 1\nname: p\nstages: " + "[" * 60 + "]" * 60,
        "!!python/object/apply:os.system ['true']",
        "version: 1\nname: p\nstages:\n" + "  - {id: a, agent: a, description: d}\n" * 101,
        "version: 1\nname: p\nstages: [{id: a, outputs: [{}, [], {name: 3}], inputs: [{}, 3]}]",
        "version: 1\nname: p\nparameters: {a: {}}\nstages: [{id: [], condition: {}, retry: 3}]",
        "%x",
        "\x00",
    ],
)
def test_hostile_files_are_errors(text: str) -> None:
    with pytest.raises(ConfigError, match="p.yml"):
        read(text, "p.yml")


def test_a_file_that_is_too_large_is_an_error() -> None:
    with pytest.raises(ConfigError, match="found more than"):
        read(b"#" * (MAX_BYTES + 1), "p.yml")


@given(st.lists(st.sampled_from(WHOLE.splitlines()), max_size=30), st.text(max_size=10))
def test_any_mixture_of_lines_is_read_or_refused(lines: list[str], odd: str) -> None:
    for text in ("\n".join(lines), "\n".join(lines) + odd, textwrap.indent("\n".join(lines), "  ")):
        spec, problems = inspect(text, "p.yml")
        assert (spec is None) == bool(problems)


DOCUMENTED = re.findall(
    r"```yaml\n(.*?)```", (ROOT / "docs/design/pipeline.md").read_text("utf-8"), re.DOTALL
)
README = re.findall(
    r"```yaml\n(version: 1\n.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
)


@pytest.mark.parametrize("text", [*DOCUMENTED, *README])
def test_what_the_documentation_shows_can_be_used(text: str) -> None:
    spec, problems = inspect(text, "shown.yml")
    assert problems == []
    assert spec is not None
    assert len(spec.stages) > 1


def test_the_documented_pipeline_has_every_key() -> None:
    (text,) = DOCUMENTED
    odd = "{id: a, agent: a, description: d, checks: [x], zzz: 1, retry: {zzz: 1}}"
    _, problems = inspect(f"{{version: 1, name: p, zzz: 1, stages: [{odd}]}}", "p.yml")
    keys = [key for p in problems for key in p.reason.split("one of ")[1].split(", ")]
    assert len(keys) > 20
    assert [key for key in keys if f"{key}:" not in text] == []
