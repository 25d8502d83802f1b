"""Every delay is the slow reference's, to the nanosecond; what holds of its windows holds here."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from loki import _core
from support import backoff as reference
from support.backoff import MOST, Setting

VECTORS = json.loads((Path(__file__).parent / "backoff-vectors.json").read_text("utf-8"))

settings = st.builds(
    Setting,
    base=st.one_of(st.integers(0, 10**12), st.integers(0, MOST)),
    multiplier=st.one_of(st.sampled_from([1.0, 1.5, 2.0, 3.0]), st.floats(1, 1e300)),
    cap=st.one_of(st.integers(0, 10**14), st.integers(0, MOST)),
    jitter=st.one_of(st.sampled_from([0.0, 0.1, 1.0]), st.floats(0, 1)),
    mode=st.sampled_from(reference.MODES),
    seed=st.integers(0, 2**64 - 1),
)
counts = st.one_of(st.integers(0, 70), st.integers(0, 2**32 - 1))


def core(setting: Setting) -> _core.Backoff:
    return _core.Backoff(
        setting.base,
        setting.multiplier,
        setting.cap,
        setting.jitter,
        setting.mode,
        setting.seed,
    )


@pytest.mark.parametrize("vector", VECTORS["vectors"])
def test_golden_vectors(vector: dict[str, Any]) -> None:
    """The committed values: a change of any is a change of everybody's schedule."""
    setting = Setting(**{name: vector[name] for name in Setting.__dataclass_fields__})
    mine = [core(setting).delay(n, vector["key"], vector["offset"]) for n in VECTORS["failures"]]
    assert mine == [ns / 1e9 for ns in vector["delays"]]


def test_the_vectors_are_the_references() -> None:
    assert (
        json.loads(json.dumps({"failures": reference.FAILURES, "vectors": reference.vectors()}))
        == VECTORS
    )


@given(settings, counts, st.text(), counts)
def test_every_mode_is_the_references(
    setting: Setting, failures: int, key: str, offset: int
) -> None:
    expected = reference.delay(setting, failures, key, offset)
    assert core(setting).delay(failures, key, offset) == expected / 1e9
    assert setting.base <= expected <= setting.top


@given(settings, counts)
def test_growth_is_the_formulas(setting: Setting, exponent: int) -> None:
    """Rounding of at most 64 products, the nanosecond that is cut off, and no more."""
    exponent %= 1200  # exact numbers beyond are long, and the cap is reached
    exact = Fraction(setting.multiplier) ** exponent * setting.base
    expected = min(exact, Fraction(setting.top))
    assert abs(reference.grown(setting, exponent) - expected) <= 1 + expected / 10**13


@given(settings.filter(lambda s: s.mode != "decorrelated"), st.integers(0, 2**32 - 2))
def test_more_failures_never_mean_less_waiting_on_average(setting: Setting, n: int) -> None:
    """The middle of the window does not fall (but for rounding), into the cap neither."""
    before, after = (sum(reference.window(setting, k)) / 2 for k in (n, n + 1))
    assert after >= before * (1 - 1e-12) - 2


@pytest.mark.parametrize("mode", reference.MODES)
@pytest.mark.parametrize("multiplier", [1.0, 1.2, 2.0])
def test_the_average_of_a_thousand_tasks_does_not_fall(mode: str, multiplier: float) -> None:
    """The same of the delays themselves; 10 % are four standard errors."""
    backoff = loki.Backoff("5s", multiplier, "10m", mode=mode)
    means = [sum(backoff.delay(n, f"task {i}") for i in range(1000)) / 1000 for n in range(1, 60)]
    assert all(later >= before * 0.9 for before, later in pairwise(means))


AT_THE_CAP = {
    "proportional": (80.0, 100.0),
    "full": (1.0, 100.0),
    "equal": (50.0, 100.0),
}


@pytest.mark.parametrize("mode", AT_THE_CAP)
@pytest.mark.parametrize("failures", [7, 50, 2**32 - 1])
def test_a_herd_at_the_cap_fills_the_window(mode: str, failures: int) -> None:
    """1,000 tasks that fail together: as even as chance would have it, and no two close groups.

    The bound of chi-square with 19 degrees of freedom is exceeded by chance once in 10,000 times;
    nothing is left to chance here, as the jitter is computed.
    """
    low, high = AT_THE_CAP[mode]
    backoff = loki.Backoff("1s", cap="100s", mode=mode)
    delays = sorted(backoff.delay(failures, f"task {i}") for i in range(1000))
    assert low <= delays[0]
    assert delays[-1] <= high
    shares = [(delay - low) / (high - low) for delay in delays]
    bins = [sum(int(share * 20) == b for share in shares) for b in range(19)]
    bins.append(1000 - sum(bins))
    assert sum((found - 50) ** 2 / 50 for found in bins) < 50.8
    gaps = [later - before for before, later in zip([0, *shares], [*shares, 1], strict=True)]
    assert max(gaps) < 0.015
    assert len(set(delays)) == 1000


def test_a_decorrelated_herd_stays_spread() -> None:
    """By AWS's formula a third would stand at the cap together; here none does."""
    backoff = loki.Backoff("1s", cap="100s", mode="decorrelated")
    for failures in (60, 2000, 2**32 - 1):
        delays = [backoff.delay(failures, f"task {i}") for i in range(1000)]
        assert len({round(delay, 3) for delay in delays}) > 950
        assert min(delays) < 5
        assert max(delays) > 99


def test_decorrelated_follows_its_own_previous_delay() -> None:
    """Below a third of the cap each delay is at most three times the one before it."""
    backoff = loki.Backoff("1s", cap="24h", mode="decorrelated")
    for key in map(str, range(20)):
        delays = [1.0, *backoff.preview(1000, key, offset=1)]
        for before, after in pairwise(delays):
            assert 1 <= after <= min(3 * before, 86_400) + 1e-9
