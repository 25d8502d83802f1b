"""Escalations: what makes loki ask a person to take over, the page by which it does, and the answer.

The page tells what happened, what was tried and why it failed, what may help, the ways to go on with the
command for each, and what exactly the person must decide. That of several tasks stays open until each of
them is answered. What a word, a command or a path says is data: ``escalation-triggers.yml``.

There is no index beside the pages: a page is open while it awaits an answer, whoever wrote it, and
so nothing can say otherwise than what a person reads.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from loki.base.markup import bullets, code, cut, fence, inline, numbered, quotation
from loki.base.time import Clock, isoformat
from loki.base.yaml_text import load_file
from loki.memory import advice
from loki.memory.attempt import Attempt
from loki.memory.dead_letter import error_chain, known_of, place_of
from loki.memory.store import Store
from loki.memory.task_record import ABORT, Intervention
from loki.people.request import AWAITING, Option, page, ways
from loki.recognition.failure import Failure
from loki.recognition.grouping import FailureIndex

# --- Which of the six triggers a task shows, each with its evidence -----------------------------------

SECURITY, DATA_LOSS, SHARED_CAUSE = "security_critical", "data_loss", "shared_root_cause"
LOW_CONFIDENCE, THIRD_PARTY, AMBIGUOUS = "low_confidence", "third_party", "ambiguous_spec"

NAMES = (SECURITY, DATA_LOSS, SHARED_CAUSE, LOW_CONFIDENCE, THIRD_PARTY, AMBIGUOUS)
"""In the order in which the specification names them; the first one that holds is a page's trigger."""

SHARED = 3
"""Tasks with one root cause that make it a person's concern. Source: the specification."""

LEAST_CONFIDENCE = 0.30
"""Under it nobody knows how the task is to be recovered. Source: the specification."""

SURE = 0.5
"""Confidence from which a pattern counts; as in the loop's own rules."""

READINGS = 2
"""A specification with as many valid readings is ambiguous."""

MOST_EVIDENCE = 8
"""Lines of evidence of one trigger; chosen, not measured."""

MOST_TEXT = 20_000
"""Characters of a task's words that are looked at; chosen, so that no task holds a review up."""

