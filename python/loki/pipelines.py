"""Pipelines as users of the library run them: in a project that is named by its folder."""

from __future__ import annotations

from loki.execution import pipeline
from loki.runtime import Runtime


class Pipeline(pipeline.Pipeline):
    """Stages round the closed loop, read from a file; see `loki.execution.pipeline.Pipeline`."""

    workspace_type = Runtime
