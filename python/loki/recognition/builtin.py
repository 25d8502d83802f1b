"""The built-in knowledge: compiled from YAML to JSON at build time, read when first needed.

``python -m loki.recognition.builtin OUTPUT`` writes the file; it needs no compiled core.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
FILE = _HERE / "builtin.json"


@cache
def load() -> dict[str, Any]:
    """The document: ``tools`` (rules without samples) and ``patterns`` (a pattern file)."""
    value: dict[str, Any] = json.loads(FILE.read_bytes())
    return value


def compile_definitions(folder: Path) -> dict[str, Any]:
    """The same, from the YAML files in a folder.

    Raises:
        ConfigError: a file is not as it should be.
    """
    from loki.recognition import definition, schema

    tools = []
    for path in sorted((folder / "tools").glob("*.yml")):
        document = definition.read(path.read_bytes(), path.name, schema.tool_file)
        if document.value["tool"] != path.stem:
            raise document.error(
                "/tool", f"found {document.value['tool']!r}, expected {path.stem!r}"
            )
        document.value.pop("samples", None)
        tools.append(document.value)
    patterns = folder / "failure-patterns.yml"
    known = definition.read(patterns.read_bytes(), patterns.name, schema.pattern_file)
    return {"tools": tools, "patterns": known.value}


def main(arguments: list[str]) -> int:
    """Write the compiled definitions to the path given."""
    from loki.base.error import ConfigError

    try:
        compiled = compile_definitions(_HERE)
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    text = json.dumps(compiled, ensure_ascii=False, separators=(",", ":"))
    Path(arguments[0]).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
