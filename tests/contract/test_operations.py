"""What every store promises of operations: what was taken out of sight in one piece can be taken back as one."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omcli.memory.changes import Change, Recorded, Verb
from omcli.memory.errors import NotUndoable, StaleBatch, UnknownId
from omcli.memory.folding import Ending, Folding, Scope, fingerprint
from omcli.memory.message import Role
from omcli.memory.observation import Kind, Observation, Source, Type
from omcli.memory.ports import LogQuery, Outcome, Replacement, Store
from omcli.memory.record import replace
from omcli.memory.roles import Dropped
from omcli.sqlite.store import SqliteStore
from tests.contract.test_stores_agree import IN_MEMORY
from tests.fakes import MemoryStore
from tests.material import COUNTER, LATER, NOW, call, row, said, session

SCOPE = Scope(session="s")
LATEST = "2026-03-02T12:00:00.000Z"


def texts(store: Store, **narrowed: Any) -> list[str]:
    return [entry.observation.text for entry in store.log(LogQuery(**narrowed))]


def keep(store: Store, *words: str) -> list[int]:
    store.append(session(), [said(word) for word in words], counter=COUNTER, now=NOW)
    batch = store.unobserved("s", max_tokens=1000)
    assert batch is not None
    return [kept.seq for kept in batch.messages]


def observe(store: Store, *rows: Observation) -> None:
    batch = store.unobserved("s", max_tokens=1000)
    assert batch is not None
    store.record(batch, rows, outcome=Outcome.OBSERVED if rows else Outcome.EMPTY, now=NOW)


def some(store: Store, *numbers: int) -> list[Observation]:
    rows = [row(number, text=f"row {number}") for number in numbers]
    store.add(*rows)
    return rows


def reflect(store: Store, made: Observation, *old: Observation, part_of: int | None = None) -> None:
    made = replace(made, kind=Kind.REFLECTION, generation=1, supports=tuple(each.id for each in old))
    store.fold(
        Folding(
            scope=SCOPE,
            fingerprint=fingerprint(old),
            ending=Ending.DONE,
            read=tuple(each.id for each in old),
            rows=(made,),
            replaced=tuple(Replacement(row=each.id, by=made.id, reason="reflected") for each in old),
            part_of=part_of,
        ),
        now=LATER,
    )


def prune(store: Store, *rows: Observation, messages: tuple[int, ...] = ()) -> Recorded:
    dropped = tuple(Dropped(row=each.id, reason="pruned") for each in rows)
    return store.change(Change(verb=Verb.PRUNE, scope=SCOPE, dropped=dropped, messages=messages), now=LATER)


def forget(store: Store, *rows: Observation, messages: tuple[int, ...] = ()) -> Recorded:
    return store.change(
        Change(verb=Verb.FORGET, scope=SCOPE, forgotten=tuple(each.id for each in rows), messages=messages), now=LATER
    )


class TestPruning:
    """Rows and messages out of sight."""

    def test_a_pruned_row_is_hidden_with_its_reason_and_comes_back(self, store: Store) -> None:
        """T54: its status is dropped, its sources are intact."""
        [seq] = keep(store, "hello")
        rows = [row(1, text="row 1", sources=(seq,)), row(2, text="row 2")]
        store.add(*rows)
        done = prune(store, rows[0])
        assert (done.verb, done.hidden, done.made, done.messages) == (Verb.PRUNE, 1, 0, 0)
        assert texts(store) == ["row 2"]
        found = store.observation(rows[0].id)
        assert (found.dropped_at, found.reason, found.sources) == (LATER, "pruned", (seq,))
        undone = store.undo(now=LATEST)
        assert (undone.verb, undone.undoes) == (Verb.UNDO, done.number)
        assert texts(store) == ["row 1", "row 2"]
        assert store.observation(rows[0].id) == replace(rows[0], message_ids=("k-hello",))

    def test_messages_are_put_aside_and_come_back_in_their_places(self, store: Store) -> None:
        """S4.14, C20: nothing of them is altered."""
        seqs = keep(store, "one", "two", "three")
        before = store.tail("s", max_tokens=1000)
        done = prune(store, messages=(seqs[0], seqs[2]))
        assert done.messages == 2
        assert [kept.message.text for kept in store.tail("s", max_tokens=1000)] == ["two"]
        assert [kept.message.text for kept in store.messages(seqs)] == ["two"]
        with pytest.raises(UnknownId):
            store.message("k-one")
        assert store.pending("s").messages == 1
        again = store.append(session(), [said("one"), said("four")], counter=COUNTER, now=LATER)
        assert again.new == (False, True), "what was put aside is not taken in again"
        store.undo(now=LATEST)
        assert store.tail("s", max_tokens=1000)[:3] == before
        assert [kept.message.text for kept in store.tail("s", max_tokens=1000)] == ["one", "two", "three", "four"]

    def test_what_is_not_there_or_out_of_sight_is_left_as_it_is(self, store: Store) -> None:
        rows = some(store, 1)
        first = prune(store, *rows)
        second = prune(store, *rows, row(9), messages=(4711,))
        assert (first.hidden, second.hidden, second.messages) == (1, 0, 0)
        store.undo(second.number, now=LATEST)
        assert texts(store) == []

    def test_rows_that_were_not_looked_at_make_it_stale(self, store: Store) -> None:
        some(store, 1, 2)
        [first, last] = [logged.position for logged in store.log(LogQuery())]
        for verb in (Verb.PRUNE, Verb.FORGET):
            with pytest.raises(StaleBatch):
                store.change(Change(verb=verb, forgotten=(row(1).id,), seen=first), now=LATER)
        assert store.history() == ()
        store.change(Change(verb=Verb.FORGET, forgotten=(row(1).id,), seen=last), now=LATER)
        assert texts(store) == ["row 2"]


class TestReflecting:
    """Reflections taken back."""

    def test_what_it_made_goes_and_what_it_hid_is_in_sight_again(self, store: Store) -> None:
        old = some(store, 1, 2)
        reflect(store, row(3, text="both"), *old)
        [done] = store.history()
        assert (done.verb, done.made, done.hidden, done.scope) == (Verb.REFLECT, 1, 2, SCOPE)
        store.undo(done.number, now=LATEST)
        assert texts(store) == ["row 1", "row 2"]
        made = store.observation(row(3).id)
        assert (made.dropped_at, made.reason) == (LATEST, "undone")
        attempt = store.last_attempt(SCOPE)
        assert attempt is not None
        assert attempt.is_undone
        assert attempt.why_not(fingerprint(old)), "what was taken back is not done again by itself"

    def test_one_that_another_stands_on_is_not_taken_back(self, store: Store) -> None:
        old = some(store, 1, 2)
        reflect(store, row(3, text="both"), *old)
        reflect(store, row(4, text="again"), store.observation(row(3).id))
        later, first = store.history()
        with pytest.raises(NotUndoable):
            store.undo(first.number, now=LATEST)
        assert texts(store) == ["again"], "nothing has changed"
        store.undo(later.number, now=LATEST)
        store.undo(first.number, now=LATEST)
        assert texts(store) == ["row 1", "row 2"]

    def test_parts_of_one_operation_are_taken_back_together(self, store: Store) -> None:
        """A compaction reflects several times."""
        old = some(store, 1, 2)
        whole = store.change(Change(verb=Verb.COMPACT, scope=SCOPE, figures={"target": 10}), now=LATER)
        reflect(store, row(3, text="both"), *old, part_of=whole.number)
        reflect(store, row(4, text="again"), store.observation(row(3).id), part_of=whole.number)
        [done] = store.history()
        assert (done.verb, done.made, done.hidden, done.figures) == (Verb.COMPACT, 2, 3, {"target": 10})
        store.undo(now=LATEST)
        assert texts(store) == ["row 1", "row 2"]
        assert [each.verb for each in store.history()] == [Verb.UNDO, Verb.COMPACT]
        assert [each.undone_by for each in store.history()] == [None, store.history()[0].number]

    def test_one_that_is_taken_back_while_it_goes_on_gets_no_more_parts(self, store: Store) -> None:
        """S4.16: a part of it could not be taken back, as the whole is already."""
        old = some(store, 1, 2)
        whole = store.change(Change(verb=Verb.COMPACT, scope=SCOPE, figures={"target": 10}), now=LATER)
        reflect(store, row(3, text="first"), old[0], part_of=whole.number)
        store.undo(now=LATEST)
        with pytest.raises(StaleBatch):
            reflect(store, row(4, text="second"), old[1], part_of=whole.number)
        assert texts(store) == ["row 1", "row 2"]

    def test_nor_does_one_of_which_rows_were_deleted(self, store: Store) -> None:
        old = some(store, 1, 2)
        whole = store.change(Change(verb=Verb.COMPACT, scope=SCOPE, figures={"target": 10}), now=LATER)
        reflect(store, row(3, text="first"), old[0], part_of=whole.number)
        store.erase([prune(store, store.observation(row(3).id)).number], now=LATER)
        with pytest.raises(StaleBatch):
            reflect(store, row(4, text="second"), old[1], part_of=whole.number)
        assert texts(store) == ["row 2"]


class TestForgetting:
    """Rows that leave a tombstone."""

    def test_a_forgotten_row_is_in_no_log_and_is_not_taken_in_again(self, store: Store) -> None:
        """D6: a re-import does not bring it back; in whatever case and spaces."""
        rows = some(store, 1, 2)
        done = forget(store, rows[0])
        assert done.hidden == 1
        assert texts(store, hidden=True) == ["row 2"]
        with pytest.raises(UnknownId):
            store.observation(rows[0].id)
        store.add(row(5, text="Row  1", session="another"), row(6, text="row 3"))
        keep(store, "hello")
        observe(store, row(7, text="row 1"), row(8, text="row 4"))
        assert texts(store, hidden=True) == ["row 2", "row 3", "row 4"]
        assert store.are_forgotten([row(9, text="ROW 1"), row(9, text="row 2")]) == (True, False)

    def test_what_is_written_by_hand_is_taken_all_the_same(self, store: Store) -> None:
        [old] = some(store, 1)
        forget(store, old)
        store.add(replace(row(2, text="row 1"), source=Source.USER, kind=Kind.NOTE))
        assert texts(store) == ["row 1"]

    def test_what_a_tool_did_is_forgotten_in_its_session_alone(self, store: Store) -> None:
        ran = row(1, text="Ran: make", type=Type.COMMAND_RUN)
        store.add(ran)
        forget(store, ran)
        store.add(replace(ran, id=row(2).id), replace(ran, id=row(3).id, session="t"))
        assert [entry.observation.session for entry in store.log(LogQuery())] == ["t"]

    def test_taken_back_it_is_as_it_was_with_its_links(self, store: Store) -> None:
        [seq] = keep(store, "hello")
        old = row(1, text="row 1", sources=(seq,))
        store.add(old)
        reflect(store, row(2, text="folded"), old)
        made = store.observation(row(2).id)
        forget(store, old, made)
        assert [each.id for each in store.put_aside()] == [old.id, made.id]
        assert texts(store, hidden=True) == []
        store.undo(now=LATEST)
        assert texts(store) == ["folded"]
        assert store.observation(made.id) == made
        assert store.observation(old.id).sources == (seq,)
        store.add(row(3, text="row 1"))
        assert texts(store) == ["folded", "row 1"], "nothing is forgotten any more"

    def test_a_row_forgotten_under_a_reflection_that_is_undone_first_comes_back_in_sight(self, store: Store) -> None:
        old = some(store, 1, 2)
        reflect(store, row(3, text="both"), *old)
        forget(store, old[0])
        undone, reflected = store.history()
        store.undo(reflected.number, now=LATEST)
        assert texts(store) == ["row 2"]
        store.undo(undone.number, now=LATEST)
        assert texts(store) == ["row 1", "row 2"]

    def test_a_message_that_was_forgotten_stays_so_when_its_pruning_is_undone(self, store: Store) -> None:
        seqs = keep(store, "one", "two")
        pruned = prune(store, messages=tuple(seqs))
        forgotten = forget(store, messages=(seqs[0],))
        assert forgotten.messages == 1
        store.undo(pruned.number, now=LATEST)
        assert [kept.message.text for kept in store.tail("s", max_tokens=1000)] == ["two"]

    def test_what_goes_along_comes_back_with_it_and_may_be_said_again(self, store: Store) -> None:
        rows = some(store, 1, 2)
        done = store.change(Change(verb=Verb.FORGET, forgotten=(rows[0].id,), along=(rows[1].id,)), now=LATER)
        assert (done.hidden, done.figures["rows"]) == (2, 2)
        assert store.are_forgotten(rows) == (True, False)
        store.undo(now=LATEST)
        assert texts(store) == ["row 1", "row 2"]

    def test_a_title_is_taken_and_not_given_again(self, store: Store) -> None:
        known = replace(session(), title="The harbour code")
        store.append(known, [said("one")], counter=COUNTER, now=NOW)
        done = store.change(Change(verb=Verb.FORGET, titles=("s", "nobody")), now=LATER)
        assert done.figures["titles"] == 1
        store.append(replace(known, title="the  HARBOUR code"), [said("two")], counter=COUNTER, now=LATER)
        batch = store.unobserved("s", max_tokens=10)
        assert batch is not None
        store.record(batch, (), outcome=Outcome.EMPTY, now=LATER, title="The harbour code")
        found = store.session("s")
        assert found is not None
        assert found.title is None
        store.undo(now=LATEST)
        assert store.session("s") == known

    def test_a_row_that_says_what_was_forgotten_takes_nobodys_place(self, store: Store) -> None:
        old, forgotten = some(store, 1, 2)
        forget(store, forgotten)
        keep(store, "hello")
        batch = store.unobserved("s", max_tokens=10)
        assert batch is not None
        again = row(3, text="row 2")
        store.record(
            batch,
            [again],
            outcome=Outcome.OBSERVED,
            now=LATER,
            replaced=[Replacement(row=old.id, by=again.id, reason="x")],
        )
        reflect(store, row(4, text="row 2"), old)
        assert texts(store, hidden=True) == ["row 1"]
        assert texts(store) == ["row 1"]

    def test_a_batch_of_which_messages_were_forgotten_or_came_back_is_stale(self, store: Store) -> None:
        """F1: what was shown is what is covered."""
        seqs = keep(store, "one", "two", "three")
        shown = store.unobserved("s", max_tokens=1000)
        assert shown is not None
        forget(store, messages=(seqs[1],))
        for outcome in (Outcome.EMPTY, Outcome.FAILED, Outcome.DEFERRED):
            with pytest.raises(StaleBatch):
                store.record(shown, (), outcome=outcome, now=LATER)
        less = store.unobserved("s", max_tokens=1000)
        assert less is not None
        assert [kept.message.text for kept in less.messages] == ["one", "three"]
        store.undo(now=LATEST)
        with pytest.raises(StaleBatch):
            store.record(less, (), outcome=Outcome.EMPTY, now=LATER)
        store.record(shown, (), outcome=Outcome.EMPTY, now=LATER)
        assert store.pending("s").messages == 0

    def test_places_are_counted_with_what_was_put_aside_and_a_session_begins_with_it(self, store: Store) -> None:
        seqs = keep(store, "one", "two", "three")
        observe(store, row(1, sources=tuple(seqs)))
        before = store.covered("s")
        done = prune(store, messages=tuple(seqs[:2]))
        assert store.covered("s") == before
        assert store.begins_with("s", [said("one").identity])
        assert not store.begins_with("s", [said("three").identity])
        store.erase([done.number], now=LATEST)
        assert store.covered("s") == before
        assert not store.begins_with("s", [said("three").identity])


class TestErasing:
    """Deleting for good."""

    def test_a_pruning_of_which_a_row_is_forgotten_meanwhile_can_be_taken_back_after_that(self, store: Store) -> None:
        """S4.16: the other row of it was deleted; else the forgotten one would stay out of sight for ever."""
        rows = some(store, 1, 2)
        pruned = prune(store, *rows)
        forgotten = forget(store, rows[0])
        gone = Change(verb=Verb.PRUNE, scope=SCOPE, dropped=(Dropped(row=rows[1].id, reason="old"),))
        store.change(gone, now=LATER, for_good=True)
        store.undo(forgotten.number, now=LATEST)
        assert texts(store) == []
        store.undo(pruned.number, now=LATEST)
        assert texts(store) == ["row 1"]

    def test_rows_go_on_to_cite_messages_that_were_deleted(self, store: Store) -> None:
        """T54: sources intact."""
        seqs = keep(store, "one", "two")
        kept = row(1, text="row 1", sources=tuple(seqs))
        store.add(kept)
        done = prune(store, messages=(seqs[0],))
        for _ in range(2):
            found = store.observation(kept.id)
            assert (found.sources, found.message_ids) == (tuple(seqs), ("k-one", "k-two"))
            assert [each.message.text for each in store.messages(seqs)] == ["two"]
            store.erase([done.number], now=LATEST)
        assert [each.message.text for each in store.every_message()] == ["two"]

    def test_a_change_for_good_deletes_at_once_what_it_names(self, store: Store) -> None:
        """Rows that are out of sight already as well; that operation then can't be taken back any more."""
        old = some(store, 1, 2)
        reflect(store, row(3, text="both"), *old)
        dropped = tuple(Dropped(row=each.id, reason="pruned") for each in (old[0], row(3)))
        done = store.change(Change(verb=Verb.PRUNE, dropped=dropped), now=LATER, for_good=True)
        assert texts(store, hidden=True) == [], "what the reflection took the place of goes with it"
        assert (done.final_at, done.figures["rows"]) == (LATER, 3)
        [_, reflected] = store.history()
        assert reflected.final_at == LATER
        with pytest.raises(NotUndoable):
            store.undo(now=LATEST)

    def test_a_pruning_of_which_some_rows_were_deleted_can_be_taken_back_for_the_others(self, store: Store) -> None:
        rows = some(store, 1, 2)
        prune(store, *rows)
        dropped = (Dropped(row=rows[0].id, reason="pruned"),)
        store.change(Change(verb=Verb.PRUNE, dropped=dropped), now=LATER, for_good=True)
        store.undo(now=LATEST)
        assert texts(store) == ["row 2"]

    def test_erasing_nothing_deletes_nothing(self, store: Store) -> None:
        prune(store, *some(store, 1))
        assert (store.erase((), now=LATEST).rows, store.erase((4711,), now=LATEST).rows) == (0, 0)
        store.undo(now=LATEST)
        assert texts(store) == ["row 1"]

    def test_what_was_taken_out_of_sight_is_gone_and_does_not_come_back(self, store: Store) -> None:
        """F16: cursors, identities and tombstones stay."""
        seqs = keep(store, "one", "two")
        observe(
            store, *(rows := [row(1, text="row 1", sources=(seqs[0],)), row(2, text="row 2"), row(3, text="row 3")])
        )
        pruned, forgotten = prune(store, rows[0], messages=(seqs[0],)), forget(store, rows[1])
        erased = store.erase([pruned.number, forgotten.number], now=LATEST)
        assert (erased.rows, erased.messages) == (2, 1)
        assert texts(store, hidden=True) == ["row 3"]
        assert [each.final_at for each in store.history()] == [LATEST, LATEST]
        for number in (pruned.number, forgotten.number, None):
            with pytest.raises(NotUndoable):
                store.undo(number, now=LATEST)
        store.add(row(4, text="row 2"), row(5, text="row 1"))
        assert texts(store) == ["row 3", "row 1"], "what was pruned may be said again; what was forgotten may not"
        assert store.append(session(), [said("one")], counter=COUNTER, now=LATEST).new == (False,)
        assert store.pending("s").messages == 0

    def test_what_was_taken_back_before_is_not_deleted(self, store: Store) -> None:
        rows = some(store, 1)
        done = prune(store, *rows)
        store.undo(now=LATEST)
        assert store.erase([done.number], now=LATEST).rows == 0
        assert texts(store) == ["row 1"]


