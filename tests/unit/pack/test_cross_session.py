"""Ranking: what goes first where not everything fits."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.observation import Kind, Observation, Priority, Source, Status, Type
from omcli.pack.cross_session import TIME_CONSTANT, by_value, each_once, is_shared, row_value
from tests.strategies import instants, observations

NOW = "2026-02-10T12:00:00.000Z"
ROW = Observation(
    id="0198c0de-0000-7000-8000-000000000001",
    session="other",
    project="/p",
    kind=Kind.OBSERVATION,
    type=Type.DECISION,
    priority=Priority.MEDIUM,
    importance=5,
    status=None,
    text="a decision",
    observed_at=NOW,
    event_at=None,
    refers_to=None,
    message_ids=(),
    sources=(),
    tokens=3,
    counter="chars-4",
    source=Source.RULES,
)
WEEK_AGO = "2026-02-03T12:00:00.000Z"
SIXTY_DAYS_AGO = "2025-12-12T12:00:00.000Z"


def test_worth_halves_every_week() -> None:
    """D9 S2.36: weight x bias x 2^(-age/7d), weights 3/2/1, reflections 1.3."""
    assert row_value(ROW, now=NOW) == pytest.approx(2)
    assert row_value(replace(ROW, observed_at=WEEK_AGO), now=NOW) == pytest.approx(1)
    assert row_value(replace(ROW, priority=Priority.HIGH, kind=Kind.REFLECTION), now=NOW) == pytest.approx(3.9)
    assert row_value(replace(ROW, priority=Priority.LOW), now=NOW) == pytest.approx(1)


def test_by_the_time_constant_worth_falls_faster() -> None:
    """S2.36: `ln(weight) + ln(bias) - age / h`, h = 7 days."""
    row = replace(ROW, observed_at=WEEK_AGO, priority=Priority.HIGH)
    assert log(row_value(row, now=NOW, fading=TIME_CONSTANT)) == pytest.approx(log(3) - 1)
    assert row_value(row, now=NOW) == pytest.approx(1.5)


def test_a_row_that_was_used_today_is_as_good_as_new() -> None:
    """S2.36: the age counts from the last use."""
    assert row_value(replace(ROW, observed_at=SIXTY_DAYS_AGO, last_used_at=NOW), now=NOW) == row_value(ROW, now=NOW)


def test_a_row_from_the_future_is_worth_no_more_than_one_of_today() -> None:
    assert row_value(replace(ROW, observed_at="2099-01-01T00:00:00.000Z"), now=NOW) == row_value(ROW, now=NOW)


def test_pinned_first_then_fresh_and_weighty_then_old_and_light() -> None:
    """T61: pinned first of all, a note before a reflection, a low row of sixty days last."""
    rows = [
        replace(ROW, priority=Priority.LOW, observed_at=SIXTY_DAYS_AGO),
        replace(ROW, kind=Kind.REFLECTION, priority=Priority.HIGH),
        replace(ROW, kind=Kind.NOTE),
        replace(ROW, tags=("pinned",), priority=Priority.LOW, observed_at=SIXTY_DAYS_AGO),
    ]
    assert by_value(rows, now=NOW) == [3, 2, 1, 0]


@pytest.mark.parametrize("priority", Priority)
def test_a_note_goes_before_a_reflection_of_its_priority(priority: Priority) -> None:
    """T61: note against reflection."""
    reflection = replace(ROW, kind=Kind.REFLECTION, priority=priority)
    assert by_value([reflection, replace(reflection, kind=Kind.NOTE)], now=NOW) == [1, 0]


@given(rows=st.lists(observations(), max_size=20, unique_by=lambda row: row.id), now=instants)
def test_the_order_depends_on_the_rows_and_not_on_how_they_come(rows: list[Observation], now: str) -> None:
    """D9: deterministic, ties by id."""
    backwards = rows[::-1]
    assert [rows[place] for place in by_value(rows, now=now)] == [
        backwards[place] for place in by_value(backwards, now=now)
    ]


def test_a_row_of_the_current_session_is_no_row_of_other_sessions() -> None:
    """T61 S2.35: the current session is excluded, a row without session included."""
    assert not is_shared(ROW, session="other")
    assert is_shared(ROW, session="mine")
    assert is_shared(ROW, session=None)
    assert is_shared(replace(ROW, session=None), session=None)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("type_", [Type.TASK, Type.TODO_UPDATED, Type.REQUEST, Type.TASK_DELEGATED])
def test_the_current_task_of_one_session_is_not_told_to_another(kind: Kind, type_: Type) -> None:
    """F53: facts and decisions cross sessions, tasks do not."""
    assert not is_shared(replace(ROW, kind=kind, type=type_, status=Status.OPEN), session="mine")


def test_lasting_types_are_shared_and_traces_of_work_are_not() -> None:
    """D8 F49: what was decided, preferred, corrected or learned; not what was read, run or searched."""
    shared = {type_ for type_ in Type if is_shared(replace(ROW, type=type_), session="mine")}
    lasting = {Type.PREFERENCE, Type.INSTRUCTION, Type.DECISION, Type.CORRECTION, Type.FACT, Type.BLOCKER}
    assert shared == lasting
    important = {type_ for type_ in Type if is_shared(replace(ROW, type=type_, importance=7), session="mine")}
    assert important == lasting | {Type.OUTCOME, Type.EVENT}


def test_a_blocker_is_shared_until_it_is_resolved() -> None:
    blocker = replace(ROW, type=Type.BLOCKER, status=Status.OPEN)
    assert is_shared(blocker, session="mine")
    assert not is_shared(replace(blocker, status=Status.RESOLVED), session="mine")


@pytest.mark.parametrize("kind", [Kind.NOTE, Kind.ITEM, Kind.REFLECTION])
def test_what_was_written_to_last_is_shared_whatever_it_is_about(kind: Kind) -> None:
    assert is_shared(replace(ROW, kind=kind, type=Type.PLAN), session="mine")


@pytest.mark.parametrize("type_", [Type.FILE_READ, Type.SEARCH_PERFORMED, Type.COMMAND_RUN, Type.FILE_MODIFIED])
def test_what_rules_folded_of_tool_events_is_shared_with_nobody(type_: Type) -> None:
    """XC13: like the rows it was made from; what a model makes of them says more than that."""
    folded = replace(ROW, kind=Kind.REFLECTION, type=type_, source=Source.RULES)
    assert not is_shared(folded, session="mine")
    assert is_shared(replace(folded, source=Source.MODEL), session="mine")


def test_a_hidden_row_is_shared_with_nobody() -> None:
    assert not is_shared(replace(ROW, superseded_by="x"), session="mine")
    assert not is_shared(replace(ROW, dropped_at=NOW), session="mine")


def test_an_item_stands_for_the_row_it_was_made_of() -> None:
    """S0.32: a lasting fact is told once, whoever tells it."""
    item = replace(ROW, id="0198c0de-0000-7000-8000-000000000002", kind=Kind.ITEM, session=None)
    other = replace(ROW, id="0198c0de-0000-7000-8000-000000000003", text="another decision")
    assert each_once([ROW, other, item]) == [other, item]
    assert each_once([item, ROW]) == [item]
    assert each_once([ROW, other, item], besides=[replace(ROW, session="mine")]) == [other]


def test_a_provisional_row_is_no_other_one() -> None:
    """Of this session or of another."""
    marked = replace(ROW, text=f"{ROW.text} (provisional)", id="0198c0de-0000-7000-8000-000000000004")
    assert each_once([ROW, marked]) == [ROW]
    assert each_once([ROW], besides=[marked]) == []
    assert each_once([marked], besides=[ROW]) == []
