"""What a hook says of loki's own problems: one line each on stderr, and of warnings only the first."""

from __future__ import annotations

import logging
import sys
import warnings

from loki.base.text_format import line


def warn_once(message: str) -> None:
    """One line on stderr, with nothing in it that a terminal obeys."""
    try:
        sys.stderr.write(f"loki hook: {line(message)[:500]}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # nobody reads it


class _First(logging.Handler):
    said = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.said:
            self.said = True
            warn_once(record.getMessage())


def silence_repeated_warnings() -> None:
    """Let loki's warnings be one line, and nobody else's be heard at all."""
    warnings.simplefilter("ignore")
    logger = logging.getLogger("loki")
    if not any(isinstance(handler, _First) for handler in logger.handlers):
        logger.addHandler(_First(logging.WARNING))
        logger.propagate = False
