"""`loki patterns check`: what people read who write patterns, to the letter."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.paths import ROOT
from support.patterns import FLUX, changed, loki

TOOLS = ROOT / "python/loki/recognition"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("flux.yml").write_text(FLUX, "utf-8")


def test_a_file_that_is_fine_is_one_line() -> None:
    said = "flux.yml: fine; 1 pattern, 4 signals, 1 example, 1 near miss checked\n"
    assert loki("check", "flux.yml") == (0, said, "")


def test_the_projects_own_file_is_checked_where_none_is_named() -> None:
    assert loki("check") == (
        2,
        "",
        "loki: no .loki/failure-patterns.yml here: name a file, as in `loki patterns check mine.yml`\n",
    )
    Path(".loki").mkdir()
    Path(".loki/failure-patterns.yml").write_text(FLUX, "utf-8")
    code, out, _ = loki("check")
    assert (code, out.split(":")[0]) == (0, ".loki/failure-patterns.yml")


def test_every_error_has_its_line() -> None:
    data = changed(("FluxError}", "FluxError, weight: 3}"), ("retry_with", "retri_with"))
    assert loki("check", "-", data=data) == (
        2,
        "<stdin>:5:15: found 'retri_with_backoff', expected one of auto_fix, context_expand, "
        "analyze_then_fix, dependency_check, retry_with_backoff, escalate; did you mean "
        "'retry_with_backoff'?\n"
        "<stdin>:7:27: found unknown key 'weight', expected one of literal, word, regex, slow, any, "
        "not, w, in\n"
        "<stdin>: cannot be used: 2 errors\n",
        "",
    )


def test_examples_that_do_not_come_out_are_1() -> None:
    data = changed(("'FluxError: no", "'FluxErr: no"), ("no capacitor in stock", "FluxError"))
    assert loki("check", "-", data=data) == (
        1,
        "<stdin>:12:9: found an example that is matched by nothing, expected 'flux-error'\n"
        "<stdin>:13:19: found a near miss that 'flux-error' matches (0.70 by 'FluxError'), expected "
        "no match\n"
        "<stdin>: 2 examples that do not come out; 1 pattern, 4 signals, 1 example, 1 near miss "
        "checked\n",
        "",
    )


def test_an_example_that_another_pattern_matches_better() -> None:
    data = b"""\
version: 2
patterns:
  - {id: a, strategy: escalate, description: d, signals: [{word: boom}], examples: [boom crash]}
  - id: b
    strategy: escalate
    description: d
    signals: [{word: boom}, {word: crash}]
    examples: [boom crash]
"""
    code, out, _ = loki("check", "-", data=data)
    said = "<stdin>:3:85: found an example that is matched best by 'b', expected 'a'"
    assert (code, out.splitlines()[0]) == (1, said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            (("FluxError}", "FluxError, w: weak}"), ("missing)'}", "missing)', w: 0.2}")),
            "7:7: warning: found only signals under 0.3, which alone never match, expected a "
            "stronger one",
        ),
        (
            (("{literal: capacitor, w: weak}", "{word: FluxError}"),),
            "8:9: warning: found this signal a second time, expected each once",
        ),
        (
            (("    signals:", "    alternatives: [retry_with_backoff]\n    signals:"),),
            "6:20: warning: found 'retry_with_backoff', which is the pattern's strategy, expected "
            "another one",
        ),
        (
            (("    signals:", "    non_retryable: true\n    max_auto_retries: 2\n    signals:"),),
            "7:23: warning: found retries for a pattern that is never retried, expected 0",
        ),
        (
            (("    examples:\n      - 'FluxError: no capacitor'\n", ""),),
            "3:5: warning: found no examples for flux-error, expected 1 or more each: texts that it "
            "must match",
        ),
        (
            ((FLUX[FLUX.index("patterns:") :], "patterns: []\n"),),
            "2:11: warning: found no patterns, expected 1 or more",
        ),
    ],
)
def test_what_is_hardly_meant_so_is_a_warning(
    change: tuple[tuple[str, str], ...], said: str
) -> None:
    assert f"<stdin>:{said}\n" in loki("check", "-", data=changed(*change))[1]


def test_version_1_with_many_signals_is_warned_of() -> None:
    data = b"version: 1\npatterns:\n- id: p\n  strategy: escalate\n  description: d\n  signals: [aaa, bbb, ccc, ddd]\n  examples: [aaa bbb]\n"
    code, out, _ = loki("check", "-", data=data)
    assert code == 0
    assert out == (
        "<stdin>:6:12: warning: found 4 signals, of which 2 must hit at once to reach 0.30; expected "
        "3 or fewer, or version 2\n"
        "<stdin>: 1 warning; 1 pattern, 4 signals, 1 example checked\n"
    )


def test_a_tool_file(tmp_path: Path) -> None:
    text = (TOOLS / "tools/ruff.yml").read_text("utf-8")
    broken = text.replace("  - id: ", "  - idd: ", 1)
    Path("ruff.yml").write_text(broken, "utf-8")
    code, out, _ = loki("check", "ruff.yml")
    assert code == 2
    assert "found unknown key 'idd', expected one of id, role, start" in out
    assert "did you mean 'id'?" in out


TOOL = """\
version: 1
tool: fluxc
blocks:
  - id: error
    role: cause
    start: '^flux: (?P<message>.+)$'
samples:
  - name: one
    text: "flux: no power\\n"
    expect: {tool: fluxc, message: no power, output_line: 1}
