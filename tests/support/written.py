"""Every page and prompt that loki writes as Markdown, of a text that stands for each datum in it."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from loki.action.agent_protocol import ReviewRequest
from loki.action.changes.tree import Tree
from loki.action.checks.check import Check, CheckResult
from loki.action.checks.results import suite_results
from loki.action.checks.results.suite_results import Baseline, Results
from loki.action.loop import briefing, recorder
from loki.action.loop.agent_call import counter
from loki.action.loop.briefing import Facts, compose
from loki.action.loop.loop_events import Reflect
from loki.action.pipelines import pipeline_stage
from loki.action.pipelines.pipeline_state import Output, PipelineSpec, StageSpec
from loki.action.task import TaskSpec
from loki.agents.command_agent import question
from loki.agents.model_agent import show_context
from loki.base.text_format import INVISIBLE
from loki.cli.report import render
from loki.cli.report.document import Block, Document, Link, Section, Table, Text
from loki.cli.report.document import Facts as Figures
from loki.decision.suites.suite_summary import Cause, Label, Member, SuiteSummary
from loki.jobs.dead_letters import dead_letter_review
from loki.jobs.dead_letters.dead_letter_review import Dependency
from loki.jobs.recurring.recurring_run import RunRecord
from loki.jobs.triage import triage_prompt
from loki.memory import attempt, dead_letter, session_context, suggestion
from loki.memory.attempt import Approach as Tried
from loki.memory.attempt import Attempt
from loki.memory.dead_letter import DeadLetter, Mention, PastAttempt
from loki.memory.learning import candidate as candidate_page
from loki.memory.learning.candidate import Candidate, Source
from loki.memory.learning.learned_rules import Rule
from loki.memory.reflection import Reflection
from loki.memory.run_close import candidate_of
from loki.memory.sign import Approach, Seen, Sighting, render_page
from loki.memory.suites.suite_history import SuiteFailure, SuiteRun
from loki.memory.task_record import Intervention
from loki.people import escalation, request
from loki.people.human_review import HumanReview
from loki.people.request import Option
from loki.pytest_plugin import report_file
from loki.recognition.failure import Failure
from support.triage import NOW, RECORD, failing

AT = "2026-01-25T10:30:00.000Z"


def failed(data: str) -> Failure:
    """It says nothing else."""
    return Failure.of(
        data or "-",
        tool=data,
        error_type=data,
        error_code=data,
        path=data,
        line=3,
        tests=[data],
        excerpt=data,
    )


def tried(data: str, number: int = 1) -> Attempt:
    """An attempt as a record may have it, whoever wrote that."""
    return Attempt(
        number, data, data, data, data, data, data, files_modified=(data,), failure={"path": data}
    )


def sighted(data: str) -> Sighting:
    return Sighting(failed(data), 3, (Approach(data, 2), Approach(f"{data}!")), (data,))


def baseline(data: str) -> str:
    told = Results({data: "failed", f"{data}!": "passed"}, {data: data, f"{data}!": data})
    ways: dict[str, tuple[str, ...]] = {data: (data, data, "a.py")}
    return Baseline((data,), ways, (data,), data, {data: told}).page(data)


def regression(data: str) -> str:
    before = {data: Results({data: "passed"}, {data: data})}
    after = {data: Results({data: data}, {data: data})}
    found = suite_results.compare_results(before, after)
    return suite_results.comparison_report(
        suite_results.Comparison(
            found.regressions, found.counts, 1, (), {data: (data, data, data)}, (data,)
        )
    )


def briefed(data: str) -> str:
    sign = sighted(data)
    return compose(
        Facts(
            data,
            [data],
            data,
            [data],
            [data],
            signs=[sign],
            cycle=[sign],
            rules=[Rule(data, data)],
            failure=failed(data),
            to_mend=failed(data),
            also_failing=[data],
            strategy=data,
            steps=[data],
            reason=data,
            done=data,
            context=data,
            reflections=[Reflection(data, data, data, data, 1, data)],
            session_context=data,
            drifts=[(data, data)],
        ),
        10**9,
    )


def stage_told(data: str, mode: str = "agent") -> str:
    told = StageSpec(data, data, data, mode, outputs=(Output(data, data), Output(data)), skill=data)
    given = pipeline_stage.Input(data, data, data + "x" * 60_000, data)
    return pipeline_stage.section(PipelineSpec(data, (told,), data), told, [given], data)


def stage_done(data: str) -> str:
    return pipeline_stage.summary(data, StageSpec(data, data, data), [data], [data], data)


def reflected(data: str) -> str:
    return briefing.reflection_question(
        Reflect(Reflection(data, data, data, data, 1), failed(data)), data
    )


def findings(data: str) -> str:
    found = {"id": data, "quote": data, "evidence": data, "attempt": data, "at": data}
    return recorder.render_episodic(data, data, [found, {**found, "id": "hedging"}])


def reviewed(data: str) -> str:
    spec = TaskSpec("t", data.strip() or "t")
    ran = CheckResult(Check(("true",), "test", "check"), False, 1, 0.1, data, failed(data))
    judged = Check((), "custom", "review", description=data.strip() or "-")
    return question(ReviewRequest(judged, spec, data, (ran,), Path("/")))


def escalated(data: str) -> str:
    attempts = [tried(data), tried(data, 2), tried(data, 3)]
    return escalation.render(
        escalation.Escalation(
            data, data, data, data, failed(data), attempts, [data], [data], answer=data,
            others=(data,), evidence=(data,),
        )
    )  # fmt: skip


def reviewed_letter(data: str) -> str:
    """As a review of a dead letter asks, with ways of its own."""
    way = Option(data, data, "Costs nothing.")
    return escalation.render(
        escalation.Escalation(data, data, data, data, None, [tried(data)], [], ways=(way,))
    )


def answered_page(data: str) -> str:
    page = escalation.render(
        escalation.Escalation(data, data, data, data, failed(data), [], [data], others=("b",))
    )
    person = Intervention("context", data, data) if data else None
    said = (
        escalation.answer_sentence(person)
        if person
        else escalation.answer_text(data, "it was retried", data)
    )
    return escalation.with_answer(escalation.with_answer(page, said, data), said)


def approved(data: str) -> str:
    asked = [("c", data), (data.strip() or "d", data)]
    return request.approval_page(data, data, asked, [data], data, data)


def human_review(data: str) -> str:
    review = HumanReview(data, data, data, data, data, data, data, True, (data,))
    return request.review_page(review, data, [data], data)


def stage_approved(data: str) -> str:
    return request.stage_page(
        data, data, data, data, data, data, data, ["Change files."], [data], [data]
    )


def lettered(data: str) -> str:
    known = failed(data)
    old = DeadLetter(
        data,
        data,
        at=data,
        pattern=data,
        kind=data,
        confidence=1.0,
        extension=data,
        code=data,
        error=data,
        signature=data,
        message=data,
        strategies=(data,),
        mentions=(Mention(data, 3, data),),
        files={data: data},
    )
    solved = [suggestion.Solved(data, data)]
    more = suggestion.render(
        suggestion.suggest(old, [old, old], {data: data}, [data], solved), [old], 12
    )
    attempts = [tried(data), tried(data, 2)]
    letter = DeadLetter.of(data, data, attempts, known, data, data, {data: data})
    return dead_letter.render_page(letter, attempts, 1, more)


def candidate(data: str) -> str:
    """A pattern's page, and a rule's."""
    entry = {"id": data, "signals": [{"word": data}], "strategy": data, "description": data}
    sources = [Source(data, data, data)]
    pattern = candidate_page.render_candidate(Candidate.pattern(entry, sources, data))
    return pattern + body_of(candidate_page.render_candidate(Candidate.rule(data, sources, data)))


def learned(data: str) -> str:
    made = candidate_of(sighted(data), lambda _: False, data)
    assert made is not None
    return candidate_page.render_learned(made)


def ledgered(data: str) -> str:
    approach = Tried(1, 2, data, data, data)
    return session_context.render_ledger(
        session_context.Ledger(
            data, data, data, data, data, [data], [data], [approach], 2, [data], [data], data
        )
    )


def handed(data: str) -> str:
    return session_context.render_handoff(
        session_context.Handoff(data, data, data, data, data, [data], data, data)
    )


def attempts_page(data: str) -> str:
    return attempt.render_page(data, [tried(data)], status=data, title=data, updated_at=data)


def signs_page(data: str) -> str:
    return render_page(data, Seen((sighted(data),)))


def asked_of_letter(data: str) -> str:
    tries = (PastAttempt(1, data, data, data, data, data),)
    letter = DeadLetter(data, data, data, failure_count=3, error_summary=data, attempts=tries)
    return dead_letter_review.review_question(letter, [Dependency(data, data)])  # type: ignore[arg-type]


def triaged(data: str) -> str:
    run = RunRecord.model_construct(
        number=1, scheduled_at=NOW, started_at=NOW, ended_at=NOW, status=data, reason=data,
        signature=data,
    )  # fmt: skip
    earlier = RECORD.with_(status="done", verdict="NOOP", root_cause=data)
    task = failing().model_copy(update={"id": data, "command": (data or "x",)})
    return triage_prompt.prompt(
        triage_prompt.Evidence(
            task, NOW, [run], {1: (data, data)}, [data], [data], [earlier], data
        ),
        10**6,
    )


def test_report(data: str) -> str:
    """Of a run of tests."""
    label = Label("new", data)
    failing_test = SuiteFailure(data, "call", "failed", failed(data))
    member = Member(failing_test, label)
    cause = Cause(failed(data), label, data, data, (member,), 2, data, data)
    return report_file.markdown(
        SuiteSummary(SuiteRun(id=data, counts={"passed": 3}), (cause,), (member,))
    )


def report(data: str) -> str:
    """As ``loki report`` writes it."""
    table = Table((data, "n"), [(Link(data, data), data), (data, data)])
    blocks: list[Block] = [Text(data), Figures([(data, data, data)]), table]
    return render.markdown(Document(data, data, [Section(data, blocks)]))


def countered(data: str) -> str:
    return counter([{"id": "hedging", "quote": data, "evidence": data}])


def shown(data: str) -> str:
    """What a model is shown of a project whose files, and the name of one, are that text."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.py").write_bytes(f"x{data}\n".replace("\0", "").encode("utf-8", "replace"))
        return show_context(Tree.scan(folder), f"a.py failed: {data}").text


