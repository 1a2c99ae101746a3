"""The reflector by rules: what becomes one row, what leaves sight and in which order, and what never does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.observation import PINNED, Kind, Observation, Status, Type
from omcli.memory.reflection import Material, Reflected
from omcli.pack.salience import by_salience
from omcli.reflectors.drafts import LONGEST
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
    return RuleReflector(WordCounter(), small=0).reflect(given_rows)


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


def test_each_session_has_a_present_state_of_its_own() -> None:
    """XC13: the newest list of one session says nothing of another's."""
    rows = [row(number, f"Todos: {number} completed", Type.TODO_UPDATED, status=DONE) for number in range(1, 7)]
    rows = [replace(each, session=f"s{number % 2}") for number, each in enumerate(rows)]
    assert merged(*rows) == ["Todos: 5 completed", "Todos: 6 completed"]


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


@pytest.mark.parametrize("why", ["x" * 150, "失败的原因，" * 60, "word " * 60], ids=["no space", "wide", "words"])
def test_the_reason_of_a_failed_run_is_cut_in_any_script(why: str) -> None:
    passed = [ran(number, f"exit 0: {number} passed") for number in range(2, 6)]
    (text,) = merged(ran(1, f"exit 1: {why.strip()}", status=RESOLVED), *passed)
    shown = text.partition("failed: ")[2].partition("), last")[0]
    assert 90 < len(shown) <= 100
    assert shown.startswith(f"exit 1: {why[:20].strip()}")


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


def test_what_was_only_looked_at_is_dropped_and_never_becomes_a_list() -> None:
    """XC13: files that were read, searches and small commands say little, so a reading list says no more."""
    rows = (
        row(1, "Read src/a.py, src/b.py", Type.FILE_READ, priority=LOW),
        row(2, 'Searched "berth" → 24 files; "tide" → 99+ matches', Type.SEARCH_PERFORMED, priority=LOW),
        row(3, "Ran: ls -la; git status → ok", Type.COMMAND_RUN, priority=LOW, status=DONE),
        row(4, "Read src/b.py, +3 more", Type.FILE_READ, priority=LOW),
        row(5, "User: now the cranes", Type.REQUEST, priority=HIGH, status=OPEN),
        row(6, "Agent: the crane scheduler reads all berths from the ledger"),
    )
    given_rows = material(*rows, target=16)
    assert reflect(given_rows).reflections == ()
    assert texts(left(given_rows, reflect(given_rows))) == [rows[4].text, rows[5].text]


def test_rows_are_not_folded_into_a_longer_one() -> None:
    """V13: a count is longer than two short runs of a command; the rest is lost anyway."""
    rows = (ran(1, "ok"), ran(2, "ok, at last"), row(3, f"trivial {FILLER}", priority=LOW))
    given_rows = material(*rows, target=8)
    assert reflect(given_rows).reflections == ()


def edit(number: int, text: str, *, edits: int = 1, created: bool = False) -> Observation:
    """A change of the crane's file."""
    meta = {"path": "/src/app/src/crane.py", "edits": edits}
    kind = Type.FILE_CREATED if created else Type.FILE_MODIFIED
    return row(number, text, kind, priority=HIGH, metadata=meta)


def test_changes_of_a_file_are_one_row() -> None:
    """The final state: all names by their last change, then what else was changed, in order, each once."""
    rows = (
        edit(1, "Created src/crane.py: adds Crane, lift (+8 more) · def lift(self) -> None:", edits=0, created=True),
        edit(2, "Modified src/crane.py (2 edits): adds lower; removes lift · def lower(self) -> None:", edits=2),
        edit(3, "Modified src/crane.py: + `self.load = 0` · def lower(self) -> None:"),
        row(4, "Modified src/berth.py: adds Berth", Type.FILE_MODIFIED, priority=HIGH, metadata={"path": "x"}),
        row(5, f"Trivial {FILLER} {FILLER} {FILLER} {FILLER}", priority=LOW),
    )
    assert folded(*rows) == [
        (
            "Created src/crane.py (3 edits since): adds Crane, lower; removes lift · def lift(self) -> None: · "
            "def lower(self) -> None: · + `self.load = 0`"
        ),
        rows[3].text,
    ]


