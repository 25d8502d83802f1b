"""Secrets are masked, in every text and every kind; what only looks like one stays: what takes its time."""

from __future__ import annotations

from loki.base import secret
from loki.base.secret import mask_secrets


def test_large_hostile_texts_end() -> None:
    """Beginnings of every kind, over and over: nothing that grows with the square would end."""
    for kind in secret.knowledge().kinds:
        for literal in kind.literals:
            kind.regex.sub("", literal * (200_000 // len(literal)))
    secret.knowledge().innocent.sub("", "password=${" * 50_000)
    for kind in secret.knowledge().kinds:
        for literal in kind.literals:
            mask_secrets(literal * (200_000 // len(literal)))
    for text in (
        "https://a:",
        "https://a:b@c/",
        "sk-",
        "password=",
        '"token": "',
        "\\n",
        "\x1b]",
        "-----BEGIN PRIVATE KEY-----",
        "x",
    ):
        mask_secrets(text * (2_000_000 // len(text)))
