"""Signs of a branch that many tasks share: what bears on a task is told, first and within a budget."""

from __future__ import annotations

import pytest

from loki.action.loop.briefing import BUDGET_TOKENS, Facts, compose
from loki.base.tokens import tokens
from loki.decision.loop_policy import Subject, bearing
from loki.memory.sign import OTHERS_TOKENS, SIGNS_TOKENS, Approach, Seen, Sighting, render_signs
from loki.recognition.failure import Failure


def sign(name: str, path: str = "", task: str = "other", tests: tuple[str, ...] = ()) -> Sighting:
    failure = Failure.of(
        f"{name} went wrong", error_type="ValueError", path=path or None, tests=tests
    )
    return Sighting(failure, 2, (Approach(f"guarded the {name}"), Approach("x" * 200)), (task,))


OF_OTHERS = [sign(f"thing{n:02} of module{n:02}", f"area{n:02}/part{n:02}.py") for n in range(40)]
LOGIN = sign("the session", "shop/login.py", tests=("tests/test_login.py::test_redirect",))
PRICE = sign("rounding of a price", "shop/money.py")
OWN = sign("own", "elsewhere/own.py", "t")


SIGNS = [*OF_OTHERS[:20], LOGIN, PRICE, OWN, *OF_OTHERS[20:]]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (Subject("new", (LOGIN.failure,)), [LOGIN]),
        (Subject("new", (None, PRICE.failure)), [PRICE]),
        (Subject("new", (Failure.of("boom", path="shop/money.py"),)), [PRICE]),
        (Subject("new", scope=["shop/login.py"]), [LOGIN]),
        (Subject("t", (None, PRICE.failure)), [PRICE, OWN]),
        (Subject("t", scope=["shop/"]), [OWN, LOGIN, PRICE]),
        (Subject("new"), []),
    ],
)
def test_what_bears_on_a_task_comes_first_and_the_rest_not_at_all(
    subject: Subject, expected: list[Sighting]
) -> None:
    """The same failure, then the task's own, then files."""
    assert bearing(Seen(tuple(reversed(SIGNS))), subject)[0] == expected


def test_of_two_that_bear_alike_the_newer_comes_first() -> None:
    older, newer = sign("the login", "a.py"), sign("a logout", "a.py")
    subject = Subject("new", scope=["a.py"])
    assert bearing(Seen((older, newer)), subject)[0] == [newer, older]


def test_forty_signs_of_other_tasks_leave_the_briefing_to_the_task() -> None:
    """They took 3,476 tokens before a task that had nothing to do with them."""
    facts = Facts("write the manual", other_signs=OF_OTHERS)
    text = compose(facts)
    assert text.startswith("# Task\n\n```text\nwrite the manual\n```")
    signs = text.partition("# Signs")[2]
    assert tokens(signs) <= OTHERS_TOKENS + 50
    assert "and 39 more of this branch" in signs or "and 38 more of this branch" in signs


@pytest.mark.parametrize("many", [1, 3, 40])
def test_signs_keep_to_their_budget(many: int) -> None:
    bearing_ones = [sign(f"login {n}", f"login/part{n}.py") for n in range(many)]
    text = render_signs(bearing_ones, bearing_ones[:2] if many > 1 else (), others=OF_OTHERS)
    assert tokens(text) <= SIGNS_TOKENS
    assert "login 0" in text
    assert text.endswith(" more of this branch"), "not all of them are of other work"
    whole = compose(Facts("fix the login", signs=bearing_ones, other_signs=OF_OTHERS))
    assert tokens(whole) <= BUDGET_TOKENS
    assert whole.index("# Task") < whole.index("# Signs")


def test_what_comes_back_in_turn_is_told_where_it_bears() -> None:
    turn = (LOGIN, PRICE, LOGIN, PRICE)
    seen = Seen((LOGIN, PRICE), tuple(one.failure.fingerprint for one in turn))
    assert bearing(seen, Subject("new", scope=["shop/login.py"]))[1] == (LOGIN, PRICE)
    assert bearing(seen, Subject("new"))[1] == ()