def test_changes_of_a_file_are_several_rows_where_one_would_be_long() -> None:
    """XC12: no name is lost."""
    rows = [edit(number, f"Modified src/crane.py: + `self.hook_{number}_of_the_crane = 5`") for number in range(30)]
    low = [row(50 + number, f"{number} trivial {FILLER}", priority=LOW) for number in range(30)]
    given_rows = material(*rows, *low, target=tokens(rows))
    told = texts(left(given_rows, reflect(given_rows)))
    assert len([text for text in told if "crane.py" in text]) == 10
    assert max(map(len, told)) <= 150
    assert all(f"hook_{number}_of" in " ".join(told) for number in range(30))


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


# ---- the order of loss

FILLER = "of the harbour and its berths"


def lossy(number: int, priority: object, status: Status | None, day: int, *, about: Type = Type.OUTCOME) -> Observation:
    """A row that nothing folds."""
    return row(number, f"Row {chr(65 + number)} {FILLER}", about, priority=priority, status=status, day=day)


def test_rows_leave_sight_in_the_order_of_loss() -> None:
    """XC12, R11: those that say least per token first, as a pack would leave them out; high ones never."""
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
    for target in range(int(0.8 * tokens(rows)), 0, -1):
        if len(kept := folded(*rows, target=target)) < len(rows):
            order += [each.text for each in rows if each.text not in kept and each.text not in order]
    assert {text[4] for text in order[:3]} == {"B", "C", "F"}
    assert {text[4] for text in order[3:]} == {"D", "E", "G"}
    assert folded(*rows, target=8) == [rows[6].text]