MOST_SENTENCE = 400
"""Characters of a sentence that are looked at; chosen, so that no text takes long."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is known of a task that failed.

    Attributes:
        task_id: the task.
        title, description: what it is about, in a person's words.
        kind: bug_fix, security, …; "" where nobody said.
        tags: of the task.
        failure: the last failure, or None.
        commands: that it ran or is to run.
        files: that it changed or is about.
        confidence: 0 to 1 that the recovery strategy is the right one; None where nobody said.
        readings: valid readings of its specification, where somebody found several.
        same_cause: ids of all tasks that fail for the same reason, its own included.
    """

    task_id: str
    title: str = ""
    description: str = ""
    kind: str = ""
    tags: tuple[str, ...] = ()
    failure: Failure | None = None
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    confidence: float | None = None
    readings: tuple[str, ...] = ()
    same_cause: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger that a task shows.

    Attributes:
        name: one of `NAMES`.
        reason: one sentence.
        evidence: what speaks for it, a line each.
        others: ids of the other tasks that it is about.
    """

    name: str
    reason: str
    evidence: tuple[str, ...]
    others: tuple[str, ...] = ()


def triggers(case: Case) -> list[Trigger]:
    """The triggers that a task shows, in the order of `NAMES`.

    Args:
        case: the task.

    Example:
        >>> found = triggers(Case("t", "Rotate the signing key", files=("src/auth/keys.py",)))
        >>> [(trigger.name, trigger.evidence) for trigger in found]
        [('security_critical', ('its words: signing key', 'its files: src/auth/keys.py'))]
    """
    found = (rule(case) for rule in _RULES)
    return [trigger for trigger in found if trigger is not None]


def shared_causes(failures: Mapping[str, Failure]) -> dict[str, tuple[str, ...]]:
    """The tasks that fail for one reason, `SHARED` or more of them, by each of them.

    Args:
        failures: the last failure of each task. Unspecific ones are the cause of nothing.

    Returns:
        By task the sorted ids of all with its root cause; tasks with fewer are not in it.

    Example:
        >>> from loki import recognize
        >>> text = "ModuleNotFoundError: No module named 'quantum_flux'"
        >>> sorted(shared_causes({name: recognize(text) for name in "abc"}))
        ['a', 'b', 'c']
    """
    kept = {task: failure for task, failure in sorted(failures.items()) if failure.is_specific}
    index = FailureIndex()
    groups = index.add_many(list(kept.values()), list(kept)) if kept else []
    members = (tuple(sorted(index.keys(group))) for group in dict.fromkeys(groups))
    return {task: tasks for tasks in members if len(tasks) >= SHARED for task in tasks}


# --- The rules, one to a trigger ----------------------------------------------------------------------


def _security(case: Case) -> Trigger | None:
    known = _knowledge()[SECURITY]
    evidence = [f"its kind: {case.kind}"] if case.kind in known.kinds else []
    evidence += _by_pattern(case.failure, known)
    evidence += [*_named("its words", known.words_in(case)), *_in_paths(case, known)]
    why = "a security-critical task fails, and what is done about it is a person's decision"
    return _trigger(SECURITY, why, evidence)


def _data_loss(case: Case) -> Trigger | None:
    known = _knowledge()[DATA_LOSS]
    commands = [one for one in case.commands if known.runs(one)]
    evidence = [*_named("its words", known.words_in(case)), *_in_paths(case, known)]
    evidence += [f"it says: {said}" for said in known.sentences_in(case)]
    evidence += [f"its command: {one}" for one in commands]
    why = "data may be lost: trying it once more can make it worse"
    return _trigger(DATA_LOSS, why, evidence)


def _shared(case: Case) -> Trigger | None:
    if len(case.same_cause) < SHARED or case.task_id not in case.same_cause:
        return None
    others = tuple(task for task in case.same_cause if task != case.task_id)
    why = f"{len(case.same_cause)} tasks fail for one reason, which none of them will mend alone"
    message = case.failure.message if case.failure else ""
    evidence = [f"they all fail with: {message}", f"the tasks: {', '.join(case.same_cause)}"]
    return Trigger(SHARED_CAUSE, why, tuple(evidence), others)


def _low_confidence(case: Case) -> Trigger | None:
    if case.confidence is None or case.confidence >= LEAST_CONFIDENCE:
        return None
    why = "nobody can say with confidence how the task is to be recovered"
    told = f"confidence {case.confidence:.2f}, under {LEAST_CONFIDENCE:.2f}"
    return Trigger(LOW_CONFIDENCE, why, (told,))


def _third_party(case: Case) -> Trigger | None:
    evidence = _by_pattern(case.failure, _knowledge()[THIRD_PARTY])
    why = "it needs keys, rights or an action of a third party, which no agent can give itself"
    return _trigger(THIRD_PARTY, why, evidence)


def _ambiguous(case: Case) -> Trigger | None:
    readings = list(dict.fromkeys(case.readings))
    if len(readings) < READINGS:
        return None
    why = "its specification can be read in several ways, and only a person can say which is meant"
    return _trigger(AMBIGUOUS, why, [f"one reading: {reading}" for reading in readings])


_RULES: tuple[Callable[[Case], Trigger | None], ...] = (
    _security,
    _data_loss,
    _shared,
    _low_confidence,
    _third_party,
    _ambiguous,
)


def _trigger(name: str, reason: str, evidence: Sequence[str]) -> Trigger | None:
    return Trigger(name, reason, tuple(evidence[:MOST_EVIDENCE])) if evidence else None


def _named(what: str, found: Iterable[str]) -> list[str]:
    named = ", ".join(dict.fromkeys(found))
    return [f"{what}: {named}"] if named else []


def _in_paths(case: Case, known: Knowledge) -> list[str]:
    path = case.failure.path if case.failure else None
    paths = dict.fromkeys([*case.files, *([path] if path else [])])
    return _named("its files", (path for path in paths if known.is_in(path)))


def _by_pattern(failure: Failure | None, known: Knowledge) -> list[str]:
    match = failure.match if failure else None
    if failure is None or match is None or match.confidence < SURE:
        return []
    if not known.patterns & {match.pattern, match.kind}:
        return []
    return [f"its last failure is of kind {match.kind}: {failure.said}"]


# --- What words, paths and commands say ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the file says of a trigger."""

    kinds: frozenset[str]
    patterns: frozenset[str]
    words: re.Pattern[str] | None
    paths: frozenset[str]
    commands: tuple[re.Pattern[str], ...]
    sentences: tuple[re.Pattern[str], ...] = ()
    unless: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Knowledge:
        """An entry of the file."""
        words = sorted(map(re.escape, entry.get("words", ())), key=len, reverse=True)
        either = "|".join(word.replace("\\ ", r"\s+") for word in words)
        return cls(
            frozenset(entry.get("kinds", ())),
            frozenset(entry.get("patterns", ())),
            re.compile(rf"(?<![\w-])(?:{either})(?![\w-])", re.IGNORECASE) if words else None,
            frozenset(entry.get("paths", ())),
            tuple(re.compile(text, re.IGNORECASE) for text in entry.get("commands", ())),
            tuple(_sentence(text, entry["named"]) for text in entry.get("sentences", ())),
            tuple(re.compile(text, re.IGNORECASE) for text in entry.get("unless", ())),
        )

    def sentences_in(self, case: Case) -> Iterator[str]:
        """The sentences of a task's words, and of its last failure, that speak for the trigger."""
        failed = case.failure.message if case.failure else ""
        text = "\n".join((case.title, case.description, failed))[:MOST_TEXT]
        for part in re.split(r"(?<=[.!?;])\s+|\n", text):
            said = " ".join(part.replace("`", "").split())[:MOST_SENTENCE]
            if any(one.search(said) for one in self.unless):
                continue
            if any(one.search(said) for one in self.sentences):
                yield said

    def words_in(self, case: Case) -> Iterator[str]:
        """The words of a task that speak for the trigger."""
        text = "\n".join((case.title, case.description, *case.tags))[:MOST_TEXT]
        for found in self.words.finditer(text) if self.words else ():
            yield " ".join(found[0].lower().split())

    def is_in(self, path: str) -> bool:
        """Whether a path names what the trigger is about."""
        parted = re.sub(r"([a-z0-9])([A-Z])", r"\1/\2", path[:MOST_TEXT])
        return not self.paths.isdisjoint(re.split(r"[/_.\-\\ ]+", parted.lower()))

    def runs(self, command: str) -> bool:
        """Whether a command does what the trigger is about."""
        return any(one.search(command[:MOST_TEXT]) for one in self.commands)


