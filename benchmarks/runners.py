"""How to fetch a package, run its tests with a real tool, and learn from the tool which failed.

Nothing here reads what people read: the failing tests come from the tool's own report.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

TIMEOUT = 180  # seconds for one run of a suite; chosen: the slowest takes about ten


@dataclass(frozen=True)
class Run:
    """One run: what it printed, and the ids of the tests that failed."""

    output: str
    failing: frozenset[str]


def call(
    command: list[str], folder: Path, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Runs a command without a terminal; standard error goes where standard output goes."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT * 5,
        check=False,
    )


def said(command: list[str], folder: Path, **environment: str) -> str:
    """What a command prints; a suite that hangs is cut off."""
    done = call(["timeout", str(TIMEOUT), *command], folder, **environment)
    return done.stdout.decode("utf-8", "replace")


# --- Python ----------------------------------------------------------------------------------------


def sdist(requirement: str, *needed: str) -> Callable[[Path], None]:
    """A package from its source distribution, with what its tests need."""

    def prepare(folder: Path) -> None:
        python = [sys.executable, "-m", "pip", "-q"]
        get = ["download", "--no-deps", "--no-binary", ":all:"]
        call([*python, *get, requirement, "-d", str(folder)], folder)
        archive = next(folder.glob("*.tar.gz"))
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        archive.unlink()
        inside = next(path for path in folder.iterdir() if path.is_dir())
        for path in list(inside.iterdir()):
            shutil.move(path, folder / path.name)
        if needed:
            call([*python, "install", "--target", str(folder / ".needed"), *needed], folder)
        (folder / "pytest.ini").unlink(missing_ok=True)
        (folder / "tox.ini").unlink(missing_ok=True)

    return prepare


def pytest(*tests: str) -> Callable[[Path, tuple[str, ...]], Run]:
    """Tests with pytest; what failed is in its JUnit report."""

    def run(folder: Path, flags: tuple[str, ...]) -> Run:
        report = folder / ".report.xml"
        report.unlink(missing_ok=True)
        options = [
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            "-c",
            "/dev/null",
            "--rootdir",
            str(folder),
        ]
        command = [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *flags, *tests]
        output = said(command, folder, PYTHONPATH=f"{folder}:{folder / 'src'}")
        output = "\n".join(line for line in output.split("\n") if "generated xml file" not in line)
        return Run(output, _junit([report]))

    return run


def _junit(reports: list[Path]) -> frozenset[str]:
    failing = set()
    for report in reports:
        if not report.exists():
            return frozenset({"?"})  # the tool crashed before it could say
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            if any(child.tag in ("failure", "error") for child in case):
                failing.add(f"{case.get('classname')}::{case.get('name')}")
    return frozenset(failing)


# Any runner built on unittest: its result object says at the end what failed.
_WITNESS = """
import json, os, unittest
stop = unittest.TextTestResult.printErrors
def print_errors(self):
    failing = [t.id() for t, _ in self.failures + self.errors]
    failing += [t.id() for t in self.unexpectedSuccesses]
    with open(os.environ["FAILING"], "w") as file:
        json.dump([i.split(" (")[0] if " (" in i and "(" in i.split(" ")[-1] else i
                   for i in failing], file)
    stop(self)
unittest.TextTestResult.printErrors = print_errors
"""


def unittest(*command: str) -> Callable[[Path, tuple[str, ...]], Run]:
    """Tests with unittest or what is built on it; what failed says its result object."""

    def run(folder: Path, flags: tuple[str, ...]) -> Run:
        witness = folder / ".witness"
        witness.mkdir(exist_ok=True)
        (witness / "sitecustomize.py").write_text(_WITNESS)
        report = witness / "failing.json"
        report.unlink(missing_ok=True)
        path = f"{witness}:{folder}:{folder / '.needed'}"
        output = said(
            [sys.executable, *command, *flags], folder, PYTHONPATH=path, FAILING=str(report)
        )
        return Run(output, frozenset(json.loads(report.read_text()) if report.exists() else ["?"]))

    return run


# --- Go --------------------------------------------------------------------------------------------


def go_module(module: str) -> Callable[[Path], None]:
    """A Go module's files, made writable."""

    def prepare(folder: Path) -> None:
        (folder / "go.mod").write_text("module scratch\n")
        done = call(["go", "mod", "download", "-json", module], folder)
        source = Path(json.loads(done.stdout)["Dir"])
        (folder / "go.mod").unlink()
        shutil.copytree(source, folder, dirs_exist_ok=True)
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)

    return prepare