PAGES: dict[str, Callable[[str], str]] = {
    "action/checks/results/suite_results: a baseline": baseline,
    "action/loop/briefing": briefed,
    "action/checks/results/suite_results": regression,
    "action/loop/agent_call": countered,
    "action/loop/recorder": findings,
    "action/loop/briefing: a reflection": reflected,
    "action/pipelines/pipeline_stage": stage_told,
    "action/pipelines/pipeline_stage: a plan": lambda data: stage_told(data, "plan"),
    "action/pipelines/pipeline_stage: done": stage_done,
    "agents/model_agent": shown,
    "agents/command_agent": reviewed,
    "cli/report/render": report,
    "memory/learning/candidate": candidate,
    "memory/learning/candidate: learned": learned,
    "memory/dead_letter": lettered,
    "memory/session_context: a handoff": handed,
    "memory/attempt": attempts_page,
    "memory/session_context": ledgered,
    "memory/sign": signs_page,
    "people/escalation": answered_page,
    "people/request: an escalation": escalated,
    "people/request: an escalation of a dead letter": reviewed_letter,
    "people/request": human_review,
    "people/request: criteria": approved,
    "people/request: a stage": stage_approved,
    "pytest_plugin/report_file": test_report,
    "jobs/dead_letters/dead_letter_review": asked_of_letter,
    "jobs/triage/triage_prompt": triaged,
}
"""By the module that writes it."""

