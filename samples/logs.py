"""Long logs of CI for the gallery: steps and noise as services frame them, made here, always the same."""

# ruff: noqa: E501, RUF001 - lines and quotes are as tools print them

from __future__ import annotations

import random

PARTS = ("cart", "price", "till", "stock", "receipt", "ledger", "customer", "coupon", "error")
THINGS = ("reader", "writer", "index", "cache", "view", "table", "queue", "handler", "parser")
_GITHUB_START = 9 * 3600 + 14 * 60


def github_cmake() -> str:
    """A build of GitHub Actions, several thousand lines: one file of many does not compile.

    Beside it: a step that complains of errors and passes, downloads tried again, files named after
    errors, the rest of the build that goes on, and steps that run afterwards.
    """
    names = [f"{a}_{b}_{n}" for a in PARTS for b in THINGS for n in range(1, 21)]
    total = 2 * len(names)
    lines = [
        "##[group]Run actions/checkout@v4",
        "with:",
        "  repository: ana/shop",
        "##[endgroup]",
        "Syncing repository: ana/shop",
        "[command]/usr/bin/git version",
        "git version 2.49.0",
        "##[group]Run sudo apt-get install -y libreceipts-dev",
        "shell: /usr/bin/bash -e {0}",
        "##[endgroup]",
        "Err:1 http://azure.archive.ubuntu.com/ubuntu noble/universe amd64 libreceipts-dev amd64 2.1",
        "  Connection failed [IP: 52.252.163.49 80]",
        "Get:1 http://azure.archive.ubuntu.com/ubuntu noble/universe amd64 libreceipts-dev amd64 2.1 [42 kB]",
        "Setting up libreceipts-dev (2.1) ...",
        "##[group]Run ./lint.sh",
        "shell: /usr/bin/bash -e {0}",
        "##[endgroup]",
        "error: src/coupon_view_3.cpp is not formatted",
        "error: src/ledger_cache_7.cpp is not formatted",
        "2 errors, but nobody minds them yet",
        "##[group]Run cmake --build build -- -k -j4",
        "shell: /usr/bin/bash -e {0}",
        "##[endgroup]",
    ]
    for number, name in enumerate(names, 1):
        percent = f"[{100 * number // total:3}%]"
        lines.append(f"{percent} Building CXX object src/CMakeFiles/shop.dir/{name}.cpp.o")
        if name == "receipt_table_9":
            lines += _does_not_compile(name)
        elif number % 97 == 0:
            lines += _warning(name, number)
    for number, name in enumerate(names, len(names) + 1):
        percent = f"[{100 * number // total:3}%]"
        lines.append(f"{percent} Building CXX object tests/CMakeFiles/checks.dir/{name}_test.cpp.o")
    lines += [
        "gmake[1]: *** [CMakeFiles/Makefile2:98: src/CMakeFiles/shop.dir/all] Error 2",
        "gmake[1]: Target 'all' not remade because of errors.",
        "gmake: *** [Makefile:91: all] Error 2",
        "##[error]Process completed with exit code 2.",
        "##[group]Run actions/upload-artifact@v4",
        "with:",
        "  path: build/Testing",
        "##[endgroup]",
        "##[warning]No files were found with the provided path: build/Testing. No artifacts will be uploaded.",
        "Post job cleanup.",
        "[command]/usr/bin/git config --local --unset-all core.sshCommand",
        "Cleaning up orphan processes",
    ]
    return "".join(f"{_github_time(number)} {line}\n" for number, line in enumerate(lines))


def _github_time(number: int) -> str:
    second = _GITHUB_START + number // 11
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"2026-03-02T{clock}.{(number * 909091) % 10_000_000:07}Z"


def _does_not_compile(name: str) -> list[str]:
    source = f"/home/runner/work/shop/shop/src/{name}.cpp"
    return [
        f"{source}: In member function ‘void shop::ReceiptTable::add(const shop::Row&)’:",
        f"{source}:41:29: error: ‘const struct shop::Row’ has no member named ‘amuont’; did you mean ‘amount’?",
        "   41 |   total_ += row.price * row.amuont;",
        "      |                             ^~~~~~",
        "      |                             amount",
        f"gmake[2]: *** [src/CMakeFiles/shop.dir/build.make:1289: src/CMakeFiles/shop.dir/{name}.cpp.o] Error 1",
    ]


def _warning(name: str, number: int) -> list[str]:
    source = f"/home/runner/work/shop/shop/src/{name}.cpp"
    return [
        f"{source}: In function ‘int shop::{name}()’:",
        f"{source}:{number % 60 + 3}:7: warning: unused variable ‘error’ [-Wunused-variable]",
        f"   {number % 60 + 3} |   int error = 0;",
        "      |       ^~~~~",
    ]


def travis_mocha() -> str:
    """A job of Travis: npm's registry fails and is tried again, tests print errors that they expect."""
    chance = random.Random(20)
    lines = [
        "travis_fold:start:git.checkout",
        "$ git clone --depth=50 https://github.com/ana/till.git ana/till",
        "Cloning into 'ana/till'...",
        "travis_fold:end:git.checkout",
        "$ npm ci",
        "npm ERR! code ECONNRESET",
        "npm ERR! errno ECONNRESET",
        "npm ERR! network request to https://registry.npmjs.org/receipts failed, reason: socket hang up",
        "",
        'The command "npm ci" failed. Retrying, 2 of 3.',
        "",
        "added 212 packages in 7s",
        "$ npm test",
        "",
        "> till@3.1.0 test /home/travis/build/ana/till",
        "> mocha --recursive",
        "",
    ]
    for part in PARTS:
        lines.append(f"  {part}")
        for thing in THINGS:
            took = f" ({chance.randrange(40, 90)}ms)" if chance.randrange(10) == 0 else ""
            lines.append(f"    ✓ keeps its {thing}{took}")
            if (part, thing) == ("stock", "queue"):
                lines.append("Error: the queue is full (expected by the test)")
            if (part, thing) == ("till", "cache"):
                lines.append("    1) rounds to the cent")
        lines.append("")
    return "\n".join(
        [
            *lines,
            "",
            "  81 passing (1s)",
            "  1 failing",
            "",
            "  1) till",
            "       rounds to the cent:",
            "",
            "      AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:",
            "",
            "10.04 !== 10.05",
            "",
            "      + expected - actual",
            "",
            "      -10.04",
            "      +10.05",
            "      ",
            "      at Context.<anonymous> (test/till.js:27:14)",
            "      at process.processImmediate (node:internal/timers:476:21)",
            "",
            "",
            "",
            "npm ERR! Test failed.  See above for more details.",
            'The command "npm test" exited with 1.',
            "",
            "$ ./upload-coverage.sh",
            "error: no coverage found, nothing uploaded",
            "",
            "Done. Your build exited with 1.",
            "",
        ]
    )
