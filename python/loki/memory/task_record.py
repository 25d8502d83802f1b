"""What is kept of a task: ``tasks/<id>/task.json``."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from loki.memory.store import Store

logger = logging.getLogger("loki")


def document(task_id: str) -> str:
    """Name of a task's record in a store."""
    return f"tasks/{task_id}/task.json"


def save(store: Store, record: Mapping[str, Any]) -> None:
    """Keep a task's record, which says whose it is by its ``id``."""
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    store.put(document(record["id"]), text)


def load(store: Store, task_id: str) -> dict[str, Any]:
    """What is kept of a task; empty where there is none or it is damaged."""
    text = store.get(document(task_id))
    try:
        data = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        logger.warning("%s is damaged; begun anew", document(task_id))
        data = {}
    return data if isinstance(data, dict) else {}
