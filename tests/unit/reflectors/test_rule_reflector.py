"""The reflector by rules: what becomes one row, what leaves sight and in which order, and what never does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.llm.json_reply import LONGEST_ROW
from omcli.memory.observation import PINNED, Kind, Observation, Status, Type
from omcli.memory.reflection import Material, Reflected
from omcli.reflectors.rules import RuleReflector
from omcli.text.phrases import searchable, unknown_anchors
from tests import strategies
from tests.fakes import WordCounter
from tests.unit.reflectors.folded_rows import (
    DONE,
    HIGH,
    LOW,
    OPEN,
    RESOLVED,
    left,
    material,
    row,
    stored,
    texts,
    tokens,
)


def reflect(given_rows: Material) -> Reflected:
    """Reflect on rows by rules."""
    return RuleReflector(WordCounter()).reflect(given_rows)


def merged(*rows: Observation) -> list[str]:
    """Rows left if nothing has to become shorter."""
    given_rows = material(*rows, target=10**6)
    return texts(left(given_rows, reflect(given_rows)))


def folded(*rows: Observation, target: int | None = None) -> list[str]:
    """Rows left if everything that can has to become shorter."""
    given_rows = material(*rows, target=tokens(rows) - 1 if target is None else target)
    return texts(left(given_rows, reflect(given_rows)))


# ---- repeats


def test_of_equal_rows_the_newest_stays() -> None:
    rows = (row(1, "The tide table is wrong"), row(2, "something else"), row(3, "The tide table is wrong"))
    given_rows = material(*rows, target=100)
    reflected = reflect(given_rows)
    assert [(gone.row, gone.reason, gone.by) for gone in reflected.dropped] == [(rows[0].id, "duplicate", rows[2].id)]
    assert reflected.reflections == ()


def test_of_equal_rows_the_more_important_one_stays() -> None:
    given_rows = material(row(1, "Tide table wrong", priority=HIGH), row(2, "Tide table wrong"), target=100)
    assert left(given_rows, reflect(given_rows)) == [given_rows.rows[0]]


def test_nearly_equal_rows_are_one() -> None:
    """The one that says more, or as much later, stays."""
    short = row(1, "Agent: crane scheduler reads berths from the ledger")
    long = row(2, "Agent: the crane scheduler now reads all the berths from the ledger")
    assert merged(short, long) == [long.text]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The queue limit is set to 20 jobs", "The queue limit is set to 30 jobs"),
        ("The crane scheduler does handle empty berths", "The crane scheduler does not handle empty berths"),
        ("The crane scheduler can handle empty berths", "The crane scheduler can't handle empty berths"),
        ("Alice greases the big crane on the pier", "Bob greases the big crane on the pier"),
        ("Read the list of berths in src/a.py again", "Read the list of berths in src/b.py again"),
        ("prefers tabs over spaces in every file", "prefers spaces over tabs in every file"),
        ("the crane scheduler passes every nightly test", "the crane scheduler fails every nightly test"),
        ("User: the berth list is empty again", "Agent: the berth list is empty again"),
    ],
)
def test_what_differs_in_a_number_a_name_or_a_negation_is_another_row(one: str, other: str) -> None:
    """Or in the order, or in who says it."""
    assert len(merged(row(1, one), row(2, other))) == len(merged(row(1, other), row(2, one))) == 2


def test_what_was_said_of_another_day_is_another_row() -> None:
    """R7. An agent that says it again on another day has said it once."""
    rows = [row(1, "User: we greased the big crane", day=8), row(2, "User: we greased the big crane")]
    assert len(merged(*rows)) == 2
    assert len(merged(*(replace(each, text=each.text.replace("User", "Agent")) for each in rows))) == 1


def test_what_a_commit_says_need_not_be_said_again() -> None:
    commit = row(1, "Committed 38a965e on main: docs: link the guide from the README", Type.OUTCOME, priority=HIGH)
    assert merged(commit, row(2, "Agent: docs: link the guide from the README")) == [commit.text]


def test_a_condition_is_no_statement() -> None:
    rows = (
        row(1, "Once the flaky crane tests pass again we merge", Type.DECISION, priority=HIGH),
        row(2, "Agent: the flaky crane tests pass"),
    )
    assert len(merged(*rows)) == 2


def test_of_what_there_is_one_of_the_present_state_stays() -> None:
    """R9: lists of todos, what is being done; open ones are left alone."""
    rows = (
        row(1, "Todos: 1 completed", Type.TODO_UPDATED, status=DONE),
        row(2, "Todos: 1 in progress", Type.TODO_UPDATED, status=OPEN),
        row(3, "greasing the crane", Type.TASK),
        row(4, "Todos: 2 completed", Type.TODO_UPDATED, status=DONE),
        row(5, "painting the crane", Type.TASK),
    )
    assert merged(*rows) == ["Todos: 1 in progress", "Todos: 2 completed", "painting the crane"]


# ---- folds


def ran(number: int, outcome: str, *, status: Status = DONE, times: int = 1, **columns: object) -> Observation:
    """A run of the tests."""
    failed = status is RESOLVED
    return row(
        number,
        f"Ran: pytest -q → {outcome}{f' (× {times})' if times > 1 else ''}",
        Type.COMMAND_ERROR if failed else Type.COMMAND_RUN,
        status=status,
        metadata={"command": "pytest -q", "times": times},
        **columns,
    )


def test_runs_of_a_command_are_counted() -> None:
    """With what came of the last, and of the last that failed."""
    rows = (
        ran(1, "exit 0: 4 passed", times=3),
        ran(2, "exit 1: E ImportError: no module named crane", status=RESOLVED, times=2),
        ran(3, "exit 0: 9 passed"),
        ran(4, "exit 0: 9 passed", times=200),
    )
    (text,) = merged(*rows[:3])
    assert text == "Ran: pytest -q (× 6; failed: exit 1: E ImportError: no module named crane), last → exit 0: 9 passed"
    assert "(× 99+;" in merged(*rows)[0]


def test_a_run_that_fails_still_is_no_part_of_a_fold() -> None:
    rows = (ran(1, "exit 0: 4 passed"), ran(2, "exit 0: 5 passed"), ran(3, "exit 1", status=OPEN))
    assert merged(*rows) == ["Ran: pytest -q (× 2), last → exit 0: 5 passed", rows[2].text]


def failure(number: int, why: str, *, seqs: tuple[int, ...], status: Status = RESOLVED) -> Observation:
    """An edit that failed."""
    meta = {"tool": "edit", "target": "src/crane.py"}
    return row(number, f"edit src/crane.py failed: {why}", Type.TOOL_ERROR, status=status, metadata=meta, sources=seqs)


def test_failures_that_were_mended_are_one_row_with_what_mended_them() -> None:
    """R10: a resolved error keeps the resolution."""
    rows = (
        failure(1, "the text to be replaced was not found in the file", seqs=(1, 2)),
        failure(2, "the text to be replaced was found twice", seqs=(3, 9)),
        row(5, "Modified src/berth.py", Type.FILE_MODIFIED, metadata={"path": "/src/app/src/berth.py"}),
    )
    assert merged(*rows)[0] == (
        "edit src/crane.py failed: the text to be replaced was found twice (× 2) → works after changes to src/berth.py"
    )
    assert len(merged(replace(rows[0], status=OPEN), rows[1], rows[2])) == 3


def test_what_was_looked_at_between_two_prompts_is_one_row() -> None:
    rows = (
        row(1, "Read src/a.py, src/b.py", Type.FILE_READ, priority=LOW),
        row(
            2,
            'Searched "berth" → 24 files; "tide" → 99+ matches',
            Type.SEARCH_PERFORMED,
            priority=LOW,
            metadata={"searches": [{"pattern": "berth"}, {"pattern": "tide"}, {"pattern": "never shown"}]},
        ),
        row(3, "Ran: ls -la; git status → ok", Type.COMMAND_RUN, priority=LOW, status=DONE),
        row(4, "Read src/b.py, +3 more", Type.FILE_READ, priority=LOW),
        row(5, "User: now the cranes", Type.REQUEST, priority=HIGH, status=OPEN),
        row(6, "Read src/c.py", Type.FILE_READ, priority=LOW),
    )
    assert folded(*rows) == [
        'Read src/a.py, src/b.py · Searched "berth"; "tide" · Ran: ls -la; git status',
        "User: now the cranes",
        "Read src/c.py",
    ]


def test_rows_are_not_folded_into_a_longer_one() -> None:
    """V13."""
    rows = (
        row(1, "Read src/a.py", Type.FILE_READ, priority=LOW),
        row(2, 'Searched "b"', Type.SEARCH_PERFORMED, priority=LOW),
    )
    assert folded(*rows) == [rows[1].text]


def edit(number: int, text: str, *, edits: int = 1, created: bool = False) -> Observation:
    """A change of the crane's file."""
    meta = {"path": "/src/app/src/crane.py", "edits": edits}
    kind = Type.FILE_CREATED if created else Type.FILE_MODIFIED
    return row(number, text, kind, priority=HIGH, metadata=meta)


