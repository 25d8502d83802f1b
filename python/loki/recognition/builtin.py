"""The built-in knowledge: compiled from YAML to JSON at build time, read when first needed.

The file has two lines, as most of it is for the core's eyes only: the tools, and the patterns.

``python -m loki.recognition.builtin OUTPUT [CORE]`` writes the file; it needs no compiled core, but
where it is given one, refuses what that refuses: a file that is wrong there breaks every later call.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from loki.base.error import ConfigError
    from loki.recognition.definition_file import Check, Document

    Verdict = Callable[[Document], list[ConfigError]]

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


def _accept(_: Document) -> list[ConfigError]:
    return []


def _read(path: Path, shape: Check, refused: Verdict) -> Document:
    from loki.recognition import definition_file

    document = definition_file.read(path.read_bytes(), path.name, shape)
    for problem in refused(document):
        raise problem
    return document


def compile_definitions(
    folder: Path, of_tool: Verdict = _accept, of_patterns: Verdict = _accept
) -> dict[str, Any]:
    """``tools`` and ``patterns``, from the YAML files in a folder.

    Args:
        folder: where they are.
        of_tool: what else is wrong with a tool file.
        of_patterns: likewise with the pattern file.

    Raises:
        ConfigError: a file is not as it should be.
    """
    from loki.recognition import definition_schema

    tools = []
    for path in sorted((folder / "tools").glob("*.yml")):
        document = _read(path, definition_schema.tool_file, of_tool)
        if document.value["tool"] != path.stem:
            raise document.error(
                "/tool", f"found {document.value['tool']!r}, expected {path.stem!r}"
            )
        document.value.pop("samples", None)
        tools.append(document.value)
    known = _read(folder / "failure-patterns.yml", definition_schema.pattern_file, of_patterns)
    return {"tools": tools, "patterns": known.value}


def _use_core(path: str) -> None:
    """Make a compiled core the one that is imported, wherever it lies."""
    spec = importlib.util.spec_from_file_location("loki._core", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["loki._core"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def main(arguments: list[str]) -> int:
    """Write the compiled definitions to the path given; a second path is that of the core to ask."""
    from loki.base.error import ConfigError

    verdicts: tuple[Verdict, ...] = ()
    if len(arguments) > 1:
        _use_core(arguments[1])
        from loki.recognition import definition_inspection

        verdicts = (definition_inspection.tool_errors, definition_inspection.pattern_errors)
    try:
        definitions = compile_definitions(_HERE, *verdicts)
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    Path(arguments[0]).write_text(compiled(definitions), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
