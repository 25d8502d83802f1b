"""Makes the samples of the tool files anew, by running the tools.

    python -m samples            every tool that is installed here
    python -m samples gcc go     these
    python -m samples --list     which there are, and what they need

Programs that a recipe installs are kept in build/samples; nothing else is written but the tool files.
A sample that differs from the one that is there in times, paths and versions only is left alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from samples import kitchen, recipe, shelf

CELLAR = Path(__file__).parent.parent / "build" / "samples"


def main() -> int:
    """Reads the arguments, makes the samples; 1 where one could not be made."""
    parser = argparse.ArgumentParser(
        prog="python -m samples",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tools", nargs="*", metavar="TOOL", help="all, where none is named")
    parser.add_argument("--list", action="store_true", help="the tools and what they need")
    parser.add_argument("--only", metavar="NAME", help="the sample of this name alone")
    parser.add_argument("--print", action="store_true", help="show the output, write nothing")
    parser.add_argument("--no-install", action="store_true", help="skip what is not installed")
    options = parser.parse_args()
    try:
        recipes = recipe.read(options.tools or recipe.tools())
    except recipe.RecipeError as problem:
        parser.error(str(problem))
    if options.list:
        for one in recipes:
            print(f"{one.tool:14} {len(one.samples):3} samples; needs {', '.join(one.programs)}")
        return 0
    return max((_make(one, options) for one in recipes), default=0)


def _make(one: recipe.Recipe, options: argparse.Namespace) -> int:
    """0, or 1 where a sample could not be made; a tool that is not here is no error."""
    try:
        stamped = one.model_copy(update={"install": ""}) if options.no_install else one
        folder = kitchen.place(stamped, CELLAR)
    except kitchen.Unprepared as problem:
        print(f"{one.tool}: skipped: {problem}", file=sys.stderr)
        return 0
    failed = 0
    for sample in one.samples:
        if options.only not in (None, sample.name):
            continue
        try:
            printed = kitchen.cook(one, sample, folder)
        except kitchen.Unprepared as problem:
            print(f"{one.tool}: {problem}", file=sys.stderr)
            failed = 1
            continue
        if options.print:
            print(f"--- {one.tool}: {sample.name}: exit code {printed.exit_code}\n{printed.text}")
        else:
            print(f"{one.tool}: {sample.name}: {shelf.put(one.tool, sample, printed)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