def test_changes_of_a_file_are_one_row() -> None:
    """The final state: all names by their last change, the first lines of the edits, and the rest of the last one."""
    rows = (
        edit(1, "Created src/crane.py: adds Crane, lift (+8 more) · def lift(self) -> None:", edits=0, created=True),
        edit(2, "Modified src/crane.py (2 edits): adds lower; removes lift · def lower(self) -> None:", edits=2),
        edit(3, "Modified src/crane.py: + `self.load = 0` · assert self.load >= 0"),
        row(4, "Modified src/berth.py: adds Berth", Type.FILE_MODIFIED, priority=HIGH, metadata={"path": "x"}),
    )
    assert folded(*rows) == [
        (
            "Created src/crane.py (3 edits since): adds Crane, lower; removes lift · + `self.load = 0` · "
            "assert self.load >= 0"
        ),
        rows[3].text,
    ]


@pytest.mark.parametrize(
    ("verbs", "told"),
    [(("adds", "removes"), "removes lift"), (("removes", "adds"), "adds lift")],
)
def test_a_name_that_came_and_went_is_told_as_it_ended(verbs: tuple[str, str], told: str) -> None:
    """Not as added and removed: nobody could tell whether it is there."""
    rows = (edit(number, f"Modified src/crane.py: {verb} lift") for number, verb in enumerate(verbs, start=1))
    assert folded(*rows) == [f"Modified src/crane.py (2 edits): {told}"]


