"""What tasks wait for: other tasks, or a person. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from loki.jobs.queue.queued_task import ListName, QueuedTask


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A dependency that is not completed.

    Attributes:
        id: the task that is waited for.
        where: the list that it stands in; None: nobody knows it.
    """

    id: str
    where: ListName | None

    @property
    def is_stuck(self) -> bool:
        """Whether nothing that is queued will end the wait: somebody has to look."""
        return self.where not in {"pending", "in-progress"}


def waits_for(task: QueuedTask, where: Callable[[str], ListName | None]) -> tuple[InboxItem, ...]:
    """The dependencies of a task that are not completed.

    Example:
        >>> task = QueuedTask("b", "B", dependencies=("a", "x"))
        >>> [one.id for one in waits_for(task, {"a": "completed"}.get)]
        ['x']
    """
    found = ((id_, where(id_)) for id_ in task.dependencies)
    return tuple(InboxItem(id_, place) for id_, place in found if place != "completed")


def cycle(dependencies: Mapping[str, Iterable[str]], starts: Iterable[str]) -> Sequence[str]:
    """Tasks that wait for each other, the first also at the end; empty where there are none.

    Args:
        dependencies: by task, those it waits for.
        starts: tasks to look from.

    Example:
        >>> cycle({"a": ["b"], "b": ["c"], "c": ["a"]}, ["a"])
        ['a', 'b', 'c', 'a']
    """
    done: set[str] = set()
    for start in starts:
        path: dict[str, None] = {start: None}
        stack = [(start, iter(dependencies.get(start, ())))]
        while stack:
            task, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                path.pop(task)
                done.add(task)
            elif following in path:
                names = list(path)
                return [*names[names.index(following) :], following]
            elif following not in done:
                path[following] = None
                stack.append((following, iter(dependencies.get(following, ()))))
    return []