PARTS = {"memory/dead_letter_log", "memory/suggestion"}
"""Modules whose parts stand in one of these."""

NO_MARKDOWN = {
    "action/changes/git",
    "agents/contract",
    "memory/learning/learned_rules",
    "stores/file_store",
}
"""Modules that know "#" otherwise: comments, a fixed text."""

_HARMFUL = {"image", "html_inline", "hr", "code_block"}
_HEAD = re.compile(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)
_DETAILS = re.compile(r"<details><summary>[\w ]+</summary>\n|</details>\n?")
"""HTML of ours, in the one page that forges show."""
_COUNTED = {
    "heading_open", "list_item_open", "table_open", "tr_open", "td_open", "th_open", "fence", "strong_open",
    "em_open", "s_open", "blockquote_open", "link_open", "html_block",
}  # fmt: skip


def body_of(page: str) -> str:
    """A page without its front matter, which readers take for data."""
    return _HEAD.sub("", page)


def structure_of(page: str) -> Counter[str]:
    """What a Markdown parser sees, as numbers; and that nothing of it does harm.

    No image, HTML, rule or indented code, no link out of the page's folders, and no character that no
    reader sees.
    """
    assert not INVISIBLE.search(page), INVISIBLE.findall(page)
    found: Counter[str] = Counter()
    for flavour in ("commonmark", "gfm-like"):
        parser = MarkdownIt(flavour, {"linkify": False, "html": True})
        blocks = parser.parse(body_of(page))
        tokens = [*blocks, *(child for one in blocks for child in one.children or ())]
        harmful = [one for one in tokens if one.type in _HARMFUL or _leads_out(one)]
        assert not harmful, harmful
        found.update(f"{flavour} {one.type}" for one in tokens if one.type in _COUNTED)
    return found


def _leads_out(token: Token) -> bool:
    if token.type == "html_block":
        return not _DETAILS.fullmatch(token.content)
    return token.type == "link_open" and ":" in str(token.attrs["href"])
