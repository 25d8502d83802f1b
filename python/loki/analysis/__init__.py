"""What a project remembers, for Jupyter: `history` gives it as Arrow, pandas and polars tables.

    from loki import analysis

    history = analysis.history(".")
    history.attempts                # an Arrow table
    history.pandas("failures")      # a pandas data frame
    analysis.columns("attempts")    # what is in it

Needs ``pip install 'loki-core[analysis]'``, or ``'loki-core[polars]'``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from loki.analysis.column import Column, Columns, columns
from loki.base.error import UsageError

if TYPE_CHECKING:
    from loki.analysis.tables import Tables

__all__ = ["Column", "Columns", "columns", "history"]

FOLDER = ".loki"


def history(path: str | os.PathLike[str] = ".") -> Tables:
    """What loki remembers of a project, as tables.

    Args:
        path: the project's folder, or its ``.loki``.

    Returns:
        The tables, each read when it is first looked at.

    Raises:
        UsageError: loki has not run there, or pyarrow is not installed.

    Example:
        >>> import loki, tempfile
        >>> project = tempfile.mkdtemp()
        >>> with loki.Workspace(project).task("try", checks=["false"], max_attempts=1) as task:
        ...     _ = task.run(lambda briefing: {"a.txt": "a"})
        >>> history(project).attempts["result"].to_pylist()
        ['failed']
    """
    folder = _folder(Path(path))
    try:
        from loki.analysis.tables import Tables
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise UsageError(
            "loki.analysis needs pyarrow: pip install 'loki-core[analysis]' (with pandas and "
            "matplotlib) or 'loki-core[polars]'"
        ) from error
    return Tables(folder)


def _folder(path: Path) -> Path:
    here = path.resolve()
    folder = here if here.name == FOLDER else here / FOLDER
    if folder.is_dir():
        return folder
    if not here.is_dir():
        raise UsageError(f"{path} is not a folder: expected a project that loki has worked in")
    above = next((one for one in here.parents if (one / FOLDER).is_dir()), None)
    hint = "`loki run` or `pytest --loki` makes it"
    if above:
        hint = f"did you mean history({str(above)!r})?"
    raise UsageError(f"no {FOLDER} in {here}: expected a project that loki has worked in; {hint}")