def test_a_file_that_is_gone_is_told_as_that() -> None:
    rows = (
        edit(1, "Created src/crane.py: adds Crane", edits=0, created=True),
        edit(2, "Deleted src/crane.py", edits=0),
    )
    assert folded(*rows) == ["Deleted src/crane.py"]


def test_what_is_done_is_told_with_its_result() -> None:
    """R10: finished work keeps its concrete result; S0.33."""
    rows = (
        row(1, "User: link the guide from the README", Type.REQUEST, priority=HIGH, status=DONE, sources=(1, 9)),
        row(2, "Agent: Committed 38a965e on main", Type.OUTCOME, priority=HIGH, status=DONE, sources=(5,)),
        row(3, "Agent: Linked it twice", Type.OUTCOME, priority=HIGH, status=DONE, sources=(8,)),
        row(4, "Agent: Pushed v1.2.0", Type.OUTCOME, priority=HIGH, status=DONE, sources=(12,)),
    )
    assert sorted(folded(*rows)) == [
        "Agent: Pushed v1.2.0",
        "User: link the guide from the README → Committed 38a965e on main · Linked it twice",
    ]


# ---- the order of loss

FILLER = "of the harbour and its berths"


def lossy(number: int, priority: object, status: Status | None, day: int, *, about: Type = Type.OUTCOME) -> Observation:
    """A row that nothing folds."""
    return row(number, f"Row {chr(65 + number)} {FILLER}", about, priority=priority, status=status, day=day)


def test_rows_leave_sight_in_the_order_of_loss() -> None:
    """R11: low ones older than two days, settled ones older than three, then by age."""
    rows = (
        lossy(1, LOW, None, 2),
        lossy(2, LOW, None, 5),
        row(3, f"Row D {FILLER}", Type.OUTCOME, status=RESOLVED, day=3),
        row(4, f"Row E {FILLER}", Type.OUTCOME, status=DONE, day=9),
        lossy(5, LOW, None, 9),
        row(6, f"Row G {FILLER}", Type.OUTCOME, day=1),
        lossy(7, HIGH, None, 1),
    )
    order: list[str] = []
    for target in range(tokens(rows), -1, -1):
        kept = folded(*rows, target=target)
        order += [each.text for each in rows if each.text not in kept and each.text not in order]
    assert [text[4] for text in order] == ["B", "C", "D", "F", "E", "G"]
    assert folded(*rows, target=0) == [rows[6].text]


def test_what_leads_in_to_something_goes_with_the_low_rows() -> None:
    rows = (row(1, "Agent: The berth list comes from the ledger"), row(2, "Agent: Now the types after the options:"))
    assert folded(*rows) == [rows[0].text]


def test_the_last_row_stays() -> None:
    """V11, F7: whatever the target, something is left in sight."""
    for count in (1, 2, 5):
        given_rows = material(*(row(number, f"Ship {number} took on coal", priority=LOW) for number in range(count)))
        assert len(left(given_rows, reflect(given_rows))) == 1


def test_no_more_is_lost_than_the_target_asks_for() -> None:
    rows = tuple(lossy(number, LOW, None, 3) for number in range(1, 11))
    assert len(folded(*rows, target=tokens(rows) - 1)) == 9
    assert len(folded(*rows, target=tokens(rows))) == 10


