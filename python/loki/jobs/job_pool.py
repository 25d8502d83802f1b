"""Jobs by their ids, each under way at most once here, in threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait


class JobPool:
    """Threads that perform jobs.

    Args:
        parallel: jobs at a time.
        name: what the threads' names begin with.
        cancelled: ends the jobs that are under way when it is set.
        executor: where they run; threads that begin with the first job where nothing is said.
    """

    def __init__(
        self,
        parallel: int,
        name: str,
        cancelled: threading.Event,
        executor: Executor | None = None,
    ) -> None:
        self._parallel, self._name, self._cancelled = parallel, name, cancelled
        self._executor = executor
        self._jobs: dict[str, Future[object]] = {}

    def __contains__(self, id_: object) -> bool:
        """Whether a job is under way, or has ended and nobody has looked since."""
        return id_ in self._jobs

    def start(self, id_: str, job: Callable[[], object]) -> None:
        """Have a job performed as soon as a thread is free."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self._parallel, thread_name_prefix=self._name)
        self._jobs[id_] = self._executor.submit(job)

    def has_ended(self) -> bool:
        """Whether a job has ended since somebody looked."""
        return any(job.done() for job in self._jobs.values())

    def collect(self) -> None:
        """Forget the jobs that have ended; what only a bug of ours can have raised is raised here."""
        for id_, job in list(self._jobs.items()):
            if job.done():
                del self._jobs[id_]
                job.result()

    def wait(self) -> None:
        """Until all jobs have ended; interrupted, they are cancelled."""
        try:
            wait(self._jobs.values())
        except BaseException:  # Ctrl-C
            self.cancel()
            raise
        self.collect()

    def cancel(self) -> None:
        """End all jobs, and wait until they have."""
        self._cancelled.set()
        wait(self._jobs.values())

    def close(self) -> None:
        """Wait for all jobs, and end the threads."""
        self.wait()
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