def _sentence(text: str, named: Mapping[str, str]) -> re.Pattern[str]:
    for name, meaning in named.items():
        text = text.replace(f"<{name}>", meaning)
    return re.compile(text, re.IGNORECASE)


@cache
def _knowledge() -> Mapping[str, Knowledge]:
    data = load_file(Path(__file__).parent / "escalation-triggers.yml")
    return {name: Knowledge.of(entry) for name, entry in data.items()}


# --- The page by which a person is asked to take over -------------------------------------------------

MAX_PLACES = 8
"""Places that a person is pointed at; chosen, not measured."""

MAX_NAME = 120
"""Characters of a task's id in the name of its page: file systems take 255 bytes."""

TASK, ALSO = "Task ID", "Also Task ID"
"""What names a page's tasks: the first one, and the others."""


@dataclass(frozen=True, slots=True)
class Escalation:
    """A task that needs a person.

    Attributes:
        task_id, title: the task.
        trigger: what made loki ask: a pattern, same_failure, infrastructure, stopped, … or one of
            `loki.people.escalation.NAMES`.
        reason: one sentence.
        failure: the last failure, or None.
        attempts: of this execution, oldest first.
        files: paths changed.
        said: what people have said about it already, oldest first.
        run: id of the pipeline's run that it is a stage of, or "".
        answer: what was wrong with the agent's answers after that failure, or "".
        others: ids of further tasks that fail for the same reason.
        evidence: what speaks for the trigger, a line each.
        ways: how to go on; empty: the three ways of a task that the loop stopped.
        failures: how often it failed; None: as often as attempts of these failed.
    """

    task_id: str
    title: str
    trigger: str
    reason: str
    failure: Failure | None
    attempts: Sequence[Attempt]
    files: Sequence[str]
    said: Sequence[str] = ()
    run: str = ""
    answer: str = ""
    others: Sequence[str] = ()
    evidence: Sequence[str] = ()
    ways: Sequence[Option] = ()
    failures: int | None = None


