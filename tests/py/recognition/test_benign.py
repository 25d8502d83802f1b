"""What is no failure matches nothing: source code, help texts, green runs, documentation."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

import loki
from support.paths import ROOT

SLICE = 40  # lines
MOST_BYTES = 12_000_000  # of source code, so that the test takes a second or two

# Docstrings that quote, line by line, what a program says when it fails: that is the shape itself.
QUOTES_OUTPUT = {
    "argparse.py",
    "code.py",
    "codeop.py",
    "doctest.py",
    "pydoc_data/topics.py",
    "subprocess.py",
    "unittest/mock.py",
}


def sources() -> Iterator[tuple[str, str]]:
    """Modules of the standard library: name and text."""
    library, size = Path(sysconfig.get_path("stdlib")), 0
    for path in sorted([*library.glob("*.py"), *library.glob("[a-su-z]*/*.py")]):
        name = path.relative_to(library).as_posix()
        if name.startswith("site-packages") or name in QUOTES_OUTPUT:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        size += len(text)
        if size > MOST_BYTES:
            return
        yield name, text


def slices(text: str) -> Iterator[str]:
    lines = text.split("\n")
    return ("\n".join(lines[i : i + SLICE]) for i in range(0, len(lines), SLICE))


def said(text: str) -> str | None:
    match = loki.recognize(text).match
    if match is None:
        return None
    return f"{match.pattern} {match.confidence:.2f} by {[s[:80] for s in match.signals]}"


def test_source_code_is_no_failure() -> None:
    """Modules full of `raise ValueError` and `except PermissionError`, whole and in pieces."""
    wrong, pieces, files = [], 0, 0
    for name, text in sources():
        files += 1
        whole = said(text)
        parts = [found for part in slices(text) if (found := said(part))]
        pieces += len(text) // 1500 + 1
        wrong += [f"{name}: {found}" for found in (whole, *parts) if found]
    assert files > 100
    # Zero is the aim; one comment in thousands happens to be worded as a tool words its error.
    assert len(wrong) <= pieces // 1000, "\n".join(wrong)


@pytest.mark.parametrize(
    "path", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=lambda path: path.name
)
def test_documentation_is_no_failure(path: Path) -> None:
    """Paragraphs of it; a code block that shows a failure is one."""
    text = path.read_text(encoding="utf-8")
    paragraphs = "".join(text.split("```")[::2]).split("\n\n")
    assert [(p, found) for p in paragraphs if (found := said(p))] == []


GREEN = {
    "pytest": """
        ============================= test session starts ==============================
        platform linux -- Python 3.12.3, pytest-8.3.4, pluggy-1.5.0
        collected 3 items

        tests/test_errors.py::test_raises_permission_error PASSED                [ 33%]
        tests/test_timeout.py::test_connection_refused PASSED                    [ 66%]
        tests/test_cart.py::test_failed_payment_is_retried PASSED                [100%]

        ============================== 3 passed in 0.03s ===============================
        """,
    "unittest": "....\n----------------------------------------------------------------------\nRan 4 tests in 0.002s\n\nOK",
    "cargo": """
           Compiling shop v0.1.0 (/srv/shop)
            Finished `test` profile [unoptimized + debuginfo] target(s) in 0.41s
             Running unittests src/lib.rs (target/debug/deps/shop-1a2b3c4d5e6f7a8b)

        running 2 tests
        test errors::parse_error_is_shown ... ok
        test till::fails_when_closed ... ok

        test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
        """,
    "go": "=== RUN   TestError\n--- PASS: TestError (0.00s)\nPASS\nok  \texample.com/shop/cart\t0.003s",
    "jest": """
        PASS src/cart.test.ts
          cart
            ✓ throws when the price is missing (2 ms)
            ✓ fails on an unknown item (1 ms)

        Test Suites: 1 passed, 1 total
        Tests:       2 passed, 2 total
        """,
    "mocha": "  cart\n    ✔ fails on an unknown item\n\n\n  1 passing (4ms)",
    "vitest": " ✓ src/cart.test.ts (2 tests) 3ms\n\n Test Files  1 passed (1)\n      Tests  2 passed (2)",
    "maven": """
        [INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s -- in shop.CartTest
        [INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0
        [INFO] ------------------------------------------------------------------------
        [INFO] BUILD SUCCESS
        """,
    "gradle": "> Task :compileJava\n> Task :test\n\nBUILD SUCCESSFUL in 2s\n3 actionable tasks: 3 executed",
    "rspec": "...\n\nFinished in 0.01 seconds (files took 0.1 seconds to load)\n3 examples, 0 failures",
    "googletest": "[ RUN      ] Cart.FailsWhenEmpty\n[       OK ] Cart.FailsWhenEmpty (0 ms)\n[  PASSED  ] 1 test.",
    "ctest": "1/1 Test #1: cart_errors ......................   Passed    0.00 sec\n\n100% tests passed, 0 tests failed out of 1",
    "phpunit": "...                                                                 3 / 3 (100%)\n\nOK (3 tests, 4 assertions)",
    "mypy": "Success: no issues found in 13 source files",
    "pyright": "0 errors, 0 warnings, 0 informations",
    "ruff": "All checks passed!",
    "tsc": "[10:00:00 AM] Found 0 errors. Watching for file changes.",
    "eslint": "/srv/shop/src/cart.js\n  3:7  warning  Unexpected console statement  no-console\n\n✖ 1 problem (0 errors, 1 warning)",
    "rubocop": "Inspecting 12 files\n............\n\n12 files inspected, no offenses detected",
    "pip": """
        Collecting requests
          Downloading requests-2.32.3-py3-none-any.whl (64 kB)
        Collecting exceptiongroup>=1.0
          Using cached exceptiongroup-1.2.2-py3-none-any.whl
        Installing collected packages: exceptiongroup, requests
        Successfully installed exceptiongroup-1.2.2 requests-2.32.3
        """,
    "npm": "added 120 packages, and audited 121 packages in 4s\n\n20 packages are looking for funding\n  run `npm fund` for details\n\nfound 0 vulnerabilities",
    "apt": """
        Get:1 http://deb.example.org/debian stable/main amd64 libgpg-error0 amd64 1.46-1 [81 kB]
        Fetched 81 kB in 0s (512 kB/s)
        Selecting previously unselected package libgpg-error0:amd64.
        Setting up libgpg-error0:amd64 (1.46-1) ...
        Processing triggers for libc-bin (2.36-9) ...
        """,
    "docker": """
        #5 [2/4] RUN apt-get update
        #5 DONE 4.1s
        #6 [3/4] COPY . /srv/shop
        #6 DONE 0.1s
        #8 exporting to image
        #8 writing image sha256:0a1b2c3d done
        Successfully tagged shop:latest
        """,
    "kernel": """
        [    0.000000] Linux version 6.1.0-18-amd64
        [    0.004000] BIOS-e820: [mem 0x0000000000000000-0x000000000009fbff] usable
        [    0.512345] pci 0000:00:1f.0: quirk: [io 0x0600-0x067f] claimed by ICH6 ACPI/GPIO/TCO
        [    1.024000] EXT4-fs (sda1): mounted filesystem with ordered data mode. Errors: remount-ro.
        [    1.100000] systemd[1]: Reached target Timers.
        """,
    "make": "cc -Wall -Werror -c -o error.o error.c\ncc -o shop error.o main.o\nmake: Nothing to be done for 'all'.",
    "cmake": "-- The C compiler identification is GNU 12.2.0\n-- Performing Test HAS_ERROR - Success\n-- Configuring done\n[100%] Built target shop",
    "terraform": "No changes. Your infrastructure matches the configuration.\n\nApply complete! Resources: 0 added, 0 changed, 0 destroyed.",
    "changelog": """
        ## 1.4.0
        - Fixed: a segmentation fault when the file was empty (#12)
        - Fixed: "permission denied" is shown in red
        - Timeouts are now 30 s; connection errors are retried
        - A KeyError in the cart was fixed; unknown options are refused
        """,
    "commits": "a1b2c3d Fix the import error\nb2c3d4e Handle failed payments\nc3d4e5f Do not panic when the till is closed",
}  # fmt: skip


@pytest.mark.parametrize("name", GREEN)
def test_what_went_well_is_no_failure(name: str) -> None:
    rows = GREEN[name].split("\n")
    text = "\n".join(row.removeprefix(" " * 8) for row in rows)
    assert said(text) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("invited 3 vitae", None),
        ("the digits of a gitignored file", None),
        ("copyright, copyrights and a copyrighted error", None),
        ("ModuleNotFoundError: No module named 'till'", "import-not-found"),
        ("Error: getaddrinfo ENOTFOUND shop.example.com", "network-error"),
    ],
)
def test_words_end_where_they_end(text: str, kind: str | None) -> None:
    """vite is not in invite, git not in digit, pyright not in copyright, ENOTFOUND not in
    ModuleNotFoundError."""
    match = loki.recognize(text).match
    assert (match.kind if match else None) == kind
    assert "network-error" not in [m.pattern for m in loki.recognize(text).matches] or (
        kind == "network-error"
    )
