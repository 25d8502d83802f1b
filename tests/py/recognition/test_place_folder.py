"""Folders of places: what an output says apart from a place, and what is there on the disk decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.recognition.failure import recognize, recognize_many
from loki.recognition.site import folder_rules
from support.growth import assert_linear

GO = """\
--- FAIL: TestSum (0.00s)
    cart_test.go:3: got -1
FAIL
FAIL\t{name}/cart\t0.008s
ok  \t{name}/till\t0.002s
--- FAIL: TestPay (0.00s)
    pay_test.go:9: no
FAIL\t{name}/internal/pay\t0.006s
FAIL
"""
MAKE = """\
make -C src/cart
make[1]: Entering directory '/srv/shop/src/cart'
make[2]: Entering directory '/srv/shop/src/till'
make[2]: Leaving directory '/srv/shop/src/till'
cart.c:1:17: error: 'x' undeclared (first use in this function)
make[1]: *** [Makefile:3: cart.o] Error 1
make[1]: Leaving directory '/srv/shop/src/cart'
make: *** [Makefile:2: all] Error 2
"""
ESLINT = "\n/srv/shop/src/components/Button.js\n  1:7  error  'x' is not defined  no-undef\n\n✖ 1 problem (1 error, 0 warnings)\n"
NPM = """\
> @x/a@1.0.0 tsc
> tsc --noEmit

src/a.ts(1,7): error TS2322: Type 'number' is not assignable to type 'string'.
npm error Lifecycle script `tsc` failed with error:
npm error code 2
npm error path /srv/shop/packages/a
npm error workspace @x/a@1.0.0
npm error location /srv/shop/packages/a
npm error command failed

> @x/b@1.0.0 tsc
npm error location /srv/shop/packages/b
"""
VITEST = " RUN  v3.2.7 /srv/shop/packages/a\n\n FAIL  src/a.test.js > adds\nAssertionError: expected 2 to be 3\n \u276f src/a.test.js:2:30\n"
PNPM = "packages/cart build: cart.ts(1,7): error TS2322: Type 'number' is not assignable to type 'string'.\n"
NINJA = (
    "ninja: Entering directory `build'\nFAILED: cart.o\n../src/cart.c:1:17: error: 'x' undeclared\n"
)
JAVA = """\
[INFO] ------------------------------< com.shop:cart >-------------------------------
[INFO] Building cart 1                                                    [2/2]
[INFO]   from cart/pom.xml
[ERROR] com.shop.CartTest.fails  Time elapsed: 0.002 s  <<< ERROR!
java.lang.NullPointerException
\tat com.shop.CartTest.fails(CartTest.java:6)
"""
GRADLE = """\
> Task :shops:cart:test FAILED

com.shop.CartTest > fails FAILED
    java.lang.NullPointerException
        at com.shop.CartTest.fails(CartTest.java:6)