def options(task_id: str, run: str = "") -> tuple[Option, Option, Option]:
    """The three ways to go on with an escalated task.

    Args:
        task_id: the task.
        run: id of the pipeline's run that it is a stage of, or "".

    Example:
        >>> [option.command for option in options("fix-login-1a2b3c")][0]
        'loki resume fix-login-1a2b3c'
    """
    command = f"loki resume {shlex.quote(task_id)}"
    abort = Option(
        "Abort",
        f"{command} --abort",
        "Restores the files as they were before the task. Nothing is lost but the attempts, "
        "which stay on record.",
    )
    if run:
        command = f"loki pipeline resume {shlex.quote(run)}"
        cost = "Ends the whole run; the stage is rolled back as its file says, else its edits stay."
        abort = Option("Abort", f"{command} --reject", cost)
    return (
        Option(
            "Fix by hand and retry",
            command,
            "Costs your time; most certain where rights, credentials or a decision are missing. The "
            "checks run first, and your edits stay yours: `loki undo` does not touch them.",
        ),
        Option(
            "Give context",
            f'{command} --context "…"',
            "Cheapest where the agent lacks something that you know. It stands in every later "
            "briefing, and the retries begin anew; may end here again where knowledge was not what "
            "is missing.",
        ),
        abort,
    )


def file_name(timestamp: str, task_id: str) -> str:
    """Name of the page below ``.loki/``.

    Example:
        >>> file_name("2026-01-25T10:30:00.000Z", "fix-login-1a2b3c")
        'escalations/20260125T103000.000Z-fix-login-1a2b3c.md'
    """
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", task_id)[:MAX_NAME]  # other programs name tasks, too
    return f"escalations/{timestamp.replace('-', '').replace(':', '')}-{safe}.md"


def render(escalation: Escalation) -> str:
    """The page: what happened, what it means, the options, and what the person must decide."""
    failed = sum(attempt.result == "failed" for attempt in escalation.attempts)
    count = failed if escalation.failures is None else escalation.failures
    told = _advice(escalation)
    steps = told.to_do(known_of(escalation.failure, escalation.attempts))
    options_ = "options" if escalation.ways else "three options"
    why = f"{inline(escalation.trigger) or 'none given'}: {inline(escalation.reason)}"
    failure = escalation.failure
    place = f", at {code(failure.place)}" if failure and failure.path else ""
    return page(
        f"Escalation: {inline(escalation.title)}",
        [
            (TASK, inline(escalation.task_id)),
            *((ALSO, inline(task)) for task in escalation.others),
            ("Failure Count", str(count)),
            ("Trigger", why),
        ],
        [
            ("Failure Summary", _summary(escalation)),
            ("Attempts Log", error_chain(escalation.attempts)),
            ("Agent Analysis", _analysis(escalation)),
            ("Guidance", _guidance(escalation, told, steps)),
        ],
        _options(escalation, steps[0]),
        f"Decide {told.decide}{place}; then take one of the {options_}.",
    )


def _advice(escalation: Escalation) -> advice.Advice:
    match = escalation.failure.match if escalation.failure else None
    kinds = (match.pattern, match.kind) if match else ()
    # What a review found out says more than how the last attempt failed.
    found = (escalation.trigger,) if escalation.trigger in NAMES else ()
    return advice.of(*found, *kinds, escalation.trigger)


def _summary(escalation: Escalation) -> str:
    failure, answer = escalation.failure, escalation.answer
    told = "No check has failed."
    if failure is not None:
        then = f"\n\nAfter that, {_line(answer)}." if answer else ""
        place = f" at {code(failure.place)}" if failure.place else ""
        told = f"{inline(failure.said)}{place}\n\n{fence(failure.excerpt)}{then}"
    return _with(told, "Why a person is asked", escalation.evidence)


def _with(text: str, name: str, lines: Sequence[str]) -> str:
    return f"{text}\n\n{name}:\n\n{bullets(map(_line, lines))}" if lines else text