"""


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("", ""), 0, "<stdin>: fine; 1 block, 1 sample checked\n"),
        (
            ("message: no power", "message: power"),
            1,
            "<stdin>:10:36: found message 'no power' in sample 'one', expected 'power'\n",
        ),
        (
            ("output_line: 1", "line: 3"),
            1,
            "found line None in sample 'one', expected 3\n",
        ),
        (
            (".+)$", ".+)(?=x)$"),
            2,
            "<stdin>:6:12: found the look-ahead '(?=', expected a regex without look-around\n",
        ),
        (
            ("?P<message>", "?P<mesage>"),
            2,
            "<stdin>:6:12: found group 'mesage', expected the name of a field\n",
        ),
        (
            ("flux: (", ".+: ("),
            2,
            "<stdin>:6:12: found a regex without a literal of 3 bytes that every match must hold, "
            "expected one\n",
        ),
        (
            ("role: cause", "role: cause\n    nests: [pytst]"),
            0,
            "<stdin>:6:13: warning: found 'pytst', expected the name of a tool; did you mean "
            "'pytest'?\n",
        ),
        (
            ("role: cause", "kind: build-eror\n    role: cause"),
            0,
            "<stdin>:5:11: warning: found 'build-eror', expected a kind of failure that a built-in "
            "pattern is of; did you mean 'build-error'?\n",
        ),
        (
            ("role: cause", "role: cause\n    opens: ['$ ']"),
            0,
            "<stdin>:6:12: warning: found 'opens' on a block that closes no step, expected "
            "'closes: true' beside it\n",
        ),
        (
            ("blocks:", "prefixes: ['\\d+ ', ' *']\nblocks:"),
            2,
            "<stdin>:3:20: found a prefix that may be empty, expected one that takes a character or "
            "more\n",
        ),
        (
            ("blocks:", "detect: [{}]\nblocks:"),
            2,
            "<stdin>:3:10: found none, expected exactly one of literal, regex\n",
        ),
        (
            ("blocks:", "detect: [{literal: flux, regex: flux}]\nblocks:"),
            2,
            "<stdin>:3:10: found literal, regex, expected exactly one of literal, regex\n",
        ),
        (
            ("blocks:", "commands: [' ']\nblocks:"),
            2,
            "<stdin>:3:12: found ' ', expected text of 1 word or more\n",
        ),
    ],
)
def test_tool_files(change: tuple[str, str], code: int, said: str) -> None:
    came, out, _ = loki("check", "-", data=TOOL.replace(*change).encode())
    assert said in out
    assert came == code


def test_each_refusal_of_a_tool_file_is_said_once() -> None:
    more = TOOL.replace("blocks:", "library: [abc(]\nblocks:").replace(".+)$", ".+)++$")
    more = more.replace("samples:", "  - {id: b, role: cause, start: [abc, '.+']}\nsamples:")
    code, out, _ = loki("check", "-", data=more.encode())
    assert code == 2
    places = [line.split(": ")[0] for line in out.splitlines()]
    assert places == ["<stdin>:3:11", "<stdin>:7:12", "<stdin>"]
    mended = more.replace("abc(]", "abc]").replace("++$", "+$")
    out = loki("check", "-", data=mended.encode())[1]
    assert [line.split(": ")[0] for line in out.splitlines()] == ["<stdin>:8:39", "<stdin>"]


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    Path("empty").mkdir()
    code, out, _ = loki("check", "none.yml", "flux.yml")
    assert code == 2
    assert out.splitlines() == [
        "none.yml: found No such file or directory, expected a file",
        "none.yml: cannot be used: 1 error",
        "flux.yml: fine; 1 pattern, 4 signals, 1 example, 1 near miss checked",
    ]
    assert loki("check", "empty") == (2, "", "loki: no file in empty ends with .yml or .yaml\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file() -> None:
    Path("flux.yml").chmod(0)
    code, out, _ = loki("check", "flux.yml")
    assert (code, out.splitlines()[0]) == (
        2,
        "flux.yml: found Permission denied, expected a file",
    )


def test_check_as_json() -> None:
    data = changed(("'FluxError: no", "'FluxErr: no"))
    code, out, _ = loki("check", "-", "flux.yml", "--json", data=data)
    first, second = json.loads(out)["files"]
    assert code == 1
    assert (first["ok"], second["ok"]) == (False, True)
    assert first["findings"] == [
        {
            "severity": "example",
            "line": 12,
            "column": 9,
            "reason": "found an example that is matched by nothing, expected 'flux-error'",
        }
    ]
    assert second["counts"]["signals"] == 4


@pytest.mark.parametrize("command", ["check", "test"])
def test_a_broken_file_never_shows_the_parser(command: str) -> None:
    for text in (
        "a: [",
        'a: "',
        "key\n: x: y",
        "\t",
        "%TAG x",
        "a: !!x",
        "- *b",
        "{a: b",
        "? -",
        "|0",
    ):
        Path("broken.yml").write_text(text, "utf-8")
        code, out, err = loki(command, "broken.yml")
        assert code == 2
        assert "broken.yml:1:" in out + err or "broken.yml:2:" in out + err
        assert "while" not in out + err
        assert "did not find" not in out + err


def test_help_teaches_with_an_example_that_is_right(tmp_path: Path) -> None:
    code, out, _ = loki("--help")
    assert code == 0
    lines = out.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.strip() == "version: 2")
    end = next(i for i, line in enumerate(lines) if "near_misses:" in line)
    indent = lines[begin].index("version")
    example = "".join(f"{line[indent:].rstrip()}\n" for line in lines[begin : end + 1])
    Path("help.yml").write_text(example, "utf-8")
    assert loki("check", "help.yml")[0] == 0
    for command in ("check", "test"):
        assert "Exit codes" in loki(command, "--help")[1]
