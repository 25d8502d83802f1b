"""The text of a failing test says whose result it asserts on, or nothing is said."""

from __future__ import annotations

import pytest

from loki.pytest_plugin.source.asserted_calls import asserted
from loki.pytest_plugin.source.assertion_reader import Callers
from loki.recognition.root_cause import Asserted, Callee
from support.asserted import HEAD, read, sources


def names(found: Asserted | None) -> list[str]:
    return sorted(callee.name.removesuffix("()") for callee in found.callees) if found else []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('assert slugify("A") == "a"', "slugify"),
        ('assert "a" == shop.text.slugify("A")', "slugify"),
        ('assert headline("a") == shout("a")', "title"),
        ('assert len(slugify("A")) == 1', "slugify"),
        ('assert sorted(map(slugify, "ba")) == ["a", "b"]', "slugify"),
        ('assert [slugify(one) for one in "ab"] == ["a"]', "slugify"),
        ('assert slugify("A").strip().upper() == WORDS', "slugify"),
        ('assert json.loads(slugify("1"))["a"] == 1', "slugify"),
        ('assert re.match("a", slugify("b")).group() == "b"', ""),
        ('got = slugify("A")\nassert got == "a"', "slugify"),
        ('got = slugify("A")\nother = 3\nassert f"/{got}" == "/a"', "slugify"),
        ('first, second = slugify("a b")\nassert second', "slugify"),
        ('got = headline("A")\ngot = slugify("A")\nassert got == "a"', "slugify"),
        (
            'got = headline("A")\nif got:\n    got = slugify("A")\nassert got == "a"',
            "slugify title",
        ),
        ('for one in slugify("ab"):\n    assert one == "a"', "slugify"),
        ('assert (got := slugify("a")) == "b"', "slugify"),
        ('close(slugify("1"), 1)', "slugify"),
        ('assert slug_of("A") == "a"', "slugify"),
        ('from shop.text import title\nassert title("a") == "A"', "title"),
        ('assert slugify("a") == headline("b")', "slugify title"),
        ('assert User("Ada").greet() == "hi"', "User.greet"),
        ('user = users.User("Ada")\nassert user.name() == "Ada"', "Named.name"),
        ('assert User("Ada").initial == "A"', "User.initial"),
        ('assert User.load("Ada") == User("Ada")', "User.load"),
    ],
)
def test_what_is_asserted_on(body: str, expected: str) -> None:
    """The project's outermost calls, through names, helpers of the tests and libraries."""
    assert " ".join(names(read(body))) == expected


@pytest.mark.parametrize(
    "body",
    [
        'assert json.invoke(shop.text.commands, ["add"]) == 0',
        "assert 1 == 2",
        'assert WORDS == {"a": 2}',
        'assert User("Ada").first == "A"',
        'assert User("Ada").unknown() == "A"',
        'user = User("Ada")\nuser.rename("Bob")\nassert user.greet() == "hi"',
        'user = User("Ada")\nuser.first = "Bob"\nassert user.greet() == "hi"',
        'slugify("a")\nassert headline("a") == "A"',
        'assert slugify("a").render() == "a"',
        'assert slugify("a").get("b") == 1',
        'assert slugify("a").count() == 1',
        'assert unknown("a") == slugify("a")',
        'assert saved_slug("a") == "a"',
        'def inner(): return slugify("a")\nassert inner() == "a"',
        'got = got\nassert got == slugify("a")',
    ],
)
def test_what_is_not_clear(body: str) -> None:
    """Data, what changed before, what nobody knows: nothing is said."""
    assert read(body) is None


@pytest.mark.parametrize(
    ("body", "parameters", "expected"),
    [
        ("assert ada.greet() == 'hi'", "ada", "User.greet"),
        ("assert slug == 'x'", "slug", "slugify"),
        ("assert slugify(text) == slug", "text, slug", "slugify"),
        ("assert slugify(other) == 'x'", "other", "slugify"),
        ("assert saved.greet() == 'x'", "saved", ""),
        ("assert other.get() == 'x'", "other", ""),
        ("(tmp_path / 'a').write_text('b')\nassert slugify(tmp_path / 'a')", "tmp_path", "slugify"),
        ("assert await_.get() == slugify('a')", "await_", ""),
    ],
)
def test_fixtures(body: str, parameters: str, expected: str) -> None:
    """What a fixture returns is looked at where that is simple."""
    decorator = (
        '@pytest.mark.parametrize("text,slug", [("a", "b")])' if "text" in parameters else ""
    )
    assert " ".join(names(read(body, parameters, decorator))) == expected


