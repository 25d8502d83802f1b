"""`loki patterns test`: what people read who try their patterns out, to the letter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.patterns import FLUX, changed, loki


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("flux.yml").write_text(FLUX, "utf-8")


def test_a_match_shows_its_signals_in_their_lines() -> None:
    text = "ok\nFluxError: 1.21\x1b[31m gigawatts needed"
    assert loki("test", "flux.yml", "--text", text) == (
        0,
        """\
The text matches 1 pattern of flux.yml:

flux-error  0.91, high confidence, coverage 0.67 -> retry_with_backoff
  hit     FluxError (0.7) at 2:1
          | FluxError: 1.21 gigawatts needed
          | ^^^^^^^^^
  hit     gigawatts? (needed|missing) (0.7) at 2:22
          | FluxError: 1.21 gigawatts needed
          |                 ^^^^^^^^^^^^^^^^
  not     capacitor
""",
        "",
    )


def test_no_match_shows_what_came_close_and_what_to_do() -> None:
    text = "MyFluxErrors: a capacitor and 1.21 Gigawatts needed"
    assert loki("test", "flux.yml", "--text", text) == (
        1,
        """\
Nothing matches: no pattern of flux.yml reaches 0.30.
The failure is unknown, and answered with analyze_then_fix.

flux-error  came close: 0.15 is under 0.30
  hit     capacitor (0.15) at 1:17
          | MyFluxErrors: a capacitor and 1.21 Gigawatts needed
          |                 ^^^^^^^^^
  almost  FluxError: it is only a part of a longer word
  almost  gigawatts? (needed|missing): only the letter case differs

Next: add what tells this failure from others to flux-error, for example
  - {literal: "MyFluxErrors: a capacitor and"}
and keep the text among its `examples`; `loki patterns check` tries them.
""",
        "",
    )


def test_an_exclusion_is_named() -> None:
    code, out, _ = loki("test", "flux.yml", "--text", "FluxError: see the spare capacitor")
    assert code == 1
    assert "flux-error  came close: excluded by 'not spare capacitor'\n" in out
    assert "  against not spare capacitor (0.7) at 1:20\n" in out


def test_a_pattern_of_another_language_is_named() -> None:
    Path("flux.yml").write_bytes(changed(("    strategy", "    language: rust\n    strategy")))
    arguments = ("test", "flux.yml", "--text", "FluxError: boom", "--language")
    assert "came close: it is for rust, and this is go\n" in loki(*arguments, "go")[1]
    assert loki(*arguments, "rust")[0] == 0


def test_a_signal_in_another_place_is_named() -> None:
    Path("flux.yml").write_bytes(changed(("{word: FluxError}", "{word: FluxError, in: tool}")))
    code, out, _ = loki("test", "flux.yml", "--text", "FluxError: boom")
    assert code == 1
    assert "  almost  FluxError: it is in the text, not in the tool\n" in out


def test_nothing_at_all() -> None:
    code, out, _ = loki("test", "flux.yml", "--text", "")
    assert code == 1
    assert out.endswith(
        "Next: nothing in the text says that something failed; is it the right one?\n"
    )


def test_output_from_a_file_and_from_stdin(tmp_path: Path) -> None:
    log = b"noise \xff\n" * 500 + b"FluxError: no power\n"
    Path("build.log").write_bytes(log)
    code, out, _ = loki("test", "flux.yml", "build.log")
    assert code == 0
    assert "hit     FluxError (0.7) at 501:1\n" in out
    assert loki("test", "flux.yml", "-", data=log)[:2] == (0, out)
    code, out, _ = loki("test", "build.log")
    assert "of the built-in set" in out
    Path(".loki").mkdir()
    Path(".loki/failure-patterns.yml").write_text(FLUX, "utf-8")
    assert "of .loki/failure-patterns.yml" in loki("test", "build.log")[1]
    assert "of the built-in set" in loki("test", "--builtin", "build.log")[1]


def test_own_examples_are_run_without_a_text() -> None:
    said = "flux.yml: 2 of 2 examples come out as they should\n"
    assert loki("test", "flux.yml") == (0, said, "")
    Path("flux.yml").write_bytes(changed(("'FluxError: no", "'FluxErr: no")))
    assert loki("test", "flux.yml") == (
        1,
        "flux.yml:12:9: found an example that is matched by nothing, expected 'flux-error'\n"
        "flux.yml: 1 of 2 examples come out as they should\n",
        "",
    )
    code, out, _ = loki("test")
    assert code == 0
    assert out.startswith("the built-in set: ")
    Path("bare.yml").write_text(FLUX[: FLUX.index("    examples")], "utf-8")
    assert loki("test", "bare.yml")[1].startswith(
        "bare.yml: no examples. Give a pattern `examples`"
    )


def as_json(*arguments: str) -> Any:
    return json.loads(loki(*arguments, "--json")[1])


def test_test_as_json() -> None:
    data = as_json("test", "flux.yml", "--text", "x\nFluxError: sk-ant-" + "a1" * 20)
    (match,) = data["matches"]
    assert (match["pattern"], match["confidence"], match["band"]) == ("flux-error", 0.7, "high")
    signal = match["signals"][0]
    assert (signal["hit"], signal["line"], signal["column"]) == (True, 2, 1)
    assert (signal["begin"], signal["end"], signal["excerpt"]) == (2, 11, "FluxError")
    assert [s["hit"] for s in match["signals"]] == [True, False, False, False]
    assert "a1a1a1" not in json.dumps(data)
    data = as_json("test", "flux.yml", "--text", "a capacitor is out")
    assert (data["matches"], data["close"][0]["reason"]) == ([], "0.15 is under 0.30")
    assert as_json("test", "flux.yml") == {"patterns": "flux.yml", "texts": 2, "wrong": []}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.yml", "--text", "x"), "none.yml: found No such file or directory, expected a file"),
        (("folder.yml",), "folder.yml: found Is a directory, expected a file"),
        (("flux.yml", "folder.yml"), "cannot read folder.yml: Is a directory"),
        (("none.log",), "cannot read none.log: No such file or directory"),
        (("flux.yml", "a", "b"), "found one file too many (b), expected [FILE] [LOG]"),
        (("flux.yml", "a", "--text", "x"), "found --text and a file with output, expected one of"),
        (("flux.yml", "--builtin"), "found --builtin and a pattern file, expected one of them"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: tuple[str, ...], said: str) -> None:
    Path("folder.yml").mkdir()
    code, out, err = loki("test", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"loki: {said}")
    assert err.count("\n") == 1


def test_what_was_learned_is_named() -> None:
    Path(".loki").mkdir()
    Path(".loki/learned-patterns.yml").write_text(FLUX, "utf-8")
    code, out, _ = loki("test", "--text", "FluxError: 1.21 gigawatts needed")
    assert code == 0
    assert " of the built-in set and .loki/learned-patterns.yml:\n" in out