def test_the_traces_of_a_row_tell_how_it_came_to_be_and_what_became_of_it(store: Store) -> None:
    """S0.40."""
    old = some(store, 1, 2)
    reflect(store, row(3, text="both"), *old)
    [reflected] = store.history()
    done = prune(store, row(3))
    made = store.traces(row(3).id)
    assert (made.made_by, made.hidden_by) == (reflected, done)
    assert [each.text for each in made.made_of] == ["row 1", "row 2"]
    assert [each.text for each in made.replaced] == ["row 1", "row 2"]
    assert (made.made_into, made.successor) == ((), None)
    source = store.traces(old[0].id)
    assert (source.made_by, source.hidden_by) == (None, reflected)
    assert source.successor is not None
    assert source.successor.text == "both"
    assert [each.text for each in source.made_into] == ["both"]
    with pytest.raises(UnknownId):
        store.traces(row(9).id)


def test_the_outline_of_a_session_is_all_its_messages_without_what_they_say(store: Store) -> None:
    keep(store, "one", "two")
    observe(store)
    store.append(session(), [call("x"), said("three", agent="side", at=LATER)], counter=COUNTER, now=NOW)
    assert [(each.role, each.call_id, each.at, each.is_main, each.is_covered) for each in store.outline("s")] == [
        (Role.USER, None, None, True, True),
        (Role.USER, None, None, True, True),
        (Role.CALL, "x", None, True, False),
        (Role.USER, None, LATER, False, False),
    ]
    assert store.outline("nobody") == ()


