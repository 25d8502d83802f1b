"""Each of the six triggers: what shows it, what does not, and with which evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

import loki
from loki.memory import advice
from loki.people.escalation_trigger import NAMES, Case, shared_causes, triggers

CASE = Case("t", "Add a column to the report")
AUTH = loki.Failure.of("401 Unauthorized", pattern="auth-error")


def names(case: Case) -> list[str]:
    return [trigger.name for trigger in triggers(case)]


def test_an_ordinary_task_shows_none() -> None:
    failure = loki.Failure.of("assert 1 == 2", pattern="test-failure", path="tests/test_report.py")
    assert names(replace(CASE, failure=failure, files=("report.py",), kind="bug_fix")) == []


@pytest.mark.parametrize(
    ("case", "evidence"),
    [
        (replace(CASE, kind="security"), "its kind: security"),
        (replace(CASE, title="Rotate the API  keys"), "its words: api keys"),
        (replace(CASE, description="Only admins have the permission."), "its words: permission"),
        (replace(CASE, tags=("security",)), "its words: security"),
        (replace(CASE, files=("src/userAuth/check.ts",)), "its files: src/userAuth/check.ts"),
        (
            replace(CASE, failure=loki.Failure.of("no", pattern="security-violation")),
            "its last failure is of kind security-violation: no",
        ),
        (
            replace(CASE, failure=loki.Failure.of("no", path="lib/secrets.py")),
            "its files: lib/secrets.py",
        ),
    ],
)
def test_security_critical(case: Case, evidence: str) -> None:
    (trigger,) = triggers(case)
    assert trigger.name == "security_critical"
    assert trigger.evidence == (evidence,)


@pytest.mark.parametrize(
    "case",
    [
        replace(CASE, title="Thank the authors in the tokenizer's docs"),
        replace(CASE, files=("docs/authors.md", "lib/tokenizer.py")),
        replace(CASE, title="Secretary's calendar"),
    ],
)
def test_words_that_only_look_like_it_are_none(case: Case) -> None:
    assert names(case) == []


@pytest.mark.parametrize(
    "case",
    [
        replace(CASE, commands=("rm -rf build/data",)),
        replace(CASE, commands=("rm -v -r data",)),
        replace(CASE, commands=('psql -c "DROP TABLE users"',)),
        replace(CASE, commands=("git push origin main --force",)),
        replace(CASE, commands=("git reset --hard HEAD~3",)),
        replace(CASE, commands=("python manage.py migrate",)),
        replace(CASE, commands=("find . -name '*.db' -delete",)),
        replace(CASE, files=("app/migrations/0007_drop_email.py",)),
        replace(CASE, files=("alembic/versions/1f.py",)),
        replace(CASE, title="Database migration of the orders"),
        replace(CASE, description="Then drop the column."),
    ],
)
def test_data_loss(case: Case) -> None:
    assert names(case) == ["data_loss"]


@pytest.mark.parametrize(
    "case",
    [
        replace(
            CASE, commands=("rm build/a.o", "git push origin main", "pytest -q", "npm rm left-pad")
        ),
        replace(CASE, title="Migrate the tests to pytest"),
        replace(CASE, title="Delete the obsolete comment"),
    ],
)
def test_what_can_be_had_again_is_no_loss(case: Case) -> None:
    assert names(case) == []


@pytest.mark.parametrize("kind", ["auth-error", "env-missing", "rate-limit"])
def test_third_party(kind: str) -> None:
    failure = loki.Failure.of("QUX_TOKEN is not set", pattern=kind)
    (trigger,) = triggers(replace(CASE, failure=failure))
    assert trigger.name == "third_party"
    assert "QUX_TOKEN is not set" in trigger.evidence[0]


def test_a_pattern_that_nobody_is_sure_of_counts_for_nothing() -> None:
    assert AUTH.match is not None
    unsure = replace(AUTH, match=replace(AUTH.match, confidence=0.4))
    assert names(replace(CASE, failure=unsure)) == []


@pytest.mark.parametrize(
    ("confidence", "shown"),
    [(None, []), (0.0, ["low_confidence"]), (0.29, ["low_confidence"]), (0.30, []), (1.0, [])],
)
def test_low_confidence(confidence: float | None, shown: list[str]) -> None:
    assert names(replace(CASE, confidence=confidence)) == shown


def test_an_ambiguous_specification_has_two_readings() -> None:
    assert names(replace(CASE, readings=("per day", "per day"))) == []
    (trigger,) = triggers(replace(CASE, readings=("per day", "per user")))
    assert trigger.name == "ambiguous_spec"
    assert trigger.evidence == ("one reading: per day", "one reading: per user")


def test_three_tasks_with_one_root_cause() -> None:
    case = replace(CASE, failure=loki.Failure.of("boom"), same_cause=("s", "t"))
    assert names(case) == []
    (trigger,) = triggers(replace(case, same_cause=("s", "t", "u")))
    assert trigger.name == "shared_root_cause"
    assert trigger.others == ("s", "u")
    assert trigger.evidence == ("they all fail with: boom", "the tasks: s, t, u")
    assert names(replace(case, same_cause=("a", "b", "c"))) == [], "it is not one of them"


def test_the_index_finds_the_root_cause() -> None:
    def failing(node: int) -> loki.Failure:
        return loki.Failure.of(
            f"KeyError: 'port' is missing in the settings of node {node}", error_type="KeyError"
        )

    other = loki.Failure.of("ModuleNotFoundError: No module named 'quantum_flux'")
    failures = {"b": failing(23), "a": failing(17), "c": failing(5), "d": other, "e": other}
    assert shared_causes(failures) == dict.fromkeys("abc", ("a", "b", "c"))
    assert shared_causes({}) == {}


def test_failures_that_say_nothing_have_no_common_cause() -> None:
    assert shared_causes({task: loki.Failure.of("failed") for task in "abcd"}) == {}


def test_all_of_them_at_once_come_in_the_order_of_the_specification() -> None:
    case = replace(
        CASE,
        kind="security",
        commands=("rm -rf data",),
        failure=AUTH,
        confidence=0.1,
        readings=("a", "b"),
        same_cause=("r", "s", "t"),
    )
    assert names(case) == list(NAMES)


def test_every_trigger_has_advice() -> None:
    assert set(NAMES) <= advice.triggers().keys()