@pytest.mark.parametrize(
    "stays",
    [
        row(1, f"High {FILLER}", Type.FACT, priority=HIGH),
        row(1, f"Open {FILLER}", Type.QUESTION, status=OPEN),
        row(1, f"Wants {FILLER}", Type.PREFERENCE, priority=LOW),
        row(1, f"Always {FILLER}", Type.INSTRUCTION, priority=LOW),
        row(1, f"No, {FILLER}", Type.CORRECTION, priority=LOW),
        row(1, f"Decided {FILLER}", Type.DECISION, priority=LOW),
        row(1, f"Pinned {FILLER}", Type.EXCERPT, priority=LOW, tags=(PINNED,)),
        row(1, f"Written {FILLER}", Type.FACT, priority=LOW, kind=Kind.NOTE),
        row(1, f"Lasting {FILLER}", Type.KNOWLEDGE, priority=LOW, kind=Kind.ITEM),
    ],
    ids=lambda each: each.text.split()[0],
)
def test_what_must_not_be_lost_stays_word_for_word(stays: Observation) -> None:
    """R6, V12."""
    assert stays.text in folded(replace(stays, event_at="2025-01-01T00:00:00.000Z"), lossy(2, LOW, None, 2), target=0)


def test_protected_rows_stay_also_where_they_say_the_same() -> None:
    """R6: whatever they are."""
    rows = tuple(row(number, f"Trivial {FILLER}", Type.EXCERPT, priority=LOW, day=1) for number in (1, 2))
    given_rows = material(*rows, protected=frozenset(each.id for each in rows))
    assert left(given_rows, reflect(given_rows)) == list(rows)


# ---- one row


def test_everything_becomes_one_row_where_one_is_asked_for() -> None:
    """T37, S1.8: two observations, one reflection, nothing else in sight."""
    rows = (row(1, "User: we moved to pier 4"), row(2, "User: the crane is called Bertha", day=9))
    given_rows = material(*rows, target=100, most_rows=1)
    (told,) = reflect(given_rows).reflections
    assert told.text == "User: we moved to pier 4 · the crane is called Bertha"
    assert told.replaces == told.supports == (rows[0].id, rows[1].id)
    assert left(given_rows, reflect(given_rows))[0].generation == 1


