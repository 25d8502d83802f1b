"""Records of tasks as tests say them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loki.base import codec
from loki.memory.task_record import TaskRecord


def task_of(said: Mapping[str, Any]) -> TaskRecord:
    """The record of a task whose ``task.json`` says this, whatever of it fits."""
    record, _ = codec.read(TaskRecord, said)
    assert record is not None
    return record