def test_every_message_is_read_in_order_also_what_is_put_aside(store: Store) -> None:
    seqs = keep(store, "one", "two", "three")
    forget(store, messages=(seqs[1],))
    assert [kept.message.text for kept in store.every_message()] == ["one", "two", "three"]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["prune", "forget", "reflect", "undo", "title"]),
        st.sets(st.integers(0, 5), min_size=1, max_size=3),
        st.integers(1, 8),
    ),
    max_size=8,
)


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
@given(changes=CHANGES)
@settings(max_examples=60, deadline=None)
def test_whatever_was_done_undoing_all_of_it_ends_where_it_began(kind: str, changes: list[Any]) -> None:
    """C20: rows, messages, titles and what is forgotten, to the byte."""
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(dir=IN_MEMORY))
        store: Store = MemoryStore()
        if kind == "sqlite":
            store = opened.enter_context(SqliteStore.open(Path(folder) / "om.db", wait=1))
        store.append(
            replace(session(), title="Tides"), [said(f"m {number}") for number in range(6)], counter=COUNTER, now=NOW
        )
        batch = store.unobserved("s", max_tokens=1000)
        assert batch is not None
        seqs = [kept.seq for kept in batch.messages]
        observe(store, *(row(number, text=f"row {number}", sources=(seqs[number],)) for number in range(6)))
        before = all_of(store)
        for at, (what, chosen, number) in enumerate(changes):
            with suppress(NotUndoable, StaleBatch):
                do(store, what, chosen, number, at=at, seqs=seqs)
        with suppress(NotUndoable):
            while True:
                store.undo(now=LATEST)
        assert all_of(store) == before
        assert not any(store.are_forgotten([row(number, text=f"row {number}") for number in range(6)]))


