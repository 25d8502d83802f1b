"""What tool files (`docs/design/tool-rules.md`) and pattern files (SPEC §3) look like: pydantic models.

Regexes are those of RE2 (https://github.com/google/re2/wiki/Syntax); what it refuses is said in plain
words.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    model_validator,
)

from loki import _core
from loki.base.text_format import did_you_mean
from loki.base.yaml_document import refused, unexpected

# --- What RE2 refuses in a regex --------------------------------------------------------------------

MAX_REGEXES = 5_000
"""Of one file: each is compiled once when the file is read. Chosen, not measured."""

# What RE2's message begins with; what is said to be found; what is expected.
_SAYINGS: tuple[tuple[str, str, str], ...] = (
    ("missing ]", "a '[' that is not closed", "a ']' behind it, or '\\[' for the character itself"),
    ("missing )", "a '(' that is not closed", "a ')' behind it, or '\\(' for the character itself"),
    ("unexpected )", "a ')' that closes nothing", "'\\)' for the character itself"),
    ("trailing", "a backslash at the end", "two for the character itself"),
    ("no argument", "'{}' with nothing before it to repeat", "'\\{}' for the character itself"),
    ("bad repetition", "'{}', two repetitions in a row", "one"),
    ("invalid repetition size", "the repetition '{}'", "1000 at most, also one in another"),
    ("invalid named capture", "the group '{}'", "'(?P<name>…)', a name of letters, digits and _"),
    ("invalid character class", "'{}'", "a range that goes upwards, or a class that RE2 knows"),
    ("invalid escape", "the escape '{}'", "one that RE2 knows"),
    ("invalid perl", "the group '{}'", "one that RE2 knows, like '(?:…)' or '(?P<name>…)'"),
    ("too large together", "regexes that are too large together", "smaller or fewer ones"),
    ("pattern too large", "a regex that is too large", "a smaller one"),
)
_LOOK = re.compile(r"\(\?<?[=!]")


def regex_refusal(expression: str) -> str:
    """Why RE2 refuses a regex: what was found, what was expected; "" where it does not.

    Example:
        >>> regex_refusal("error(?= in)")
        "found the look-ahead '(?=', expected a regex without look-around"
    """
    error = _core.regex_error(expression)
    if error is None:
        return ""
    said, fragment = error
    look = _LOOK.search(expression) if fragment in {"(?=", "(?!", "(?<"} else None
    if look:
        kind = "look-behind" if "<" in look[0] else "look-ahead"
        return f"found the {kind} {look[0]!r}, expected a regex without look-around"
    named = re.search(r"\(\?P=\w*\)?", expression) if fragment == "(?P" else None
    fragment = named[0] if named else fragment
    if fragment.startswith("(?P=") or re.fullmatch(r"\\[1-9]", fragment):
        return f"found the back-reference '{fragment}', expected a regex without back-references"
    for begin, found, expected in _SAYINGS:
        if said.startswith(begin):
            texts = (found.replace("{}", fragment), expected.replace("{}", fragment))
            return "found {}, expected {}".format(*texts)
    return f"found a regex that RE2 refuses ({said}), expected one that it takes"


def _taken(expression: str, info: ValidationInfo, flags: str = "") -> str:
    """A regex that RE2 takes, one of not too many."""
    assert info.context is not None
    info.context["regexes"] = count = info.context.get("regexes", 0) + 1
    if count > MAX_REGEXES:
        raise ValueError(f"found more than {MAX_REGEXES} regexes, expected at most so many")
    if refusal := regex_refusal(flags + expression):
        raise ValueError(refusal)
    return expression


# --- Small shapes -----------------------------------------------------------------------------------


class Definition(BaseModel):
    """A mapping with known keys, whose values are taken as they stand."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _words(value: str) -> str:
    if not value.strip(" "):
        raise unexpected("text of 1 word or more")
    return value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def unique(items: list[Any], key: str) -> list[Any]:
    """Some models, if they differ in an attribute."""
    seen = set()
    for index, item in enumerate(items):
        name = getattr(item, key)
        if name in seen:
            raise refused(
                f"found {key} {name[:60]!r} a second time, expected each {key} once", index, key
            )
        seen.add(name)
    return items


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]
Words = Annotated[str, AfterValidator(_words)]
Phrases = Annotated[list[Words], Field(min_length=1)]
Regex = Annotated[Text, AfterValidator(_taken)]
Regexes = Annotated[list[Regex], Field(min_length=1), BeforeValidator(_listed)]
Count = Annotated[int, Field(ge=0, le=10**9)]


