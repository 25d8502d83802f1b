"""What every command of the command line shares."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from loki.cli.common import INTERRUPTED, errors_as_sentences, project_option


@pytest.mark.parametrize("end", [KeyboardInterrupt, typer.Abort])
def test_ctrl_c_is_an_interrupt_also_at_a_question(
    end: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    @errors_as_sentences()
    def command() -> None:
        raise end

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == INTERRUPTED
    assert "interrupted" in capsys.readouterr().err


def test_a_hint_names_another_project_so_that_it_can_be_typed() -> None:
    assert project_option(Path()) == project_option(Path(".")) == ""
    assert project_option(Path("my shop")) == " --project 'my shop'"
