"""Texts of other languages read as trees."""

from __future__ import annotations

import pytest

from loki.base import grammar
from loki.base.grammar import Grammar, is_installed, parse, place

JAVASCRIPT = Grammar("tree_sitter_javascript")


def test_a_place_counts_characters() -> None:
    content = "let a = 1;\nlet é = 'ü', b = 2;\n".encode()
    root = parse(JAVASCRIPT, content)
    assert root is not None
    (declared,) = [n for n in root.named_children[1].named_children if n.text == b"b = 2"]
    assert place(declared, content) == (2, 14)


def test_a_place_far_along_a_line_is_told_without_reading_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grammar, "_NEAR", 9)
    content = "'éééé'; 'ü'; b".encode()
    root = parse(JAVASCRIPT, content)
    assert root is not None
    # Far away bytes are counted, near by characters: that of 'ü' is one.
    assert place(root.named_children[2], content) == (1, 14 + 4)


def test_without_its_package_nothing_is_read() -> None:
    unknown = Grammar("tree_sitter_of_nothing")
    assert not is_installed(unknown)
    assert parse(unknown, b"x") is None


def test_what_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "MAX_BYTES", 3)
    assert parse(JAVASCRIPT, b"a;\n") is not None
    assert parse(JAVASCRIPT, b"abc;\n") is None


def test_what_takes_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "MAX_SECONDS", -1.0)
    assert parse(JAVASCRIPT, b"f(" * 5_000) is None
