"""Promises of every store about operations: changes made in one piece can be undone in one piece."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import NotUndoable, StaleBatch, UnknownId
from omcli.base.record import replace
from omcli.memory.batch import BatchOutcome, Observed
from omcli.memory.buffer import BufferedBatch
from omcli.memory.changes import Operation, OperationKind, OperationWrite, SessionTitle
from omcli.memory.message import Image, Role
from omcli.memory.observation import Draft, Dropped, Kind, LogQuery, Observation, Replacement, Source, Type
from omcli.memory.ports import Store
from omcli.memory.reflection import ReflectionOutcome, ReflectionWrite, Scope, fingerprint
from omcli.sqlite import SqliteStore
from tests.contract.test_state_machine import IN_MEMORY
from tests.fakes import MemoryStore, empty_store
from tests.material import COUNTER, LATER, NOW, call, row, said, session
from tests.strategies import examples

SCOPE = Scope(session="s")
LATEST = "2026-03-02T12:00:00.000Z"


def texts(store: Store, **narrowed: Any) -> list[str]:
    return [entry.observation.text for entry in store.rows.log(LogQuery(**narrowed))]


def keep(store: Store, *words: str) -> list[int]:
    store.messages.append(session(), [said(word) for word in words], counter=COUNTER, now=NOW)
    batch = store.batches.unobserved("s", max_tokens=1000)
    assert batch is not None
    return [kept.seq for kept in batch.messages]


def observe(store: Store, *rows: Observation) -> None:
    batch = store.batches.unobserved("s", max_tokens=1000)
    assert batch is not None
    store.batches.record(batch, rows, outcome=BatchOutcome.OBSERVED if rows else BatchOutcome.EMPTY, now=NOW)


def some(store: Store, *numbers: int) -> list[Observation]:
    rows = [row(number, text=f"row {number}") for number in numbers]
    store.rows.add(*rows)
    return rows


def reflect(store: Store, made: Observation, *old: Observation, part_of: int | None = None) -> None:
    made = replace(made, kind=Kind.REFLECTION, generation=1, supports=tuple(each.id for each in old))
    store.reflections.fold(
        ReflectionWrite(
            scope=SCOPE,
            fingerprint=fingerprint(old),
            ending=ReflectionOutcome.DONE,
            read=tuple(each.id for each in old),
            rows=(made,),
            replaced=tuple(Replacement(row=each.id, by=made.id, reason="reflected") for each in old),
            part_of=part_of,
        ),
        now=LATER,
    )


def prune(store: Store, *rows: Observation, messages: tuple[int, ...] = ()) -> Operation:
    dropped = tuple(Dropped(row=each.id, reason="pruned") for each in rows)
    return store.operations.change(
        OperationWrite(verb=OperationKind.PRUNE, scope=SCOPE, dropped=dropped, messages=messages), now=LATER
    )


def forget(store: Store, *rows: Observation, messages: tuple[int, ...] = ()) -> Operation:
    return store.operations.change(
        OperationWrite(
            verb=OperationKind.FORGET, scope=SCOPE, forgotten=tuple(each.id for each in rows), messages=messages
        ),
        now=LATER,
    )


class TestPruning:
    """Rows and messages out of sight."""

    def test_a_pruned_row_is_hidden_with_its_reason_and_comes_back(self, store: Store) -> None:
        """T54: its status is dropped, its sources are intact."""
        [seq] = keep(store, "hello")
        rows = [row(1, text="row 1", sources=(seq,)), row(2, text="row 2")]
        store.rows.add(*rows)
        done = prune(store, rows[0])
        assert (done.verb, done.hidden, done.made, done.messages) == (OperationKind.PRUNE, 1, 0, 0)
        assert texts(store) == ["row 2"]
        found = store.rows.find(rows[0].id)
        assert (found.dropped_at, found.reason, found.sources) == (LATER, "pruned", (seq,))
        undone = store.operations.undo(now=LATEST)
        assert (undone.verb, undone.undoes) == (OperationKind.UNDO, done.number)
        assert texts(store) == ["row 1", "row 2"]
        assert store.rows.find(rows[0].id) == replace(rows[0], message_ids=("k-hello",))

    def test_messages_are_put_aside_and_come_back_in_their_places(self, store: Store) -> None:
        """S4.14, C20: nothing of them is altered."""
        seqs = keep(store, "one", "two", "three")
        before = store.messages.tail("s", max_tokens=1000)
        done = prune(store, messages=(seqs[0], seqs[2]))
        assert done.messages == 2
        assert [kept.message.text for kept in store.messages.tail("s", max_tokens=1000)] == ["two"]
        assert [kept.message.text for kept in store.messages.by_seq(seqs)] == ["two"]
        with pytest.raises(UnknownId):
            store.messages.by_key("k-one")
        assert store.batches.pending("s").messages == 1
        again = store.messages.append(session(), [said("one"), said("four")], counter=COUNTER, now=LATER)
        assert again.new == (False, True), "what was put aside is not taken in again"
        store.operations.undo(now=LATEST)
        assert store.messages.tail("s", max_tokens=1000)[:3] == before
        assert [kept.message.text for kept in store.messages.tail("s", max_tokens=1000)] == [
            "one",
            "two",
            "three",
            "four",
        ]

    def test_what_is_not_there_or_out_of_sight_is_left_as_it_is(self, store: Store) -> None:
        rows = some(store, 1)
        first = prune(store, *rows)
        second = prune(store, *rows, row(9), messages=(4711,))
        assert (first.hidden, second.hidden, second.messages) == (1, 0, 0)
        store.operations.undo(second.number, now=LATEST)
        assert texts(store) == []

    def test_rows_that_were_not_looked_at_make_it_stale(self, store: Store) -> None:
        some(store, 1, 2)
        [first, last] = [logged.position for logged in store.rows.log(LogQuery())]
        for verb in (OperationKind.PRUNE, OperationKind.FORGET):
            with pytest.raises(StaleBatch):
                store.operations.change(OperationWrite(verb=verb, forgotten=(row(1).id,), seen=first), now=LATER)
        assert store.operations.history() == ()
        store.operations.change(OperationWrite(verb=OperationKind.FORGET, forgotten=(row(1).id,), seen=last), now=LATER)
        assert texts(store) == ["row 2"]


class TestReflecting:
    """Reflections taken back."""

    def test_what_it_made_goes_and_what_it_hid_is_in_sight_again(self, store: Store) -> None:
        old = some(store, 1, 2)
        reflect(store, row(3, text="both"), *old)
        [done] = store.operations.history()
        assert (done.verb, done.made, done.hidden, done.scope) == (OperationKind.REFLECT, 1, 2, SCOPE)
        store.operations.undo(done.number, now=LATEST)
        assert texts(store) == ["row 1", "row 2"]
        made = store.rows.find(row(3).id)
        assert (made.dropped_at, made.reason) == (LATEST, "undone")
        attempt = store.reflections.last_attempt(SCOPE)
        assert attempt is not None
        assert attempt.is_undone
        assert attempt.why_not(fingerprint(old)), "what was taken back is not done again by itself"

    def test_one_that_another_stands_on_is_not_taken_back(self, store: Store) -> None:
        old = some(store, 1, 2)
        reflect(store, row(3, text="both"), *old)
        reflect(store, row(4, text="again"), store.rows.find(row(3).id))
        later, first = store.operations.history()
        with pytest.raises(NotUndoable):
            store.operations.undo(first.number, now=LATEST)
        assert texts(store) == ["again"], "nothing has changed"
        store.operations.undo(later.number, now=LATEST)
        store.operations.undo(first.number, now=LATEST)
        assert texts(store) == ["row 1", "row 2"]

    def test_parts_of_one_operation_are_taken_back_together(self, store: Store) -> None:
        """A compaction reflects several times."""
        old = some(store, 1, 2)
        whole = store.operations.change(
            OperationWrite(verb=OperationKind.COMPACT, scope=SCOPE, figures={"target": 10}), now=LATER
        )
        reflect(store, row(3, text="both"), *old, part_of=whole.number)
        reflect(store, row(4, text="again"), store.rows.find(row(3).id), part_of=whole.number)
        [done] = store.operations.history()
        assert (done.verb, done.made, done.hidden, done.figures) == (OperationKind.COMPACT, 2, 3, {"target": 10})
        store.operations.undo(now=LATEST)
        assert texts(store) == ["row 1", "row 2"]
        assert [each.verb for each in store.operations.history()] == [OperationKind.UNDO, OperationKind.COMPACT]
        assert [each.undone_by for each in store.operations.history()] == [None, store.operations.history()[0].number]

    def test_one_that_is_taken_back_while_it_goes_on_gets_no_more_parts(self, store: Store) -> None:
        """D6: a part of it could not be taken back, as the whole is already."""
        old = some(store, 1, 2)
        whole = store.operations.change(
            OperationWrite(verb=OperationKind.COMPACT, scope=SCOPE, figures={"target": 10}), now=LATER
        )
        reflect(store, row(3, text="first"), old[0], part_of=whole.number)
        store.operations.undo(now=LATEST)
        with pytest.raises(StaleBatch):
            reflect(store, row(4, text="second"), old[1], part_of=whole.number)
        assert texts(store) == ["row 1", "row 2"]

    def test_nor_does_one_of_which_rows_were_deleted(self, store: Store) -> None:
        old = some(store, 1, 2)
        whole = store.operations.change(
            OperationWrite(verb=OperationKind.COMPACT, scope=SCOPE, figures={"target": 10}), now=LATER
        )
        reflect(store, row(3, text="first"), old[0], part_of=whole.number)
        store.operations.erase([prune(store, store.rows.find(row(3).id)).number], now=LATER)
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
            store.rows.find(rows[0].id)
        store.rows.add(row(5, text="Row  1", session="another"), row(6, text="row 3"))
        keep(store, "hello")
        observe(store, row(7, text="row 1"), row(8, text="row 4"))
        assert texts(store, hidden=True) == ["row 2", "row 3", "row 4"]
        assert store.tombstones.match([row(9, text="ROW 1"), row(9, text="row 2")]) == (True, False)

    def test_what_is_written_by_hand_is_taken_all_the_same(self, store: Store) -> None:
        [old] = some(store, 1)
        forget(store, old)
        store.rows.add(replace(row(2, text="row 1"), source=Source.USER, kind=Kind.NOTE))
        assert texts(store) == ["row 1"]

    def test_what_a_tool_did_is_forgotten_in_its_session_alone(self, store: Store) -> None:
        ran = row(1, text="Ran: make", type=Type.COMMAND_RUN)
        store.rows.add(ran)
        forget(store, ran)
        store.rows.add(replace(ran, id=row(2).id), replace(ran, id=row(3).id, session="t"))
        assert [entry.observation.session for entry in store.rows.log(LogQuery())] == ["t"]

    def test_taken_back_it_is_as_it_was_with_its_links(self, store: Store) -> None:
        [seq] = keep(store, "hello")
        old = row(1, text="row 1", sources=(seq,))
        store.rows.add(old)
        reflect(store, row(2, text="folded"), old)
        made = store.rows.find(row(2).id)
        forget(store, old, made)
        assert [each.id for each in store.tombstones.rows()] == [old.id, made.id]
        assert texts(store, hidden=True) == []
        store.operations.undo(now=LATEST)
        assert texts(store) == ["folded"]
        assert store.rows.find(made.id) == made
        assert store.rows.find(old.id).sources == (seq,)
        store.rows.add(row(3, text="row 1"))
        assert texts(store) == ["folded", "row 1"], "nothing is forgotten any more"

    def test_a_row_forgotten_under_a_reflection_that_is_undone_first_comes_back_in_sight(self, store: Store) -> None:
        old = some(store, 1, 2)
        reflect(store, row(3, text="both"), *old)
        forget(store, old[0])
        undone, reflected = store.operations.history()
        store.operations.undo(reflected.number, now=LATEST)
        assert texts(store) == ["row 2"]
        store.operations.undo(undone.number, now=LATEST)
        assert texts(store) == ["row 1", "row 2"]

    def test_a_message_that_was_forgotten_stays_so_when_its_pruning_is_undone(self, store: Store) -> None:
        seqs = keep(store, "one", "two")
        pruned = prune(store, messages=tuple(seqs))
        forgotten = forget(store, messages=(seqs[0],))
        assert forgotten.messages == 1
        store.operations.undo(pruned.number, now=LATEST)
        assert [kept.message.text for kept in store.messages.tail("s", max_tokens=1000)] == ["two"]

    def test_what_goes_along_comes_back_with_it_and_may_be_said_again(self, store: Store) -> None:
        rows = some(store, 1, 2)
        done = store.operations.change(
            OperationWrite(verb=OperationKind.FORGET, forgotten=(rows[0].id,), replaced=(rows[1].id,)), now=LATER
        )
        assert (done.hidden, done.figures["rows"]) == (2, 2)
        assert store.tombstones.match(rows) == (True, False)
        store.operations.undo(now=LATEST)
        assert texts(store) == ["row 1", "row 2"]

    def test_a_title_is_taken_and_not_given_again(self, store: Store) -> None:
        known = replace(session(), title="The harbour code")
        store.messages.append(known, [said("one")], counter=COUNTER, now=NOW)
        done = store.operations.change(
            OperationWrite(
                verb=OperationKind.FORGET, titles=(SessionTitle("s", "The harbour code"), SessionTitle("nobody", "x"))
            ),
            now=LATER,
        )
        assert done.figures["titles"] == 1
        store.messages.append(replace(known, title="the  HARBOUR code"), [said("two")], counter=COUNTER, now=LATER)
        batch = store.batches.unobserved("s", max_tokens=10)
        assert batch is not None
        store.batches.record(batch, (), outcome=BatchOutcome.EMPTY, now=LATER, title="The harbour code")
        found = store.sessions.find("s")
        assert found is not None
        assert found.title is None
        store.operations.undo(now=LATEST)
        assert store.sessions.find("s") == known

    def test_a_row_that_says_what_was_forgotten_takes_nobodys_place(self, store: Store) -> None:
        old, forgotten = some(store, 1, 2)
        forget(store, forgotten)
        keep(store, "hello")
        batch = store.batches.unobserved("s", max_tokens=10)
        assert batch is not None
        again = row(3, text="row 2")
        store.batches.record(
            batch,
            [again],
            outcome=BatchOutcome.OBSERVED,
            now=LATER,
            replaced=[Replacement(row=old.id, by=again.id, reason="x")],
        )
        reflect(store, row(4, text="row 2"), old)
        assert texts(store, hidden=True) == ["row 1"]
        assert texts(store) == ["row 1"]

    def test_a_batch_of_which_messages_were_forgotten_or_came_back_is_stale(self, store: Store) -> None:
        """F1: what was shown is what is covered."""
        seqs = keep(store, "one", "two", "three")
        shown = store.batches.unobserved("s", max_tokens=1000)
        assert shown is not None
        forget(store, messages=(seqs[1],))
        for outcome in (BatchOutcome.EMPTY, BatchOutcome.FAILED, BatchOutcome.DEFERRED):
            with pytest.raises(StaleBatch):
                store.batches.record(shown, (), outcome=outcome, now=LATER)
        less = store.batches.unobserved("s", max_tokens=1000)
        assert less is not None
        assert [kept.message.text for kept in less.messages] == ["one", "three"]
        store.operations.undo(now=LATEST)
        with pytest.raises(StaleBatch):
            store.batches.record(less, (), outcome=BatchOutcome.EMPTY, now=LATER)
        store.batches.record(shown, (), outcome=BatchOutcome.EMPTY, now=LATER)
        assert store.batches.pending("s").messages == 0

    def test_places_are_counted_with_what_was_put_aside_and_a_session_begins_with_it(self, store: Store) -> None:
        seqs = keep(store, "one", "two", "three")
        observe(store, row(1, sources=tuple(seqs)))
        before = store.batches.covered("s")
        done = prune(store, messages=tuple(seqs[:2]))
        assert store.batches.covered("s") == before
        assert store.messages.begins_with("s", [said("one").identity])
        assert not store.messages.begins_with("s", [said("three").identity])
        store.operations.erase([done.number], now=LATEST)
        assert store.batches.covered("s") == before
        assert not store.messages.begins_with("s", [said("three").identity])


class TestSucceeded:
    """Rows that operations have put out of sight, and that observing has replaced meanwhile."""

    @pytest.mark.parametrize("hiding", [prune, forget, lambda store, old: reflect(store, row(9, text="folded"), old)])
    def test_they_go_behind_what_took_their_place_and_not_beside_it(
        self, store: Store, hiding: Callable[[Store, Observation], object]
    ) -> None:
        keep(store, "one")
        [old] = some(store, 1)
        new = row(2, text="and answered", sources=(1,))
        batch = store.batches.unobserved("s", max_tokens=1000)
        assert batch is not None
        hiding(store, old)
        replaced = [Replacement(row=old.id, by=new.id, reason="answered")]
        store.batches.record(batch, [new], outcome=BatchOutcome.OBSERVED, now=NOW, replaced=replaced)
        assert not store.operations.preview_undo(None).rows
        store.operations.undo(None, now=LATEST)
        assert texts(store) == ["and answered"]
        assert store.rows.find(old.id).superseded_by == new.id


class TestFinding:
    """What is to be forgotten is found wherever it is."""

    @pytest.mark.parametrize(
        ("said_as", "wanted"),
        [
            ("The  HARBOUR\ncode", "harbour code"), ("Stra\u00dfe 7", "strasse 7"), ("3 \u212a", "3 k"),
            ("\ufb01nal", "final"), ("a\0harbour", "harbour"),
            ("\u6e2f\u306e\u7b26\u53f7", "\u7b26\u53f7"), ("100%_x", "%_"), ("\u00c9TANG", "\u00e9"),
            ("\u6e2f\u3000\u7b26 \u00c4", "\u6e2f \u7b26 \u00e4"),
        ],
    )  # fmt: skip
    def test_case_and_spaces_do_not_matter_in_any_script(self, store: Store, said_as: str, wanted: str) -> None:
        """D6: in what rows say, in their tags and metadata, and in messages; also once it is put aside."""
        [_, seq] = keep(store, "nothing", said_as)
        rows = [
            row(1, text=said_as, sources=(seq,)), row(2, tags=(said_as,)), row(3, metadata={"path": said_as.strip()}),
            row(4, text="nothing"),
        ]  # fmt: skip
        store.rows.add(*rows)
        for _ in range(2):
            assert {each.id for each in store.search.rows(wanted)} >= {row(1).id, row(2).id}
            assert row(4).id not in {each.id for each in store.search.rows(wanted)}
            assert [kept.seq for kept in store.search.messages(wanted)] == [seq]
            forget(store, *rows[:3], messages=(seq,))

    def test_a_reflection_that_is_forgotten_again_takes_nothing_along_that_it_was_made_of(self, store: Store) -> None:
        old = some(store, 1, 2)
        reflect(store, row(3, text="both"), *old)
        for _ in range(2):
            assert store.search.related([row(3).id], []).replaced == ()
            forget(store, row(3))

    def test_what_was_made_of_a_row_is_known_also_once_that_is_forgotten(self, store: Store) -> None:
        [seq] = keep(store, "one")
        store.rows.add(row(1, text="row 1", sources=(seq,)))
        reflect(store, row(3, text="folded"), row(1))
        for _ in range(2):
            assert [each.text for each in store.search.related([row(1).id], []).derived] == ["folded"]
            forget(store, row(1))
        assert [each.text for each in store.search.related([], [seq]).derived] == []


class TestSeveralThatHide:
    """What several operations took out of sight is there again when none of them stands (S4.16)."""

    @pytest.mark.parametrize("first", ["pruning", "forgetting"])
    def test_a_message_that_was_pruned_and_forgotten_comes_back_when_neither_stands(
        self, store: Store, first: str
    ) -> None:
        seqs = keep(store, "one", "two")
        observe(store)
        done = {"pruning": prune(store, messages=(seqs[0],)), "forgetting": forget(store, messages=tuple(seqs))}
        assert [each.messages for each in done.values()] == [1, 2]
        for name in sorted(done, key=lambda name: name != first):
            assert [kept.seq for kept in store.messages.by_seq(seqs[:1])] == []
            store.operations.undo(done[name].number, now=LATEST)
        assert [kept.seq for kept in store.messages.by_seq(seqs)] == seqs

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_what_was_forgotten_twice_stays_so_while_one_forgetting_stands(
        self, store: Store, order: tuple[int, int]
    ) -> None:
        """Also what it says is not taken in again until then."""
        known = replace(session(), title="Tides")
        store.messages.append(known, [said("one")], counter=COUNTER, now=NOW)
        old, title = some(store, 1)[0], (SessionTitle("s", "Tides"),)
        both = [
            store.operations.change(
                OperationWrite(verb=OperationKind.FORGET, forgotten=(old.id,), titles=title, messages=(1,)), now=LATER
            )
            for _ in range(2)
        ]
        assert [(each.hidden, each.messages, each.figures["titles"]) for each in both] == [(1, 1, 1)] * 2
        assert store.tombstones.titles() == title
        store.operations.undo(both[order[0]].number, now=LATEST)
        assert (texts(store, hidden=True), store.tombstones.match([old]), store.messages.by_seq([1])) == (
            [],
            (True,),
            (),
        )
        assert store.sessions.find("s") == replace(known, title=None)
        store.operations.undo(both[order[1]].number, now=LATEST)
        assert (texts(store), store.tombstones.match([old]), store.sessions.find("s")) == (["row 1"], (False,), known)
        assert len(store.messages.by_seq([1])) == 1

    def test_what_is_deleted_is_deleted_for_all_that_had_it_aside(self, store: Store) -> None:
        """What is left of one of them comes back; one that nothing is left of is final."""
        seqs = keep(store, "one", "two")
        observe(store)
        rows = some(store, 1)
        whole = [prune(store, messages=tuple(seqs)), forget(store, *rows, messages=(seqs[0],))]
        last = store.operations.change(
            OperationWrite(verb=OperationKind.FORGET, forgotten=(rows[0].id,), messages=(seqs[0],)),
            now=LATEST,
            for_good=True,
        )
        assert [each.final_at for each in store.operations.history()] == [LATEST, LATEST, None]
        for done in (last, whole[1]):
            with pytest.raises(NotUndoable):
                store.operations.undo(done.number, now=LATEST)
        store.operations.undo(now=LATEST)
        assert [kept.message.text for kept in store.messages.by_seq(seqs)] == ["two"]

    def test_undoing_one_tells_who_else_has_some_of_it_aside_but_not_of_what_was_deleted(self, store: Store) -> None:
        seqs = keep(store, "one", "two", "three")
        observe(store)
        first = forget(store, messages=(seqs[0], seqs[1]))
        second = forget(store, messages=(seqs[1], seqs[2]))
        assert store.operations.preview_undo(first.number).held_by == (second.number,)
        store.operations.erase([second.number], now=LATER)
        found = store.operations.preview_undo(first.number)
        assert (found.held_by, [kept.seq for kept in found.messages]) == ((), [seqs[0]])

    def test_a_row_that_is_named_twice_in_one_change_leaves_its_tombstone(self, store: Store) -> None:
        rows = some(store, 1)
        ids = (rows[0].id, rows[0].id)
        done = store.operations.change(
            OperationWrite(verb=OperationKind.FORGET, forgotten=ids, replaced=ids), now=LATER
        )
        store.rows.add(row(2, text="row 1"))
        assert (done.hidden, texts(store), store.tombstones.match(rows)) == (1, [], (True,))
        store.operations.undo(now=LATEST)
        assert (texts(store), store.tombstones.match(rows)) == (["row 1"], (False,))


class TestPassedOver:
    """Messages that were forgotten while they waited, and come back when the cursor has passed them."""

    def test_they_wait_again_and_are_covered_once(self, store: Store) -> None:
        """F1, D6: exactly once, by a batch of their own, from which the cursor does not move."""
        seqs = keep(store, "one", "two", "three", "four", "five")
        done = forget(store, messages=(seqs[0], seqs[2], seqs[3]))
        observe(store)
        assert store.batches.pending("s").messages == 0
        store.operations.undo(done.number, now=LATEST)
        keep(store, "six")
        assert (
            store.batches.pending("s").messages,
            store.sessions.status().pending,
            store.sessions.summaries()[0].pending,
        ) == (4, 4, 4)
        assert store.batches.pending("s", ahead=True).messages == 1
        assert [each.is_covered for each in store.messages.outline("s")] == [False, True, False, False, True, False]
        shown: list[tuple[bool, list[str]]] = []
        while batch := store.batches.unobserved("s", max_tokens=1000):
            assert store.batches.unobserved_up_to("s", batch.through) == batch
            shown.append((batch.is_late, [kept.message.text for kept in batch.messages]))
            store.batches.record(batch, (), outcome=BatchOutcome.FAILED, now=LATEST, error="no answer")
            assert store.batches.unobserved("s", max_tokens=1000) == batch
            store.batches.record(batch, (), outcome=BatchOutcome.EMPTY, now=LATEST)
            with pytest.raises(StaleBatch):
                store.batches.record(batch, (), outcome=BatchOutcome.EMPTY, now=LATEST)
        assert shown == [(True, ["one"]), (True, ["three", "four"]), (False, ["six"])]
        assert (store.batches.pending("s").messages, store.batches.pending("s").tokens) == (0, {})

    def test_only_rows_of_what_was_said_before_stand_by(self, store: Store) -> None:
        """What was said later is not overruled by it."""
        seqs = keep(store, "one", "two", "three")
        done = forget(store, messages=(seqs[1],))
        observe(store, *(row(n, text=f"row {n}", sources=(seqs[n],)) for n in (0, 2)))
        store.rows.add(row(3, text="noted"))
        store.operations.undo(done.number, now=LATEST)
        late = store.batches.unobserved("s", max_tokens=1000, context_rows=5)
        assert late is not None
        assert [each.text for each in late.context_rows] == ["row 0"]
        store.batches.record(
            late, [row(4, text="row 4", sources=(seqs[1],))], outcome=BatchOutcome.OBSERVED, now=LATEST
        )
        assert [(each.start, each.end) for each in store.batches.covered("s")] == [(0, 3), (1, 2)]

    def test_forgotten_again_they_do_not_wait_until_that_is_undone(self, store: Store) -> None:
        seqs = keep(store, "one", "two")
        done = forget(store, messages=(seqs[0],))
        observe(store)
        store.operations.undo(done.number, now=LATEST)
        late = store.batches.unobserved("s", max_tokens=1000)
        again = forget(store, messages=(seqs[0],))
        assert store.batches.unobserved("s", max_tokens=1000) is None
        assert late is not None
        with pytest.raises(StaleBatch):
            store.batches.record(late, (), outcome=BatchOutcome.EMPTY, now=LATEST)
        store.operations.undo(again.number, now=LATEST)
        assert store.batches.unobserved("s", max_tokens=1000) == late
        store.batches.record(late, (), outcome=BatchOutcome.EMPTY, now=LATEST)
        pruned = prune(store, messages=(seqs[0],))
        store.operations.undo(pruned.number, now=LATEST)
        assert store.batches.pending("s").messages == 0, "what was covered stays covered"

    def test_one_that_comes_back_before_the_cursor_is_covered_with_what_follows(self, store: Store) -> None:
        seqs = keep(store, "one", "two")
        store.operations.undo(forget(store, messages=(seqs[0],)).number, now=LATEST)
        batch = store.batches.unobserved("s", max_tokens=1000)
        assert batch is not None
        assert ([kept.seq for kept in batch.messages], batch.is_late) == (seqs, False)
        store.batches.record(batch, (), outcome=BatchOutcome.EMPTY, now=LATEST)
        assert store.batches.unobserved("s", max_tokens=1000) is None

    def test_a_block_that_was_made_without_one_goes_however_often_it_was_forgotten(self, store: Store) -> None:
        seqs = keep(store, "one", "two")
        first = forget(store, messages=(seqs[0],))
        batch = store.batches.unobserved("s", max_tokens=1000)
        assert batch is not None
        observed = Observed(drafts=(Draft(text="two", type=Type.FACT, importance=5, sources=(seqs[1],)),))
        block = BufferedBatch(batch=batch, begins=0, observed=observed, ids=(row(1).id,), source=Source.MODEL, at=LATER)
        store.batches.buffer(block)
        second = store.operations.change(OperationWrite(verb=OperationKind.FORGET, messages=(seqs[0],)), now=LATEST)
        store.operations.undo(first.number, now=LATEST)
        assert len(store.batches.buffered("s")) == 1
        store.operations.undo(second.number, now=LATEST)
        assert store.batches.buffered("s") == ()
        again = store.batches.unobserved("s", max_tokens=1000)
        assert again is not None
        assert [kept.seq for kept in again.messages] == seqs

    def test_a_block_of_which_nothing_is_left_is_written_down_once(self, store: Store) -> None:
        """S2.10: where two have read it; what comes back then waits, and is covered."""
        seqs = keep(store, "one", "two")
        batch = store.batches.unobserved("s", max_tokens=1000)
        assert batch is not None
        observed = Observed(drafts=())
        store.batches.buffer(
            BufferedBatch(batch=batch, begins=0, observed=observed, ids=(), source=Source.MODEL, at=NOW)
        )
        done = forget(store, messages=tuple(seqs))
        [block] = store.batches.buffered("s")
        assert block.batch.messages == ()
        store.batches.record(block.batch, (), outcome=BatchOutcome.EMPTY, now=LATER)
        with pytest.raises(StaleBatch):
            store.batches.record(block.batch, (), outcome=BatchOutcome.EMPTY, now=LATER)
        store.operations.undo(done.number, now=LATEST)
        observe(store)
        assert store.batches.pending("s").messages == 0

    def test_deleted_for_good_they_wait_no_more(self, store: Store) -> None:
        seqs = keep(store, "one", "two")
        store.operations.change(
            OperationWrite(verb=OperationKind.FORGET, messages=(seqs[0],)), now=LATER, for_good=True
        )
        observe(store)
        assert store.batches.pending("s").messages == 0


class TestPicturesOfSeveral:
    """An image that several messages have stays until the last of them is observed."""

    def shown(self, store: Store, *texts: str) -> list[int]:
        image = Image(media_type="image/png", size=4, sha256="ab" * 32, content=b"seen")
        store.messages.append(session(), [said(text, images=(image,)) for text in texts], counter=COUNTER, now=NOW)
        return [kept.seq for kept in store.messages.newest("s", len(texts))]

    def cover(self, store: Store, messages: int) -> None:
        batch = store.batches.unobserved("s", max_tokens=1000, max_messages=messages)
        assert batch is not None
        store.batches.record(batch, (), outcome=BatchOutcome.EMPTY, now=LATER)

    def test_one_waits_while_another_is_covered(self, store: Store) -> None:
        self.shown(store, "one", "two")
        self.cover(store, 1)
        assert store.messages.image("ab" * 32) == b"seen"
        self.cover(store, 1)
        assert store.messages.image("ab" * 32) is None

    @pytest.mark.parametrize("for_good", [False, True])
    def test_one_that_was_forgotten_while_it_waited_may_come_back(self, store: Store, *, for_good: bool) -> None:
        seqs = self.shown(store, "one", "two")
        done = store.operations.change(
            OperationWrite(verb=OperationKind.FORGET, messages=(seqs[0],)), now=LATER, for_good=for_good
        )
        assert store.messages.image("ab" * 32) == b"seen"
        self.cover(store, 1)
        assert store.messages.image("ab" * 32) == (None if for_good else b"seen")
        if not for_good:
            store.operations.undo(done.number, now=LATEST)
            self.cover(store, 1)
            assert store.messages.image("ab" * 32) is None

    def test_deleting_one_leaves_what_another_waits_with(self, store: Store) -> None:
        seqs = self.shown(store, "one", "two")
        forgotten = forget(store, messages=(seqs[1],))
        store.operations.change(
            OperationWrite(verb=OperationKind.FORGET, messages=(seqs[0],)), now=LATER, for_good=True
        )
        assert store.messages.image("ab" * 32) == b"seen"
        store.operations.erase([forgotten.number], now=LATEST)
        assert store.messages.image("ab" * 32) is None


class TestErasing:
    """Deleting for good."""

    def test_a_pruning_of_which_a_row_is_forgotten_meanwhile_can_be_taken_back_after_that(self, store: Store) -> None:
        """D6: the other row of it was deleted; else the forgotten one would stay out of sight for ever."""
        rows = some(store, 1, 2)
        pruned = prune(store, *rows)
        forgotten = forget(store, rows[0])
        gone = OperationWrite(verb=OperationKind.PRUNE, scope=SCOPE, dropped=(Dropped(row=rows[1].id, reason="old"),))
        store.operations.change(gone, now=LATER, for_good=True)
        store.operations.undo(forgotten.number, now=LATEST)
        assert texts(store) == []
        store.operations.undo(pruned.number, now=LATEST)
        assert texts(store) == ["row 1"]

    def test_rows_go_on_to_cite_messages_that_were_deleted(self, store: Store) -> None:
        """T54: sources intact."""
        seqs = keep(store, "one", "two")
        kept = row(1, text="row 1", sources=tuple(seqs))
        store.rows.add(kept)
        done = prune(store, messages=(seqs[0],))
        for _ in range(2):
            found = store.rows.find(kept.id)
            assert (found.sources, found.message_ids) == (tuple(seqs), ("k-one", "k-two"))
            assert [each.message.text for each in store.messages.by_seq(seqs)] == ["two"]
            store.operations.erase([done.number], now=LATEST)
        assert [each.message.text for each in store.search.messages("")] == ["two"]

    def test_a_change_for_good_deletes_at_once_what_it_names(self, store: Store) -> None:
        """Rows that are out of sight already as well; that operation then can't be taken back any more."""
        old = some(store, 1, 2)
        reflect(store, row(3, text="both"), *old)
        dropped = tuple(Dropped(row=each.id, reason="pruned") for each in (old[0], row(3)))
        done = store.operations.change(
            OperationWrite(verb=OperationKind.PRUNE, dropped=dropped), now=LATER, for_good=True
        )
        assert texts(store, hidden=True) == [], "what the reflection took the place of goes with it"
        assert (done.final_at, done.figures["rows"]) == (LATER, 3)
        [_, reflected] = store.operations.history()
        assert reflected.final_at == LATER
        with pytest.raises(NotUndoable):
            store.operations.undo(now=LATEST)

    def test_a_pruning_of_which_some_rows_were_deleted_can_be_taken_back_for_the_others(self, store: Store) -> None:
        rows = some(store, 1, 2)
        prune(store, *rows)
        dropped = (Dropped(row=rows[0].id, reason="pruned"),)
        store.operations.change(OperationWrite(verb=OperationKind.PRUNE, dropped=dropped), now=LATER, for_good=True)
        store.operations.undo(now=LATEST)
        assert texts(store) == ["row 2"]

    def test_erasing_nothing_deletes_nothing(self, store: Store) -> None:
        prune(store, *some(store, 1))
        assert (store.operations.erase((), now=LATEST).rows, store.operations.erase((4711,), now=LATEST).rows) == (0, 0)
        store.operations.undo(now=LATEST)
        assert texts(store) == ["row 1"]

    def test_what_was_taken_out_of_sight_is_gone_and_does_not_come_back(self, store: Store) -> None:
        """F16: cursors, identities and tombstones stay."""
        seqs = keep(store, "one", "two")
        observe(
            store, *(rows := [row(1, text="row 1", sources=(seqs[0],)), row(2, text="row 2"), row(3, text="row 3")])
        )
        pruned, forgotten = prune(store, rows[0], messages=(seqs[0],)), forget(store, rows[1])
        again = forget(store, rows[1], messages=(seqs[0],))
        numbers = [pruned.number, forgotten.number, again.number]
        foreseen = store.operations.preview_erase(numbers)
        erased = store.operations.erase(numbers, now=LATEST)
        assert (foreseen.rows, foreseen.messages) == (erased.rows, erased.messages) == (2, 1), "each once"
        assert texts(store, hidden=True) == ["row 3"]
        assert [each.final_at for each in store.operations.history()] == [LATEST] * 3
        for number in (*numbers, None):
            with pytest.raises(NotUndoable):
                store.operations.undo(number, now=LATEST)
        store.rows.add(row(4, text="row 2"), row(5, text="row 1"))
        assert texts(store) == ["row 3", "row 1"], "what was pruned may be said again; what was forgotten may not"
        assert store.messages.append(session(), [said("one")], counter=COUNTER, now=LATEST).new == (False,)
        assert store.batches.pending("s").messages == 0

    def test_what_was_taken_back_before_is_not_deleted(self, store: Store) -> None:
        rows = some(store, 1)
        done = prune(store, *rows)
        store.operations.undo(now=LATEST)
        assert store.operations.erase([done.number], now=LATEST).rows == 0
        assert texts(store) == ["row 1"]