def _analysis(escalation: Escalation) -> str:
    """What each strategy led to, in the attempt after it; the files; what people said before."""
    led_to = "No strategy was tried: this kind of failure is not retried automatically."
    if lines := _strategies(escalation.attempts):
        led_to = bullets(lines)
    changed = bullets(map(code, escalation.files))
    told = f"{led_to}\n\nFiles changed so far, left as they are:\n\n{changed}"
    return _with(told, "Said by a person before, and it was not enough", escalation.said)


def _strategies(attempts: Sequence[Attempt]) -> list[str]:
    lines = []
    for before, after in pairwise(attempts):
        if not before.strategy_used:
            continue
        if after.result != "failed":
            came = f"attempt {after.attempt} was {inline(after.result)}"
        elif after.fingerprint == before.fingerprint:
            came = f"attempt {after.attempt} failed in the same way"
        else:
            came = f"attempt {after.attempt} failed otherwise: {_line(after.error)}"
        lines.append(f"{code(before.strategy_used)} answered attempt {before.attempt}; {came}.")
    return lines


def _guidance(escalation: Escalation, told: advice.Advice, steps: Sequence[str]) -> str:
    parts = [numbered(steps)]
    if told.causes:
        parts.append(f"Likely causes:\n\n{bullets(told.causes)}")
    if places := _places(escalation):
        parts.append(f"Where to look:\n\n{bullets(places)}")
    return "\n\n".join(parts)


def _places(escalation: Escalation) -> list[str]:
    """Files and lines, the failure's own first, then its stack, then what was named before."""
    failure = escalation.failure
    found: dict[str, str] = {}
    if failure and failure.path:
        reporter = f", where {inline(failure.tool)} reports it" if failure.tool else ""
        found[place_of(failure.path, failure.line)] = reporter
    for frame in reversed(failure.frames if failure else ()):
        if frame.in_project:
            where = inline(frame.function or "its body")
            found.setdefault(place_of(frame.path, frame.line), f", in {where}")
    for attempt in reversed(escalation.attempts):
        earlier = attempt.failure or {}
        if earlier.get("path"):
            place = place_of(str(earlier["path"]), earlier.get("line"))
            found.setdefault(place, f", where attempt {attempt.attempt} failed")
    return [f"{code(place)}{why}" for place, why in found.items()][:MAX_PLACES]


def _options(escalation: Escalation, first: str) -> str:
    if escalation.ways:
        return ways(escalation.ways)
    by_hand, *others = options(escalation.task_id, escalation.run)
    mend = f"1. **{by_hand.name}.** {first} Then: {code(by_hand.command)}\n   {by_hand.follows}"
    rest = ways(others, first=2)
    return f"{mend}\n{rest}"


def _line(text: str | None) -> str:
    return cut(inline(text or "none given"), 200)


# --- What becomes of the page once it is answered -----------------------------------------------------

ANSWERED = "### Answered"
DONE = "**Answered Task ID:** "
"""What the line of a task that is answered begins with, where others of its page are not."""


def answer_sentence(intervention: Intervention) -> str:
    """A person's answer as the page has it, Markdown."""
    what = "a person resumed the task"
    if intervention.kind == ABORT:
        what = "a person aborted the task; its changes were undone"
    return answer_text(intervention.at, what, intervention.context)


def answer_text(at: str, what: str, words: str = "") -> str:
    """What was done at a moment, and what was said with it, Markdown.

    Args:
        at: when, ISO 8601 UTC.
        what: what was done, a clause of ours.
        words: what somebody said, or "".

    Example:
        >>> answer_text("2026-01-25T10:30:00.000Z", "a person retried the task")
        '2026-01-25T10:30:00.000Z: a person retried the task.'
    """
    if not words.strip():
        return f"{inline(at)}: {what}."
    return f"{inline(at)}: {what}, and said:\n\n{quotation(words)}"


def is_open(page: str) -> bool:
    """Whether a page still awaits an answer; what a tool printed into it counts for nothing.

    The last heading of the two is ours: what comes behind it is quoted, and no line of it is one.
    """
    last = re.findall(rf"^({AWAITING}|{ANSWERED})$", page, re.MULTILINE)
    return bool(last) and last[-1] == AWAITING


