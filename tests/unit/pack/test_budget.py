"""Budgets: defaults, and how a small total is shared between the tiers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.message import UNLIMITED
from omcli.pack.budget import DEFAULTS, Tier, budgets, last_fitting, shares

limits = st.fixed_dictionaries({tier: st.integers(0, 40_000) for tier in Tier})


def test_without_being_asked_a_pack_may_hold_the_sum_of_its_tiers() -> None:
    """C12: budgets per tier and one hard total."""
    asked = budgets()
    assert (asked.cross, asked.session, asked.tail, asked.total) == (4000, 8000, 8000, 20_000)


def test_a_tier_that_was_asked_for_keeps_its_number_under_any_total() -> None:
    assert budgets(total=100_000, tail=500).tail == 500
    assert budgets(total=100, tail=500).tail == 500


def test_a_large_total_is_used() -> None:
    grown = budgets(total=100_000)
    assert sum(grown.limits.values()) == 100_000
    assert grown.session == 40_000


def test_a_total_without_a_tier_goes_to_the_others() -> None:
    alone = budgets(total=6000, cross=0, tail=0)
    assert shares(6000, alone.limits) == {Tier.CROSS: 0, Tier.SESSION: 6000, Tier.TAIL: 0}


def test_a_tier_without_a_limit_may_have_the_total() -> None:
    """C12: unbounded only where a preset says so, and under a total not even then."""
    unlimited = {**DEFAULTS, Tier.SESSION: None}
    assert budgets(defaults=unlimited).session == UNLIMITED
    assert budgets(total=900, defaults=unlimited).session == 900
    assert budgets(session=70, defaults=unlimited).total == 12_070
    assert budgets(total=50_000, defaults={**unlimited, Tier.CROSS: 0}).cross == 0


@pytest.mark.parametrize("total", [512, 1024, 2048, 4096])
def test_in_a_small_pack_what_was_observed_comes_before_what_was_said(total: int) -> None:
    given_shares = shares(total, DEFAULTS)
    assert given_shares[Tier.SESSION] >= 0.66 * total
    assert given_shares[Tier.TAIL] <= 0.25 * total


@given(total=st.integers(-1000, 200_000), most=limits)
def test_shares_use_the_whole_total_and_no_more(total: int, most: dict[Tier, int]) -> None:
    """S0.1: each tier under its own budget."""
    shared = shares(total, most)
    assert all(0 <= shared[tier] <= most[tier] for tier in Tier)
    assert sum(shared.values()) == min(max(0, total), sum(most.values()))


@given(total=st.integers(0, 30_000))
def test_a_larger_total_takes_from_no_tier(total: int) -> None:
    before, after = shares(total, DEFAULTS), shares(total + 1, DEFAULTS)
    # A token of rounding may move between tiers.
    assert all(after[tier] >= before[tier] - 2 for tier in Tier)


@given(total=st.none() | st.integers(-5, 100_000), asked=st.tuples(*[st.none() | st.integers(-5, 50_000)] * 3))
def test_no_budget_is_below_zero(total: int | None, asked: tuple[int | None, int | None, int | None]) -> None:
    """F50: a budget of any size, and of none."""
    cross, session, tail = asked
    made = budgets(total=total, cross=cross, session=session, tail=tail)
    assert min(made.limits.values()) >= 0


@given(st.integers(-5, 60), st.integers(0, 20), st.integers(0, 50))
def test_the_largest_number_that_fits_is_found(limit: int, least: int, further: int) -> None:
    most = least + further
    fitting = [number for number in range(least, most + 1) if number <= limit]
    assert last_fitting(lambda number: number <= limit, least, most) == max(fitting, default=least - 1)
