"""Every public name, called twice in random order: none depends on what was called before it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import loki
import loki.testing
from support.public_calls import calls


def test_every_public_name_has_a_use_here(tmp_path: Path) -> None:
    assert sorted(calls(tmp_path)) == sorted(loki.__all__)


@pytest.mark.parametrize("name", sorted(loki.__all__))
def test_every_public_name_is_documented(name: str) -> None:
    thing = getattr(loki, name)
    assert inspect.getdoc(thing)
    for member, value in vars(thing).items() if inspect.isclass(thing) else ():
        if not member.startswith("_") and inspect.isfunction(value):
            assert inspect.getdoc(value), f"{name}.{member}"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lokki'"):
        loki.lokki  # noqa: B018
    assert set(loki.__all__) <= set(dir(loki))