def open_tasks(page: str) -> list[str]:
    """The tasks of a page that await an answer, as the page writes them."""
    return [line.partition("** ")[2].strip() for line in head(page) if _names_open(line)]


def with_answer(page: str, answer: str, task_id: str | None = None) -> str:
    """The page after somebody answered it: what it awaited is answered.

    Args:
        page: what `render` gave.
        answer: Markdown; see `answer_sentence` and `answer_text`.
        task_id: the task that is answered; None: all of them.

    Example:
        >>> page = "## Escalation: a\\n\\n**Task ID:** t\\n\\n### Awaiting\\n\\nDecide."
        >>> is_open(with_answer(page, answer_text("2026-01-25T10:30:00.000Z", "a person retried it"), "t"))
        False
    """
    left = open_tasks(page)
    if task_id is not None and inline(task_id) in left and len(left) > 1:
        return _partly(page, inline(task_id), answer)
    # The last one: what a tool printed may look like one.
    before, asked, _ = page.rpartition(f"\n{AWAITING}\n")
    before = (before if asked else page).rstrip()
    return f"{before}\n\n{ANSWERED}\n\n{answer}\n"


def with_task(page: str, task_id: str) -> str:
    """The page that asks about one more task, too."""
    lines = page.split("\n")
    last = max(i for i, line in enumerate(head(page)) if _names_open(line))
    return "\n".join([*lines[: last + 1], f"**{ALSO}:** {inline(task_id)}", *lines[last + 1 :]])


def _partly(page: str, shown: str, answer: str) -> str:
    """One of several tasks is answered: its line says so, and the answer stands before the question."""
    lines = page.split("\n")
    for index, line in enumerate(head(page)):
        if _names_open(line) and line.partition("** ")[2].strip() == shown:
            lines[index] = f"{DONE}{shown}"
    before, asked, question = "\n".join(lines).rpartition(f"\n{AWAITING}\n")
    return f"{before.rstrip()}\n\n### About {shown}\n\n{answer}\n{asked}{question}"


def head(page: str) -> list[str]:
    """The lines before the first section: nothing of a tool's stands there."""
    return page.partition("\n### ")[0].split("\n")


def _names_open(line: str) -> bool:
    return line.startswith((f"**{TASK}:** ", f"**{ALSO}:** "))


# --- The escalations of a workspace -------------------------------------------------------------------

FOLDER = "escalations/"

TITLE = "## Escalation: "


@dataclass(frozen=True, slots=True)
class OpenEscalation:
    """A page that awaits a person.

    Attributes:
        page: its name below ``.loki/``.
        title: of the task.
        tasks: ids of the tasks that await an answer; the first one is the page's own.
        failure_count: how often it failed.
        trigger: short name of what made loki ask.
        reason: one sentence.
        asks: what the person must decide.
    """

    page: str
    title: str
    tasks: tuple[str, ...]
    failure_count: int
    trigger: str
    reason: str
    asks: str

    def names(self, task_id: str) -> bool:
        """Whether it asks about a task."""
        return _plain(inline(task_id)) in self.tasks


