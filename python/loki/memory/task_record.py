"""What is kept of a task: ``tasks/<id>/task.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from loki.memory import store as documents
from loki.memory.document_validation import FLAWS
from loki.memory.store import Store


def document(task_id: str) -> str:
    """Name of a task's record in a store."""
    return f"tasks/{task_id}/task.json"


def save(store: Store, record: Mapping[str, Any]) -> None:
    """Keep a task's record, which says whose it is by its ``id``."""
    kept = {name: value for name, value in record.items() if name != FLAWS}
    text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
    store.put(document(record["id"]), text)


def load(store: Store, task_id: str) -> dict[str, Any]:
    """What is kept of a task; empty where there is none or it is damaged."""
    data = documents.load(store, document(task_id))
    return {**data, "id": task_id} if data else {}  # its folder's name is its id, whatever it says
