"""The built-in knowledge: compiled from YAML to JSON at build time, read when first needed.

The file has two lines, as most of it is for the core's eyes only: the tools, and the patterns.

``python -m loki.recognition.builtin OUTPUT [CORE]`` writes the file; it needs no compiled core, but
where it is given one, refuses what that refuses: a file that is wrong there breaks every later call.
What is wrong with a file by line and column, `loki patterns check FILE` says.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
FILE = _HERE / "builtin.json"


@cache
def _lines() -> tuple[str, str]:
    tools, patterns = FILE.read_text(encoding="utf-8").splitlines()
    return tools, patterns


def tools_text() -> str:
    """``{"tools": [...]}``, the rules of all tools without samples, as the core reads them."""
    return _lines()[0]


@cache
def tools() -> list[dict[str, Any]]:
    """The same, read."""
    value: list[dict[str, Any]] = json.loads(tools_text())["tools"]
    return value


@cache
def patterns() -> dict[str, Any]:
    """A pattern file."""
    value: dict[str, Any] = json.loads(_lines()[1])
    return value


def compiled(definitions: dict[str, Any]) -> str:
    """The text of the file, of what `compile_definitions` gives."""
    parts = ({"tools": definitions["tools"]}, definitions["patterns"])
    # Characters beyond ASCII are escaped: some of them end lines.
    return "".join(json.dumps(part, separators=(",", ":")) + "\n" for part in parts)


_LISTS = ("start", "continue", "until", "through", "acquit")
"""Keys of blocks that hold regexes; a single one may stand alone."""


def compile_definitions(folder: Path) -> dict[str, Any]:
    """``tools`` and ``patterns``, from the YAML files in a folder.

    Args:
        folder: where they are.
    """
    from loki.base.yaml_text import load_file

    tools = []
    for path in sorted((folder / "tools").glob("*.yml")):
        tool = load_file(path)
        tool.pop("samples", None)
        for block in tool.get("blocks", ()):
            alone = {key: [block[key]] for key in _LISTS if isinstance(block.get(key), str)}
            block.update(alone)
        tools.append(tool)
    return {"tools": tools, "patterns": load_file(folder / "failure-patterns.yml")}


def _check(definitions: dict[str, Any], path: str) -> None:
    """Raise what a compiled core refuses; wherever it lies, it becomes the one that is imported."""
    spec = importlib.util.spec_from_file_location("loki._core", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["loki._core"] = core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    from loki.recognition.pattern import core_pattern

    known = definitions["patterns"]
    patterns = {**known, "patterns": [core_pattern(entry) for entry in known["patterns"]]}
    asked = [
        (f"{tool['tool']}.yml", core.SiteRules, {"tools": [tool]}) for tool in definitions["tools"]
    ]
    for name, kind, definition in (*asked, ("failure-patterns.yml", core.PatternSet, patterns)):
        try:
            kind(json.dumps(definition)).check()
        except core.DefinitionError as error:
            raise SystemExit(f"{name}: {error}") from None


def main(arguments: list[str]) -> int:
    """Write the compiled definitions to the path given; a second path is that of the core to ask."""
    definitions = compile_definitions(_HERE)
    if len(arguments) > 1:
        _check(definitions, arguments[1])
    Path(arguments[0]).write_text(compiled(definitions), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
