"""Keeps what a task proposed last and what was refused: ``tasks/<id>/refused.json``.

It outlives the process, so that who goes on with the task begins with it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loki.action.agent_protocol import Proposal
from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates.gate import Validation
from loki.action.loop import refused_proposal
from loki.base.error import LokiError
from loki.base.secret import masked
from loki.memory import store as documents
from loki.memory.document_validation import kept_as
from loki.memory.store import Store

logger = logging.getLogger("loki")


def document(task_id: str) -> str:
    """Name of what is kept, in a store."""
    return f"tasks/{task_id}/refused.json"


def forget(store: Store, task_id: str) -> None:
    """Nothing begins with it any more."""
    if store.get(document(task_id)) is not None:
        store.update(document(task_id), lambda _: None)


@dataclass(frozen=True, slots=True)
class RefusedProposal:
    """What was refused.

    Attributes:
        change: what is kept of it, each edit with what it replaces.
        told: what is said of it, Markdown.
    """

    change: Change
    told: str


@kept_as(r"tasks/[^/]+/refused\.json")
@dataclass
class _Refused:
    execution: int = -1
    told: str = ""
    change: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class RefusedProposalStore:
    """What one execution of a task proposed and what was refused, the last of it.

    Args:
        store: where it is kept.
        task_id: the task.
        execution: another one begins anew, without it.
        root: the project.
    """

    store: Store
    task_id: str
    execution: int
    root: Path
    _draft: RefusedProposal | None = field(default=None, init=False)
    _is_loaded: bool = field(default=False, init=False)

    def current(self, tree: Tree) -> RefusedProposal | None:
        """What the next attempt begins with; None: the project as it is.

        Args:
            tree: the project as it is: what somebody has changed since is left as it is.
        """
        kept = self._load()
        if kept is None:
            return None
        change = refused_proposal.remaining_change(kept.change, self.root, tree)
        if not change.edits:
            self.drop()
            return None
        if len(change.edits) < len(kept.change.edits):
            others = sorted(set(kept.change.paths) - set(change.paths))
            said = "Changed in the project meanwhile, and left as they are there"
            kept = RefusedProposal(
                change, f"{kept.told}\n\n{said}: {', '.join(map(repr, others))}."
            )
        return replace(kept, change=change)

    def accepted(self, proposal: Proposal, tree: Tree) -> Proposal:
        """A proposal as one of the project: made to what was refused, unless it begins afresh."""
        change, is_marked = refused_proposal.without_mark(proposal.change)
        afresh = proposal.afresh or is_marked
        kept = self.current(tree)
        if kept is None:
            return replace(proposal, change=change, afresh=afresh)
        is_empty = change.is_empty
        if afresh:
            change = refused_proposal.on_project(change, kept.change, tree)
        elif not is_empty:
            change = refused_proposal.amended(kept.change, change, tree)
        if change.is_empty and (afresh or not is_empty):
            self.drop()  # it would leave the project as it is
        return replace(proposal, change=change, afresh=afresh)

    def refused(self, change: Change, tree: Tree, validation: Validation | None = None) -> None:
        """Keep a proposal that was refused; nothing of it is in the project.

        Args:
            change: what was proposed.
            tree: the project: what somebody has changed since is left out.
            validation: why it was refused; one that violates security is for a person alone. None:
                it could not be applied.
        """
        if validation is not None and validation.security:
            return
        violations = validation.blocking if validation else ()
        keeps = refused_proposal.remaining_change(change, self.root, tree)
        if not keeps.edits:
            return  # nothing of it can stand: what was kept before still does
        self._draft = RefusedProposal(
            keeps, refused_proposal.refusal_text(keeps, change, violations)
        )
        self._is_loaded = True
        data = {"version": 1, "execution": self.execution, "told": self._draft.told}
        described = keeps.to_dict()
        # With its secrets masked it would be another file: such a one is not kept.
        described["edits"] = [edit for edit in described["edits"] if masked(edit) == edit]
        self.store.put(document(self.task_id), json.dumps({**data, "change": described}) + "\n")

    def drop(self) -> None:
        """It is in the project, or nobody wants it any more."""
        if self._load() is not None:
            self._draft = None
            forget(self.store, self.task_id)

    def _load(self) -> RefusedProposal | None:
        if not self._is_loaded:
            self._is_loaded = True
            self._draft = self._read()
        return self._draft

    def _read(self) -> RefusedProposal | None:
        kept = documents.load_as(_Refused, self.store, document(self.task_id))
        if kept is None or kept.execution != self.execution:
            return None
        try:
            return RefusedProposal(Change.from_dict(kept.change), kept.told)
        except (ValueError, LookupError, TypeError, AttributeError, LokiError) as error:
            self.store.set_aside(document(self.task_id))
            logger.warning(
                "%s: what was refused cannot be read, and is begun anew without: %s",
                document(self.task_id),
                error,
            )
            return None
