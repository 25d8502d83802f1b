"""What calls of agents' tools do, by names and by command lines; total on anything."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki.decision.monitor.tool_call import ToolCall, is_steering, known
from loki.decision.monitor.tool_command import Effect
from support.examples import examples


def bash(command: Any) -> ToolCall:
    return ToolCall("Bash", {"command": command})


CHECKS = """
pytest -q
python -m pytest tests/test_a.py -x 2>&1 | tail -20
cd app && uv run pytest
PYTHONPATH=. python3.11 -m unittest
poetry run mypy src
npm test
npm run lint
npx tsc --noEmit
yarn test --ci
pnpm run build
cargo test --all
cargo clippy -- -D warnings
go vet ./...
go test ./... > /tmp/out.txt 2>&1; tail -5 /tmp/out.txt
make -j4
make test
./gradlew test
mvn -q verify
bundle exec rspec
ruff check .
ruff format --check .
black --check .
prettier --check src
tox -e py311
timeout 60 pytest
bash -lc 'pytest -q'
sh -c "cd x && make check"
./run-tests.sh
python manage.py test
docker build .
dotnet test
deno test
just lint
""".strip().splitlines()

READS = """
ls -la
cat app.py | head -20
grep -rn foo src | wc -l
rg 'def x' --type py
find . -name '*.py'
git status
git log --oneline -5 | head
git diff HEAD~1
cd src && ls
sed -n 1,80p app.py
pip list
which python
echo hello
curl --help > /dev/null; ls
wc -l $(git ls-files)
cat a 2>/dev/null
jq .name package.json
""".strip().splitlines()
READS.remove("curl --help > /dev/null; ls")

WRITES = """
rm -rf build
sed -i s/a/b/ app.py
echo x > app.py
cat > app.py <<'EOF'\\npytest\\nEOF
pip install requests
npm install
npm ci
git checkout app.py
git stash
uv add httpx
cargo add serde
ruff check --fix .
ruff format .
black .
eslint --fix src
mkdir -p a && touch a/b
tee app.py
find . -name '*.pyc' -delete
apt-get install -y jq
sudo apt-get update
make clean
docker compose up -d
kill 123
git commit -am wip
""".strip().splitlines()

RUNS = """
python app.py
node index.js
./app --help
curl https://example.com
bash
python -c 'print(1)'
""".strip().splitlines()


@pytest.mark.parametrize("command", CHECKS)
def test_checks(command: str) -> None:
    call = known(bash(command))
    assert (call.effect, call.is_check) == (Effect.RUN, True)


@pytest.mark.parametrize("command", READS)
def test_commands_that_look(command: str) -> None:
    call = known(bash(command))
    assert (call.effect, call.is_check) == (Effect.READ, False)


@pytest.mark.parametrize("command", WRITES)
def test_commands_that_change(command: str) -> None:
    assert known(bash(command.replace("\\n", "\n"))).effect is Effect.WRITE


@pytest.mark.parametrize("command", RUNS)
def test_commands_that_only_run_something(command: str) -> None:
    call = known(bash(command))
    assert (call.effect, call.is_check) == (Effect.RUN, False)


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("Read", Effect.READ),
        ("Edit", Effect.WRITE),
        ("mcp__files__write_file", Effect.WRITE),
        ("functions.apply_patch", Effect.WRITE),
        ("str_replace_based_edit_tool", Effect.WRITE),
        ("run_tests", Effect.RUN),
        ("runTests", Effect.RUN),
        ("getWeather", Effect.READ),
        ("update_user", Effect.WRITE),
        ("TodoWrite", Effect.OTHER),
        ("Task", Effect.OTHER),
        ("weather", Effect.OTHER),
        ("", Effect.OTHER),
    ],
)
def test_names_of_tools(name: str, effect: Effect) -> None:
    assert known(ToolCall(name)).effect is effect


def test_the_caller_knows_better() -> None:
    assert known(ToolCall("Read", effect=Effect.WRITE)).effect is Effect.WRITE
    assert known(ToolCall("x", command="pytest")).is_check


@pytest.mark.parametrize(
    ("call", "breaker"),
    [
        (bash("curl https://api.example.com/v1?key=x"), "tool/api.example.com"),
        (bash("curl -s api.example.com/v1"), "tool/api.example.com"),
        (bash("curl localhost:3000"), ""),
        (bash("wget -q http://127.0.0.1:80/x"), ""),
        (bash("pip install requests"), "tool/pip"),
        (bash("pytest -q"), ""),
        (bash("ls"), ""),
        (ToolCall("WebFetch", {"url": "https://docs.example.org/a"}), "tool/docs.example.org"),
        (ToolCall("get_weather", {"city": "Paris"}), "tool/get_weather"),
    ],
)
def test_what_a_call_reaches_has_a_breaker(call: ToolCall, breaker: str) -> None:
    assert known(call).breaker == breaker


def test_the_same_call_has_the_same_key() -> None:
    same = known(bash("pytest  -q")).key
    assert (
        known(ToolCall("Bash", {"command": "pytest -q", "description": "other"}, id="7")).key
        == same
    )
    assert known(bash("pytest -x")).key != same
    assert known(ToolCall("Read", {"file_path": "a"})).key != known(ToolCall("Read")).key


@pytest.mark.parametrize("name", ["GraphInterrupt", "CallDeferred", "ApprovalRequired"])
def test_how_frameworks_steer_is_no_failure(name: str) -> None:
    assert is_steering(type(name, (Exception,), {})("x"))
    assert is_steering(type("Own", (type(name, (Exception,), {}),), {})("x"))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.sampled_from(["command", "url", "path", "x", "😀"]), ANYTHING))
@settings(max_examples=examples(200), deadline=None)
def test_any_call_is_known(name: str, arguments: dict[str, Any]) -> None:
    call = known(ToolCall(name, arguments))
    assert len(call.said) <= 200
    assert "\n" not in call.said
    assert known(ToolCall(name, arguments)) == call


@given(st.text(alphabet="ab 'x\"\\|&;<>()$`\n#-c=/", max_size=60))
@settings(max_examples=examples(300), deadline=None)
def test_any_command_line_is_known(line: str) -> None:
    assert known(bash(line)).effect in set(Effect)


@pytest.mark.parametrize(
    "line", ["sh -c " * 5000, "'" * 50_000, "a|" * 50_000, "<<X\n" * 9000, "x" * 10**6]
)
def test_long_lines_take_no_time(line: str) -> None:
    assert known(bash(line)).effect in set(Effect)


@pytest.mark.parametrize(
    ("call", "effect", "path"),
    [
        (ToolCall("str_replace_editor", {"command": "view", "path": "a.py"}), Effect.READ, "a.py"),
        (
            ToolCall("str_replace_editor", {"command": "create", "path": "a.py"}),
            Effect.WRITE,
            "a.py",
        ),
        (bash("str_replace_editor view /src/a.py"), Effect.READ, ""),
        (bash("str_replace_editor str_replace /src/a.py --old_str a"), Effect.WRITE, "/src/a.py"),
        (bash("edit 3:4\nreturn 1\nend_of_edit"), Effect.WRITE, ""),
        (bash("open src/a.py 12"), Effect.READ, ""),
        (bash("search_dir 'def x' src"), Effect.READ, ""),
        (bash("sed -i s/a/b/ src/a.py"), Effect.WRITE, "src/a.py"),
        (bash("git checkout -- src/a.py"), Effect.WRITE, "src/a.py"),
    ],
)
def test_editors_of_several_commands(call: ToolCall, effect: Effect, path: str) -> None:
    assert (known(call).effect, known(call).path) == (effect, path)


@pytest.mark.parametrize(
    ("old", "new", "tries"),
    [
        ("x = 1", "x = 2", True),
        ("x = 1", "x = 1\nprint('x', x)", False),
        ("x = 1", "x = 1\nlogger.debug('x %s', x)", False),
        ("x = 1\nprint(x)", "x = 1", False),
        ("x = 1", "# why?\nx = 1", False),
        ("x = 1", "import pdb\npdb.set_trace()\nx = 1", False),
        ("let x = 1;", "let x = 1;\nconsole.log(x);", False),
        ("x = 1", "print(x)\nx = 2", True),
        ("", "x = 1", True),
    ],
)
def test_lines_that_only_look_into_a_program_are_no_try(old: str, new: str, tries: bool) -> None:
    edit = ToolCall("Edit", {"file_path": "a.py", "old_string": old, "new_string": new})
    assert known(edit).tries is tries


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("reproduce.py", "scratch"),
        ("/w/test_issue_fix.py", "test"),
        ("debug_query.py", "scratch"),
        ("tests/test_query.py", "test"),
        ("src/Button.test.tsx", "test"),
        ("app/query.py", ""),
        ("app/contest.py", ""),
        ("app/checkout.py", ""),
        ("solution.py", ""),
        ("django/views/debug.py", ""),
        ("app/validation.py", ""),
        ("verify_fix.py", "scratch"),
        ("issue_123_repro.js", "scratch"),
        ("app/../tests/x.py", "test"),
        ("tests/../app/x.py", ""),
    ],
)
def test_files_of_the_agents_own_and_of_tests(path: str, own: str) -> None:
    call = known(ToolCall("Write", {"file_path": path, "content": "x"}))
    assert call.is_scratch is (own in {"scratch", "both"})
    assert call.is_test is (own in {"test", "both"})
