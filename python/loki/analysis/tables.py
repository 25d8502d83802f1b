"""What a project remembers, as tables: read when each is first looked at, then kept.

What only some tables need is imported with them: who wants the attempts does not wait for the rest.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from loki.analysis import attempt_log
from loki.analysis.attempt_log import RawAttempts
from loki.analysis.attempts_table import attempts
from loki.analysis.column import TABLES, Columns, columns
from loki.base.error import UsageError
from loki.base.html import table
from loki.stores import open_store

if TYPE_CHECKING:
    import pandas
    import polars

    from loki.memory.suites.suite_run import SuiteRun
    from loki.memory.tool_failure import ToolFailure


class Tables:
    """The tables of a project's history.

    Each is read from disk when it is first asked for, and is an Arrow table; `columns` says what is
    in it. Call `loki.analysis.history` again to see what has happened since.

    Args:
        folder: the project's ``.loki``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = open_store(folder)

    @cached_property
    def attempts(self) -> pa.Table:
        """Every attempt of every task, task by task."""
        return attempts(self._raw, self._tasks)

    @cached_property
    def failures(self) -> pa.Table:
        """Every failure that was seen, by time."""
        from loki.analysis.failures_table import failures

        return failures(self._raw, self._tasks, self._tool_failures, self._test_runs)

    @cached_property
    def strategies(self) -> pa.Table:
        """Every use of a strategy, and whether it mended its failure, task by task."""
        from loki.analysis.strategies_table import strategies

        return strategies(self._raw, self._tasks)

    @cached_property
    def tasks(self) -> pa.Table:
        """Every task, and what its attempts add up to."""
        from loki.analysis import record_tables

        return record_tables.tasks(self._store, self._tasks, self.attempts)

    @cached_property
    def transitions(self) -> pa.Table:
        """Every known change of state of a circuit breaker, by time."""
        from loki.analysis import record_tables

        return record_tables.transitions(self._store)

    @cached_property
    def dead_letters(self) -> pa.Table:
        """The tasks that were given up, by time."""
        from loki.analysis import record_tables

        return record_tables.dead_letters(self._store)

    @cached_property
    def signs(self) -> pa.Table:
        """What led nowhere twice in the runs that are not closed."""
        from loki.analysis import record_tables

        return record_tables.signs(self._store)

    @cached_property
    def calls(self) -> pa.Table:
        """The calls to models and agents."""
        from loki.analysis import record_tables

        return record_tables.calls(self._store)

    @cached_property
    def test_runs(self) -> pa.Table:
        """The runs of the project's tests under ``pytest --loki``."""
        from loki.analysis import monitor_tables

        return monitor_tables.test_runs(self._test_runs)

    @cached_property
    def test_failures(self) -> pa.Table:
        """The tests that failed in them, every try of each."""
        from loki.analysis import monitor_tables

        return monitor_tables.test_failures(self._test_runs)

    @cached_property
    def tool_calls(self) -> pa.Table:
        """The tool calls of watched agents that failed."""
        from loki.analysis import monitor_tables

        return monitor_tables.tool_calls(self._tool_failures)

    def __getitem__(self, name: str) -> pa.Table:
        """The table of that name.

        Raises:
            UsageError: there is none.
        """
        columns(name)
        found: pa.Table = getattr(self, name)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tables."""
        return tuple(TABLES)

    def columns(self, name: str) -> Columns:
        """The columns of a table; as `loki.analysis.columns`."""
        return columns(name)

    def pandas(self, name: str) -> pandas.DataFrame:
        """A table as pandas' data frame; whole numbers that may be missing are ``Int64``.

        Raises:
            UsageError: there is no such table, or pandas is not installed.
        """
        found = self[name]
        try:
            import pandas
        except ImportError as error:
            raise UsageError(
                "pandas is not installed: pip install 'loki-core[analysis]', or use .polars(name)"
            ) from error
        nullable = {
            pa.int64(): pandas.Int64Dtype(),
            pa.bool_(): pandas.BooleanDtype(),
        }
        return found.to_pandas(types_mapper=nullable.get)

    def polars(self, name: str) -> polars.DataFrame:
        """A table as polars' data frame.

        Raises:
            UsageError: there is no such table, or polars is not installed.
        """
        found = self[name]
        try:
            import polars
        except ImportError as error:
            raise UsageError(
                "polars is not installed: pip install 'loki-core[polars]', or use .pandas(name)"
            ) from error
        frame = polars.from_arrow(found)
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {self._size(name)}" for name in self.names)
        return f"<Tables of {self.folder.parent}: {sizes}>"

    def _repr_html_(self) -> str:
        rows = [
            (name, self._size(name), ", ".join(column.name for column in TABLES[name]))
            for name in self.names
        ]
        return table(f"Tables of {self.folder.parent}", ("table", "rows", "columns"), rows)

    def _size(self, name: str) -> int | str:
        """Rows of a table; of one that takes long only where somebody has looked at it."""
        is_waited_for = name == "strategies" and name not in self.__dict__
        return "not read yet" if is_waited_for else self[name].num_rows

    @cached_property
    def _tasks(self) -> list[str]:
        folder = self.folder / "tasks"
        return (
            sorted(path.name for path in folder.iterdir() if path.is_dir())
            if folder.is_dir()
            else []
        )

    @cached_property
    def _raw(self) -> RawAttempts:
        return attempt_log.read(self._store, self._tasks)

    @cached_property
    def _tool_failures(self) -> tuple[ToolFailure, ...]:
        from loki.memory.tool_failure import ToolFailures

        return tuple(ToolFailures(self._store))

    @cached_property
    def _test_runs(self) -> tuple[SuiteRun, ...]:
        from loki.analysis import monitor_tables

        return tuple(monitor_tables.read_runs(self._store))
