"""What similar dead letters suggest: the likely cause, where to look, what was not tried yet. Pure.

Every word comes from the facts that are kept of the dead letters, or, by kind of failure, from
``advice.yml``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from loki.base.markup import bullets, code, cut, inline, numbered
from loki.memory import advice
from loki.memory.dead_letter import DeadLetter
from loki.recognition.failure import is_test_path

MOST_TOKENS = 200
"""Of the suggestions, as the closed-loop document has it."""

CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English and code; no tokenizer is asked."""

MOST_LISTED = 10
"""Similar tasks that are named; chosen, not measured."""

STRATEGIES = ("context_expand", "analyze_then_fix", "dependency_check")
"""What may be tried for any failure, in this order, after a pattern's own strategies."""

NEAR_LINES = 50
"""Lines that are still one place, as many as are shown round an error."""

_IDENTIFIER = re.compile(
    r"[`'\"]([A-Za-z_][\w.$:-]{1,60})[`'\"]"  # quoted
    r"|\b([a-z0-9]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|\w+_\w+)\b"  # camelCase, CamelCase, snake_case
)


@dataclass(frozen=True, slots=True)
class Solved:
    """A similar task that succeeded later.

    Attributes:
        task: its id; action: what its last attempt did.
    """

    task: str
    action: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What similar dead letters suggest; Markdown, each of one line.

    Attributes:
        cause: the most likely root cause.
        where: what to look at, or "" where no place was named.
        approach: one not tried yet.
        thread: what all of them share, in sentences.
    """

    cause: str
    where: str
    approach: str
    thread: str


@dataclass(frozen=True, slots=True)
class Shared:
    """What all of some dead letters have in common.

    Attributes:
        files: that all name, most named first; names: functions and identifiers likewise.
        code: their error code, or None; extension: of their files, or None.
        strategies: tried in all of them without success.
        tried: tried in any of them.
    """

    files: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    code: str | None = None
    extension: str | None = None
    strategies: tuple[str, ...] = ()
    tried: frozenset[str] = field(default_factory=frozenset)


def suggest(
    letter: DeadLetter,
    similar: Sequence[DeadLetter],
    strategies: Mapping[str, str],
    own: Sequence[str] = (),
    solved: Sequence[Solved] = (),
) -> Suggestion:
    """What one or more similar dead letters suggest for this one.

    Args:
        letter: the dead letter at hand.
        similar: those like it, one or more.
        strategies: descriptions of strategies by name.
        own: the strategies of the pattern, in order.
        solved: similar tasks that succeeded later, newest first.

    Example:
        >>> one = DeadLetter("a", kind="type-error", extension="ts", strategies=("context_expand",))
        >>> suggest(one, [one], {}).cause
        'Type system constraints'
    """
    everyone = [letter, *similar]
    shared = what_is_shared(everyone)
    facts = {"code": code(shared.code)} if shared.code else {}
    if shared.files:
        facts["file"] = code(shared.files[0])
        if is_test_path(shared.files[0]):
            facts["test_file"] = facts["file"]
    if shared.names:
        facts["name"] = code(shared.names[0])
    return Suggestion(
        advice.cause_of(letter.kind, shared.extension, facts),
        _where(everyone),
        _approach(letter.kind, shared, strategies, own, solved),
        _thread(everyone, shared),
    )


def what_is_shared(letters: Sequence[DeadLetter]) -> Shared:
    """What all of some dead letters have in common."""
    first = letters[0]
    files = _in_all(letters, lambda one: [mention.path for mention in one.mentions])
    names = _in_all(letters, _names)
    tried = _in_all(letters, lambda one: one.strategies)
    return Shared(
        files,
        names,
        first.code if all(one.code == first.code for one in letters) else None,
        first.extension if all(one.extension == first.extension for one in letters) else None,
        tried,
        frozenset(name for one in letters for name in one.strategies),
    )


def _in_all(
    letters: Sequence[DeadLetter], named: Callable[[DeadLetter], Iterable[str]]
) -> tuple[str, ...]:
    """What every letter names, most often named first; ties by the alphabet."""
    per_letter = [Counter(named(one)) for one in letters]
    common = set.intersection(*(set(counts) for counts in per_letter))
    total = {name: sum(counts[name] for counts in per_letter) for name in common}
    return tuple(sorted(total, key=lambda name: (-total[name], name)))


def _names(letter: DeadLetter) -> list[str]:
    found = [m.name for m in letter.mentions if m.name]
    return found + [a or b for a, b in _IDENTIFIER.findall(letter.message)]


def _where(letters: Sequence[DeadLetter]) -> str:
    """The file that most of them name, the lines and the function named most in it."""
    files = Counter(path for one in letters for path in {m.path for m in one.mentions})
    if not files:
        changed = Counter(path for one in letters for path in set(one.files))
        path = min(changed, key=lambda name: (-changed[name], name), default="")
        return f"{code(path)} (changed in {changed[path]} of {len(letters)})" if path else ""
    own = {mention.path for mention in letters[0].mentions}
    path = min(files, key=lambda name: (-files[name], name not in own, name))
    there = [m for one in letters for m in one.mentions if m.path == path]
    said = code(path)
    lines = _lines([m.line for m in there if m.line])
    functions = Counter(m.name for m in there if m.name)
    if lines:
        said += f", {lines}"
    if functions:
        said += f", in {code(min(functions, key=lambda name: (-functions[name], name)))}"
    return f"{said} (named in {files[path]} of {len(letters)})"


def _lines(lines: Sequence[int]) -> str:
    """The lines of the place that is named most: those near to each other are one place."""
    if not lines:
        return ""
    first = max(sorted(set(lines)), key=lambda n: sum(n <= m <= n + NEAR_LINES for m in lines))
    last = max(line for line in lines if first <= line <= first + NEAR_LINES)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _approach(
    kind: str,
    shared: Shared,
    strategies: Mapping[str, str],
    own: Sequence[str],
    solved: Sequence[Solved],
) -> str:
    if solved:
        return f"what solved {code(solved[0].task)}: {inline(solved[0].action)}"
    known = dict.fromkeys((*own, *STRATEGIES))
    left = next((name for name in known if name not in shared.tried and name != "escalate"), None)
    if left:
        told = inline(strategies.get(left, ""))
        return f"{code(left)}, which none of them tried{f': {told}' if told else ''}"
    return f"every strategy was tried; {advice.of(kind).instead}"


def _thread(letters: Sequence[DeadLetter], shared: Shared) -> str:
    first = letters[0]
    everyone = "Both" if len(letters[1:]) == 1 else f"All {len(letters)}"
    each = everyone.split(maxsplit=1)[0]
    known = f"with {code(first.pattern)}" if first.pattern else "in a way that no pattern knows,"
    said = [f"{everyone} failed {known}"]
    if shared.extension:
        said.append(f"in {code('.' + shared.extension)} files")
    if shared.code:
        said.append(f"with the code {code(shared.code)}")
    sentences = [" ".join(said).rstrip(",")]
    if shared.files:
        sentences.append(f"{each} name {_listed(shared.files)}")
    if shared.names:
        sentences.append(f"{each} speak of {_listed(shared.names)}")
    if first.error and all(one.error == first.error for one in letters):
        sentences.append(f"{each} say {code(first.error)}")
    if shared.strategies:
        sentences.append(f"{_listed(shared.strategies)} helped in none of them")
    return ". ".join(sentences) + "."


def _listed(names: Sequence[str], most: int = 4) -> str:
    return ", ".join(code(name) for name in names[:most])


# --- The section of the page ------------------------------------------------------------------------


def render(suggestion: Suggestion, similar: Sequence[DeadLetter], count: int = 0) -> str:
    """The page's section: suggestions of at most 200 tokens, similar tasks, the common thread.

    Args:
        suggestion: what was found.
        similar: the dead letters that it was drawn from.
        count: how many there are in all, where that is more.
    """
    count = max(count, len(similar))
    items = [
        ("Most likely root cause", suggestion.cause),
        ("Specific area to investigate", suggestion.where),
        ("Alternative approach", suggestion.approach),
    ]
    items = [(name, text) for name, text in items if text]
    head = f"Based on {count} similar {'failure' if count == 1 else 'failures'}:"
    room = MOST_TOKENS - tokens("## Smart suggestions\n\n" + head) - 2 * len(items)
    share = (room - sum(tokens(name) + 4 for name, _ in items)) // len(items)
    told = [f"**{name}:** {cut(text, share, tokens)}" for name, text in items]
    listed = sorted(similar, key=lambda one: (one.at, one.task_id), reverse=True)[:MOST_LISTED]
    lines = [_similar(one) for one in listed]
    if count > len(listed):
        lines.append(f"and {count - len(listed)} older ones")
    return (
        f"## Smart suggestions\n\n{head}\n\n{numbered(told)}\n\n"
        f"### Similar failures\n\n{bullets(lines)}\n\n"
        f"### Common thread\n\n{suggestion.thread}"
    )


def _similar(letter: DeadLetter) -> str:
    brief = cut(inline(letter.title), 80) or "no title"
    error = f": {code(letter.message[:80])}" if letter.message.strip() else ""
    return f"{code(letter.task_id)}: {brief}{error} ({inline(letter.at[:10]) or 'date unknown'})"


def tokens(text: str) -> int:
    """About how many tokens a text has: of prose by its length, of signs one each."""
    by_length = -(-len(text) // CHARACTERS_PER_TOKEN)
    return max(by_length, len(re.findall(r"\w+|[^\w\s]", text)))