class _Choice(Definition):
    """A mapping of which exactly one of several keys is there."""

    _choices: ClassVar[tuple[str, ...]]

    @model_validator(mode="after")
    def _has_one(self) -> Any:
        given = [name.rstrip("_") for name in self._choices if name in self.model_fields_set]
        if len(given) != 1:
            names = ", ".join(name.rstrip("_") for name in self._choices)
            raise ValueError(f"found {', '.join(given) or 'none'}, expected exactly one of {names}")
        return self


# --- Words that files may say -----------------------------------------------------------------------

Strategy: TypeAlias = Literal[
    "auto_fix",
    "context_expand",
    "analyze_then_fix",
    "dependency_check",
    "retry_with_backoff",
    "escalate",
]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
Fact: TypeAlias = Literal[
    "error_type",
    "error_code",
    "message",
    "path",
    "line",
    "column",
    "function",
    "test",
    "test_name",
    "command",
]
CriterionType: TypeAlias = Literal[
    "lint", "type", "test", "build", "syntax", "command", "custom", "approval"
]
TaskType: TypeAlias = Literal["bug_fix", "feature", "refactor", "security", "config_change"]

# --- Tool files -------------------------------------------------------------------------------------


class _Evidence(_Choice):
    _choices: ClassVar[tuple[str, ...]] = ("literal", "regex")

    literal: Text = ""
    regex: Regex = ""


class _FieldRule(Definition):
    match: Regex
    take: Literal["first", "last", "each"] = "first"
    frame: bool = False
    join: Text = ""


class _Block(Definition):
    id: Text
    role: Literal["cause", "summary", "echo", "warning", "retry"]
    start: Regexes
    lead: Annotated[int, Field(ge=0, le=5)] = 0
    continue_: Regexes = Field(default=[], alias="continue")
    until: Regexes = []
    through: Regexes = []
    acquit: Regexes = []
    max_lines: Annotated[int, Field(ge=1, le=100_000)] = 1
    detected: bool = False
    closes: bool = False
    fields: list[_FieldRule] = []
    requires: list[Fact] = []
    set: dict[Fact, Text] = {}
    nests: list[Text] = []
    opens: list[Text] = []
    kind: Text = ""
    rank: Annotated[int, Field(ge=0, le=99)] = 0
    reach: Annotated[int, Field(ge=1, le=100_000)] = 1


class _Link(Definition):
    match: Regex
    echo: Literal["previous", "next"]


class _SaidFolder(Definition):
    match: Regex
    literals: Texts
    holds: Literal["after", "before", "line"] = "after"
    until: Regex = ""
    any: bool = False
    package: bool = False
    module: Regex = ""
    separator: Text = ""
    line: Regex = ""


class _FramesFolder(Definition):
    frame: Regex
    separator: Text
    roots: Annotated[list[str], Field(min_length=1)]
    any: bool = False


def _kind_of_folder(value: Any) -> str:
    is_frames = "frame" in value if isinstance(value, dict) else isinstance(value, _FramesFolder)
    return "frames" if is_frames else "said"


_Folder = Annotated[
    Annotated[_SaidFolder, Tag("said")] | Annotated[_FramesFolder, Tag("frames")],
    Discriminator(_kind_of_folder),
]


class _Expectation(Definition):
    tool: str = ""
    language: str = ""
    error_type: str = ""
    error_code: str = ""
    message: str = ""
    path: str = ""
    line: Count = 0
    column: Count = 0
    output_line: Count = 0
    frames: Count = 0
    tests: list[Text] = []
    kind: str = ""


class _Sample(Definition):
    name: Text
    text: str
    expect: _Expectation
    command: Text = ""
    exit_code: Annotated[int, Field(ge=-255, le=255)] = 0
    root: Text = ""


class _Results(Definition):
    format: Literal["junit", "jest", "go", "libtest"]
    environment: Text = ""
    argument: Text = ""
    append: Texts = []
    insert: Texts = []
    leave_out: Texts = []
    when: Phrases = []
    reports: Texts = []


class _Search(Definition):
    variable: Text
    folders: Texts


class _Narrow(Definition):
    unit: Literal["file", "folder"]
    form: Text
    files: Texts
    option: Texts = []
    shared: Texts = []
    selects: Texts = []
    values: Texts = []
    when: Phrases = []
    search: _Search | None = None


class _Scripts(Definition):
    run: Phrases
    names: dict[str, Text] = {}
    separator: Text = ""
    flags: Texts = []


class _FixCommand(Definition):
    when: Phrases
    command: Texts
    drop: Texts = []
    otherwise: Annotated[list[Texts], Field(min_length=1)] = []
    alone: list[Text] = []