def test_a_row_by_hand_takes_the_place_of_another_one_and_both_are_taken_back(store: Store) -> None:
    """S4.16, D6: in one piece."""
    [old] = some(store, 1)
    note = row(9, text="it was the cache", kind=Kind.NOTE)
    done = store.operations.change(
        OperationWrite(
            verb=OperationKind.NOTE, made=(note,), dropped=(Dropped(row=old.id, reason="resolved", by=note.id),)
        ),
        now=LATER,
    )
    assert (done.made, done.hidden, done.can_be_undone) == (1, 1, True)
    hidden = store.rows.find(old.id)
    assert (hidden.superseded_by, hidden.reason) == (note.id, "resolved")
    assert store.rows.find(note.id).is_visible
    store.operations.undo(now=LATEST)
    assert store.rows.find(old.id).is_visible
    assert not store.rows.find(note.id).is_visible


def test_the_traces_of_a_row_tell_how_it_came_to_be_and_what_became_of_it(store: Store) -> None:
    """S0.40."""
    old = some(store, 1, 2)
    reflect(store, row(3, text="both"), *old)
    [reflected] = store.operations.history()
    done = prune(store, row(3))
    made = store.operations.traces(row(3).id)
    assert (made.made_by, made.hidden_by) == (reflected, done)
    assert [each.text for each in made.made_of] == ["row 1", "row 2"]
    assert [each.text for each in made.replaced] == ["row 1", "row 2"]
    assert (made.made_into, made.successor) == ((), None)
    source = store.operations.traces(old[0].id)
    assert (source.made_by, source.hidden_by) == (None, reflected)
    assert source.successor is not None
    assert source.successor.text == "both"
    assert [each.text for each in source.made_into] == ["both"]
    with pytest.raises(UnknownId):
        store.operations.traces(row(9).id)


