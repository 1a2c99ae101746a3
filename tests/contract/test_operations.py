"""What every store promises of operations: what was taken out of sight in one piece can be taken back as one."""

from __future__ import annotations

from typing import Any

import pytest

from omcli.memory.changes import Change, Recorded, Verb
from omcli.memory.errors import NotUndoable, UnknownId
from omcli.memory.folding import Ending, Folding, Scope, fingerprint
from omcli.memory.observation import Kind, Observation, Source, Type
from omcli.memory.ports import LogQuery, Outcome, Replacement, Store
from omcli.memory.record import replace
from omcli.memory.roles import Dropped
from tests.material import COUNTER, LATER, NOW, row, said, session

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
    store.record(batch, rows, outcome=Outcome.OBSERVED, now=NOW)


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


class TestErasing:
    """Deleting for good."""

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