def test_days_are_told_in_a_row_of_several() -> None:
    """R7."""
    rows = [row(number, f"User: moved {chr(96 + number)}", day=8 + number // 3) for number in range(1, 5)]
    trivial = row(5, f"In src/crane.py: {FILLER}", Type.EXCERPT, priority=LOW)
    (told,) = reflect(material(*rows, trivial, most_rows=1, target=tokens(rows))).reflections
    assert told.text == "User: moved a · moved b · [2026-03-09] User: moved c · moved d"


def test_no_row_of_several_is_longer_than_a_row_may_be() -> None:
    """Else it would fit into no pack, and nothing that was folded into it would be told."""
    words = [f"w{number}" for number in range(5000)]
    rows = tuple(row(number, f"User: {' '.join(words[number * 50 : number * 50 + 50])}") for number in range(1, 90))
    given_rows = material(*rows, target=tokens(rows), most_rows=1)
    told = reflect(given_rows).reflections
    assert all(len(each.text) <= LONGEST_ROW for each in told)
    assert 1 < len(told) < 6
    assert {folded for each in told for folded in each.replaces} == {each.id for each in rows}
    as_stored = [stored(each, 5000 + place, rows) for place, each in enumerate(told)]
    assert reflect(material(*as_stored, target=tokens(rows), most_rows=1)) == Reflected()


def test_what_would_be_as_long_in_one_row_loses_what_matters_least() -> None:
    """S1.8: joined alone, different rows are no shorter; what their reflection is for is to be shorter."""
    rows = [row(number, f"{chr(64 + number)}: berth {number} {FILLER}", day=number % 9 + 1) for number in range(1, 25)]
    trivial = [row(100 + number, f"{chr(64 + number)}: crane {FILLER}", priority=LOW, day=1) for number in range(1, 9)]
    (told,) = reflect(material(*rows, *trivial, target=tokens([*rows, *trivial]), most_rows=1)).reflections
    assert told.text.count("berth") > 18
    assert "crane" not in told.text


def test_nothing_is_made_one_row_where_that_is_longer() -> None:
    """V13."""
    given_rows = material(row(1, "Moved"), row(2, "Bertha"), target=10, most_rows=1)
    assert reflect(given_rows) == Reflected()


def test_reflections_are_folded_again_only_among_themselves() -> None:
    """T38, D13."""
    old = [replace(row(number, f"Agent: moved pier {number}"), kind=Kind.REFLECTION, generation=1) for number in (1, 2)]
    given_rows = material(*old, target=10, most_rows=1)
    (told,) = left(given_rows, reflect(given_rows))
    assert told.generation == 2
    runs = [replace(ran(number, "exit 0"), kind=Kind.REFLECTION) for number in (1, 2)]
    assert len(merged(*runs)) == 1
    assert len(merged(*runs, row(3, "User: go on", Type.REQUEST, status=OPEN))) == 3


# ---- whatever there is


@st.composite
def many_rows(draw: st.DrawFn) -> tuple[Observation, ...]:
    """Rows of all sorts with distinct ids, oldest first; many say the same, some of the same command or file."""
    drawn = draw(st.lists(strategies.observations(session=st.just("s")), max_size=14, unique_by=lambda each: each.id))
    meta: st.SearchStrategy[Mapping[str, object]] = st.sampled_from(
        [{}, {"command": "make"}, {"path": "/p/a.py", "edits": 2}, {"tool": "edit", "target": "a.py"}, {"times": 3}]
    )
    about = st.sampled_from(
        [
            None,
            "Ran: make → exit 0",
            "Modified a.py: adds a, b · x = 1",
            "Agent: the berth list is empty again",
            "Read a.py",
        ]
    )
    rows = []
    for each in drawn:
        text = draw(about) or each.text
        sources = tuple(sorted(draw(st.sets(st.integers(1, 9), max_size=3))))
        rows.append(replace(each, text=text, metadata=draw(meta), sources=sources, superseded_by=None))
    return tuple(sorted(rows, key=lambda each: each.dated.removesuffix("Z")))


@given(many_rows(), st.integers(0, 400), st.integers(0, 2), st.data())
def test_rules_never_lose_what_is_protected_never_make_more_and_never_invent(
    rows: tuple[Observation, ...], target: int, most: int, data: st.DataObject
) -> None:
    """R5, R6, V12, V13: every row is kept, replaced or dropped, once; every name stands in a row that is told."""
    protected = frozenset(data.draw(st.sets(st.sampled_from([each.id for each in rows])))) if rows else frozenset()
    given_rows = material(*rows, target=target, most_rows=most, protected=protected)
    reflected = reflect(given_rows)
    assert reflected == reflect(given_rows)
    after = left(given_rows, reflected)
    assert protected <= {each.id for each in after}
    assert sum(map(_tokens, after)) <= sum(map(_tokens, rows))
    told = {each.id: each for each in rows}
    for draft in (*reflected.reflections, *reflected.items):
        assert draft.text == " ".join(draft.text.split()) or draft in reflected.items or most
        assert set(draft.replaces) <= set(draft.supports)
        ground = [told[support] for support in draft.supports]
        assert draft.sources == tuple(sorted({seq for each in ground for seq in each.sources}))
        named = [searchable(f"{each.text} {each.dated[:10]}") for each in ground]
        assert not unknown_anchors(draft.text, named)
    gone = {dropped.row: dropped.by for dropped in reflected.dropped}
    assert all(by is None or by in told for by in gone.values())


@given(many_rows(), st.integers(0, 400))
def test_reflecting_again_changes_nothing(rows: tuple[Observation, ...], target: int) -> None:
    """F35, F19."""
    given_rows = material(*rows, target=target)
    once = reflect(given_rows)
    gone = {dropped.row for dropped in once.dropped} | {row for draft in once.reflections for row in draft.replaces}
    written = [stored(draft, 5000 + place, rows) for place, draft in enumerate(once.reflections)]
    items = [stored(draft, 6000 + place, rows, Kind.ITEM) for place, draft in enumerate(once.items)]
    again = sorted(
        (*(each for each in rows if each.id not in gone), *written), key=lambda each: each.dated.removesuffix("Z")
    )
    if any(each.kind is not Kind.REFLECTION for each in again):
        assert reflect(material(*again, *items, target=target)) == Reflected()


def test_rows_of_a_long_session_are_folded_in_no_time() -> None:
    rows = tuple(
        row(number, f"Agent: the berth list is {words} again", day=1 + number % 9)
        for number, words in enumerate(("empty full wrong long short lost old new read torn " * 300).split())
    )
    began = time.process_time()
    reflect(material(*rows, target=100))
    assert time.process_time() - began < 5


def _tokens(each: Observation) -> int:
    return each.tokens if each.counter == "words" else WordCounter().text(each.text)
