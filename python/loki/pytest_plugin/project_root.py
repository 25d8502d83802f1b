"""Where a run's project is, and what its tests and files are called there.

A test is to have one name, wherever pytest was started: in the project's folder, in a folder below,
or with another ``--rootdir``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

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