class ToolFile(Definition):
    """A tool file."""

    version: Literal[1]
    tool: Text
    language: Text = ""
    kind: Text = ""
    check: Literal["lint", "type", "test", "build"] = "lint"
    commands: list[Words] = []
    detect: list[_Evidence] = []
    fallback: bool = False
    over: list[Text] = []
    innermost: Literal["last", "first"] = "last"
    library: list[Regex] = []
    prefixes: list[Regex] = []
    blocks: Annotated[list[_Block], AfterValidator(lambda all_: unique(all_, "id"))] = []
    links: list[_Link] = []
    folders: Annotated[list[_Folder], Field(min_length=1)] = []
    results: _Results | None = None
    narrow: _Narrow | None = None
    launches: Phrases = []
    scripts: _Scripts | None = None
    fix_commands: list[_FixCommand] = []
    samples: list[_Sample] = []


# --- Pattern files ----------------------------------------------------------------------------------


def _weight(value: Any) -> str | float:
    names = ("strong", "weak")
    if isinstance(value, str) and value in names:
        return value
    if isinstance(value, (int, float)) and value is not True and 0 < value <= 1:
        return float(value)
    hint = did_you_mean(value, names) if isinstance(value, str) else ""
    raise unexpected(f"strong, weak or a number above 0, up to 1{hint}")


class _Alternative(_Choice):
    _choices: ClassVar[tuple[str, ...]] = ("literal", "word", "regex")

    literal: Text = ""
    word: Text = ""
    regex: Regex = ""
    slow: bool = False


class _Negated(_Alternative):
    _choices: ClassVar[tuple[str, ...]] = ("literal", "word", "regex", "any")

    any: Annotated[list[_Alternative], Field(min_length=1)] = []


class _Signal(_Negated):
    _choices: ClassVar[tuple[str, ...]] = ("literal", "word", "regex", "any", "not_")

    not_: _Negated | None = Field(default=None, alias="not")
    w: Annotated[Any, AfterValidator(_weight)] = "strong"
    in_: Literal["anywhere", "message", "tool", "code", "kind"] = Field(
        default="anywhere", alias="in"
    )


class _Pattern(Definition):
    id: Text
    signals: list[Any]
    strategy: Strategy
    description: Text
    max_auto_retries: Annotated[int, Field(ge=0, le=1000)] = 0
    auto_fixable: bool = False
    kind: Text = ""
    language: Text = ""
    fix_command: Text = ""
    alternatives: list[Strategy] = []
    non_retryable: bool = False
    examples: list[Text] = []
    near_misses: list[Text] = []


def _without_case(expression: str, info: ValidationInfo) -> str:
    return _taken(expression, info, "(?i)")


class _Pattern1(_Pattern):
    signals: Annotated[list[Annotated[Text, AfterValidator(_without_case)]], Field(min_length=1)]


class _Pattern2(_Pattern):
    signals: Annotated[list[_Signal], Field(min_length=1)]


class _Strategy(Definition):
    description: Text
    steps: list[Text] = []


class _Criterion(Definition):
    name: Text
    type: CriterionType
    command: Text = ""
    description: Text = ""
    expected: Text = ""
    scope: Text = ""
    agent: Text = ""


class _PatternFile(Definition):
    version: Literal[1, 2]
    extends: Literal["default"] = "default"
    patterns: list[Any] = []
    strategies: dict[Strategy, _Strategy] = {}
    success_criteria: dict[TaskType, list[_Criterion]] = {}


class PatternFile1(_PatternFile):
    """A failure-patterns.yml of version 1, whose signals are regexes that ignore letter case."""

    patterns: Annotated[list[_Pattern1], AfterValidator(lambda all_: unique(all_, "id"))] = []


class PatternFile(_PatternFile):
    """A failure-patterns.yml of version 2."""

    patterns: Annotated[list[_Pattern2], AfterValidator(lambda all_: unique(all_, "id"))] = []


def pattern_model(data: Any) -> type[Definition]:
    """What the data of a pattern file is read as."""
    return PatternFile1 if isinstance(data, dict) and data.get("version") == 1 else PatternFile


def model_of(data: Any) -> type[Definition]:
    """The same of either kind of file: one with a tool or its blocks is a tool file."""
    is_tool = isinstance(data, dict) and data.keys() & {"tool", "blocks", "detect"}
    return ToolFile if is_tool else pattern_model(data)


def plain(definition: Definition) -> dict[str, Any]:
    """The data of a checked file, as the core reads it: what is said, regexes always in lists."""
    return definition.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
