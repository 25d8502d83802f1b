"""What tests of pytest_plugin/test_asserted of both tiers share."""

from __future__ import annotations

from textwrap import dedent

from loki.pytest_plugin.source.asserted_calls import asserted
from loki.pytest_plugin.source.source_module import Sources
from loki.recognition.root_cause import Asserted

PROJECT = {
    "src/shop/__init__.py": "from .text import slugify, title as headline\nfrom shop.user import *\n",
    "src/shop/text.py": """
        def slugify(text, separator="-", *, lower=True, **more):
            return text

        def title(text): return text

        @click.group()
        def commands(): pass

        WORDS = {"a": 1}
        shout = title
        """,
    "src/shop/user.py": """
        class Named:
            def name(self): return ""

        class User(Named):
            def __init__(self, first): self.first = first
            def greet(self, word="hi"): return word
            @property
            def initial(self): return self.first[0]
            @classmethod
            def load(cls, first): return cls(first)
        """,
    "conftest.py": """
        import pytest
        from shop import User

        @pytest.fixture
        def ada(): return User("Ada")

        @pytest.fixture
        def slug(request):
            from shop import slugify
            yield slugify("x")

        @pytest.fixture
        def saved():
            user = User("Ada")
            user.save()
            return user
        """,
}

HEAD = """
import json
import re
import pytest
import shop.text
import shop.user as users
from shop import User, headline, slugify
from shop.text import WORDS, shout

def close(got, want): assert abs(got - want) < 1
def slug_of(text): return slugify(text).strip()
def saved_slug(text):
    User("x").save(text)
    return slugify(text)
"""


def sources(**files: str) -> Sources:
    texts = {**PROJECT, **{f"{name}.py": text for name, text in files.items()}}
    return Sources(lambda path: dedent(texts[path]) if path in texts else None)


def read(
    body: str, parameters: str = "", decorator: str = "", failing: int = -1
) -> Asserted | None:
    """What a test asserts on that fails in its last line, or in another."""
    lines = dedent(body).strip().splitlines()
    text = f"{HEAD}\n{decorator}\ndef test_it({parameters}):\n"
    text += "".join(f"    {line}\n" for line in lines)
    module = sources(test_a=text).module("test_a.py")
    assert module is not None
    test = module.function(["test_it"])
    assert test is not None
    return asserted(test, "test_a.py::test_it", test.node.lineno + len(lines) + failing + 1)
