"""What a run was asked for, and where its project is.

A test is to have one name, wherever pytest was started: in the project's folder, in a folder below,
or with another ``--rootdir``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# --- What a run was asked for -------------------------------------------------------------------------

SUFFIXES = (".json", ".md", ".markdown")
"""What a report's name may end with."""


@dataclass(frozen=True)
class Options:
    """What a run was asked for.

    Attributes:
        reports: files to write.
        fail_on: labels of failures that make the run fail; empty: all do.
        quarantine: known flaky tests do not make it fail.
    """

    reports: tuple[Path, ...] = ()
    fail_on: tuple[str, ...] = ()
    quarantine: bool = False


def options_of(config: pytest.Config, said: Mapping[str, object]) -> Options:
    """What a run was asked for.

    Args:
        config: pytest's.
        said: options of its command line, by name.

    Raises:
        pytest.UsageError: a report's name has another ending, or there is no such label.
    """
    wanted = said.get("loki_fail_on") or config.getini("loki_fail_on")
    quarantine = said.get("loki_quarantine")
    return Options(
        tuple(_reports(config, said)),
        _labels(str(wanted)),
        bool(config.getini("loki_quarantine") if quarantine is None else quarantine),
    )


def _labels(said: str) -> tuple[str, ...]:
    wanted = tuple(name.strip() for name in said.split(",") if name.strip())
    if wanted:
        from loki.decision.suites.suite_summary import LABELS

        for name in wanted:
            if name not in LABELS:
                raise pytest.UsageError(
                    f"--loki-fail-on: found {name!r}, expected one or more of {', '.join(LABELS)}"
                )
    return wanted


def _reports(config: pytest.Config, said: Mapping[str, object]) -> list[Path]:
    """Files on the command line are relative to where pytest was started, others to its root."""
    started = config.invocation_params.dir
    names = cast("Sequence[str]", said.get("loki_report") or ())
    typed = [started / os.path.expanduser(name) for name in names]
    reports = typed or [config.rootpath / name for name in config.getini("loki_report")]
    for path in reports:
        if path.suffix.lower() not in SUFFIXES:
            raise pytest.UsageError(
                f"--loki-report: {path.name} should end with one of {', '.join(SUFFIXES)}"
            )
    return reports


# --- Where its project is -----------------------------------------------------------------------------

FOLDER = ".loki"


@dataclass(frozen=True)
class ProjectRoot:
    """A run's project.

    Attributes:
        project: the folder that has, or will have, the ``.loki/``.
        prefix: what stands before pytest's node ids so that they begin at the project; "" mostly.
        folders: where relative paths in pytest's output may begin, best first.
    """

    project: Path
    prefix: str
    folders: tuple[Path, ...]

    def test(self, nodeid: str) -> str:
        """A node id as it is called in the project.

        Example:
            >>> ProjectRoot(Path("/p"), "sub/", ()).test("test_a.py::test_x")
            'sub/test_a.py::test_x'
        """
        return self.prefix + nodeid

    def path(self, path: str) -> str:
        """A path of pytest's output relative to the project, where it is one of the project's.

        Args:
            path: relative to wherever pytest was, or absolute.
        """
        if os.path.isabs(path):
            return _inside(Path(path), self.project) or path
        for folder in (self.project, *self.folders):
            if (folder / path).is_file():
                return _inside(folder / path, self.project) or path
        return path


def project_root_of(rootpath: Path, *, is_configured: bool, started_in: Path) -> ProjectRoot:
    """The place of a run.

    The project is the nearest folder at or above pytest's root that has a ``.loki/``, as far as the
    top of its git repository; else pytest's root where a configuration file says which that is;
    else, since it is only the folder of the tests that were asked for, the top of the repository.

    Args:
        rootpath: pytest's root.
        is_configured: pytest's configuration file is there.
        started_in: the folder that pytest was started in.
    """
    above = [rootpath, *rootpath.parents]
    top = next((folder for folder in above if (folder / ".git").exists()), None)
    own = above[: above.index(top) + 1] if top else [rootpath]
    known = next((folder for folder in own if (folder / FOLDER).is_dir()), None)
    project = known or (rootpath if is_configured else top or rootpath)
    prefix = rootpath.relative_to(project).as_posix()
    return ProjectRoot(project, "" if prefix == "." else f"{prefix}/", (started_in, rootpath))


def _inside(path: Path, project: Path) -> str | None:
    """The path relative to the project; None where it is outside."""
    relative = os.path.relpath(os.path.normpath(path), project)
    return None if relative.startswith("..") else Path(relative).as_posix()
