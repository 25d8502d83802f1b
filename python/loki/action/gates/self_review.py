"""Self-review: what a careful person would ask about a change before it is applied.

Rules are data (``self-review.yml``) where they are patterns of text or tokens, and code where Python's
syntax tree shows them. In doubt they are silent.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from loki.action.gates.added_lines import Addition, Reader, text_findings
from loki.action.gates.finding import GATE, Finding
from loki.action.gates.gate import ADVISORY, BLOCKING, Violation
from loki.action.gates.review_python import Imports, python_findings
from loki.action.gates.review_secret import secret_findings
from loki.decision.drift.task_relation import in_scope, kinds_of_path, path_kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from loki.action.changes.change import Change, Edit
    from loki.action.changes.tree import Tree


# --- Files of a change that its task does not need ----------------------------------------------------


def scope_findings(change: Change, tree: Tree, scope: Sequence[str]) -> Iterator[Finding]:
    """Files outside of what the task names; where it names nothing, only left-overs.

    Args:
        change: the proposal.
        tree: the project before.
        scope: files, folders and globs (`loki.base.glob`) that the task may touch.

    Tests of a file that the task names, and the project's list of changes, belong to it.
    """
    edited = set(change.paths)
    for edit in change.edits:
        if scope and not in_scope(edit.path, scope):
            named = ", ".join(scope[:3]) + (", …" if scope[3:] else "")
            yield _finding(edit.path, f"the task is about {named}, not about this file")
        elif reason := _leftover(edit, edited, tree):
            yield _finding(edit.path, reason)


def _leftover(edit: Edit, edited: set[str], tree: Tree) -> str:
    known, name = path_kinds(), edit.path.rpartition("/")[2]
    if edit.after is None:
        is_whole = known["licences"].search(name) and "/" not in edit.path
        moved = any(known["licences"].search(p.rpartition("/")[2]) for p in edited - {edit.path})
        return "the licence is deleted" if is_whole and not moved else ""
    if edit.path in tree.entries or kinds_of_path(edit.path) & {"test", "example", "vendored"}:
        return ""
    if known["leftovers"].search(name):
        return "this looks like a left-over of work, not like a part of the project"
    copy = known["copies"].search(name)
    if copy is None:
        return ""
    original = edit.path[: len(edit.path) - len(name)] + copy["stem"] + copy["suffix"]
    return f"this is a copy of {original}" if original in tree.entries else ""


def _finding(path: str, description: str) -> Finding:
    return Finding("scope", "scope_creep", path, 0, 0, 0, description, ADVISORY, key=path)


# --- Self-review: what a careful person would ask about a change before it is applied -----------------

MAX_VIOLATIONS = 50
"""Violations that are listed; one more says how many were left out. Chosen, not measured."""


def self_review(
    change: Change, root: Path, tree: Tree, scope: Sequence[str] = ()
) -> list[Violation]:
    """Look at what a change adds for eight concerns; nothing is written.

    Destruction outside of the project, scope creep, swallowed errors, hard-coded secrets, unfinished
    code, broken imports, debug leftovers, injection. What was there before is none of them, wherever
    the change moves it.

    Args:
        change: the proposal.
        root: the project's folder.
        tree: the project as it is.
        scope: files, folders and globs that the task may touch; empty: it named none.

    Returns:
        Violations by file and line; blocking where a wrong change is near certain, else advisory.

    Example:
        >>> from pathlib import Path
        >>> from loki.action.changes.change import Change
        >>> from loki.action.changes.tree import Tree
        >>> empty = Tree(Path("/nowhere"), {})
        >>> change = Change.write({"a.py": "def f():\\n    breakpoint()\\n"})
        >>> [str(v) for v in self_review(change, empty.root, empty)]
        ['a.py:2:5: debug leftover: breakpoint() stops the program [self_review]']
    """
    reader = Reader(change, root, tree)
    additions = list(reader.additions())
    found = list(scope_findings(change, tree, scope))
    found += _new(additions)
    found += _new_imports(reader, additions)
    return _listed(found)


def _new(additions: list[Addition]) -> list[Finding]:
    """What is found in the files as they will be, less what was found in them as they are."""
    after = [f for a in additions if a.after for f in _findings(a)]
    if not any(_is_added(f, a) for a in additions for f in after if f.path == a.path):
        return []
    names = {finding.rule for finding in after}
    before = [f for a in additions if a.before for f in _findings(a.was) if f.rule in names]
    habits = {(f.rule, f.path) for f in before if f.unusual}
    # A fault that was there n times and will be m times is new m - n times.
    room = Counter((f.rule, f.key) for f in after)
    room.subtract((f.rule, f.key) for f in before)
    by_path = {addition.path: addition for addition in additions}
    found = []
    for finding in after:
        if not _is_added(finding, by_path[finding.path]) or room[finding.rule, finding.key] <= 0:
            continue
        room[finding.rule, finding.key] -= 1
        if not finding.unusual or (finding.rule, finding.path) not in habits:
            found.append(finding)
    return found


def _findings(addition: Addition) -> list[Finding]:
    return [
        *text_findings(addition),
        *python_findings(addition),
        *secret_findings(addition),
    ]


def _is_added(finding: Finding, addition: Addition) -> bool:
    return any(line in addition.added for line in range(finding.line, finding.last + 1))


def _new_imports(reader: Reader, additions: list[Addition]) -> list[Finding]:
    """Names imported in vain after the change, less those that were so before."""
    imports = Imports(reader, additions)
    found = [f for addition in additions for f in imports.findings(addition)]
    if not found:
        return []
    return [f for f in found if not _was_broken(f, additions, reader)]


def _was_broken(finding: Finding, additions: list[Addition], reader: Reader) -> bool:
    """Whether neither the import is new nor the name was there before."""
    importer = next(a for a in additions if a.path == finding.path)
    module, _, name = finding.key.rpartition(":")
    return not _is_added(finding, importer) and name not in (reader.before(module) or "")


def _listed(found: Iterable[Finding]) -> list[Violation]:
    unique = dict.fromkeys(f.violation() for f in found)
    ordered = sorted(
        unique, key=lambda v: (v.severity != BLOCKING, v.file or "", v.line or 0, v.column or 0)
    )
    if len(ordered) > MAX_VIOLATIONS:
        rest = len(ordered) - MAX_VIOLATIONS
        more = Violation(GATE, ADVISORY, None, f"and {rest} concerns more")
        return [*ordered[:MAX_VIOLATIONS], more]
    return ordered