"""


@pytest.mark.parametrize(
    ("text", "command", "place"),
    [
        (GO.format(name="github.com/ana/shop"), "go test ./...", "cart/cart_test.go:3"),
        (GO.format(name="github.com/ana/shop/v2"), "go test ./...", "cart/cart_test.go:3"),
        (f"ok  \tshop\t0.1s\n{GO.format(name='shop')}", "go test ./...", "cart/cart_test.go:3"),
        # Nothing says where the module begins.
        (GO.format(name="example.com/shop"), "go test ./...", "cart_test.go:3"),
        (MAKE, "make", "src/cart/cart.c:1:17"),
        (ESLINT, "eslint .", "src/components/Button.js:1:7"),
        (NPM, "npm run tsc --workspaces", "packages/a/src/a.ts:1:7"),
        (VITEST, "vitest run", "packages/a/src/a.test.js:2"),
        (PNPM, "pnpm -r build", "packages/cart/cart.ts:1:7"),
        (NINJA, "ninja -C build", "src/cart.c:1:17"),
    ],
)
def test_what_the_output_says_is_enough(text: str, command: str, place: str) -> None:
    failure = recognize(text, command, root="/srv/shop")
    assert failure.place.startswith(place)
    assert failure.fingerprint == recognize(text, command).fingerprint, "a folder is no part of it"
    (many,) = recognize_many([text], command, "/srv/shop")
    assert many == failure
    framed = "".join(f"2026-04-04T10:00:00.1234567Z {line}\n" for line in text.splitlines())
    assert recognize(framed, command, root="/srv/shop").place == failure.place


@pytest.mark.parametrize(
    ("text", "command", "file"),
    [
        (GO.format(name="example.com/shop"), "go test ./...", "cart/cart_test.go"),
        (MAKE, "make", "src/cart/cart.c"),
        # A log from another machine.
        (MAKE.replace("/srv/shop", "/home/runner/work/shop"), "make", "src/cart/cart.c"),
        (
            NPM.replace("/srv/shop", "/home/travis/build/ana/shop"),
            "npm test",
            "packages/a/src/a.ts",
        ),
        (JAVA, "mvn test", "cart/src/test/java/com/shop/CartTest.java"),
        (JAVA, "mvn test", "src/test/java/com/shop/CartTest.java"),
        (GRADLE, "gradle test", "shops/cart/src/test/java/com/shop/CartTest.java"),
    ],
)
def test_what_is_there_decides_what_the_output_leaves_open(
    text: str, command: str, file: str
) -> None:
    failure = recognize(text, command, root="/srv/shop", exists=lambda path: path == file)
    assert failure.path == file


def test_a_path_that_is_there_and_whole_stays() -> None:
    """A folder that would fit as well is no reason to change it."""
    text = f"ninja: Entering directory `build'\n{MAKE.splitlines()[4]}\n"
    kept = recognize(text, "ninja", root="/srv/shop", exists=lambda path: path == "cart.c")
    assert kept.path == "cart.c"


def test_nothing_outside_the_project_is_asked_for() -> None:
    """Folders come from an output that anybody may have written."""
    asked: list[str] = []

    def exists(path: str) -> bool:
        asked.append(path)
        return False

    evil = MAKE.replace("/srv/shop/src/cart", "/etc/../../x/../..")
    recognize(evil, "make", root="/srv/shop", exists=exists)
    assert asked
    assert not [path for path in asked if path.startswith(("/", ".."))]


@given(st.lists(st.sampled_from([*MAKE.splitlines(), *NPM.splitlines(), "/" * 40, "a\0b", "FAIL\t" + "a/" * 99 + "\t1s"]), max_size=30))  # fmt: skip
def test_any_order_of_lines_is_read(lines: list[str]) -> None:
    """Interleaved, cut, hostile: there is an answer."""
    text = "\n".join(lines)
    bare, whole = recognize(text, "make"), recognize(text, "make", root="/srv/shop", exists=bool)
    assert bare.message == whole.message


@pytest.mark.parametrize(
    "filler",
    [MAKE, "make[1]: Entering directory '/srv/shop/a'\n", "> a@" + "@" * 900 + "\n", "ok  \ta/b\t1s\n"],
)  # fmt: skip
def test_long_logs_take_no_long_time(filler: str) -> None:

    def work(size: int) -> None:
        text = filler * (size // len(filler)) + "cart.c:1:17: error: 'x' undeclared\n"
        recognize(text, "make", root="/srv/shop", exists=lambda _: False)

    assert_linear(work, 400_000)


def test_every_rule_is_of_one_form() -> None:
    """A line that names the folder, with a text that it must hold; or a frame."""
    assert {rule.tool for rule in folder_rules()} >= {
        "go",
        "make",
        "ninja",
        "npm",
        "pnpm",
        "vitest",
        "java",
    }
    for rule in folder_rules():
        assert bool(rule.match) != bool(rule.frame)
        assert "(?P<folder>" in (rule.match or rule.frame)
        assert bool(rule.literals) == bool(rule.match)
