"""Each of the six triggers: what shows it, what does not, and with which evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

import loki
from loki.memory import advice
from loki.people.escalation import NAMES, Case, shared_causes, triggers

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
    assert set(NAMES) <= advice.contents().triggers.keys()


LOSES = [
    "Drop the old users table",
    "Drop the `sessions` table.",
    "Drops the nickname column from members",
    "Remove shared columns [7500f4].",
    "(Remove) unneeded columns of the teams table",
    "Cleanup the bookings table",
    "delete old data",
    "Delete stale backups locally",
    "Remove members who never came",
    "Failed upgrades can cause data loss",
    "The last migration can not be rolled back",
    "Delete inactive accounts from production",
    "Remove all customer records older than two years",
    "Migrate the orders to the new schema",
    "Clean up the legacy rows in payments",
    "Empty the audit log",
    "Reset the staging database",
    "Migration 0042 failed and the rollback did not work",
    "Rollback of the migration failed halfway",
    "Get rid of the old user table",
    "Merge the two customer tables and delete the duplicates",
    "Convert the user ids to UUIDs in the database",
    "Delete the S3 bucket with old backups",
    "Remove the email column from users",
    "Deduplicate the contacts in the CRM",
    "Archive and delete old invoices",
    "Overwrite the existing backup",
    "Shrink the volume of the database",
    "Rename the column user_id in all tables",
    "Could not roll back the schema change",
    "The downgrade fails with IntegrityError",
    "Delete old backups",
    "Wipe the test data from production",
    "Remove duplicate customers from the CRM",
    "Delete the legacy billing tables",
    "Purge cancelled subscriptions from the production database",
    "Drop the sessions column, nobody reads it",
    "Move the invoices into the new database",
    "Split the address column in two",
    "We could not restore the backup after the upgrade",
    "The rollback of release 12 failed",
    "Throw away the archived tickets in Postgres",
    "Anonymize all patients in the live database",
    "Delete uploads older than 90 days",
    "Merge duplicate accounts",
    "Rebuild the production database from the dump",
    "Change the primary key of orders",
    "Erase user data on request",
    "Clear out expired memberships",
    "Cannot downgrade the schema: column is missing",
    "Shrink the disk of the primary",
]
"""Tasks that may lose data, as people word them."""

LOSES_NOTHING = [
    "Drop support for Python 3.7",
    "Drop Node 12",
    "Remove the deprecated function",
    "Delete unused imports",
    "Fix the table of contents",
    "Drop the leading slash from paths",
    "Clean up the test fixtures",
    "Remove trailing whitespace from tables in the docs",
    "Delete the temporary file after the test",
    "Add a rollback button",
    "Drop-down menu shows no users",
    "Migrate the tests to pytest",
    "Migrate from setup.py to pyproject.toml",
    "Remove the row highlighting in the table widget",
    "Truncate long names in the column header",
    "Drag and drop of columns in the table",
    "Empty string in users list crashes",
    "Delete button does not work for accounts",
    "Reset the form after submit",
    "Database connection is not closed",
    "Drop Python 2 support",
    "Remove old users guide",
    "Delete the obsolete accounts API",
    "Clean up the database module",
    "Remove the column argument of print()",
    "Migrate accounts page to React",
    "Rename the table module",
    "Rollback support for transactions",
    "Remove dead code in orders.py",
    "Clear the cache on logout",
    "Delete key does not work in the table",
    "Convert callbacks to async",
    "Change the column width",
    "Remove records class, use dataclasses",
    "Truncate log lines to 80 characters",
    "Fix crash when the table is empty",
    "Move tests to a new folder",
    "Copy the database URL from the settings",
]
"""Tasks that name the same things and lose nothing."""


@pytest.mark.parametrize("title", LOSES)
def test_a_task_that_may_lose_data_is_seen_however_it_is_worded(title: str) -> None:
    (trigger,) = (one for one in triggers(Case("t", title)) if one.name == "data_loss")
    assert trigger.evidence


@pytest.mark.parametrize("title", LOSES_NOTHING)
def test_what_only_sounds_like_it_is_not(title: str) -> None:
    assert "data_loss" not in names(Case("t", title))


def test_a_rollback_that_failed_is_seen_in_the_failure_too() -> None:
    failure = loki.Failure.of("the rollback of migration 0042 failed: no such column")
    assert names(Case("t", "Make orders faster", failure=failure)) == ["data_loss"]
    fine = loki.Failure.of("expected a rollback button on the page")
    assert names(Case("t", "Make orders faster", failure=fine)) == []