def test_rows_that_a_pack_would_choose_first_are_dropped_last() -> None:
    """XC12: the order of loss is the order of packs, backwards."""
    rows = [
        row(number, f"Crane {number} at berth {number % 5} {FILLER} {'again ' * (number % 7)}") for number in range(40)
    ]
    best = [rows[place].text for place in by_salience(rows)]
    kept = folded(*rows, target=tokens(rows) // 2)
    assert set(kept) == set(best[: len(kept)])


def test_the_last_row_stays() -> None:
    """V11, F7: whatever the target, something is left in sight."""
    for count in (1, 2, 5):
        given_rows = material(*(row(number, f"Ship {number} took on coal", priority=LOW) for number in range(count)))
        assert left(given_rows, reflect(given_rows))


def test_no_more_is_lost_than_the_target_asks_for() -> None:
    rows = tuple(lossy(number, LOW, None, 3) for number in range(1, 11))
    assert len(folded(*rows, target=tokens(rows) // 2)) == 5
    assert len(folded(*rows, target=tokens(rows) // 2 - 1)) == 4


def test_what_saves_less_than_a_fifth_is_not_done() -> None:
    """XC12: repeats are dropped if they are many; a target of all tokens asks for a fifth of them."""
    rows = [row(number, f"Ship {chr(65 + number)} took on coal", day=1 + number) for number in range(8)]
    again = [replace(rows[number], id=row(10 + number, "").id) for number in range(3)]
    assert reflect(material(*rows, again[0], target=10**6)) == Reflected()
    assert len(reflect(material(*rows, *again, target=10**6)).dropped) == 3
    assert len(reflect(material(*rows, target=tokens(rows))).dropped) == 2


def test_nothing_is_done_where_the_target_cannot_be_met() -> None:
    """XC12: dropping all that may go would be a loss for nothing."""
    rows = [row(number, f"User: we decided on berth {number}", Type.DECISION, priority=HIGH) for number in range(6)]
    low = [row(10 + number, f"Ship {chr(65 + number)} took on coal", priority=LOW) for number in range(6)]
    assert reflect(material(*rows, *low, target=tokens(rows) - 1)).dropped == ()
    assert len(reflect(material(*rows, *low, target=tokens(rows))).dropped) == 6


def test_rows_that_any_pack_holds_are_not_dropped() -> None:
    """XC12: what fits into a pack of 2,000 tokens as it is would only be lost."""
    rows = [row(number, f"Ship {number} {FILLER} took on coal from barge {number}") for number in range(400)]
    some = rows[:150]
    rules = RuleReflector(WordCounter())
    assert rules.reflect(material(*some, target=tokens(some) // 2)) == Reflected()
    given_rows = material(*rows, target=tokens(rows) // 4)
    assert 1980 < tokens(left(given_rows, rules.reflect(given_rows))) <= 2000


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
    old, low = replace(stays, event_at="2025-01-01T00:00:00.000Z"), lossy(2, LOW, None, 2)
    assert folded(old, low, target=tokens([low])) == [stays.text]


def test_protected_rows_stay_also_where_they_say_the_same() -> None:
    """R6: whatever they are."""
    rows = tuple(row(number, f"Trivial {FILLER}", Type.EXCERPT, priority=LOW, day=1) for number in (1, 2))
    given_rows = material(*rows, protected=frozenset(each.id for each in rows))
    assert left(given_rows, reflect(given_rows)) == list(rows)


# ---- one row


def test_rows_are_never_joined_where_one_is_asked_for() -> None:
    """XC12: a pack chooses rows whole, so of one long row it could only tell everything or nothing."""
    rows = [row(number, f"{chr(64 + number)}: berth {number} {FILLER}", day=number % 9 + 1) for number in range(1, 25)]
    trivial = [row(100 + number, f"{chr(64 + number)}: crane {FILLER}", priority=LOW, day=1) for number in range(1, 9)]
    given_rows = material(*rows, *trivial, target=tokens([*rows, *trivial]), most_rows=1)
    told = left(given_rows, reflect(given_rows))
    assert {each.id for each in rows} <= {each.id for each in told}
    assert len(told) < len(given_rows.rows)


def test_reflections_are_folded_again_only_among_themselves() -> None:
    """T38, D13."""
    runs = [replace(ran(number, f"exit {number}"), kind=Kind.REFLECTION, generation=1) for number in (1, 2, 3)]
    given_rows = material(*runs, target=10**6)
    (told,) = left(given_rows, reflect(given_rows))
    assert told.generation == 2
    assert len(merged(*runs, row(4, "User: go on", Type.REQUEST, status=OPEN))) == 4


def test_details_of_several_sessions_are_not_folded() -> None:
    """XC13: no session and no pack would tell them any more."""
    runs = [ran(number, f"exit {number}", session=f"s{number}") for number in (1, 2, 3)]
    assert reflect(material(*runs, target=10**6, session=None)).reflections == ()
    assert len(reflect(material(*runs, target=10**6)).reflections) == 1


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


@given(many_rows(), st.integers(0, 400), st.sampled_from(["s", None]))
def test_a_fold_condenses_or_nothing_is_done(rows: tuple[Observation, ...], target: int, session: str | None) -> None:
    """XC12: the target is met, a fifth is saved, no new row is long, and no name of a row of high priority is lost."""
    given_rows = material(*rows, target=target, session=session)
    reflected = reflect(given_rows)
    if reflected.reflections or reflected.dropped:
        after = left(given_rows, reflected)
        before, now = (sum(map(_tokens, some)) for some in (rows, after))
        assert now <= min(target, 0.8 * before)
        assert all(len(draft.text) <= LONGEST for draft in reflected.reflections)
        overtaken = {gone.row for gone in reflected.dropped if gone.reason == "superseded"}
        told = [searchable(each.text) for each in after]
        high = (each for each in rows if each.priority is HIGH and each.id not in overtaken)
        assert not [name for each in high for name in unknown_anchors(each.text, told)]


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