def test_the_outline_of_a_session_is_all_its_messages_without_what_they_say(store: Store) -> None:
    keep(store, "one", "two")
    observe(store)
    store.messages.append(session(), [call("x"), said("three", agent="side", at=LATER)], counter=COUNTER, now=NOW)
    assert [
        (each.role, each.call_id, each.at, each.is_main, each.is_covered) for each in store.messages.outline("s")
    ] == [
        (Role.USER, None, None, True, True),
        (Role.USER, None, None, True, True),
        (Role.CALL, "x", None, True, False),
        (Role.USER, None, LATER, False, False),
    ]
    assert store.messages.outline("nobody") == ()


def test_every_message_is_read_in_order_also_what_is_put_aside(store: Store) -> None:
    seqs = keep(store, "one", "two", "three")
    forget(store, messages=(seqs[1],))
    assert [kept.message.text for kept in store.search.messages("")] == ["one", "two", "three"]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["prune", "forget", "reflect", "undo", "title"]),
        st.sets(st.integers(0, 5), min_size=1, max_size=3),
        st.integers(1, 8),
    ),
    max_size=8,
)


@pytest.mark.parametrize("kind", ["file", "memory"])
@given(changes=CHANGES)
@examples(60)
def test_whatever_was_done_undoing_all_of_it_ends_where_it_began(kind: str, changes: list[Any]) -> None:
    """C20: rows, messages, titles and what is forgotten, to the byte."""
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(dir=IN_MEMORY))
        store: Store = MemoryStore()
        if kind == "file":
            (Path(folder) / "om.db").write_bytes(empty_store())
            store = opened.enter_context(SqliteStore.open(Path(folder) / "om.db", wait=1))
        store.messages.append(
            replace(session(), title="Tides"), [said(f"m {number}") for number in range(6)], counter=COUNTER, now=NOW
        )
        batch = store.batches.unobserved("s", max_tokens=1000)
        assert batch is not None
        seqs = [kept.seq for kept in batch.messages]
        observe(store, *(row(number, text=f"row {number}", sources=(seqs[number],)) for number in range(6)))
        before = all_of(store)
        for at, (what, chosen, number) in enumerate(changes):
            with suppress(NotUndoable, StaleBatch):
                do(store, what, chosen, number, at=at, seqs=seqs)
        with suppress(NotUndoable):
            while True:
                store.operations.undo(now=LATEST)
        assert all_of(store) == before
        assert not any(store.tombstones.match([row(number, text=f"row {number}") for number in range(6)]))


