"""What is no failure matches nothing: source code, help texts, green runs, documentation: with processes."""

import os
import shutil
import subprocess

import loki
from support.paths import ROOT


def said(text: str) -> str | None:
    match = loki.recognize(text).match
    if match is None:
        return None
    return f"{match.pattern} {match.confidence:.2f} by {[s[:80] for s in match.signals]}"


# Installed nearly everywhere, and quick to describe themselves.
PROGRAMS = (
    *(
        [
            "awk",
            "bash",
            "bzip2",
            "cat",
            "cc",
            "chmod",
            "clang",
            "cmake",
            "cp",
            "curl",
            "cut",
            "date",
            "dd",
            "df",
            "diff",
            "docker",
            "du",
            "env",
            "find",
            "gcc",
        ]
    ),
    *(
        [
            "git",
            "go",
            "grep",
            "gzip",
            "head",
            "join",
            "kubectl",
            "ld",
            "less",
            "ln",
            "ls",
            "make",
            "mkdir",
            "mv",
            "nl",
            "node",
            "npm",
            "od",
            "paste",
            "pip",
        ]
    ),
    *(
        [
            "python3",
            "rm",
            "rsync",
            "rustc",
            "cargo",
            "sed",
            "sort",
            "split",
            "ssh",
            "stat",
            "tail",
            "tar",
            "tee",
            "touch",
            "tr",
            "uniq",
            "wc",
            "wget",
            "xargs",
        ]
    ),
    *(
        [
            "pytest",
            "ruff",
            "mypy",
            "cmake",
            "ninja",
            "ccache",
            "clang-format",
            "jq",
            "perl",
            "ruby",
            "java",
            "javac",
            "systemctl",
        ]
    ),
)


def help_of(program: str, path: str) -> str:
    words = [program, "help"] if program in {"go", "git"} else [program, "--help"]
    done = subprocess.run(
        words,
        env={**os.environ, "PATH": path, "LC_ALL": "C", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def test_help_texts_are_no_failure() -> None:
    path = f"{ROOT / '.venv/bin'}:{os.environ.get('PATH', '')}"
    texts = {p: help_of(p, path) for p in dict.fromkeys(PROGRAMS) if shutil.which(p, path=path)}
    assert sum(map(bool, texts.values())) >= 5
    assert {p: found for p, text in texts.items() if (found := said(text))} == {}
