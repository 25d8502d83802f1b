"""Puts what was printed into a tool file, and leaves all else in it as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

import loki
from loki import _core
from loki.base.yaml_document import Document
from loki.recognition import definition_schema, failure, site
from loki.recognition.pattern import PatternSet
from samples.kitchen import ROOT, Printed
from samples.recipe import Sample

TOOLS = Path(__file__).parent.parent / "python" / "loki" / "recognition" / "tools"
_SAID = ("tool", "error_type", "error_code", "message", "path", "line", "column", "output_line")


def put(tool: str, sample: Sample, printed: Printed) -> str:
    """Writes one sample into its tool file.

    Args:
        tool: whose file.
        sample: what was run.
        printed: what came.

    Returns:
        `"same"`: it differs from what is there in times, versions and the like at most; `"changed"`:
        its text was replaced; `"new"`: it was appended, with what loki says of it now, to be read by
        a person.
    """
    path = TOOLS / f"{tool}.yml"
    content = path.read_text(encoding="utf-8")
    span = span_of_text(content, sample.name)
    if span is None:
        path.write_text(content.rstrip("\n") + "\n" + _entry(content, sample, printed), "utf-8")
        return "new"
    start, end = span
    before = yaml.safe_load("text: " + content[start:end])["text"]
    if loki.normalize(before) == loki.normalize(printed.text):
        return "same"
    path.write_text(content[:start] + literal(printed.text, 4) + content[end:], "utf-8")
    return "changed"


def span_of_text(content: str, name: str) -> tuple[int, int] | None:
    """Where the text of a sample stands in a tool file, in code points; None: there is none."""
    root = yaml.compose(content, Loader=yaml.SafeLoader)
    for key, value in root.value if root else ():
        for sample in value.value if key.value == "samples" else ():
            entries = {k.value: v for k, v in sample.value}
            if entries["name"].value == name:
                node = entries["text"]
                return node.start_mark.index, node.end_mark.index
    return None


def _entry(content: str, sample: Sample, printed: Printed) -> str:
    command = sample.shown or sample.command
    lines = [] if re.search(r"(?m)^samples:", content) else ["samples:"]
    lines += [f"- name: {_word(sample.name)}", f"  command: {_word(command)}"]
    lines += [f"  exit_code: {printed.exit_code}", f"  root: {ROOT}"]
    said = json.dumps(_read(content, command, printed.text), ensure_ascii=False)
    text = f"  text: {literal(printed.text, 4)}"
    return "\n".join([*lines, text.rstrip("\n"), f"  expect: {said}", ""])


def _word(text: str) -> str:
    dumped = yaml.safe_dump(text, allow_unicode=True, width=10_000)
    return dumped.removesuffix("\n").removesuffix("\n...")


def _read(content: str, command: str, text: str) -> dict[str, Any]:
    """What loki reads from a sample with the tool file as it stands."""
    known = PatternSet.default()
    bare = re.sub(r"(?m)^samples:.*\Z", "", content, flags=re.DOTALL)
    tool = Document(bare, "").read(definition_schema.ToolFile)
    rules = site.rules_with(definition_schema.plain(tool))
    read = _core.recognize(rules, known.core, text, command, ROOT, "")
    found = failure.described(read, known, None)
    said = {key: getattr(found, key) for key in _SAID}
    said.update(frames=len(found.frames), tests=list(found.tests))
    kind = found.match.kind if found.match else "unknown"
    return {**{key: value for key, value in said.items() if value}, "kind": kind}


def literal(text: str, indent: int) -> str:
    """A text as YAML, a literal block wherever YAML can say it in one.

    Args:
        text: what to say.
        indent: columns of the lines of the block.
    """
    plain = text and all(c.isprintable() or c in "\n\t" for c in text) and "\ufeff" not in text
    if not plain or text.strip("\n") == "":
        return json.dumps(text) + "\n"
    pad = " " * indent
    kept = len(text) - len(text.rstrip("\n"))
    chomp = "-" if kept == 0 else "" if kept == 1 else "+"
    first = next(line for line in text.split("\n") if line)
    hint = "2" if text.startswith("\n") or first.startswith((" ", "\t")) else ""
    body = text[: len(text) - 1] if kept else text
    lines = [pad + line if line else "" for line in body.split("\n")]
    return f"|{hint}{chomp}\n" + "\n".join(lines) + "\n"
