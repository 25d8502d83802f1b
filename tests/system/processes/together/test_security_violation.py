"""What violates security goes to a person at once: nobody is asked for another proposal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import loki
from loki.action.changes.change import Change, Edit
from loki.testing import ScriptedAgent
from support.project import QUICK, RIGHT, WRONG, make_project

KEY = "sk-ant-" + "api03-" + "aZ3bY9cX8dW7eV6fU5tS4rQ2" * 3 + "AA"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Change.write({"calc.py": f'KEY = "{KEY}"\n{RIGHT}'}), id="provider-key"),
        pytest.param(
            Change.write({"calc.py": f'import shutil\nshutil.rmtree("/")\n{RIGHT}'}), id="rmtree"
        ),
        pytest.param(Change((Edit("out", b"/etc/passwd", None, "symlink"),)), id="link-out"),
        pytest.param(Change((Edit("out", b"../..", None, "symlink"),)), id="relative-link-out"),
        pytest.param(Change.write({"../x.py": "x = 1\n"}), id="parent"),
        pytest.param(Change.write({"/etc/cron.d/x": "x\n"}), id="absolute"),
        pytest.param(Change.write({"~/.ssh/authorized_keys": "x\n"}), id="home"),
        pytest.param(Change.write({".git/hooks/pre-commit": "#!/bin/sh\n"}), id="git"),
        pytest.param(Change.write({".loki/config.toml": "[execute]\n"}), id="loki"),
        pytest.param(
            Change.write({".loki/signals/HUMAN_APPROVED": '{"approved": true}'}), id="approval"
        ),
    ],
)
def test_a_person_is_asked_after_the_first_proposal(tmp_path: Path, change: Change) -> None:
    project = make_project(tmp_path / "p")
    agent = ScriptedAgent([change, {"calc.py": RIGHT}])
    outcome = loki.run("fix add", agent=agent, checks=[QUICK], path=str(project))
    assert (outcome.status, outcome.trigger) == ("escalated", "security_violation")
    assert (outcome.exit_code, outcome.pattern) == (3, "security-violation")
    assert len(agent.briefings) == 1
    assert (project / "calc.py").read_text() == WRONG
    page = (project / ".loki" / str(outcome.page)).read_text()
    assert "a security violation, of which nothing was done" in page
    assert KEY not in page


@pytest.mark.parametrize("path", ["src/../calc.py", "{root}/calc.py"])
def test_a_path_that_is_only_badly_written_is_told_to_the_agent(tmp_path: Path, path: str) -> None:
    project = make_project(tmp_path / "p")
    agent = ScriptedAgent([{path.format(root=project): RIGHT}, {"calc.py": RIGHT}])
    outcome = loki.run("fix add", agent=agent, checks=[QUICK], path=str(project))
    assert (outcome.status, outcome.attempts) == ("success", 2)


def test_an_agent_that_links_out_of_its_copy_is_asked_once(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    (project / "agent.py").write_text(
        "import os, pathlib\n"
        "pathlib.Path('calc.py').write_text('def add(a, b):\\n    return a + b\\n')\n"
        "os.symlink('/etc', 'etc')\n"
    )
    workspace = loki.Workspace(project)
    agent = loki.CommandAgent([sys.executable, "agent.py"])
    with workspace.task("fix add", checks=[QUICK], id="t") as task:
        outcome = task.run(agent)
    assert (outcome.status, outcome.attempts) == ("escalated", 1)
    assert outcome.trigger == "security_violation"
    assert not (project / "etc").exists()


def test_what_a_project_only_points_out_stops_nobody(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    (project / ".loki").mkdir()
    (project / ".loki/verification-gates.yml").write_text(
        "version: 1\nextends: global\ngates:\n  self_review: {severity: advisory}\n"
    )
    agent = ScriptedAgent([{"calc.py": f'KEY = "{KEY}"\n{RIGHT}'}])
    outcome = loki.run("fix add", agent=agent, checks=[QUICK], path=str(project))
    assert outcome.status == "success"
