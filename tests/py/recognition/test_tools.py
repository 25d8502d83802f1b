"""Every sample of every tool file says what must be extracted from it."""

from collections.abc import Callable
from typing import Any

import pytest

import loki
from loki import _core
from loki.recognition import builtin, fix, site
from support.tool_files import TOOLS, tool_files

Sample = dict[str, Any]
TOOL_FILES = {name: file["samples"] for name, file in tool_files().items() if file.get("samples")}
of_each_tool = pytest.mark.parametrize("tool", TOOL_FILES)


def every_sample(tool: str, check: Callable[[Sample], None]) -> None:
    """Tries all samples of a tool's file; one that fails is named, and hides no other."""
    wrong = []
    for sample in TOOL_FILES[tool]:
        try:
            check(sample)
        except Exception as error:
            wrong.append(f"{tool}: {sample['name']}: {type(error).__name__}: {error}")
    assert not wrong, "\n\n".join(wrong)


@of_each_tool
def test_a_sample_gives_what_it_says(tool: str) -> None:
    every_sample(tool, gives_what_it_says)


def gives_what_it_says(sample: Sample) -> None:
    failure = loki.recognize(
        sample["text"],
        command=sample.get("command"),
        exit_code=sample.get("exit_code"),
        root=sample.get("root"),
    )
    expected = dict(sample["expect"])
    assert len(failure.frames) == expected.pop("frames", 0)
    assert failure.kind == expected.pop("kind")
    assert list(failure.tests) == expected.pop("tests", [])
    for name in ("tool", "error_type", "error_code", "message", "path", "line", "column"):
        assert getattr(failure, name) == expected.pop(name, None), name
    assert failure.output_line == expected.pop("output_line")
    assert not expected


@of_each_tool
def test_the_excerpt_shows_the_line_that_says_what_failed(tool: str) -> None:
    every_sample(tool, has_an_excerpt_with_its_line)


def has_an_excerpt_with_its_line(sample: Sample) -> None:
    failure = loki.recognize(sample["text"], command=sample.get("command"))
    assert failure.excerpt_lines is not None
    assert failure.output_line is not None
    first, last = failure.excerpt_lines
    assert first <= failure.output_line <= last < first + 40
    lines = sample["text"].split("\n")[first - 1 : last]
    assert failure.excerpt.split("\n") == lines


@of_each_tool
def test_framing_of_ci_systems_hides_nothing(tool: str) -> None:
    """Time stamps before each line, carriage returns at its end: the same failure."""
    every_sample(tool, is_the_same_when_framed)


def is_the_same_when_framed(sample: Sample) -> None:
    plain = loki.recognize(sample["text"], command=sample.get("command"))
    framed = "".join(
        f"2026-01-02T03:04:05.1234567Z {line}\r\n" for line in sample["text"].split("\n")
    )
    seen = loki.recognize(framed, command=sample.get("command"))
    assert (seen.tool, seen.message, seen.path, seen.line, seen.tests, seen.output_line) == (
        plain.tool,
        plain.message,
        plain.path,
        plain.line,
        plain.tests,
        plain.output_line,
    )


def test_all_samples_are_tried() -> None:
    assert len(TOOL_FILES) > 100
    assert sum(map(len, TOOL_FILES.values())) > 1_200


def test_every_regex_compiles() -> None:
    site.rules().check()
    loki.PatternSet.default().core.check()


def test_a_fix_command_is_for_a_check_that_its_tool_knows() -> None:
    for tool in builtin.tools():
        known = [tuple(command.split()) for command in tool.get("commands", ())]
        for words, one in fix.fix_commands().items():
            if one.tool == tool["tool"]:
                assert any(_is_in(command, words) for command in known), (tool["tool"], words)


def _is_in(command: tuple[str, ...], words: tuple[str, ...]) -> bool:
    starts = range(len(words) - len(command) + 1)
    return any(words[at : at + len(command)] == command for at in starts)


def test_tool_files_are_what_the_build_compiled() -> None:
    known = {"tools": builtin.tools(), "patterns": builtin.patterns()}
    assert builtin.compile_definitions(TOOLS.parent) == known
    assert [tool["tool"] for tool in builtin.tools()] == [
        f.stem for f in sorted(TOOLS.glob("*.yml"))
    ]


def test_what_tools_offer_besides_their_output() -> None:
    requests = {request.tool: request for request in site.results_requests()}
    assert requests["pytest"].environment == "PYTEST_ADDOPTS"
    assert requests["go"] == site.ResultsRequest("go", "go", (("go", "test"),), insert=("-json",))
    assert {"npx", "poetry run"} <= {" ".join(words) for words in site.launchers()}
    assert fix.fix_commands()["ruff", "check"].command == ("ruff", "check", "--fix")


def test_a_bad_rule_names_its_place() -> None:
    with pytest.raises(_core.DefinitionError, match=r"/tools/0/blocks/0/start/0: .*no literal"):
        _core.SiteRules(
            '{"tools":[{"tool":"x","blocks":[{"id":"a","role":"cause","start":["^.$"]}]}]}'
        )
    rules = _core.SiteRules(
        '{"tools":[{"tool":"x","blocks":[{"id":"a","role":"cause","start":["(?P<mess>abc)"]}]}]}'
    )
    with pytest.raises(_core.DefinitionError, match="group 'mess'"):
        rules.check()
