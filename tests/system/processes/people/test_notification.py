"""People are told: by a webhook and by a command, and nothing of that stops the work: with processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import loki
from loki.execution.notify_channels import notifier
from loki.people.notification import KINDS, Notifier, Webhook
from loki.testing import ManualClock


def told(webhook: str, timeout: float = 10) -> Notifier:
    return Notifier([Webhook(webhook, timeout)], KINDS, "/srv/app", ManualClock())


# --- a command ----------------------------------------------------------------------------------------


def workspace(tmp_path: Path, *lines: str) -> loki.Workspace:
    (tmp_path / ".loki").mkdir()
    (tmp_path / ".loki/config.toml").write_text("\n".join(("[notify]", *lines)) + "\n")
    return loki.Workspace(tmp_path)


def command(code: str) -> str:
    return f"command = '''{sys.executable} -S -c \"{code}\" $HOME'''"


def test_a_command_reads_it_and_no_shell_reads_its_words(tmp_path: Path) -> None:
    code = "import sys; open('told','w').write(sys.stdin.read() + sys.argv[1])"
    notifier(workspace(tmp_path, command(code))).notify("dead_letter", "gone", task_id="t")
    text = (tmp_path / "told").read_text()
    assert text.endswith("}$HOME")
    assert json.loads(text.removesuffix("$HOME"))["kind"] == "dead_letter"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit(3)", "it ended with exit code 3"),
        ("import threading; threading.Event().wait()", "it took longer than 0.5 s"),
    ],
)
def test_a_command_that_fails_is_one_warning(
    tmp_path: Path, code: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    here = notifier(workspace(tmp_path, command(code), 'timeout = "500ms"'))
    here.notify("dead_letter", "gone")
    here.notify("dead_letter", "gone")
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert said in caplog.text


def test_one_that_is_not_there_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notifier(workspace(tmp_path, "command = 'no-such-program-here'")).notify("dead_letter", "gone")
    assert "nobody was told by the command 'no-such-program-here'" in caplog.text


def test_only_what_is_wanted_is_told(tmp_path: Path) -> None:
    code = "import sys; open('told','a').write('x')"
    here = notifier(workspace(tmp_path, command(code), 'kinds = ["escalation"]'))
    here.notify("dead_letter", "gone")
    assert not (tmp_path / "told").exists()
    here.notify("escalation", "look")
    assert (tmp_path / "told").read_text() == "x"
