"""Hears a command-line agent while it works: reads what it prints, shows what it does."""

from __future__ import annotations

import logging
import re

from loki.agents.agent_report import Reader, Report
from loki.agents.agent_report_formats import FORMS, LINES
from loki.agents.preset import Preset
from loki.base.secret import mask_secrets
from loki.base.token_estimate import clip_line

logger = logging.getLogger("loki")

LONGEST = 160
"""Characters of a line that is shown. Chosen, not measured."""

PATIENCE = 3
"""Times in a row that a program says that it waits for ever, before it is ended. Chosen."""


class Listener:
    """Reads what one run of an agent prints.

    Args:
        name: of the agent, as people are shown it.
        preset: of its program.

    Attributes:
        gave_up: it was ended, as it would have waited for ever.
    """

    def __init__(self, name: str, preset: Preset) -> None:
        self.name = name
        self.gave_up = False
        self._reader = Reader(FORMS[preset.form], LINES.get(preset.form))
        self._hopeless = re.compile(preset.hopeless) if preset.hopeless else None
        self._waits = 0

    def received(self, chunk: bytes) -> bool:
        """Take what it has printed; False: it is to be ended."""
        for said in self._reader.feed(chunk):
            is_hopeless = self._hopeless is not None and self._hopeless.search(said) is not None
            self._waits = self._waits + 1 if is_hopeless else 0
            line = " ".join(mask_secrets(said).split())
            logger.info("[agent] %s: %s", self.name, clip_line(line, LONGEST))
        self.gave_up = self.gave_up or self._waits >= PATIENCE
        return not self.gave_up

    def close(self, errors: bytes) -> Report:
        """What it said in all.

        Args:
            errors: the end of what it printed as errors.
        """
        report = self._reader.close(errors)
        if report.session or report.usage:
            tokens = f"{report.usage.total} tokens" if report.usage else "tokens unknown"
            cost = f", ${report.cost:.4g}" if report.cost is not None else ""
            session = f", session {report.session}" if report.session else ""
            logger.info("[agent] %s: %s%s%s", self.name, tokens, cost, session)
        return report