def do(store: Store, what: str, chosen: set[int], number: int, *, at: int, seqs: list[int]) -> None:
    some_rows = [row(each) for each in chosen]
    if what == "prune":
        prune(store, *some_rows, messages=tuple(seqs[each] for each in chosen))
    elif what == "forget":
        forget(store, *some_rows, messages=tuple(seqs[each] for each in chosen))
    elif what == "reflect":
        seen = [logged.observation for logged in store.log(LogQuery())][:3]
        reflect(store, row(100 + at, text=f"folded {at}"), *seen)
    elif what == "undo":
        store.undo(number, now=LATEST)
    else:
        store.change(Change(verb=Verb.FORGET, titles=("s",)), now=LATER)


def all_of(store: Store) -> object:
    """What anybody sees of a store."""
    rows = list(store.log(LogQuery()))
    return rows, store.tail("s", max_tokens=1000), store.session("s"), store.covered("s")[0].start, store.outline("s")


def test_history_is_the_newest_first_without_what_came_to_nothing(store: Store) -> None:
    rows = some(store, 1, 2)
    store.fold(
        Folding(scope=SCOPE, fingerprint="x", ending=Ending.EMPTY, read=(rows[0].id,)),
        now=NOW,
    )
    prune(store, rows[0])
    forget(store, rows[1])
    store.undo(now=LATEST)
    assert [each.verb for each in store.history()] == [Verb.UNDO, Verb.FORGET, Verb.PRUNE]
    assert [each.verb for each in store.history(last=2)] == [Verb.UNDO, Verb.FORGET]


def test_an_operation_is_taken_back_once_and_an_undoing_not_at_all(store: Store) -> None:
    rows = some(store, 1)
    done = prune(store, *rows)
    undone = store.undo(done.number, now=LATEST)
    for number in (done.number, undone.number, 4711, None):
        with pytest.raises(NotUndoable):
            store.undo(number, now=LATEST)
    assert texts(store) == ["row 1"]