def go(folder: Path, flags: tuple[str, ...]) -> Run:
    """Tests with go test; what failed is in its JSON events."""
    events = said(["go", "test", "-json", "./..."], folder)
    failing = set()
    for line in events.split("\n"):
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("Action") == "fail":
            failing.add(f"{event.get('Package')}:{event.get('Test', '')}")
    named = {one for one in failing if not one.endswith(":")}
    output = said(["go", "test", *flags, "./..."], folder)
    return Run(output, frozenset(named or (failing and {"?"})))


# --- Rust ------------------------------------------------------------------------------------------


def crate(name: str, version: str) -> Callable[[Path], None]:
    """A crate's files."""

    def prepare(folder: Path) -> None:
        call(["cargo", "init", "--name", "scratch", "--vcs", "none"], folder)
        call(["cargo", "add", f"{name}@={version}"], folder)
        call(["cargo", "fetch"], folder)
        home = Path(os.environ.get("CARGO_HOME", str(Path.home() / ".cargo")))
        source = next((home / "registry" / "src").glob(f"*/{name}-{version}"))
        for path in list(folder.iterdir()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(source, folder, dirs_exist_ok=True)

    return prepare


def cargo(folder: Path, flags: tuple[str, ...]) -> Run:
    """Tests with cargo test; what failed is in its JSON events."""
    options = ["--no-fail-fast", "--lib", "--tests"]
    asked = ["--", "-Z", "unstable-options", "--format", "json"]
    events = said(["cargo", "test", *options, *asked], folder, RUSTC_BOOTSTRAP="1")
    failing, saw = set(), False
    for line in events.split("\n"):
        event = json.loads(line) if line.startswith('{ "type"') else {}
        saw = saw or event.get("type") == "suite"
        if event.get("type") == "test" and event.get("event") in ("failed", "timeout"):
            failing.add(event["name"])
    output = said(["cargo", "test", *options, *flags], folder)
    return Run(output, frozenset(failing if saw else {"?"}))


# --- JavaScript ------------------------------------------------------------------------------------


def npm(package: str, entry: str, tests: str, *tools: str) -> Callable[[Path], None]:
    """A package's own source beside tests of ours: packages on npm come without their tests."""

    def prepare(folder: Path) -> None:
        (folder / "package.json").write_text('{"name": "scratch", "private": true}')
        call(["npm", "install", "--silent", package, *tools], folder)
        shutil.copy(folder / "node_modules" / entry, folder / "subject.js")
        (folder / "subject.test.js").write_text(tests)

    return prepare


JS_BODY = """
describe("words", () => {
  it("splits camel case", () => { expect(s.words("oneTwoThree")).toEqual(["one","Two","Three"]); });
  it("kebab", () => { expect(s.kebabCase("Foo Bar")).toBe("foo-bar"); });
  it("snake", () => { expect(s.snakeCase("--FOO-BAR--")).toBe("foo_bar"); });
  describe("padding", () => {
    it("pads the start", () => { expect(s.padStart("abc", 6, "_-")).toBe("_-_abc"); });
    it("pads the end", () => { expect(s.padEnd("abc", 6, "_-")).toBe("abc_-_"); });
  });
});
describe("lists", () => {
  it("chunks", () => { expect(s.chunk(["a","b","c","d"], 3)).toEqual([["a","b","c"],["d"]]); });
  it("sorts", () => { expect(s.sortBy([3,1,2])).toEqual([1,2,3]); });
  it("uniq", () => { expect(s.uniq([2,1,2])).toEqual([2,1]); });
  it("zips", () => { expect(s.zip(["a"],[1],[true])).toEqual([["a",1,true]]); });
  it("flattens", () => { expect(s.flattenDeep([1,[2,[3,[4]],5]])).toEqual([1,2,3,4,5]); });
  it("difference", () => { expect(s.difference([2,1],[2,3])).toEqual([1]); });
});
describe("objects", () => {
  it("gets", () => { expect(s.get({a:[{b:{c:3}}]}, "a[0].b.c")).toBe(3); });
  it("sets", () => { expect(s.set({}, "a.b", 1)).toEqual({a:{b:1}}); });
  it("merges", () => { expect(s.merge({a:1},{b:{c:2}})).toEqual({a:1,b:{c:2}}); });
  it("compares", () => { expect(s.isEqual({a:[1,{b:2}]},{a:[1,{b:2}]})).toBe(true); });
  it("clones", () => { expect(s.cloneDeep({a:[1]})).toEqual({a:[1]}); });
  it("picks", () => { expect(s.pick({a:1,b:2}, ["a"])).toEqual({a:1}); });
});
"""


def js(*command: str) -> Callable[[Path, tuple[str, ...]], Run]:
    """Tests with jest, vitest or mocha; what failed is in their JSON reports."""

    def run(folder: Path, flags: tuple[str, ...]) -> Run:
        report = folder / "report.json"
        report.unlink(missing_ok=True)
        output = said(["npx", *command, *flags], folder, CI="1", NO_COLOR="1")
        if command[0] == "mocha":
            asked = ["npx", *command, "--reporter", "json", "-O", f"output={report}"]
            said(asked, folder)
        if not report.exists():
            return Run(output, frozenset({"?"}))
        value = json.loads(report.read_text())
        if "failures" in value:
            return Run(output, frozenset(one["fullTitle"] for one in value["failures"]))
        cases = [case for file in value["testResults"] for case in file["assertionResults"]]
        broken = any(file["status"] == "failed" for file in value["testResults"])
        failing = {case["fullName"] for case in cases if case["status"] == "failed"}
        lines = [line for line in output.split("\n") if "report.json" not in line]
        return Run("\n".join(lines), frozenset(failing or (broken and {"?"}) or ()))

    return run


JS = 'const s = require("./subject.js");\n' + JS_BODY
MOCHA = (
    'const assert = require("assert");\nconst expect = (a) => ({ toBe: (b) => assert.strictEqual'
    "(a, b), toEqual: (b) => assert.deepEqual(a, b) });\n"
)


# --- Java ------------------------------------------------------------------------------------------


def maven(group: str, name: str, version: str) -> Callable[[Path], None]:
    """A Maven artifact's sources and test sources, with a pom.xml of ours."""

    def prepare(folder: Path) -> None:
        get = ["mvn", "-q", "-B", "dependency:copy", f"-DoutputDirectory={folder}"]
        for kind, where in (("sources", "main"), ("test-sources", "test")):
            call([*get, f"-Dartifact={group}:{name}:{version}:jar:{kind}"], folder)
            jar = folder / f"{name}-{version}-{kind}.jar"
            for use in ("java", "resources"):  # a jar of sources holds both
                shutil.unpack_archive(jar, folder / "src" / where / use, "zip")
        (folder / "pom.xml").write_text(_POM)
        call(["mvn", "-q", "-B", "test"], folder)  # what it needs; later runs are offline

    return prepare


_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<properties><maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>
<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
<dependencies><dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId>
<version>5.10.2</version><scope>test</scope></dependency>
<dependency><groupId>org.junit.vintage</groupId><artifactId>junit-vintage-engine</artifactId>
<version>5.10.2</version><scope>test</scope></dependency></dependencies>
<build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version></plugin>
</plugins></build></project>
"""


def surefire(folder: Path, flags: tuple[str, ...]) -> Run:
    """Tests with Maven's surefire; what failed is in its XML reports."""
    reports = folder / "target" / "surefire-reports"
    shutil.rmtree(reports, ignore_errors=True)
    output = said(["mvn", "-B", "-o", *flags, "test"], folder)
    files = sorted(reports.glob("TEST-*.xml"))
    return Run(output, _junit(files) if files else frozenset({"?"}))
