"""Self-review: what a careful person would ask about a change before it is applied, and no linter asks.

Rules are data (``self-review.yml``) where they are patterns of text or tokens. In doubt they are silent.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BeforeValidator, Field

from loki.action.changes.change import Change, Edit
from loki.action.changes.tree import Tree
from loki.action.gates.added_lines import Addition, Finding, additions
from loki.action.gates.gate import ADVISORY, BLOCKING, Violation
from loki.base.python_tree import Function, dotted, python_tree, string_of, written
from loki.base.secret import mask_secrets, unnamed
from loki.base.yaml_document import Strict, read_beside
from loki.decision.drift import in_scope, kinds_of_path, path_kinds

# --- Functions of Python that have been named but not written -----------------------------------------


class _Knowledge(Strict):
    version: int
    unfinished_text: re.Pattern[str]
    excused_text: re.Pattern[str]
    todo_comment: re.Pattern[str]
    todo_body: re.Pattern[str]
    abstract_bases: re.Pattern[str]


@cache
def _known() -> _Knowledge:
    return read_beside(__file__, "stubs.yml", _Knowledge)


_ELSEWHERE = frozenset({"test", "example", "vendored"})
"""Places in which a function without a body is no fault."""


def stub_findings(addition: Addition) -> Iterator[Finding]:
    """Functions of Python in a file that had a body, or say of themselves that they are not written."""
    is_python = addition.language is not None and addition.language.name == "python"
    if not is_python or addition.places & _ELSEWHERE:
        return
    tree = python_tree(addition.after)
    had: dict[str, bool] | None = None
    for node, context in walk(tree) if tree else ():
        if not isinstance(node, Function) or not (kind := _stub_kind(node)):
            continue
        if had is None:
            had = _bodies(addition.before or "")
        name = f"{context.name}.{node.name}".lstrip(".")
        said = _said(kind, node, context, _comments(addition, node), had.get(name, False))
        if said and not _is_meant(node, context):
            where = (node.lineno, node.col_offset + 1, node.end_lineno or node.lineno)
            description = f"{node.name}() {said}"
            yield Finding(
                "stub", "unfinished_code", addition.path, *where, description, BLOCKING, key=name
            )


def _said(
    kind: str, node: Function, context: Context, comments: list[str], was_written: bool
) -> str:
    """What to say of a stub; "" where it may be meant so."""
    known, is_documented = _known(), ast.get_docstring(node) is not None
    is_inner = bool(context.classes or context.is_optional)
    is_raised = kind == "raise"
    is_bare = kind == "pass" or (kind == "return" and not is_documented)
    wanted = known.todo_comment if is_bare or is_raised else known.todo_body
    is_todo = any(wanted.search(comment) for comment in comments)
    if is_raised:
        message = _message(node)
        told = f"{message} {ast.get_docstring(node) or ''}"
        if is_inner or known.excused_text.search(told):
            return ""
        if is_todo or known.unfinished_text.search(message):
            return "is not written"
    elif is_todo:
        return "has a comment in place of its body"
    if not was_written or is_inner or (is_documented and not is_raised):
        return ""
    return "has no body any more: it had one before"


def _is_meant(node: Function, context: Context) -> bool:
    abstract = _known().abstract_bases
    decorators = " ".join(written(decorator) for decorator in node.decorator_list)
    if re.search(r"abstract|overload|override|deprecated|singledispatch", decorators):
        return True
    if any("TYPE_CHECKING" in written(test) for test in context.tests):
        return True
    if not context.classes and [a.arg for a in node.args.args[:1]] in (["self"], ["cls"]):
        return True  # it is put into a class later
    for cls in context.classes:
        above = [*cls.bases, *(k.value for k in cls.keywords if k.arg == "metaclass")]
        names = (cls.name, *(dotted(node).rpartition(".")[2] for node in above))
        if any(map(abstract.search, names)):
            return True
    return False


def _stub_kind(node: Function) -> str:
    """``pass``, ``...``, ``raise``, or ``doc`` where only a docstring is there; "" for no stub."""
    body = [
        s for s in node.body if not (isinstance(s, ast.Expr) and string_of(s.value) is not None)
    ]
    if not body:
        return "doc"
    if len(body) > 1:
        return ""
    only = body[0]
    if isinstance(only, ast.Pass):
        return "pass"
    if isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant):
        return "..." if only.value.value is ... else ""
    if isinstance(only, ast.Raise) and only.exc is not None:
        exception = only.exc.func if isinstance(only.exc, ast.Call) else only.exc
        return "raise" if dotted(exception) == "NotImplementedError" else ""
    is_nothing = isinstance(only, ast.Return) and (
        only.value is None or (isinstance(only.value, ast.Constant) and only.value.value is None)
    )
    return "return" if is_nothing else ""


def _message(node: Function) -> str:
    only = node.body[-1]
    if isinstance(only, ast.Raise) and isinstance(only.exc, ast.Call):
        return " ".join(written(argument) for argument in only.exc.args)
    return ""


def _comments(addition: Addition, node: Function) -> list[str]:
    """The comments in the body of a function; what follows it, but is indented, counts."""
    lexed = addition.lexed
    arguments = [a for a in ast.walk(node.args) if isinstance(a, (ast.expr, ast.arg))]
    first = max([node.lineno, *(a.end_lineno or 0 for a in arguments)])
    last = node.end_lineno or node.lineno
    begin = bisect_left(lexed.comments, (lexed.starts[first - 1], 0))
    found = []
    for start, end in lexed.comments[begin:]:
        line, column = lexed.line(start), lexed.column(start) - 1
        if line > last + 1 or (line > last and column <= node.col_offset):
            break
        found.append(lexed.text[start:end])
    return [text for text in found if "pragma" not in text and "noqa" not in text]


def _bodies(before: str) -> dict[str, bool]:
    """Each function of a text, and whether it has a body of its own."""
    tree = python_tree(before)
    if tree is None:
        return {}
    return {
        f"{context.name}.{node.name}".lstrip("."): not _stub_kind(node)
        for node, context in walk(tree)
        if isinstance(node, Function)
    }


# --- Every statement, and what stands round it --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Context:
    """What stands round a statement.

    Attributes:
        functions: those it is in, outermost first.
        classes: likewise.
        is_optional: in an ``if``, ``try`` or the like, outside of any function.
        tests: the conditions under which it runs, those of its function only.
    """

    functions: tuple[Function, ...] = ()
    classes: tuple[ast.ClassDef, ...] = ()
    is_optional: bool = False
    tests: tuple[ast.expr, ...] = ()

    @property
    def name(self) -> str:
        """The dotted name of the place."""
        return ".".join(node.name for node in (*self.classes, *self.functions))


def walk(tree: ast.Module) -> Iterator[tuple[ast.stmt, Context]]:
    """Every statement with what stands round it; without recursion, as hostile trees are deep."""
    stack: list[tuple[list[ast.stmt], Context]] = [(tree.body, Context())]
    while stack:
        block, context = stack.pop()
        for statement in block:
            yield statement, context
            inside = _inside(statement, context)
            stack.extend((below, inside) for below in _below(statement))


def _below(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _inside(node: ast.stmt, context: Context) -> Context:
    if isinstance(node, Function):
        functions = (*context.functions, node)
        return replace(context, functions=functions, is_optional=False, tests=())
    if isinstance(node, ast.ClassDef):
        return replace(context, classes=(*context.classes, node))
    if isinstance(node, ast.If):
        return replace(context, is_optional=True, tests=(*context.tests, node.test))
    is_branch = isinstance(node, (ast.Try, ast.With, ast.AsyncWith, ast.Match))
    return replace(context, is_optional=True) if is_branch else context


GATE = "self_review"

# --- What self-review knows: ``self-review.yml`` ------------------------------------------------------


def _by_lines(text: str) -> re.Pattern[str]:
    return re.compile(text, re.MULTILINE)


_ByLines = Annotated[re.Pattern[str], BeforeValidator(_by_lines)]


class Rule(Strict):
    """A pattern of text or tokens that is a fault where a change adds it.

    Attributes:
        id, concern, severity, description, fix: what is said. ``{match}`` in the description
            stands for what was found; no fix: the concern's.
        regex: what is looked for.
        where: ``code``, ``source``, ``comments`` or ``all``.
        needs: texts of which one stands in every file that the regex can match in.
        languages: empty: all.
        not_in: kinds of place where it is no fault.
        unless: what excuses it, in the statement.
    """

    id: str
    concern: str
    severity: str = ADVISORY
    description: str
    fix: str = ""
    regex: _ByLines
    where: str = Field(alias="in")
    needs: tuple[str, ...]
    languages: frozenset[str] = frozenset()
    not_in: frozenset[str] = frozenset()
    unless: _ByLines | None = None


class Concern(Strict):
    """What self-review looks for: the words it is called by, and what to do about it.

    Attributes:
        title, fix: those words.
        security: what of it is certain goes to a person at once.
    """

    title: str
    fix: str
    security: bool = False


class Knowledge(Strict):
    """All of the file."""

    version: int
    concerns: Mapping[str, Concern]
    secret: Mapping[str, re.Pattern[str]]
    rules: tuple[Rule, ...]


@cache
def knowledge() -> Knowledge:
    """What self-review knows.

    Example:
        >>> knowledge().concerns["destruction"].security
        True
    """
    path = Path(__file__).with_name("self-review.yml")
    data = yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
    fragments: dict[str, str] = {}
    for name, text in data.pop("fragments").items():
        fragments[name] = _filled(text, fragments)
    for rule in data["rules"]:
        rule["regex"] = _filled(rule["regex"], fragments)
    return Knowledge.model_validate(data)


def _filled(text: str, fragments: dict[str, str]) -> str:
    """A regex with the fragments that it names by ``{{name}}``."""
    return _FRAGMENT.sub(lambda found: fragments[found[1]], text)


_FRAGMENT = re.compile(r"\{\{(\w+)\}\}")


# --- Faults that a pattern shows, in any language -----------------------------------------------------

MAX_SHOWN = 60
"""Characters of what was found that a description shows. Chosen, not measured."""

_REPLACING = frozenset({"config", "shell", "ruby"})
"""Languages in which strings go over lines without a sign, so that one may hold a comment."""

_OPENERS = tuple("{}([,;:>|")


def text_findings(addition: Addition) -> Iterator[Finding]:
    """What the rules on text and tokens find in the whole file.

    Rules run only where a text that they need stands in the file.
    """
    language = addition.language
    if language is None:
        return
    for rule in knowledge().rules:
        if rule.languages and language.name not in rule.languages:
            continue
        if rule.not_in & addition.places:
            continue
        if not any(need in addition.after for need in rule.needs):
            continue
        found = _in_comments if rule.where == "comments" else _in_code
        yield from found(rule, addition)


def _in_code(rule: Rule, addition: Addition) -> Iterator[Finding]:
    lexed = addition.lexed
    view = {"code": lexed.code, "source": lexed.source, "all": lexed.text}[rule.where]
    for match in rule.regex.finditer(view):
        begin = match.start() + len(match[0]) - len(match[0].lstrip())
        # What begins inside of a string or a comment is not code.
        if lexed.code[begin] != lexed.text[begin] or not lexed.text[begin].strip():
            continue
        first, last = lexed.line(begin), lexed.line(max(begin, match.end() - 1))
        if rule.unless and rule.unless.search(lexed.span(first, last)):
            continue
        yield _found(rule, addition.path, (first, lexed.column(begin), last), match)


def _found(rule: Rule, path: str, where: tuple[int, int, int], match: re.Match[str]) -> Finding:
    plain = " ".join(match[0].split())
    description = rule.description.format(match=shown(match[0]))
    return Finding(rule.id, rule.concern, path, *where, description, rule.severity, rule.fix, plain)


def shown(text: str) -> str:
    """A piece of text in quotes, on one line, and not too long."""
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= MAX_SHOWN else plain[: MAX_SHOWN - 1] + "…")


def _in_comments(rule: Rule, addition: Addition) -> Iterator[Finding]:
    lexed, language = addition.lexed, addition.language
    for begin, end in lexed.comments:
        text = lexed.text[begin:end]
        if not any(need in text for need in rule.needs):
            continue
        line = lexed.line(begin)
        head = lexed.code[lexed.starts[line - 1] : begin].rstrip()
        if head and not head.endswith(_OPENERS):
            continue  # behind code: it speaks of that
        match = rule.regex.search(_bare(text))
        if match is None:
            continue
        if language and language.name in _REPLACING and not addition.has_lost_lines:
            continue
        where = (line, lexed.column(begin), lexed.line(max(begin, end - 1)))
        yield _found(rule, addition.path, where, match)


def _bare(comment: str) -> str:
    """What a comment says, without its signs."""
    return re.sub(r"^(?:#+|//+!?|/\*+|<!--+)[ \t]?|[ \t]*(?:\*+/|-->)$", "", comment)


# --- Secrets written into code: which names and shapes are secrets says `mask_secrets` ----------------

_MASK = "<secret>"
_LEAST_SHAPE_ENTROPY = 3.0
_LEAST_RANDOM = 20
_RANDOM_ENTROPY = 3.7
"""Bits a character: English in base64 has less than random letters and digits of that length.

