"""The errors that loki raises: one family per culprit."""

from __future__ import annotations


class LokiError(Exception):
    """Base of every error that loki raises on purpose."""


class UsageError(LokiError):
    """The caller asked for something that cannot be done as asked."""


class ConfigError(LokiError):
    """A file that a person wrote cannot be used.

    The message begins with ``file:line:column`` and says what was found and what was expected.
    """

    def __init__(self, message: str, *, file: str = "", line: int = 0, column: int = 0) -> None:
        """Args: message: the reason; file, line, column: where (1-based; 0: not known)."""
        self.file, self.line, self.column, self.reason = file, line, column, message
        where = ":".join(str(part) for part in (file, line or "", column or "") if part)
        super().__init__(f"{where}: {message}" if where else message)


class AgentError(LokiError):
    """An agent could not answer: it crashed, timed out or could not be started."""

    def __init__(self, message: str, *, retryable: bool = True, output: str = "") -> None:
        """Args: message: the reason; retryable: worth asking again; output: what it printed."""
        super().__init__(message)
        self.retryable = retryable
        self.output = output


class StoreError(LokiError):
    """Something could not be read from or written to the workspace."""