class Escalations:
    """The escalations of a workspace.

    Args:
        store: where the pages are kept.
        clock: tells when one is asked or answered.

    Example:
        >>> from loki.testing import ManualClock, MemoryStore
        >>> escalations = Escalations(MemoryStore(), ManualClock())
        >>> page = escalations.ask(Escalation("t", "Fix it", "stopped", "a gate", None, (), ()))
        >>> escalations.of("t").page == page
        True
        >>> escalations.answer("t", "a person retried it") == [page]
        True
        >>> escalations.open()
        []
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def open(self) -> list[OpenEscalation]:
        """The pages that await a person, oldest first; also those that other programs wrote."""
        found = []
        for name in self._store.keys(FOLDER):
            text = self._store.read(name) if name.endswith(".md") else None
            if text and (page := read(name, text)) is not None:
                found.append(page)
        return found

    def of(self, task_id: str) -> OpenEscalation | None:
        """The open escalation of a task, the newest; None where there is none."""
        return next((one for one in reversed(self.open()) if one.names(task_id)), None)

    def ask(self, escalation: Escalation) -> str:
        """Ask a person about a task, and those that share its cause, unless one is asked already.

        Returns:
            The name of the page that is open now: a new one, or the one that there was; that one
            asks about the further tasks, too, from then on.

        Raises:
            StoreError: it could not be kept.
        """
        page = file_name(isoformat(self._clock.now()), escalation.task_id)
        found = page

        def write(text: str | None) -> str | None:
            # All updates of a workspace pass one lock: nobody else asks meanwhile.
            nonlocal found
            there = self.of(escalation.task_id)
            found = there.page if there else page
            return text if there else render(escalation)

        self._store.update(page, write)
        for task_id in escalation.others if found != page else ():
            self._rewrite(found, partial(_joined, task_id=task_id))
        self._settle_others(found, (escalation.task_id, *escalation.others))
        return found

    def put(self, page: str, escalation: Escalation) -> None:
        """Write the page by which the loop stops a task; it takes the place of the task's older ones.

        Raises:
            StoreError: it could not be kept.
        """
        self._store.write(page, render(escalation))
        self._settle_others(page, (escalation.task_id,))

    def answer(self, task_id: str, what: str, words: str = "") -> list[str]:
        """Mark the open escalations of a task as answered.

        Args:
            task_id: the task.
            what: what was done, a clause.
            words: what the person said, or "".

        Returns:
            The pages; none where nothing was asked.

        Raises:
            StoreError: an answer could not be kept.
        """
        return self.answer_with(task_id, answer_text(isoformat(self._clock.now()), what, words))

    def answer_with(self, task_id: str, answer: str) -> list[str]:
        """The same with an answer as the page is to have it, Markdown."""
        pages = [one.page for one in self.open() if one.names(task_id)]
        for name in pages:
            self._rewrite(name, partial(_answered, task_id=task_id, answer=answer))
        return pages

    def _settle_others(self, page: str, tasks: Sequence[str]) -> None:
        """One open escalation to a task: what older ones ask about these tasks is asked here now."""
        what = answer_text(isoformat(self._clock.now()), f"asked anew, in {page}")
        for task_id in tasks:
            for one in self.open():
                if one.page != page and one.names(task_id):
                    self._rewrite(one.page, partial(_answered, task_id=task_id, answer=what))

    def _rewrite(self, page: str, change: Callable[[str], str]) -> None:
        self._store.update(page, lambda text: change(text) if text else text)


def read(name: str, page: str) -> OpenEscalation | None:
    """What an open page asks; None where it is answered, or no escalation.

    Args:
        name: the page's name below ``.loki/``.
        page: its text; hostile.

    Example:
        >>> page = "## Escalation: a\\n\\n**Task ID:** t\\n**Trigger:** stopped: b\\n\\n### Awaiting\\n\\nDo."
        >>> read("escalations/x.md", page).asks
        'Do.'
    """
    title, *rest = head(page)
    if not title.startswith(TITLE) or not is_open(page) or not open_tasks(page):
        return None
    lines = dict(_field(line) for line in rest if ":** " in line)
    trigger, colon, reason = lines.get("Trigger", "").partition(": ")
    count = lines.get("Failure Count", "")
    return OpenEscalation(
        name,
        _plain(title.removeprefix(TITLE).strip()),
        tuple(map(_plain, open_tasks(page))),
        int(count) if count.isascii() and count.isdigit() and len(count) < 10 else 0,  # noqa: PLR2004
        _plain(trigger if colon else ""),
        _plain(reason if colon else trigger),
        page.rpartition(f"\n{AWAITING}\n")[2].strip(),
    )


def _answered(page: str, task_id: str, answer: str) -> str:
    """The page with an answer; one that somebody else answered meanwhile stays as it is."""
    awaits = is_open(page) and inline(task_id) in open_tasks(page)
    return with_answer(page, answer, task_id) if awaits else page


def _joined(page: str, task_id: str) -> str:
    known = inline(task_id) in open_tasks(page)
    return page if known or not is_open(page) else with_task(page, task_id)


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.strip().removeprefix("**").partition(":** ")
    return name, value.strip()


def _plain(shown: str) -> str:
    """The text that `loki.base.markup.inline` wrote so."""
    return re.sub(r"\\([^\w\s]|_)", r"\1", shown)