def test_raises() -> None:
    """A test that expects an error asserts on what is called for it."""
    body = 'with pytest.raises(ValueError, match="x"):\n    slugify("")'
    assert names(read(body, failing=-2)) == ["slugify"]
    later = (
        'with pytest.raises(ValueError) as told:\n    slugify("")\nassert "x" in str(told.value)'
    )
    assert names(read(later)) == ["slugify"]


def test_options_and_what_goes_in() -> None:
    """Parameters with a default that are given a value; functions whose results a call is given."""

    def options(call: str) -> list[str] | None:
        found = read(f"assert {call} == 'a'")
        assert found is not None
        (one,) = found.calls
        return None if one.options is None else sorted(one.options)

    assert options('slugify("a")') == options('slugify(text="a")') == []
    assert options('slugify("a", "_")') == options('slugify("a", separator="_")') == ["separator"]
    assert options('slugify("a", lower=False, extra=1)') == ["extra", "lower"]
    assert options('slugify(*"a")') is options('slugify(**{"text": "a"})') is None
    assert options('User("a").greet("x")') == ["word"]
    found = read('data = headline("a")\nassert slugify(data) == "a"')
    assert found is not None
    assert found.through == {Callee("src/shop/text.py", 5, "title()")}


def test_classes_and_async_tests() -> None:
    """A test in a class, its own helpers and assertions of unittest; a coroutine."""
    text = f"""{HEAD}
class TestA:
    def make(self): return slugify("a")
    def test_equal(self): self.assertEqual(slugify("a"), "b")
    def test_make(self): assert self.make() == "b"
    def test_state(self): assert self.value == slugify("a")
    async def test_soon(self): assert (await slugify("a")) == "b"
    class TestInner:
        def test_it(self): assert slugify("a") == "b"
"""
    module = sources(test_a=text).module("test_a.py")
    assert module is not None
    found = {}
    for name in ("test_equal", "test_make", "test_state", "test_soon", "TestInner::test_it"):
        test = module.function(["TestA", *name.split("::")])
        assert test is not None
        found[name] = names(asserted(test, name, test.node.body[0].lineno))
    assert found.pop("test_state") == []
    assert set(map(tuple, found.values())) == {("slugify",)}


def test_files_that_cannot_be_read() -> None:
    """No Python, a circle of imports, a module that is not there: nothing is said."""
    files = {
        "test_a": "from loop import slugify\ndef test_it(): assert slugify(1) == 2\n",
        "loop": "from loop import slugify\n",
        "test_b": "def test_it(:\n",
        "test_c": "from shop.nowhere import slugify\ndef test_it(): assert slugify(1) == 2\n",
    }
    found = sources(**files)
    assert found.module("test_b.py") is None
    for path in ("test_a.py", "test_c.py"):
        module = found.module(path)
        assert module is not None
        test = module.function(["test_it"])
        assert test is not None
        assert asserted(test, path, 2) is None
        assert module.function(["test_other"]) is None


def test_callers() -> None:
    """Tests that name a function, also through helpers and fixtures, and do not fail speak for it."""
    text = f"""{HEAD}
def test_direct(): assert slugify("a")
def test_failing(): assert slugify("a") == "b"
def test_helper(): assert slug_of("a")
def test_fixture(slug): assert slug
def test_skipped(): slugify
def test_else(): assert 1
def helper(): slugify
"""
    files = sources(test_a=text, test_b="def test_b(): pass\n")
    slugify = Callee("src/shop/text.py", 2, "slugify()")
    failing, passed = {"test_a.py::test_failing"}, {"test_a.py::test_direct": 3}
    callers = Callers(files, ["test_a.py", "test_b.py", "gone.py"], failing, passed)
    assert callers.passing({slugify: 9}) == {slugify: 6}  # 3 direct, helper, fixture, skipped
    nobody = Callee("a.py", 1, "nobody()")
    assert callers.passing({nobody: 1}) == {nobody: 0}