Chosen, not measured.
"""

_NAME = re.compile(
    r"(?P<name>[A-Za-z_][\w.\-]{1,60})[\"'\]]{0,2}\s{0,8}(?::\s?[\w&'<>\[\]. |]{1,30})?"
    r"\s{0,8}(?::=|=>|=|:)\s{0,8}[a-zA-Z]{0,2}$"
)
_SETTING = re.compile(
    r"^\s*(?:export\s+|-\s+|ENV\s+|ARG\s+)?[\"']?(?P<name>[A-Za-z_][\w.\-]{1,60})[\"']?\s*[=:]\s*"
    r"(?P<quote>[\"']?)(?P<value>[^\s\"'#,]{6,200})(?P=quote),?\s*$"
)
_URL = re.compile(r"[a-z][a-z0-9+.\-]{1,20}://[^\s\"'<>]{0,60}:[^\s\"'<>@/]{1,80}@[^\s\"'<>]{1,80}")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----(?:\s|\\n|[\"'+]){1,40}[A-Za-z0-9+/=\s\\\"']{60}"
)
_SILENT_IN = frozenset({"test", "example"})
_PHRASE = re.compile(r"[A-Za-z]+\d?(?:[-_./: @][A-Za-z]+\d?)+")
_WORDS = re.compile(r"(?:[A-Za-z]+\d{0,2}|\d+)(?:[-_./: @][A-Za-z]*\d{0,4})*")


def secret_findings(addition: Addition) -> Iterator[Finding]:
    """Secrets in the added lines of a file."""
    language = addition.language
    if language is None or addition.places & _SILENT_IN:
        return
    yield from _private_keys(addition)
    if language.lexer in {"hash", "none", "markup"}:
        for number in sorted(addition.added):
            line = addition.lexed.span(number, number)
            known = list(_in_value(addition, number, 1, line))
            yield from known
            setting = None if known else _SETTING.match(line)
            if setting and (said := _named(setting["name"], setting["value"])):
                yield _secret_finding(
                    addition, number, setting.start("value") + 1, setting["value"], said
                )
    else:
        yield from _in_strings(addition)


def _in_strings(addition: Addition) -> Iterator[Finding]:
    lexed, added = addition.lexed, addition.added
    for begin, end in lexed.strings:
        number = lexed.line(begin)
        if number not in added or end - begin < _LEAST_STRING:
            continue
        value = lexed.text[begin + 1 : end - 1]
        if "\n" in value or value.startswith(('"', "''")):
            continue  # a docstring, a page of text
        known = list(_in_value(addition, number, lexed.column(begin), value))
        yield from known
        head = lexed.text[max(lexed.starts[number - 1], begin - 120) : begin]
        name = None if known else _NAME.search(head)
        if name and (said := _named(name["name"], value)):
            yield _secret_finding(addition, number, lexed.column(begin), value, said)


_LEAST_STRING = 8
_LEAST_PASSWORD = 6


def _private_keys(addition: Addition) -> Iterator[Finding]:
    text = addition.after
    if "PRIVATE KEY-----" not in text:
        return
    for match in _PRIVATE_KEY.finditer(text):
        lexed = addition.lexed
        if mask_secrets(match[0]) != match[0] and not _is_placeholder(match[0]):
            number = lexed.line(match.start())
            said = ("a private key", BLOCKING)
            yield _secret_finding(addition, number, lexed.column(match.start()), match[0], said)


def _in_value(addition: Addition, number: int, column: int, text: str) -> Iterator[Finding]:
    """Keys that are known by their shape, and passwords in URLs."""
    if (masked := mask_secrets(text)) == text:
        return
    for url in _URL.finditer(text):
        if _is_password(url[0]):
            said = ("a password in a URL", ADVISORY)
            yield _secret_finding(addition, number, column + url.start(), url[0], said)
    for value in _hidden(text, masked):
        if unnamed(mask_secrets(value)) == _MASK and _is_real_key(value):
            said = (f"a key that begins with {value[:6]!r}", BLOCKING)
            yield _secret_finding(addition, number, column + text.find(value), value, said)


def _hidden(text: str, masked: str) -> Iterator[str]:
    """What the masks stand for."""
    pieces, at = unnamed(masked).split(_MASK), 0
    for piece, following in itertools.pairwise(pieces):
        begin = at + len(piece)
        end = text.find(following, begin + 1) if following else len(text)
        if end < 0:
            return
        yield text[begin:end].strip("\"'\n")
        at = end


def _is_real_key(value: str) -> bool:
    if _is_publishable(value) or _is_placeholder(value):
        return False
    return _entropy(value) >= _LEAST_SHAPE_ENTROPY and any(c.isdigit() for c in value)


def _is_publishable(value: str) -> bool:
    return knowledge().secret["publishable"].search(value) is not None


def _is_placeholder(value: str) -> bool:
    return knowledge().secret["placeholder"].search(value) is not None


def _is_password(url: str) -> bool:
    known = knowledge().secret
    password = url.partition("://")[2].rpartition("@")[0].partition(":")[2]
    if known["local_host"].search(url) or known["named_placeholder"].search(password):
        return False
    return len(password) >= _LEAST_STRING and _is_mixed(password)


def _named(name: str, value: str) -> tuple[str, str] | None:
    """What to say of a value behind a name, and how sure that is."""
    last = name.rpartition(".")[2]
    is_named = mask_secrets(f'{last}="{value}"') != f'{last}="{value}"'
    is_weak = knowledge().secret["weak_names"].search(last) is not None
    if not is_named or _is_publishable(value) or not _may_be_secret(value, is_weak):
        return None
    is_random = len(value) >= _LEAST_RANDOM and _entropy(value) >= _RANDOM_ENTROPY
    is_sure = is_random and not _is_placeholder(value)
    return f"the value of {last}", BLOCKING if is_sure else ADVISORY


def _may_be_secret(value: str, is_weak: bool) -> bool:
    """Whether a value is no placeholder, name, path or word; behind some names less is enough."""
    if knowledge().secret["named_placeholder"].search(value):
        return False
    if re.search(r"\s|://|^[/@.]|\(|\)$", value) or not re.search(r"\d", value):
        return False
    if not is_weak:
        return len(value) >= 2 * _LEAST_STRING and _is_mixed(value)
    is_word = _PHRASE.fullmatch(value) is not None or not re.search(r"[A-Za-z]", value)
    return len(value) >= _LEAST_PASSWORD and not is_word


def _is_mixed(value: str) -> bool:
    """Whether a person would take it for no word: digits among letters, not behind them."""
    plain = _WORDS.fullmatch(value) is None or re.search(r"\d[A-Za-z]+\d", value) is not None
    return plain and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _entropy(value: str) -> float:
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def _secret_finding(
    addition: Addition, line: int, column: int, value: str, said: tuple[str, str]
) -> Finding:
    what, severity = said
    last = line + value.count("\n")
    description = f"{what} stands in the file"
    return Finding(
        "secret", "hard_coded_secret", addition.path, line, column, last, description, severity,
        key=value,
    )  # fmt: skip


# --- Files that the task does not need ----------------------------------------------------------------


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


# --- The review ---------------------------------------------------------------------------------------

MAX_VIOLATIONS = 50
"""Violations that are listed; one more says how many were left out. Chosen, not measured."""


def self_review(change: Change, tree: Tree, scope: Sequence[str] = ()) -> list[Violation]:
    """Look at what a change adds for five concerns; nothing is written.

    Destruction outside of the project, scope creep, hard-coded secrets, unfinished code, disabled
    checks. What was there before is none of them, wherever the change moves it.

    Args:
        change: the proposal.
        tree: the project as it is.
        scope: files, folders and globs that the task may touch; empty: it named none.

    Returns:
        Violations by file and line; blocking where a wrong change is near certain, else advisory.

    Example:
        >>> from pathlib import Path
        >>> from loki.action.changes.change import Change
        >>> from loki.action.changes.tree import Tree
        >>> empty = Tree(Path("/nowhere"), {})
        >>> change = Change.write({"a.sh": "pytest || true\\n"})
        >>> [str(v) for v in self_review(change, empty)]
        ['a.sh:1:1: disabled check: a check that fails does not count here [self_review]']
    """
    return _listed([*scope_findings(change, tree, scope), *_new(list(additions(change, tree)))])


def _new(looked_at: list[Addition]) -> list[Finding]:
    """What is found in the files as they will be, less what was found in them as they are."""
    after = [f for a in looked_at if a.after for f in _findings(a)]
    if not any(_is_added(f, a) for a in looked_at for f in after if f.path == a.path):
        return []
    names = {finding.rule for finding in after}
    before = [f for a in looked_at if a.before for f in _findings(a.was) if f.rule in names]
    # A fault that was there n times and will be m times is new m - n times.
    room = Counter((f.rule, f.key) for f in after)
    room.subtract((f.rule, f.key) for f in before)
    by_path = {addition.path: addition for addition in looked_at}
    found = []
    for finding in after:
        if not _is_added(finding, by_path[finding.path]) or room[finding.rule, finding.key] <= 0:
            continue
        room[finding.rule, finding.key] -= 1
        found.append(finding)
    return found


def _findings(addition: Addition) -> list[Finding]:
    return [*text_findings(addition), *stub_findings(addition), *secret_findings(addition)]


def _is_added(finding: Finding, addition: Addition) -> bool:
    return any(line in addition.added for line in range(finding.line, finding.last + 1))


def _violation(finding: Finding) -> Violation:
    concern = knowledge().concerns[finding.concern]
    return Violation(
        GATE,
        finding.severity,
        finding.path,
        f"{concern.title}: {finding.description}",
        finding.line or None,
        finding.column or None,
        finding.fix or concern.fix,
        security=finding.severity == BLOCKING and concern.security,
    )


def _listed(found: Iterable[Finding]) -> list[Violation]:
    unique = dict.fromkeys(map(_violation, found))
    ordered = sorted(
        unique, key=lambda v: (v.severity != BLOCKING, v.file or "", v.line or 0, v.column or 0)
    )
    if len(ordered) > MAX_VIOLATIONS:
        rest = len(ordered) - MAX_VIOLATIONS
        more = Violation(GATE, ADVISORY, None, f"and {rest} concerns more")
        return [*ordered[:MAX_VIOLATIONS], more]
    return ordered
