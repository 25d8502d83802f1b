"""Calls that destroy what is outside of the project are named before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates.gate import Violation
from loki.action.gates.self_review import self_review

SEEN = [
    ("a.py", 'import shutil\nshutil.rmtree("/")\n'),
    ("a.py", 'from shutil import rmtree\nrmtree(path="/home", ignore_errors=True)\n'),
    ("a.py", 'import shutil\nshutil.rmtree(\n    "/",\n)\n'),
    ("a.py", 'import os\nos.remove("/etc/passwd")\n'),
    ("a.py", "import os\nos.unlink(f'/etc/{name}')\n"),
    ("a.py", 'import shutil\nshutil.rmtree(Path.home() / ".ssh")\n'),
    ("a.py", 'import shutil\nshutil.rmtree(os.path.expanduser("~"))\n'),
    ("a.py", 'import shutil\nshutil.rmtree(os.environ["HOME"])\n'),
    ("a.py", 'import shutil\nshutil.rmtree(os.sep)\n'),
    ("a.py", 'import shutil\nshutil.rmtree("../..")\n'),
    ("a.py", 'import shutil\nshutil.rmtree("/tmp/../etc")\n'),
    ("a.py", 'from pathlib import Path\nPath.home().rmdir()\n'),
    ("a.py", 'from pathlib import Path\n(Path.home() / ".bashrc").unlink()\n'),
    ("a.py", 'from pathlib import Path\nPath("/etc/hosts").unlink(missing_ok=True)\n'),
    ("a.py", 'from pathlib import Path\nPath("~/.ssh").expanduser().rmdir()\n'),
    ("a.py", 'import shutil\nshutil.rmtree(Path.home() / ".cache")\n'),
    ("a.py", 'import shutil\nshutil.rmtree(os.path.expanduser("~/.cache/../.ssh"))\n'),
    ("a.sh", "rm -rf ~/.cache/app/../../.ssh\n"),
    ("a.sh", "rm -rf $HOME/.cache/app ~/.ssh\n"),
    ("a.sh", "rm -rf ~/.cache/app && rm -rf ~\n"),
    ("a.py", 'import subprocess\nsubprocess.run(["rm", "-rf", "/"])\n'),
    ("a.py", 'import subprocess\nsubprocess.check_call(("sudo", "rm", "-rf", "--no-preserve-root", "/"))\n'),
    ("a.py", 'import subprocess\nsubprocess.run("cd x && rm -rf ~", shell=True)\n'),
    ("a.py", 'import subprocess\nsubprocess.run(["bash", "-c", "rm -rf $HOME"])\n'),
    ("a.py", 'import os\nos.system("rm -rf $HOME")\n'),
    ("a.py", 'import os\nos.system("find / -name x -delete")\n'),
    ("a.py", 'import os\nos.system("dd if=/dev/zero of=/dev/sda")\n'),
    ("tests/test_a.py", 'import shutil\ndef test_a():\n    shutil.rmtree("/")\n'),
    ("a.js", "const fs = require('fs');\nfs.rmSync('/', {recursive: true});\n"),
    ("a.js", "fs.rm(os.homedir(), {recursive: true}, done);\n"),
    ("a.ts", "await fs.promises.rm(path.join(os.homedir(), '.ssh'));\n"),
    ("a.mjs", "await rm('/etc', {recursive: true});\n"),
    ("a.js", "fs.unlinkSync(`/etc/${name}`);\n"),
    ("a.js", "execSync('rm -rf ~/');\n"),
    ("a.js", "child_process.spawn('rm', ['-rf', '/']);\n"),
    ("a.rs", 'fn f() { std::fs::remove_dir_all("/").unwrap(); }\n'),
    ("a.rs", 'fn f() { Command::new("rm").arg("-rf").arg("/").status(); }\n'),
    ("a.rs", 'fn f() { Command::new("rm").args(["-rf", "/"]).status(); }\n'),
    ("a.go", 'package a\n\nfunc F() { os.RemoveAll("/") }\n'),
    ("a.go", 'package a\n\nfunc F() { exec.Command("rm", "-rf", "/").Run() }\n'),
    ("a.go", 'package a\n\nfunc F() { exec.Command("sh", "-c", "rm -rf ~").Run() }\n'),
    ("a.rb", "FileUtils.rm_rf('/')\n"),
    ("a.rb", "FileUtils.rm_rf Dir.home\n"),
    ("a.rb", "system('rm', '-rf', '/')\n"),
    ("a.cpp", 'void f() { std::filesystem::remove_all("/"); }\n'),
    ("a.c", 'void f(void) { system("rm -rf /"); }\n'),
    ("A.java", 'class A { void f() { FileUtils.deleteDirectory(new File("/")); } }\n'),
    ("a.sh", "rm -rf /\n"),
    ("a.sh", "cd build && rm -rf ~\n"),
    ("a.sh", 'sudo rm -rf "$HOME"\n'),
    ("a.sh", "rm -rf build /usr\n"),
    ("a.sh", "if true; then rm -rf ../..; fi\n"),
    ("a.sh", "rm -rf --no-preserve-root /*\n"),
    ("a.sh", "chmod -R 777 /\n"),
    ("Makefile", "clean:\n\t@rm -rf $(HOME)\n"),
    ("package.json", '{"scripts": {"clean": "tsc && rm -rf /"}}\n'),
]  # fmt: skip

HONEST = [
    ("a.py", "import shutil\nshutil.rmtree(folder)\n"),
    ("a.py", 'import shutil\nshutil.rmtree("build")\n'),
    ("a.py", 'import shutil\nshutil.rmtree("../build")\n'),
    ("a.py", 'import shutil\nshutil.rmtree("/tmp/scratch")\n'),
    ("a.py", 'import shutil\nshutil.rmtree(f"/tmp/{name}")\n'),
    ("a.py", 'import shutil\nshutil.rmtree(f"{root}/etc")\n'),
    ("a.py", 'import os\nos.remove(os.path.join(root, "/x"))\n'),
    ("a.py", 'import os\nos.unlink("/run/app.sock")\n'),
    ("a.py", "from pathlib import Path\nPath(name).unlink()\n"),
    ("a.py", 'from pathlib import Path\n(tmp_path / "etc").rmdir()\n'),
    ("a.py", 'from pathlib import Path\nhome = Path.home() / ".config"\nother.unlink()\n'),
    ("a.py", 'config = Path("/etc/app.toml").read_text()\n'),
    ("a.py", '# shutil.rmtree("/")\nx = 1\n'),
    ("a.py", '"""Never do this: shutil.rmtree("/")"""\n'),
    ("a.py", 'RULE = "rm -rf /"\nassert is_dangerous("rm -rf /")\n'),
    ("a.py", 'import subprocess\nsubprocess.run(["rm", "-rf", folder])\n'),
    ("a.py", 'import subprocess\nsubprocess.run(["rm", "-rf", "build", "dist"])\n'),
    ("a.py", 'import subprocess\nsubprocess.run(["ls", "/"])\n'),
    ("a.py", 'import os\nos.system("rm -rf build && ls /etc")\n'),
    ("a.py", 'mapping.remove("/etc")\nrouter.unlink("/users")\n'),
    ("a.py", 'import shutil\nshutil.rmtree(Path.home() / ".cache" / "app")\n'),
    ("a.py", 'import shutil\nshutil.rmtree(os.path.expanduser("~/.cache/app"))\n'),
    ("a.py", 'from pathlib import Path\n(Path.home() / ".cache" / "app" / "x").unlink()\n'),
    ("a.js", "fs.rmSync(path.join(os.homedir(), '.cache', 'app'), {recursive: true});\n"),
    ("a.sh", "rm -rf ~/.cache/app\n"),
    ("a.sh", 'rm -rf "$HOME/.cache/app" build\n'),
    ("Makefile", "clean:\n\trm -rf $(HOME)/.cache/app\n"),
    ("a.js", "fs.rmSync(dir, {recursive: true});\n"),
    ("a.js", "fs.rmSync('./dist', {recursive: true});\n"),
    ("a.js", "fs.rmSync(path.join(os.tmpdir(), 'x'));\n"),
    ("a.js", "// fs.rmSync('/', {recursive: true})\nlet x = 1;\n"),
    ("a.js", "router.delete('/users/:id', remove);\n"),
    ("a.js", "const found = /rm/.exec('/etc/passwd');\n"),
    ("a.rs", 'fn f() { std::fs::remove_dir_all(&dir).unwrap(); }\n'),
    ("a.rs", 'fn f() { std::fs::remove_file("target/x").unwrap(); }\n'),
    ("a.go", "package a\n\nfunc F() { os.RemoveAll(dir) }\n"),
    ("a.go", 'package a\n\nfunc F() { os.RemoveAll(filepath.Join(dir, "/x")) }\n'),
    ("a.rb", "FileUtils.rm_rf(tmpdir)\n"),
    ("a.rb", "FileUtils.rm_rf('coverage')\n"),
    ("a.sh", 'rm -rf "$DIR"\n'),
    ("a.sh", "rm -rf build dist *.egg-info\n"),
    ("a.sh", "rm -f /tmp/x.log\n"),
    ("a.sh", "rm -f x > /dev/null 2>/dev/null\n"),
    ("a.sh", "rm -rf build; ls /etc\n"),
    ("a.sh", "# rm -rf /\necho 1\n"),
    ("a.sh", 'echo "never run rm -rf / here"\n'),
    ("a.sh", "docker run --rm -v /data:/data image\n"),
    ("a.sh", "docker rm -f web\nform /x\n"),
    ("Makefile", "clean:\n\trm -rf $(BUILD)/x\n"),
    ("Dockerfile", "RUN apt-get update && rm -rf /var/lib/apt/lists/*\n"),
    ("package.json", '{"scripts": {"clean": "rm -rf dist && ls /"}}\n'),
    ("README.md", "Never run `rm -rf /`:\n\n    rm -rf /\n"),
]  # fmt: skip


def destroyed(root: Path, files: dict[str, str]) -> list[Violation]:
    found = self_review(Change.write(files), Tree.scan(root))
    return [one for one in found if one.description.startswith("destruction")]


@pytest.mark.parametrize(("path", "text"), SEEN, ids=str)
def test_destruction_outside_is_blocked(tmp_path: Path, path: str, text: str) -> None:
    violation = destroyed(tmp_path, {path: text})[0]
    assert (violation.severity, violation.security) == ("blocking", True)
    assert violation.file == path
    line = str(violation.line)
    assert line.isdigit()
    assert f"{path}:{line}" in str(violation)
    quoted = violation.description.partition(": ")[2].split(" reaches outside")[0][1:-1]
    assert quoted.rstrip("…").split()[0].strip("\\") in text.splitlines()[int(line) - 1]


@pytest.mark.parametrize(("path", "text"), HONEST, ids=str)
def test_honest_removals_are_left_alone(tmp_path: Path, path: str, text: str) -> None:
    assert destroyed(tmp_path, {path: text}) == []


def test_what_was_there_before_is_not_the_changes_making(tmp_path: Path) -> None:
    before = 'import shutil\nshutil.rmtree("/")\n'
    (tmp_path / "a.py").write_text(before)
    assert destroyed(tmp_path, {"a.py": before + "x = 1\n"}) == []
    assert destroyed(tmp_path, {"a.py": 'x = 1\n\nimport shutil\nshutil.rmtree("/")\n'}) == []
    assert [v.line for v in destroyed(tmp_path, {"a.py": before + 'shutil.rmtree("/etc")\n'})] == [
        3
    ]
