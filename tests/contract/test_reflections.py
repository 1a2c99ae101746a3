"""Promises of every store about rows that others replace: `memory.ports.Reflections`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from omcli.base.errors import StaleBatch
from omcli.memory.batch import BatchOutcome
from omcli.memory.observation import PINNED, Dropped, Kind, Observation, Replacement, Status
from omcli.memory.ports import Lane, Store
from omcli.memory.reflection import ReflectionOutcome, ReflectionWrite, RowOutline, Scope, fingerprint
from tests.contract.keeping import keep, logged, next_batch
from tests.material import COUNTER, LATER, NOW, row, row_id, said


class TestFolding:
    """Reflections: whole or not at all."""

    SCOPE = Scope(session="s")

    def folding(
        self, *rows: Observation, ending: ReflectionOutcome = ReflectionOutcome.DONE, **more: Any
    ) -> ReflectionWrite:
        read = tuple(old.id for old in rows)
        return ReflectionWrite(
            **{"scope": self.SCOPE, "fingerprint": fingerprint(rows), "ending": ending, "read": read, **more}
        )

    def test_rows_go_out_of_sight_behind_what_was_made_of_them_and_stay_in_the_store(self, store: Store) -> None:
        """T37, C8, D6: nothing is deleted."""
        old = [row(number, text=f"row {number}") for number in (1, 2, 3)]
        for each in old:
            store.rows.add(each)
        made = row(4, text="both", kind=Kind.REFLECTION, generation=1, supports=(old[0].id, old[1].id))
        store.reflections.fold(
            self.folding(
                *old,
                rows=(made,),
                replaced=tuple(Replacement(row=each.id, by=made.id, reason="reflected") for each in old[:2]),
                dropped=(Dropped(row=old[2].id, reason="trivial"),),
                figures={"rows": 3},
            ),
            now=LATER,
        )
        assert logged(store) == ["both"]
        assert logged(store, hidden=True) == ["row 1", "row 2", "row 3", "both"]
        assert store.rows.find(made.id).supports == (old[0].id, old[1].id)
        assert store.rows.find(old[0].id).superseded_by == made.id
        assert (store.rows.find(old[2].id).dropped_at, store.rows.find(old[2].id).reason) == (LATER, "trivial")
        assert [store.reflections.support(each.id) for each in old] == [1, 1, 0]

    def test_what_was_tried_last_on_a_scope_is_known(self, store: Store) -> None:
        """F35: the same rows are not tried again."""
        old = row(1)
        store.rows.add(old)
        assert store.reflections.last_attempt(self.SCOPE) is None
        store.reflections.fold(self.folding(old, ending=ReflectionOutcome.EMPTY, figures={"tokens": 3}), now=NOW)
        store.reflections.fold(
            self.folding(old, scope=Scope(project="/src/app"), ending=ReflectionOutcome.DONE), now=NOW
        )
        found = store.reflections.last_attempt(self.SCOPE)
        assert found is not None
        assert (found.ending, found.fingerprint, found.figures) == (
            ReflectionOutcome.EMPTY,
            fingerprint([old]),
            {"tokens": 3},
        )
        assert store.reflections.last_attempt(Scope()) is None

    def test_what_was_tried_on_rows_is_known_whatever_was_tried_since(self, store: Store) -> None:
        """F35: by the fingerprint of the rows, or of those that were left."""
        old, other = row(1), row(2)
        store.rows.add(old)
        store.rows.add(other)
        store.reflections.fold(self.folding(old, ending=ReflectionOutcome.EMPTY, figures={"left": "those"}), now=NOW)
        store.reflections.fold(self.folding(other, ending=ReflectionOutcome.EMPTY), now=LATER)
        for mark, at in ((fingerprint([old]), NOW), ("those", NOW), (fingerprint([other]), LATER)):
            found = store.reflections.last_attempt(self.SCOPE, mark)
            assert found is not None
            assert found.at == at
        assert store.reflections.last_attempt(self.SCOPE, "others") is None
        assert store.reflections.last_attempt(Scope(), "those") is None

    def test_a_reflection_on_rows_that_changed_meanwhile_writes_nothing(self, store: Store) -> None:
        """F28."""
        keep(store, said("one"))
        old, newer = row(1), row(2, sources=(1,))
        store.rows.add(old)
        gone = [Replacement(row=old.id, by=newer.id, reason="again")]
        store.batches.record(next_batch(store), [newer], outcome=BatchOutcome.OBSERVED, now=NOW, replaced=gone)
        made = row(3, text="late", kind=Kind.REFLECTION, supports=(old.id,))
        with pytest.raises(StaleBatch):
            store.reflections.fold(self.folding(old, rows=(made,)), now=NOW)
        assert "late" not in logged(store, hidden=True)
        assert store.reflections.last_attempt(self.SCOPE) is None

    def test_a_failed_reflection_is_an_error_of_the_store_until_one_succeeds(self, store: Store) -> None:
        old = row(1)
        store.rows.add(old)
        store.reflections.fold(self.folding(old, ending=ReflectionOutcome.FAILED, error="no answer"), now=NOW)
        assert [(error.session, error.lane, error.error) for error in store.sessions.status().errors] == [
            ("s", Lane.REFLECT, "no answer")
        ]
        store.reflections.fold(self.folding(old, ending=ReflectionOutcome.EMPTY), now=LATER)
        assert store.sessions.status().errors == ()

    def test_a_batch_and_a_folding_are_written_together(self, store: Store) -> None:
        keep(store, said("one"))
        store.rows.add(row(1))
        folding = ReflectionWrite(
            scope=Scope(session="s"),
            fingerprint="f",
            ending=ReflectionOutcome.DONE,
            read=(row_id(1),),
            rows=(row(2, kind=Kind.REFLECTION, text="folded", supports=(row_id(1),)),),
            replaced=(Replacement(row=row_id(1), by=row_id(2), reason="reflected"),),
        )
        observed = row(3, text="observed", sources=(1,))
        # The batch replaces the same row: the reflection came first.
        replaced = [Replacement(row=row_id(1), by=row_id(3), reason="replaced")]
        store.batches.record(
            next_batch(store), [observed], outcome=BatchOutcome.OBSERVED, now=NOW, replaced=replaced, folding=folding
        )
        assert logged(store) == ["folded", "observed"]
        assert store.rows.find(row_id(1)).superseded_by == row_id(2)
        assert store.batches.pending("s").messages == 0

    def test_neither_is_where_one_cannot_be(self, store: Store) -> None:
        keep(store, said("one"))
        store.rows.add(row(1))
        batch = next_batch(store)
        new = row(2, kind=Kind.REFLECTION, text="folded")
        late = ReflectionWrite(
            scope=Scope(session="s"), fingerprint="f", ending=ReflectionOutcome.DONE, read=(row_id(9),), rows=(new,)
        )
        with pytest.raises(StaleBatch):
            store.batches.record(batch, [row(3, sources=(1,))], outcome=BatchOutcome.OBSERVED, now=NOW, folding=late)
        assert (logged(store), store.batches.pending("s").messages) == (["a fact"], 1)
        store.batches.record(batch, (), outcome=BatchOutcome.EMPTY, now=NOW)
        with pytest.raises(StaleBatch):
            store.batches.record(
                batch, (), outcome=BatchOutcome.EMPTY, now=NOW, folding=replace(late, read=(row_id(1),))
            )
        assert logged(store) == ["a fact"]
        assert store.reflections.last_attempt(Scope(session="s")) is None


class TestOutlines:
    """Rows to fold across sessions."""

    def test_what_is_young_pinned_open_or_was_folded_before_is_left_out(self, store: Store) -> None:
        """T45, T46, S2.25: a reflection of one session, a plain row and an old note are not, nor words like tags."""
        store.rows.add(
            row(1, text="global", kind=Kind.REFLECTION, tags=("global",)),
            row(2, text="of no session", kind=Kind.REFLECTION, session=None),
            row(3, text="local", kind=Kind.REFLECTION, tags=("globally", 'say "global"')),
            row(4, text="raw", tags=("global",)),
            row(5, text="pinned", tags=("a", PINNED)),
            row(6, text="as if pinned", tags=(f"un{PINNED}", f'"{PINNED}"')),
            row(7, text="note", kind=Kind.NOTE, session=None),
            row(8, text="item", kind=Kind.ITEM, session=None),
            row(9, text="open", status=Status.OPEN),
            row(10, text="done", status=Status.DONE),
            row(11, text="hidden", dropped_at=NOW),
            row(12, text="new", event_at=LATER),
            row(13, text="of old", observed_at=LATER, event_at=NOW),
        )
        found = store.reflections.outline(before=LATER, kept="global", counter="another")
        assert [each.tokens for each in found] == ["local", "raw", "as if pinned", "note", "done", "of old"]
        assert store.sessions.row_count((Kind.OBSERVATION, Kind.REFLECTION, Kind.NOTE)) == 11
        assert store.sessions.row_count((Kind.OBSERVATION,), session="s", hidden=True) == 8
        assert store.sessions.row_count(Kind, session="no one's") == 0

    def test_rows_come_by_project_and_the_oldest_first(self, store: Store) -> None:
        """S2.26: those of the same instant as they were added."""
        places = ("/a", LATER), ("/b", NOW), (None, LATER), ("/a", LATER), ("/a", NOW), (None, NOW)
        store.rows.add(*(row(nth, project=of, event_at=at) for nth, (of, at) in enumerate(places, start=1)))
        found = list(store.reflections.outline(before="3", kept="global", counter=COUNTER))
        assert found == [
            RowOutline(project=of, dated=at, position=position, tokens=3)
            for of, at, position in (
                (None, NOW, 6), (None, LATER, 3), ("/a", NOW, 5), ("/a", LATER, 1), ("/a", LATER, 4), ("/b", NOW, 2)
            )
        ]  # fmt: skip

    def test_the_ids_of_rows_are_sorted(self, store: Store) -> None:
        store.rows.add(*(row(number) for number in (3, 1, 4, 2)))
        assert list(store.reflections.ids([1, 2, 4])) == [(row_id(1), 2), (row_id(2), 4), (row_id(3), 1)]
