"""What is run to make a sample: one file for each tool, `samples/<tool>.yml`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

FOLDER = Path(__file__).parent

# Shell words, or the arguments themselves.
Name = Annotated[str, Field(min_length=1)]


class Sample(BaseModel):
    """One sample.

    Attributes:
        name: of the sample in the tool file.
        command: what is run, by `bash -c`; what it prints is the sample.
        shown: the command as the tool file gives it, where it is another one.
        files: path → content, written before.
        prepare: shell text that is run before, its output forgotten.
        environment: variables for the command.
        first, last: the lines of the output that are kept, from 1; negative: from the end.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Name
    command: Name
    shown: str = ""
    files: dict[str, str] = {}
    prepare: str = ""
    environment: dict[str, str] = {}
    first: int = 1
    last: int = -1


class Recipe(BaseModel):
    """The samples of one tool.

    Attributes:
        tool: the tool file is `recognition/tools/<tool>.yml`.
        programs: what must be on PATH, else the tool is skipped.
        install: shell text that brings them, for whoever runs it; run once, in a folder of its own
            that stays (`$TOOLS`), whose `bin`, `.venv/bin` and `node_modules/.bin` are on PATH.
        files: path → content, written before each sample.
        samples: in the order of the tool file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    tool: Name
    programs: list[Name]
    install: str = ""
    files: dict[str, str] = {}
    samples: Annotated[list[Sample], Field(min_length=1)]


class RecipeError(Exception):
    """A recipe that cannot be read: the file, and what is wrong with it."""


def tools() -> list[str]:
    """The tools that have a recipe."""
    return sorted(path.stem for path in FOLDER.glob("*.yml"))


def read(names: Sequence[str]) -> list[Recipe]:
    """The recipes of these tools.

    Raises:
        RecipeError: there is none, or it is not one.
    """
    return [_read(name) for name in names]


def _read(name: str) -> Recipe:
    path = FOLDER / f"{name}.yml"
    try:
        recipe = Recipe.model_validate(yaml.safe_load(path.read_bytes()))
    except FileNotFoundError:
        raise RecipeError(f"{path}: no such recipe, expected one of {', '.join(tools())}") from None
    except (yaml.YAMLError, ValidationError) as error:
        raise RecipeError(f"{path}: {error}") from error
    if recipe.tool != name:
        raise RecipeError(f"{path}: found tool {recipe.tool!r}, expected {name!r}")
    return recipe
