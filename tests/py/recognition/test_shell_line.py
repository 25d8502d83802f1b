"""What commands a line has: pipes, redirections, here-documents, shells in shells."""

from __future__ import annotations

import pytest

from loki.recognition.shell_line import LONGEST, commands_of, shell_commands


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        ("a | b && c; d || e & f", ["a", "b", "c", "d", "e", "f"]),
        ("A=1 B=2 sudo -E env C=3 prog x", ["prog"]),
        ("timeout 60s prog", ["prog"]),
        ("bash -lc 'a && b'", ["a", "b"]),
        ("sh -c \"bash -c 'a; b'\"", ["a", "b"]),
        ("bash script.sh", ["bash"]),
        ("python3.12 -m pytest -q", ["pytest"]),
        ("python manage.py test", ["manage.py"]),
        ("npm run test -- -u", ["run-script:test"]),
        ("uv run -- pytest", ["pytest"]),
        ("uv run --frozen --with x --python 3.12 pytest", ["pytest"]),
        ("uv run -m pytest", ["pytest"]),
        ("pipx run --spec x==1 y", ["y"]),
        ("docker exec -it web python -m pytest", ["pytest"]),
        ("docker compose -f dev.yml exec -T -e A=1 app bash -lc 'a; b'", ["a", "b"]),
        ("docker compose exec app npm test -- -u", ["npm"]),
        ("kubectl exec pod -n x -- pytest -q", ["pytest"]),
        ("docker run -d image serve", ["docker"]),
        ("docker run image --flag", ["docker"]),
        ("docker exec", ["docker"]),
        ("docker compose -f dev.yml logs", ["docker-compose"]),
        ("docker", ["docker"]),
        ("cat <<'EOF'\nrm -rf /\nEOF\nls", ["cat", "ls"]),
        ("cat <<'EOF' | sudo bash\nrm -rf /\nEOF\nls", ["cat", "bash", "rm", "ls"]),
        ("/bin/sh <<A\nrm x\nA", ["sh", "rm"]),
        ("a <<<b\nls", ["a", "ls"]),
        ("a=$((x<<b))\nls", ["x", "ls"]),
        ("sudo -u root env -u A timeout -s KILL 5 rm x", ["rm"]),
        ("npm run -s deploy", ["run-script:deploy"]),
        ("npm run --help", ["npm"]),
        ("python3.11 -m pytest", ["pytest"]),
        ("/usr/bin/git log", ["git"]),
        ("if x; then y; fi", ["x", "y", "fi"]),
        ("echo 'a | b'", ["echo"]),
        ("echo 'unclosed", ["echo"]),
        ("", []),
    ],
)
def test_programs(line: str, programs: list[str]) -> None:
    assert [one.program for one in shell_commands(line)] == programs


@pytest.mark.parametrize(
    ("line", "writes"),
    [
        ("a > out.txt", True),
        ("a >> out.txt", True),
        ("a 2> err.txt", True),
        ("a > /dev/null", False),
        ("a 2>&1", False),
        ("a > /dev/null 2>&1", False),
        ("a 2>/dev/null", False),
        ("a &> all.txt", True),
        ("a < in.txt", False),
        ("a", False),
    ],
)
def test_redirections(line: str, writes: bool) -> None:
    (one,) = shell_commands(line)
    assert one.writes == writes
    assert one.program == "a"


def test_a_document_that_is_cut_off_is_left_out() -> None:
    assert [c.program for c in shell_commands("cat <<EOF >x\n" + "rm y\n" * LONGEST)] == ["cat"]


def test_a_long_script_is_read_to_its_end() -> None:
    assert commands_of(["sh", "-c", "true;" * LONGEST + "rm x"])[-1].program == "rm"
