"""Promises of every store about messages that wait, and the rows observed in them: `memory.ports.Batches`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omcli.base.errors import StaleBatch
from omcli.memory.batch import BatchOutcome, Pending
from omcli.memory.message import MessageKind, Role
from omcli.memory.observation import Kind, Observation, Replacement, Status, Type
from omcli.memory.ports import Lane, Store
from tests.contract.keeping import keep, logged, next_batch, texts
from tests.material import COUNTER, LATER, NOW, call, result, row, row_id, said


class TestPending:
    """What no observation covers yet, and what was offered already."""

    def test_messages_and_tokens_of_what_waits_are_told_by_counter(self, store: Store) -> None:
        keep(store, said("one", tokens=3), said("two", tokens=4))
        keep(store, said("three", tokens=5), counter="chars-4")
        store.batches.record(next_batch(store, max_tokens=3), [], outcome=BatchOutcome.EMPTY, now=NOW)
        assert store.batches.pending("s") == Pending(
            messages=2, counted=2, tokens={COUNTER: 4, "chars-4": 5}, fresh_tokens={COUNTER: 4, "chars-4": 5}, after=1
        )
        assert store.batches.pending("nobody") == Pending(messages=0, counted=0, tokens={}, fresh_tokens={})

    def test_a_deferred_batch_stays_uncovered_and_is_no_longer_fresh(self, store: Store) -> None:
        """T13: the cursor stays; what was offered is remembered, and what is used is used all the same."""
        keep(store, said("one", tokens=3))
        old = row(1)
        store.rows.add(old)
        batch = next_batch(store)
        store.batches.record(batch, [], outcome=BatchOutcome.DEFERRED, now=LATER, used=[old.id])
        keep(store, said("two", tokens=4))
        again = next_batch(store)
        assert (again.after, again.deferred_through, texts(again.messages)) == (0, batch.through, ["one", "two"])
        assert store.batches.pending("s") == Pending(
            messages=2, counted=2, tokens={COUNTER: 7}, fresh_tokens={COUNTER: 4}
        )
        assert store.rows.find(old.id).last_used_at == LATER
        store.batches.record(again, [row(2, sources=(1,))], outcome=BatchOutcome.OBSERVED, now=LATER)
        assert store.batches.unobserved("s", max_tokens=10) is None

    def test_the_newest_messages_that_wait_can_be_read_ahead_of_their_turn(self, store: Store) -> None:
        """XB1: for a pack; at least one, and nothing that is covered."""
        keep(store, *(said(text, tokens=3) for text in ("one", "two", "three", "four")))
        store.batches.record(next_batch(store, max_tokens=3), [], outcome=BatchOutcome.EMPTY, now=NOW)
        newest = store.batches.newest_unobserved("s", max_tokens=6)
        assert newest is not None
        assert texts(newest.messages) == ["three", "four"]
        whole = store.batches.newest_unobserved("s", max_tokens=100)
        assert whole is not None
        assert texts(whole.messages) == ["two", "three", "four"]
        least = store.batches.newest_unobserved("s", max_tokens=1)
        assert least is not None
        assert texts(least.messages) == ["four"]
        assert store.batches.newest_unobserved("nobody", max_tokens=9) is None
        pending = store.batches.pending("s")
        assert (pending.first, pending.besides([1, 3, 3, 9])) == (2, 1)

    def test_a_batch_holds_at_most_so_many_messages(self, store: Store) -> None:
        """S0.18: the oldest of them."""
        keep(store, *(said(text) for text in ("one", "two", "three", "four")))
        batch = store.batches.unobserved("s", max_tokens=1000, max_messages=3)
        assert batch is not None
        assert texts(batch.messages) == ["one", "two", "three"]

    def test_a_call_waits_for_its_result_where_a_batch_of_so_many_can_hold_both(self, store: Store) -> None:
        """F71."""
        keep(store, said("one"), call("c"), result("c"))
        first = store.batches.unobserved("s", max_tokens=1000, max_messages=2)
        assert first is not None
        assert [kept.message.role for kept in first.messages] == [Role.USER]


class TestUnobserved:
    def test_there_is_no_batch_where_nothing_was_said(self, store: Store) -> None:
        """T8."""
        assert store.batches.unobserved("s", max_tokens=100) is None
        keep(store)
        assert store.batches.unobserved("s", max_tokens=100) is None

    def test_a_batch_holds_the_oldest_messages_that_fit(self, store: Store) -> None:
        """T10, F17: the rest stays pending, for the next batch."""
        keep(store, *(said(f"{number}", tokens=4) for number in range(5)))
        batch = next_batch(store, max_tokens=10)
        assert texts(batch.messages) == ["0", "1"]
        assert (batch.session, batch.after, batch.through, batch.cwd) == ("s", 0, 2, "/src/app")

    def test_a_batch_is_filled_to_the_last_token(self, store: Store) -> None:
        keep(store, *(said(f"{number}", tokens=5) for number in range(3)))
        assert texts(next_batch(store, max_tokens=10).messages) == ["0", "1"]

    def test_a_message_larger_than_the_limit_makes_a_batch_of_its_own(self, store: Store) -> None:
        """F13: it holds nothing up."""
        keep(store, said("huge", tokens=1000), said("small", tokens=1))
        assert texts(next_batch(store, max_tokens=10).messages) == ["huge"]

    def test_a_batch_holds_one_session_only(self, store: Store) -> None:
        """S2.24: the messages of other sessions stay where they are."""
        keep(store, said("a1"), to="a")
        keep(store, said("b1"), to="b")
        keep(store, said("a2"), to="a")
        batch = next_batch(store, "a")
        assert texts(batch.messages) == ["a1", "a2"]
        store.batches.record(batch, [], outcome=BatchOutcome.EMPTY, now=NOW)
        assert texts(next_batch(store, "b").messages) == ["b1"]

    def test_messages_of_subagents_and_events_are_observed_too(self, store: Store) -> None:
        keep(store, said("side", agent="explorer"), said("/compact", role=Role.EVENT, kind=MessageKind.COMMAND))
        assert len(next_batch(store).messages) == 2

    def test_a_message_with_an_old_time_that_arrives_late_is_pending(self, store: Store) -> None:
        """F12: the cursor is the order of arrival, never a time."""
        keep(store, said("new", at="2026-03-02T09:00:00.000Z"))
        store.batches.record(next_batch(store), [], outcome=BatchOutcome.EMPTY, now=NOW)
        keep(store, said("old", at="2020-01-01T00:00:00.000Z"))
        assert texts(next_batch(store).messages) == ["old"]

    def test_a_batch_does_not_end_between_a_call_and_its_result(self, store: Store) -> None:
        """F71."""
        keep(store, said("go"), call("a"), result("a"))
        assert texts(next_batch(store, max_tokens=20).messages) == ["go"]

    def test_a_batch_ends_at_a_call_whose_result_is_too_large_to_stand_with_it(self, store: Store) -> None:
        keep(store, said("go"), call("a"), result("a", tokens=15))
        batch = next_batch(store, max_tokens=20)
        assert [kept.key for kept in batch.messages] == ["k-go", "call-a"]

    def test_calls_and_results_that_interlock_from_the_first_message_on_are_parted(self, store: Store) -> None:
        keep(store, call("a"), call("b", tokens=1), result("a"), result("b"))
        batch = next_batch(store, max_tokens=22)
        assert [kept.key for kept in batch.messages] == ["call-a", "call-b", "result-a"]

    def test_a_call_without_a_result_holds_nothing_up(self, store: Store) -> None:
        keep(store, said("go"), call("a"), said("stop"))
        assert len(next_batch(store, max_tokens=20).messages) == 2

    def test_covered_calls_come_along_with_the_results_they_belong_to(self, store: Store) -> None:
        keep(store, call("a"), call("b"), said("wait"))
        store.batches.record(next_batch(store), [], outcome=BatchOutcome.EMPTY, now=NOW)
        keep(store, call("c"), result("c"), result("b"), result("orphan"))
        assert [kept.key for kept in next_batch(store).earlier_calls] == ["call-b"]

    def test_of_covered_calls_with_one_id_the_latest_comes_along(self, store: Store) -> None:
        keep(store, call("a", text="{}1"), call("a", text="{}2"))
        store.batches.record(next_batch(store), [], outcome=BatchOutcome.EMPTY, now=NOW)
        keep(store, call("a"), to="elsewhere")
        keep(store, result("a"))
        assert [kept.key for kept in next_batch(store).earlier_calls] == ["call-a2"]

    def test_a_result_after_its_call_in_the_batch_needs_no_earlier_call(self, store: Store) -> None:
        keep(store, call("a", text="{}1"))
        store.batches.record(next_batch(store), [], outcome=BatchOutcome.EMPTY, now=NOW)
        keep(store, call("a", text="{}2"), result("a"))
        assert next_batch(store).earlier_calls == ()

    def test_what_the_agent_last_said_before_the_batch_comes_along(self, store: Store) -> None:
        keep(store, said("shall I?", role=Role.ASSISTANT), said("aside", role=Role.ASSISTANT, agent="side"), call("a"))
        first = next_batch(store)
        assert first.last_said is None
        store.batches.record(first, [], outcome=BatchOutcome.EMPTY, now=NOW)
        keep(store, said("yes"))
        last = next_batch(store).last_said
        assert last is not None
        assert last.message.text == "shall I?"


class TestShownAgain:
    """A batch that somebody was shown, and answers later."""

    def test_it_is_the_same_whatever_was_said_since(self, store: Store) -> None:
        keep(store, said("one"), call("c"))
        shown = next_batch(store)
        keep(store, result("c"), said("two"))
        assert store.batches.unobserved_up_to("s", shown.through) == shown

    def test_what_is_covered_or_elsewhere_is_no_batch(self, store: Store) -> None:
        keep(store, said("one"), said("two"))
        keep(store, said("other"), to="other")
        assert store.batches.unobserved_up_to("s", 3) is None
        assert store.batches.unobserved_up_to("nobody", 1) is None
        store.batches.record(next_batch(store, max_tokens=10), (), outcome=BatchOutcome.EMPTY, now=NOW)
        assert store.batches.unobserved_up_to("s", 1) is None
        batch = store.batches.unobserved_up_to("s", 2, context_rows=5)
        assert batch is not None
        assert texts(batch.messages) == ["two"]

    def test_it_comes_with_the_rows_that_stand(self, store: Store) -> None:
        keep(store, said("one"))
        store.rows.add(row(1))
        batch = store.batches.unobserved_up_to("s", 1, context_rows=5)
        assert batch is not None
        assert [standing.id for standing in batch.context_rows] == [row_id(1)]


class TestRecord:
    def test_recording_writes_the_rows_and_moves_the_cursor(self, store: Store) -> None:
        """T8, S2.12: what follows the cursor is what no batch covers."""
        keep(store, said("one"), said("two"))
        store.batches.record(
            next_batch(store, max_tokens=10), [row(1, text="fact")], outcome=BatchOutcome.OBSERVED, now=NOW
        )
        assert logged(store) == ["fact"]
        batch = next_batch(store)
        assert (batch.after, texts(batch.messages)) == (1, ["two"])

    def test_a_batch_with_nothing_worth_noting_is_covered_all_the_same(self, store: Store) -> None:
        """T8: once all is observed there is no batch."""
        keep(store, said("one"))
        store.batches.record(next_batch(store), [], outcome=BatchOutcome.EMPTY, now=NOW)
        assert store.batches.unobserved("s", max_tokens=100) is None

    def test_a_failure_leaves_the_cursor_and_is_reported_until_a_success(self, store: Store) -> None:
        """T15: a pass that changes nothing does not move the cursor."""
        keep(store, said("one"))
        batch = next_batch(store)
        store.batches.record(batch, [], outcome=BatchOutcome.FAILED, now=NOW, error="no answer")
        assert next_batch(store) == batch
        (failure,) = store.sessions.status().errors
        assert (failure.session, failure.lane, failure.at, failure.error) == ("s", Lane.OBSERVE, NOW, "no answer")
        store.batches.record(batch, [row(1)], outcome=BatchOutcome.OBSERVED, now=LATER)
        assert store.sessions.status().errors == ()

    def test_of_several_failures_the_last_is_reported(self, store: Store) -> None:
        for name in ("a", "b"):
            keep(store, said(name), to=name)
        for name, at, error in (("a", NOW, "first"), ("b", NOW, "second"), ("a", LATER, "third")):
            store.batches.record(next_batch(store, name), [], outcome=BatchOutcome.FAILED, now=at, error=error)
        assert [failure.error for failure in store.sessions.status().errors] == ["second", "third"]

    @pytest.mark.parametrize("outcome", list(BatchOutcome))
    def test_a_batch_that_somebody_else_recorded_is_refused_and_leaves_no_trace(
        self, store: Store, outcome: BatchOutcome
    ) -> None:
        """T75, F28: of two who observe the same messages one is told that it came too late."""
        keep(store, said("one"), said("two"))
        batch = next_batch(store)
        store.batches.record(batch, [row(1, text="first")], outcome=BatchOutcome.OBSERVED, now=NOW)
        rows = [row(2, text="second")] if outcome is BatchOutcome.OBSERVED else []
        with pytest.raises(StaleBatch):
            store.batches.record(batch, rows, outcome=outcome, now=LATER, error="late")
        assert logged(store) == ["first"]
        assert store.sessions.status().errors == ()
        assert store.sessions.status().pending == 0

    def test_a_batch_that_begins_where_no_cursor_was_is_refused(self, store: Store) -> None:
        keep(store, said("one"), said("two"))
        batch = replace(next_batch(store), after=1)
        with pytest.raises(StaleBatch):
            store.batches.record(batch, [row(1)], outcome=BatchOutcome.OBSERVED, now=NOW)
        assert next_batch(store).after == 0
        assert logged(store) == []

    def test_a_smaller_batch_read_at_the_same_place_never_moves_the_cursor_back(self, store: Store) -> None:
        """T16: the cursor is the highest position that was covered."""
        keep(store, said("one"), said("two"), said("three"))
        small, large = next_batch(store, max_tokens=10), next_batch(store)
        store.batches.record(large, [], outcome=BatchOutcome.EMPTY, now=NOW)
        with pytest.raises(StaleBatch):
            store.batches.record(small, [], outcome=BatchOutcome.EMPTY, now=NOW)
        assert store.batches.unobserved("s", max_tokens=100) is None

    def test_messages_said_while_the_observer_thinks_are_observed_next_time(self, store: Store) -> None:
        """F1."""
        keep(store, said("before"))
        batch = next_batch(store)
        keep(store, said("meanwhile"))
        store.batches.record(batch, [row(1)], outcome=BatchOutcome.OBSERVED, now=NOW)
        assert texts(next_batch(store).messages) == ["meanwhile"]

    @pytest.mark.parametrize("outcome", [BatchOutcome.EMPTY, BatchOutcome.FAILED])
    def test_rows_of_a_batch_that_gave_none_are_a_mistake(self, store: Store, outcome: BatchOutcome) -> None:
        keep(store, said("one"))
        with pytest.raises(ValueError, match="has no rows"):
            store.batches.record(next_batch(store), [row(1)], outcome=outcome, now=NOW)
        assert store.sessions.status().pending == 1


def test_a_session_is_entitled_once(store: Store) -> None:
    keep(store, said("one"), said("two"))
    store.batches.record(next_batch(store, max_tokens=10), (), outcome=BatchOutcome.EMPTY, now=NOW, title="Tides")
    store.batches.record(next_batch(store), (), outcome=BatchOutcome.EMPTY, now=NOW, title="Ebb")
    found = store.sessions.find("s")
    assert found is not None
    assert found.title == "Tides"


class TestStanding:
    """What was written may be settled or overruled by what is said later: it comes with a batch, and is replaced."""

    def test_the_newest_rows_and_the_newest_that_may_change_come_with_a_batch(self, store: Store) -> None:
        keep(store, said("one"))
        store.rows.add(row(1, text="decided", type=Type.DECISION))
        store.rows.add(row(2, text="asked", type=Type.QUESTION, status=Status.OPEN))
        store.rows.add(row(3, text="done", type=Type.REQUEST, status=Status.DONE))
        store.rows.add(row(4, text="read a", type=Type.FILE_READ))
        store.rows.add(row(5, text="read b", type=Type.FILE_READ))

        def standing(number: int) -> list[str]:
            batch = store.batches.unobserved("s", max_tokens=10, context_rows=number)
            assert batch is not None
            return [observation.text for observation in batch.context_rows]

        assert standing(0) == []
        assert standing(1) == ["asked", "read b"]
        assert standing(2) == ["decided", "asked", "read a", "read b"]
        assert standing(9) == ["decided", "asked", "done", "read a", "read b"]

    def test_rows_come_whole_and_with_their_messages(self, store: Store) -> None:
        keep(store, said("one"), said("two"))
        written = replace(row(1, sources=(1, 2), metadata={"target": "run x"}), message_ids=("k-one", "k-two"))
        store.rows.add(written)
        batch = store.batches.unobserved("s", max_tokens=10, context_rows=5)
        assert batch is not None
        assert batch.context_rows == (written,)

    def test_hidden_rows_notes_and_rows_of_other_sessions_do_not_stand(self, store: Store) -> None:
        keep(store, said("one"))
        store.rows.add(row(1, dropped_at=NOW))
        store.rows.add(row(2, kind=Kind.NOTE))
        store.rows.add(row(3, session="other"))
        store.rows.add(row(4, session=None))
        batch = store.batches.unobserved("s", max_tokens=10, context_rows=5)
        assert batch is not None
        assert batch.context_rows == ()

    def replacing(self, store: Store, *replaced: Replacement, by: Observation) -> None:
        keep(store, said(f"more {by.id}"))
        store.batches.record(next_batch(store), [by], outcome=BatchOutcome.OBSERVED, now=NOW, replaced=replaced)

    def test_a_row_that_is_replaced_goes_out_of_sight_and_says_by_what_and_why(self, store: Store) -> None:
        """Invariant 5: superseded, not edited."""
        store.rows.add(row(1, text="old"))
        why = Replacement(row=row_id(1), by=row_id(2), reason="resolved")
        self.replacing(store, why, by=row(2, text="new"))
        assert logged(store) == ["new"]
        assert logged(store, hidden=True) == ["old", "new"]
        hidden = store.rows.find(row_id(1))
        assert hidden == replace(row(1, text="old"), superseded_by=row_id(2), reason="resolved")
        assert (store.sessions.status().observations, store.sessions.status().hidden) == (1, 1)

    def test_what_is_out_of_sight_already_keeps_its_reason(self, store: Store) -> None:
        store.rows.add(row(1, dropped_at=NOW))
        for number in (2, 3):
            why = Replacement(row=row_id(1), by=row_id(number), reason=f"by {number}")
            self.replacing(
                store, why, Replacement(row=row_id(9), by=row_id(number), reason="no such row"), by=row(number)
            )
        assert (store.rows.find(row_id(1)).superseded_by, store.rows.find(row_id(1)).reason) == (None, None)
        why = Replacement(row=row_id(2), by=row_id(4), reason="first")
        self.replacing(store, why, replace(why, by=row_id(3), reason="second"), by=row(4))
        assert (store.rows.find(row_id(2)).superseded_by, store.rows.find(row_id(2)).reason) == (row_id(4), "first")

    def test_a_batch_that_comes_too_late_replaces_nothing(self, store: Store) -> None:
        """F1, T75: rows, replacements and cursor together, or nothing of it."""
        keep(store, said("one"))
        store.rows.add(row(1, text="old"))
        batch = next_batch(store)
        store.batches.record(batch, [], outcome=BatchOutcome.EMPTY, now=NOW)
        why = Replacement(row=row_id(1), by=row_id(2), reason="late")
        with pytest.raises(StaleBatch):
            store.batches.record(batch, [row(2)], outcome=BatchOutcome.OBSERVED, now=NOW, replaced=[why])
        assert logged(store, hidden=True) == ["old"]
        assert store.rows.find(row_id(1)).is_visible

    @pytest.mark.parametrize("outcome", [BatchOutcome.EMPTY, BatchOutcome.FAILED])
    def test_a_batch_without_rows_replaces_nothing(self, store: Store, outcome: BatchOutcome) -> None:
        keep(store, said("one"))
        why = Replacement(row=row_id(1), by=row_id(2), reason="resolved")
        with pytest.raises(ValueError, match="no rows"):
            store.batches.record(next_batch(store), [], outcome=outcome, now=NOW, replaced=[why])
