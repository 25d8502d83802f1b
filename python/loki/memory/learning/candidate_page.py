"""A candidate, something that loki would like to learn, and its page. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from loki.base.markdown import bullets, code, fence, inline
from loki.base.secret import masked
from loki.base.yaml_dump import dump
from loki.memory import front_matter as page
from loki.memory.front_matter import front_matter
from loki.recognition.pattern_file_edit import as_entry

FOLDER = "memory/candidates/"
LEARNED = "memory/learned/"

SOURCES = "## Sources\n\n"
"""What the page shows of the front matter begins here; above it stands why it is proposed."""

KINDS = ("pattern", "rule")
PROPOSED, APPROVED, REJECTED, DEFERRED = "proposed", "approved", "rejected", "deferred"
FINAL = frozenset({APPROVED, REJECTED})


@dataclass(frozen=True, slots=True)
class Source:
    """A task that a candidate comes from.

    Attributes:
        task: its id.
        error: what it failed with, or "".
        at: when, ISO 8601 UTC, or "".
    """

    task: str
    error: str = ""
    at: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {"task": self.task, "error": self.error, "at": self.at}

    @classmethod
    def of(cls, data: Any) -> Source:
        """What `to_dict` gave; a bare text is the id of a task."""
        if not isinstance(data, Mapping):
            return cls(str(data))
        return cls(*(str(data.get(name) or "") for name in ("task", "error", "at")))


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something to learn.

    Attributes:
        kind: pattern or rule.
        key: 8 hex digits; with the kind it names the candidate.
        content: of a rule its text; of a pattern what would be added to the pattern file.
        sources: the tasks that it comes from.
        created_at: when it was first proposed, ISO 8601 UTC.
        body: Markdown that says why it is proposed.
        status: proposed, approved, rejected or deferred.
        reason: why it was rejected, or "".
        decided_at: when it was decided on last, or ""; decided_by: who did.
        deferrals: how often it was put off.
    """

    kind: str
    key: str
    content: Any
    sources: tuple[Source, ...]
    created_at: str
    body: str = ""
    status: str = PROPOSED
    reason: str = ""
    decided_at: str = ""
    decided_by: str = ""
    deferrals: int = 0

    @staticmethod
    def rule(
        text: str, sources: Iterable[Source], created_at: str, *, key: str = "", body: str = ""
    ) -> Candidate:
        """A candidate for a lasting rule.

        Args:
            text: the rule, as later briefings are to say it.
            sources: the tasks that it comes from.
            created_at: ISO 8601 UTC.
            key: what makes two rules the same one, such as a fingerprint; the text by default.
            body: Markdown that says why it is proposed.

        Example:
            >>> Candidate.rule("Never edit gen/.", [Source("t")], "2026-04-04T10:15:30.000Z").id
            'rule-bef7d1d1'
        """
        return Candidate("rule", digest(key or text), text, tuple(sources), created_at, body)

    @staticmethod
    def pattern(
        entry: Mapping[str, Any], sources: Iterable[Source], created_at: str, *, body: str = ""
    ) -> Candidate:
        """A candidate for a pattern: ``entry`` as it would stand in failure-patterns.yml."""
        key = digest(dump(entry.get("signals")))
        return Candidate("pattern", key, dict(entry), tuple(sources), created_at, body)

    @property
    def id(self) -> str:
        """``pattern-<key>`` or ``rule-<key>``."""
        return f"{self.kind}-{self.key}"

    @property
    def document(self) -> str:
        """Its page, relative to ``.loki/``."""
        return f"{FOLDER}candidate-{self.id}.md"

    @property
    def name(self) -> str:
        """What people call it: a pattern's id, a rule's text."""
        return str(self.content["id"] if self.kind == "pattern" else self.content)

    @property
    def is_open(self) -> bool:
        """Nobody has approved or rejected it."""
        return self.status not in FINAL

    @property
    def waits_since(self) -> str:
        """When somebody last looked at it: its deferral, else its creation."""
        return self.decided_at or self.created_at


def digest(text: str) -> str:
    """8 hex digits that stay the same for the same text."""
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]


def render(candidate: Candidate) -> str:
    """The page of a candidate."""
    head = front_matter(
        {
            "entity_name": f"memory.candidates.candidate-{candidate.id}",
            "namespace": "memory.candidates",
            "category": f"candidate-{candidate.kind}",
            "id": candidate.id,
            "kind": candidate.kind,
            "status": candidate.status,
            "created_at": candidate.created_at,
            "deferrals": candidate.deferrals,
            "reason": candidate.reason or None,
            "decided_at": candidate.decided_at or None,
            "decided_by": candidate.decided_by or None,
            candidate.kind: candidate.content,
            "sources": [source.to_dict() for source in candidate.sources],
        }
    )
    told = [f"{code(s.task)}: {inline(s.error) or 'no error kept'}" for s in candidate.sources]
    parts = [
        f"# Candidate {candidate.kind}: {inline(candidate.name)}",
        candidate.body.strip(),
        SOURCES + bullets(told),
    ]
    if candidate.kind == "pattern":
        lines = as_entry(candidate.content)
        parts.append("## What would be added\n\n" + fence("\n".join(lines), "yaml"))
    parts.append(
        f"## Decide\n\n- `loki review --approve {candidate.id}`\n"
        f'- `loki review --reject {candidate.id} --reason "…"`\n'
        f"- `loki review --defer {candidate.id}`"
    )
    return head + "\n" + "\n\n".join(part for part in parts if part) + "\n"


def read(text: str) -> Candidate:
    """The candidate of a page; what was decided since is not in it.

    Raises:
        ValueError: it is no page of a candidate.
    """
    fields, body = page.parse(text)
    kind, _, key = str(fields.get("id")).partition("-")
    if kind not in KINDS or not re.fullmatch("[0-9a-f]{8}", key):
        raise ValueError(f"found id {fields.get('id')!r}, expected pattern- or rule- and 8 digits")
    content = fields.get(kind)
    if kind == "pattern" and not (isinstance(content, dict) and content.get("id")):
        raise ValueError("found no pattern, expected a mapping with an id")
    if kind == "rule" and not (isinstance(content, str) and content.strip()):
        raise ValueError("found no rule, expected its text")
    sources = fields.get("sources")
    return Candidate(
        kind,
        key,
        content,
        tuple(Source.of(source) for source in sources) if isinstance(sources, list) else (),
        str(fields.get("created_at") or ""),
        body.partition("\n")[2].partition(SOURCES)[0].strip(),
    )


def render_learned(candidate: Candidate) -> str:
    """The page of an approved rule, in ``memory/learned/``."""
    head = front_matter(
        {
            "id": candidate.id,
            "category": "learned-rule",
            "approved_at": candidate.decided_at,
            "approved_by": candidate.decided_by,
            "sources": [masked(source.to_dict()) for source in candidate.sources],
        }
    )
    return f"{head}\n{str(candidate.content).strip()}\n"


def words(entry: Mapping[str, Any]) -> frozenset[str]:
    """The words of a pattern's signals, letter case folded."""
    found: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, Mapping):
            for key in ("literal", "word", "regex", "any"):
                collect(value.get(key))
        elif isinstance(value, (list, tuple)):
            for each in value:
                collect(each)
        elif value is not None:
            found.extend(re.findall(r"\w+", str(value).casefold()))

    collect(entry.get("signals"))
    return frozenset(found)