def do(store: Store, what: str, chosen: set[int], number: int, *, at: int, seqs: list[int]) -> None:
    some_rows = [row(each) for each in chosen]
    if what == "prune":
        prune(store, *some_rows, messages=tuple(seqs[each] for each in chosen))
    elif what == "forget":
        forget(store, *some_rows, messages=tuple(seqs[each] for each in chosen))
    elif what == "reflect":
        seen = [logged.observation for logged in store.rows.log(LogQuery())][:3]
        reflect(store, row(100 + at, text=f"folded {at}"), *seen)
    elif what == "undo":
        store.operations.undo(number, now=LATEST)
    else:
        store.operations.change(
            OperationWrite(verb=OperationKind.FORGET, titles=(SessionTitle("s", "Tides"),)), now=LATER
        )


def all_of(store: Store) -> object:
    """What anybody sees of a store."""
    rows = list(store.rows.log(LogQuery()))
    return (
        rows,
        store.messages.tail("s", max_tokens=1000),
        store.sessions.find("s"),
        store.batches.covered("s")[0].start,
        store.messages.outline("s"),
    )


def test_history_is_the_newest_first_without_what_came_to_nothing(store: Store) -> None:
    rows = some(store, 1, 2)
    store.reflections.fold(
        ReflectionWrite(scope=SCOPE, fingerprint="x", ending=ReflectionOutcome.EMPTY, read=(rows[0].id,)),
        now=NOW,
    )
    prune(store, rows[0])
    forget(store, rows[1])
    store.operations.undo(now=LATEST)
    assert [each.verb for each in store.operations.history()] == [
        OperationKind.UNDO,
        OperationKind.FORGET,
        OperationKind.PRUNE,
    ]
    assert [each.verb for each in store.operations.history(last=2)] == [OperationKind.UNDO, OperationKind.FORGET]


def test_an_operation_is_taken_back_once_and_an_undoing_not_at_all(store: Store) -> None:
    rows = some(store, 1)
    done = prune(store, *rows)
    undone = store.operations.undo(done.number, now=LATEST)
    for number in (done.number, undone.number, 4711, None):
        with pytest.raises(NotUndoable):
            store.operations.undo(number, now=LATEST)
    assert texts(store) == ["row 1"]
