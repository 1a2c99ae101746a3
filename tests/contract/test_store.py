"""What every store promises: `memory.ports.Store`, for the file and for the fake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from omcli.memory.bookmark import Bookmark, Origin, TakenIn
from omcli.memory.changes import Change, Verb
from omcli.memory.errors import LaneTaken, SessionTaken, StaleBatch, UnknownId
from omcli.memory.folding import Ending, Folding, Scope, fingerprint
from omcli.memory.message import Aside, Image, Message, Role, digest
from omcli.memory.observation import Kind, Observation, Priority, Source, Status, Type
from omcli.memory.ports import Batch, Covered, Incoming, Lane, LogQuery, Outcome, Pending, Replacement, Store
from omcli.memory.roles import Dropped
from omcli.memory.session import Session
from tests.contract.conftest import MakeStore
from tests.material import COUNTER, LATER, NOW, call, result, row, row_id, said, session


def keep(store: Store, *messages: Incoming, to: str = "s", now: str = NOW, counter: str = COUNTER) -> tuple[bool, ...]:
    return store.append(session(to), messages, counter=counter, now=now).new


def texts(messages: Sequence[object]) -> list[str]:
    return [kept.message.text for kept in messages]  # type: ignore[attr-defined]


def next_batch(store: Store, name: str = "s", *, max_tokens: int = 1000) -> Batch:
    batch = store.unobserved(name, max_tokens=max_tokens)
    assert batch is not None, f"session {name} has messages that nothing covers"
    return batch


def logged(store: Store, **narrowed: object) -> list[str]:
    return [entry.observation.text for entry in store.log(LogQuery(**narrowed))]  # type: ignore[arg-type]


class TestBookmarks:
    """How far files were taken in."""

    HERE = Origin(path="/transcripts/tide.jsonl", terms="as they are")
    FIRST = Bookmark(offset=10, digest=b"1" * 32, found="{}", carried=b"\x00known")
    LAST = Bookmark(offset=12, digest=b"2" * 32, found='{"messages": 3}')

    def test_they_come_back_as_they_were_put(self, store: Store) -> None:
        assert store.bookmarks(self.HERE) == ()
        store.put_bookmarks(self.HERE, [self.FIRST, self.LAST])
        assert store.bookmarks(self.HERE) == (self.FIRST, self.LAST)

    def test_new_ones_take_the_place_of_those_that_were_there_on_whatever_terms(self, store: Store) -> None:
        others = replace(self.HERE, terms="otherwise")
        store.put_bookmarks(self.HERE, [self.FIRST, self.LAST])
        store.put_bookmarks(others, [self.FIRST])
        assert (store.bookmarks(self.HERE), store.bookmarks(others)) == ((), (self.FIRST,))
        store.put_bookmarks(others, [])
        assert store.bookmarks(others) == ()

    def test_every_file_has_its_own(self, store: Store) -> None:
        there = replace(self.HERE, path="/transcripts/moon.jsonl")
        store.put_bookmarks(self.HERE, [self.FIRST])
        store.put_bookmarks(there, [self.LAST])
        assert (store.bookmarks(self.HERE), store.bookmarks(there)) == ((self.FIRST,), (self.LAST,))

    def test_a_path_that_is_no_unicode_is_a_path(self, store: Store) -> None:
        odd = replace(self.HERE, path="/transcripts/\udcff.jsonl")
        store.put_bookmarks(odd, [self.FIRST])
        assert store.bookmarks(odd) == (self.FIRST,)

    def test_every_file_that_was_taken_in_is_told_with_what_it_was_then(self, store: Store) -> None:
        """The stamp is that of the last bookmark; a file without bookmarks was not taken in."""
        there = Origin(path="/transcripts/moon.jsonl", terms="otherwise")
        assert store.taken_in() == ()
        store.put_bookmarks(self.HERE, [self.FIRST.stamped("old"), self.LAST.stamped("12-1-7")])
        store.put_bookmarks(there, [self.FIRST])
        store.put_bookmarks(replace(there, path="/gone"), [])
        moon, tide = TakenIn(origin=there, stamp=None), TakenIn(origin=self.HERE, stamp="12-1-7")
        assert store.taken_in() == (moon, tide)


class TestBackups:
    """Copies of the whole store, a day apart."""

    def test_one_is_made_when_the_last_is_a_day_old(self, store: Store) -> None:
        """storage.md §6: at least 20 hours lie between two."""
        first, soon, later = "2026-03-01T04:00:00.000Z", "2026-03-01T23:00:00.000Z", "2026-03-02T00:00:00.000Z"
        assert store.wants_backup(now=first)
        assert store.back_up(keep=3, now=first).path is not None
        assert store.back_up(keep=3, now=soon).path is None
        assert not store.wants_backup(now=soon)
        assert store.back_up(keep=3, now=later).path is not None


class TestAppend:
    def test_a_message_comes_back_as_it_was_given(self, store: Store) -> None:
        """S2.13: the working directory is kept with every message."""
        message = Message(
            role=Role.RESULT,
            text='line one\r\nline two\x00 \U0001f600 中文 "quoted"',
            aside=Aside.SHELL,
            id="msg-1",
            at="2026-03-02T09:00:00.000Z",
            utc_offset=-210,
            name="Ada",
            agent="side",
            cwd="/src/other",
            tool="Bash",
            call_id="toolu_1",
            failed=False,
            exit_code=-9,
            images=(Image(media_type="image/png", size=5, sha256="ab" * 32),),
        )
        keep(store, Incoming(message=message, identity="0" * 32, key="printed-1", tokens=7))
        (kept,) = store.messages([1])
        assert kept.message == message
        assert (kept.session, kept.key, kept.tokens, kept.counter) == ("s", "printed-1", 7, COUNTER)
        assert store.message("printed-1") == kept

    def test_what_a_message_does_not_say_is_still_unsaid(self, store: Store) -> None:
        keep(store, said(""))
        (kept,) = store.messages([1])
        assert kept.message == Message(role=Role.USER, text="")
        assert kept.message.failed is None

    def test_half_a_surrogate_pair_becomes_a_replacement_character(self, store: Store) -> None:
        keep(store, said("a\ud83d\ude00\udc00b", identity="x", key="k\ud800"), to="s\ud800")
        (kept,) = store.messages([1])
        assert kept.message.text == "a���b"
        assert (kept.key, kept.session) == ("k�", "s�")

    def test_an_absurd_exit_code_is_dropped_and_the_message_kept(self, store: Store) -> None:
        keep(store, result("a", exit_code=10**30), result("b", exit_code=2**63 - 1))
        assert [kept.message.exit_code for kept in store.messages([1, 2])] == [None, 2**63 - 1]

    def test_messages_are_numbered_in_the_order_they_arrive_over_all_sessions(self, store: Store) -> None:
        keep(store, said("one"), said("two"), to="a")
        keep(store, said("three"), to="b")
        assert texts(store.messages([1, 2, 3])) == ["one", "two", "three"]

    def test_each_message_is_told_to_be_new_or_known(self, store: Store) -> None:
        assert keep(store, said("one"), said("two")) == (True, True)
        assert keep(store, said("two"), said("three"), said("one"), said("three")) == (False, True, False, False)
        assert next_batch(store).through == 3

    def test_a_known_message_is_left_as_it_is_also_when_another_session_carries_a_copy(self, store: Store) -> None:
        keep(store, said("one", identity="same"), to="a")
        assert keep(store, said("edited", identity="same"), to="b") == (False,)
        assert texts(store.messages([1])) == ["one"]
        assert store.unobserved("b", max_tokens=100) is None
        assert store.session("b") is not None

    def test_a_session_is_any_text_and_there_once_something_is_appended_to_it(self, store: Store) -> None:
        """S1.13: the key is free text, created on first use."""
        name = "anything: spaces, 'quotes', ünïcode and 🗝"
        assert store.session(name) is None
        assert keep(store, to=name) == ()
        assert store.session(name) == session(name)

    def test_what_is_known_of_a_session_is_merged(self, store: Store) -> None:
        first = Session(id="s", agent="claude-code", cwd="/src/app", branch="main", title="First")
        later = Session(id="s", agent="codex", cwd="/src/app/lib", branch="topic", model="m-1", parent="p")
        for known in (first, later):
            store.append(known, [], counter=COUNTER, now=NOW)
        assert store.session("s") == first.merged(later)


class TestFormerIdentities:
    """T69: what a store of schema 1 has is recognised, though its results went by another identity."""

    def test_a_message_known_by_its_former_identity_is_not_taken_in_again(self, store: Store) -> None:
        keep(store, said("one"), said("3 failed", identity="formerly"))
        renamed = replace(said("3 failed", identity="now"), formerly=digest("formerly"))
        assert keep(store, renamed, said("two")) == (False, True)
        assert texts(store.messages(range(9))) == ["one", "3 failed", "two"]

    def test_it_goes_by_its_present_identity_from_then_on(self, store: Store) -> None:
        """A piece of the transcript does not tell the former one."""
        keep(store, said("3 failed", identity="formerly"))
        renamed = replace(said("3 failed", identity="now"), formerly=digest("formerly"))
        keep(store, renamed)
        assert keep(store, said("3 failed", identity="now")) == (False,)
        assert store.append(session(), [renamed], counter=COUNTER, now=NOW, opening=1).new == (False,)


class TestBeginsWith:
    def begins(self, store: Store, *identities: str, name: str = "s") -> bool:
        return store.begins_with(name, [digest(identity) for identity in identities])

    def test_a_session_begins_with_what_it_has_and_may_go_on_with(self, store: Store) -> None:
        keep(store, said("one"), said("two"), said("three"))
        assert self.begins(store)
        assert self.begins(store, "one", "two")
        assert self.begins(store, "one", "two", "three", "four")

    def test_a_session_does_not_begin_with_other_messages_nor_in_another_order(self, store: Store) -> None:
        keep(store, said("one"), said("two"), said("three"))
        assert not self.begins(store, "one", "other")
        assert not self.begins(store, "two")
        assert not self.begins(store, "one", "three", "two")

    def test_a_session_without_messages_begins_with_anything(self, store: Store) -> None:
        assert self.begins(store, "one", name="unheard of")
        keep(store, to="empty")
        assert self.begins(store, "one", name="empty")

    def test_what_another_session_keeps_or_what_comes_twice_is_passed_over(self, store: Store) -> None:
        keep(store, said("copied"), to="a")
        keep(store, said("copied"), said("one"), said("two"))
        assert self.begins(store, "copied", "one", "one", "two")
        assert not self.begins(store, "copied", "two")

    def test_a_session_that_begins_otherwise_takes_nothing_in(self, store: Store) -> None:
        """F20: two who each found a name free; who comes second is told, in the transaction that would write."""

        def begin(*messages: Incoming) -> tuple[bool, ...]:
            return store.append(session(), messages, counter=COUNTER, now=NOW, opening=2).new

        assert begin(said("go"), said("3 failed"), said("thanks")) == (True, True, True)
        assert begin(said("go"), said("3 failed"), said("bye")) == (False, False, True)
        with pytest.raises(SessionTaken):
            begin(said("go"), said("all passed"), said("fine"))
        assert texts(store.messages(range(9))) == ["go", "3 failed", "thanks", "bye"]
        assert keep(store, said("all passed")) == (True,), "without an opening nothing is asked"

    def test_a_session_that_takes_nothing_in_is_not_made(self, store: Store) -> None:
        keep(store, said("go"), said("3 failed"))
        with pytest.raises(SessionTaken):
            store.append(
                session(cwd="/elsewhere"), [said("other"), said("words")], counter=COUNTER, now=LATER, opening=2
            )
        (summary,) = store.sessions()
        assert (summary.session, summary.seen_at) == (session(), NOW)


class TestKnown:
    """What was taken in, by identity, and what came last."""

    def test_each_identity_is_known_or_not(self, store: Store) -> None:
        keep(store, said("one"))
        keep(store, said("two"), to="other")
        asked = [digest(text) for text in ("two", "three", "one", "three")]
        assert store.known(asked) == (True, False, True, False)
        assert store.known([]) == ()

    def test_as_many_as_anybody_may_ask_for(self, store: Store) -> None:
        """SQLite takes no more than 999 values at once where it is built so."""
        keep(store, said("1200"))
        assert store.known([digest(str(number)) for number in range(1500)]).index(True) == 1200

    def test_the_newest_messages_are_the_last_to_arrive(self, store: Store) -> None:
        keep(store, said("one"), said("two", agent="side"), said("three"))
        keep(store, said("elsewhere"), to="other")
        assert texts(store.newest("s", 2)) == ["two", "three"]
        assert texts(store.newest("s", 9)) == ["one", "two", "three"]
        assert store.newest("s", 0) == store.newest("unheard of", 3) == ()


class TestUnobserved:
    def test_there_is_no_batch_where_nothing_was_said(self, store: Store) -> None:
        """T8."""
        assert store.unobserved("s", max_tokens=100) is None
        keep(store)
        assert store.unobserved("s", max_tokens=100) is None

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
        store.record(batch, [], outcome=Outcome.EMPTY, now=NOW)
        assert texts(next_batch(store, "b").messages) == ["b1"]

    def test_messages_of_subagents_and_events_are_observed_too(self, store: Store) -> None:
        keep(store, said("side", agent="explorer"), said("/compact", role=Role.EVENT, aside=Aside.COMMAND))
        assert len(next_batch(store).messages) == 2

    def test_a_message_with_an_old_time_that_arrives_late_is_pending(self, store: Store) -> None:
        """F12: the cursor is the order of arrival, never a time."""
        keep(store, said("new", at="2026-03-02T09:00:00.000Z"))
        store.record(next_batch(store), [], outcome=Outcome.EMPTY, now=NOW)
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
        store.record(next_batch(store), [], outcome=Outcome.EMPTY, now=NOW)
        keep(store, call("c"), result("c"), result("b"), result("orphan"))
        assert [kept.key for kept in next_batch(store).earlier_calls] == ["call-b"]

    def test_of_covered_calls_with_one_id_the_latest_comes_along(self, store: Store) -> None:
        keep(store, call("a", text="{}1"), call("a", text="{}2"))
        store.record(next_batch(store), [], outcome=Outcome.EMPTY, now=NOW)
        keep(store, call("a"), to="elsewhere")
        keep(store, result("a"))
        assert [kept.key for kept in next_batch(store).earlier_calls] == ["call-a2"]

    def test_a_result_after_its_call_in_the_batch_needs_no_earlier_call(self, store: Store) -> None:
        keep(store, call("a", text="{}1"))
        store.record(next_batch(store), [], outcome=Outcome.EMPTY, now=NOW)
        keep(store, call("a", text="{}2"), result("a"))
        assert next_batch(store).earlier_calls == ()

    def test_what_the_agent_last_said_before_the_batch_comes_along(self, store: Store) -> None:
        keep(store, said("shall I?", role=Role.ASSISTANT), said("aside", role=Role.ASSISTANT, agent="side"), call("a"))
        first = next_batch(store)
        assert first.last_said is None
        store.record(first, [], outcome=Outcome.EMPTY, now=NOW)
        keep(store, said("yes"))
        last = next_batch(store).last_said
        assert last is not None
        assert last.message.text == "shall I?"


class TestRecord:
    def test_recording_writes_the_rows_and_moves_the_cursor(self, store: Store) -> None:
        """T8, S2.12: what follows the cursor is what no batch covers."""
        keep(store, said("one"), said("two"))
        store.record(next_batch(store, max_tokens=10), [row(1, text="fact")], outcome=Outcome.OBSERVED, now=NOW)
        assert logged(store) == ["fact"]
        batch = next_batch(store)
        assert (batch.after, texts(batch.messages)) == (1, ["two"])

    def test_a_batch_with_nothing_worth_noting_is_covered_all_the_same(self, store: Store) -> None:
        """T8: once all is observed there is no batch."""
        keep(store, said("one"))
        store.record(next_batch(store), [], outcome=Outcome.EMPTY, now=NOW)
        assert store.unobserved("s", max_tokens=100) is None

    def test_a_failure_leaves_the_cursor_and_is_reported_until_a_success(self, store: Store) -> None:
        """T15: a pass that changes nothing does not move the cursor."""
        keep(store, said("one"))
        batch = next_batch(store)
        store.record(batch, [], outcome=Outcome.FAILED, now=NOW, error="no answer")
        assert next_batch(store) == batch
        (failure,) = store.status().errors
        assert (failure.session, failure.lane, failure.at, failure.error) == ("s", Lane.OBSERVE, NOW, "no answer")
        store.record(batch, [row(1)], outcome=Outcome.OBSERVED, now=LATER)
        assert store.status().errors == ()

    def test_of_several_failures_the_last_is_reported(self, store: Store) -> None:
        for name in ("a", "b"):
            keep(store, said(name), to=name)
        for name, at, error in (("a", NOW, "first"), ("b", NOW, "second"), ("a", LATER, "third")):
            store.record(next_batch(store, name), [], outcome=Outcome.FAILED, now=at, error=error)
        assert [failure.error for failure in store.status().errors] == ["second", "third"]

    @pytest.mark.parametrize("outcome", list(Outcome))
    def test_a_batch_that_somebody_else_recorded_is_refused_and_leaves_no_trace(
        self, store: Store, outcome: Outcome
    ) -> None:
        """T75, F28: of two who observe the same messages one is told that it came too late."""
        keep(store, said("one"), said("two"))
        batch = next_batch(store)
        store.record(batch, [row(1, text="first")], outcome=Outcome.OBSERVED, now=NOW)
        rows = [row(2, text="second")] if outcome is Outcome.OBSERVED else []
        with pytest.raises(StaleBatch):
            store.record(batch, rows, outcome=outcome, now=LATER, error="late")
        assert logged(store) == ["first"]
        assert store.status().errors == ()
        assert store.status().pending == 0

    def test_a_batch_that_begins_where_no_cursor_was_is_refused(self, store: Store) -> None:
        keep(store, said("one"), said("two"))
        batch = replace(next_batch(store), after=1)
        with pytest.raises(StaleBatch):
            store.record(batch, [row(1)], outcome=Outcome.OBSERVED, now=NOW)
        assert next_batch(store).after == 0
        assert logged(store) == []

    def test_a_smaller_batch_read_at_the_same_place_never_moves_the_cursor_back(self, store: Store) -> None:
        """T16: the cursor is the highest position that was covered."""
        keep(store, said("one"), said("two"), said("three"))
        small, large = next_batch(store, max_tokens=10), next_batch(store)
        store.record(large, [], outcome=Outcome.EMPTY, now=NOW)
        with pytest.raises(StaleBatch):
            store.record(small, [], outcome=Outcome.EMPTY, now=NOW)
        assert store.unobserved("s", max_tokens=100) is None

    def test_messages_said_while_the_observer_thinks_are_observed_next_time(self, store: Store) -> None:
        """F1."""
        keep(store, said("before"))
        batch = next_batch(store)
        keep(store, said("meanwhile"))
        store.record(batch, [row(1)], outcome=Outcome.OBSERVED, now=NOW)
        assert texts(next_batch(store).messages) == ["meanwhile"]

    @pytest.mark.parametrize("outcome", [Outcome.EMPTY, Outcome.FAILED])
    def test_rows_of_a_batch_that_gave_none_are_a_mistake(self, store: Store, outcome: Outcome) -> None:
        keep(store, said("one"))
        with pytest.raises(ValueError, match="has no rows"):
            store.record(next_batch(store), [row(1)], outcome=outcome, now=NOW)
        assert store.status().pending == 1


class TestStanding:
    """What was written may be settled or overruled by what is said later: it comes with a batch, and is replaced."""

    def test_the_newest_rows_and_the_newest_that_may_change_come_with_a_batch(self, store: Store) -> None:
        keep(store, said("one"))
        store.add(row(1, text="decided", type=Type.DECISION))
        store.add(row(2, text="asked", type=Type.QUESTION, status=Status.OPEN))
        store.add(row(3, text="done", type=Type.REQUEST, status=Status.DONE))
        store.add(row(4, text="read a", type=Type.FILE_READ))
        store.add(row(5, text="read b", type=Type.FILE_READ))

        def standing(number: int) -> list[str]:
            batch = store.unobserved("s", max_tokens=10, standing=number)
            assert batch is not None
            return [observation.text for observation in batch.standing]

        assert standing(0) == []
        assert standing(1) == ["asked", "read b"]
        assert standing(2) == ["decided", "asked", "read a", "read b"]
        assert standing(9) == ["decided", "asked", "done", "read a", "read b"]

    def test_rows_come_whole_and_with_their_messages(self, store: Store) -> None:
        keep(store, said("one"), said("two"))
        written = replace(row(1, sources=(1, 2), metadata={"target": "run x"}), message_ids=("k-one", "k-two"))
        store.add(written)
        batch = store.unobserved("s", max_tokens=10, standing=5)
        assert batch is not None
        assert batch.standing == (written,)

    def test_hidden_rows_notes_and_rows_of_other_sessions_do_not_stand(self, store: Store) -> None:
        keep(store, said("one"))
        store.add(row(1, dropped_at=NOW))
        store.add(row(2, kind=Kind.NOTE))
        store.add(row(3, session="other"))
        store.add(row(4, session=None))
        batch = store.unobserved("s", max_tokens=10, standing=5)
        assert batch is not None
        assert batch.standing == ()

    def replacing(self, store: Store, *replaced: Replacement, by: Observation) -> None:
        keep(store, said(f"more {by.id}"))
        store.record(next_batch(store), [by], outcome=Outcome.OBSERVED, now=NOW, replaced=replaced)

    def test_a_row_that_is_replaced_goes_out_of_sight_and_says_by_what_and_why(self, store: Store) -> None:
        """Invariant 5: superseded, not edited."""
        store.add(row(1, text="old"))
        why = Replacement(row=row_id(1), by=row_id(2), reason="resolved")
        self.replacing(store, why, by=row(2, text="new"))
        assert logged(store) == ["new"]
        assert logged(store, hidden=True) == ["old", "new"]
        hidden = store.observation(row_id(1))
        assert hidden == replace(row(1, text="old"), superseded_by=row_id(2), reason="resolved")
        assert (store.status().observations, store.status().hidden) == (1, 1)

    def test_what_is_out_of_sight_already_keeps_its_reason(self, store: Store) -> None:
        store.add(row(1, dropped_at=NOW))
        for number in (2, 3):
            why = Replacement(row=row_id(1), by=row_id(number), reason=f"by {number}")
            self.replacing(
                store, why, Replacement(row=row_id(9), by=row_id(number), reason="no such row"), by=row(number)
            )
        assert (store.observation(row_id(1)).superseded_by, store.observation(row_id(1)).reason) == (None, None)
        why = Replacement(row=row_id(2), by=row_id(4), reason="first")
        self.replacing(store, why, replace(why, by=row_id(3), reason="second"), by=row(4))
        assert (store.observation(row_id(2)).superseded_by, store.observation(row_id(2)).reason) == (row_id(4), "first")

    def test_a_batch_that_comes_too_late_replaces_nothing(self, store: Store) -> None:
        """F1, T75: rows, replacements and cursor together, or nothing of it."""
        keep(store, said("one"))
        store.add(row(1, text="old"))
        batch = next_batch(store)
        store.record(batch, [], outcome=Outcome.EMPTY, now=NOW)
        why = Replacement(row=row_id(1), by=row_id(2), reason="late")
        with pytest.raises(StaleBatch):
            store.record(batch, [row(2)], outcome=Outcome.OBSERVED, now=NOW, replaced=[why])
        assert logged(store, hidden=True) == ["old"]
        assert store.observation(row_id(1)).is_visible

    @pytest.mark.parametrize("outcome", [Outcome.EMPTY, Outcome.FAILED])
    def test_a_batch_without_rows_replaces_nothing(self, store: Store, outcome: Outcome) -> None:
        keep(store, said("one"))
        why = Replacement(row=row_id(1), by=row_id(2), reason="resolved")
        with pytest.raises(ValueError, match="no rows"):
            store.record(next_batch(store), [], outcome=outcome, now=NOW, replaced=[why])


class TestRows:
    def test_a_row_comes_back_with_every_column(self, store: Store) -> None:
        keep(store, said("one", key="m-one"), said("two", id="producer-2"), said("three"))
        full = Observation(
            id=row_id(0xABC),
            session="s",
            project="/src/app",
            kind=Kind.REFLECTION,
            type=Type.FILE_MODIFIED,
            priority=Priority.HIGH,
            importance=9,
            status=Status.RESOLVED,
            text="edited `a.py` — ünïcode",
            observed_at=NOW,
            event_at="2026-03-02T09:00:00.000",
            refers_to="2026-03-02/2026-03-08",
            message_ids=("m-one", "producer-2"),
            sources=(1, 2),
            tokens=12,
            counter="chars4",
            source=Source.MODEL,
            tags=("a", "ü"),
            metadata={"path": "a.py", "deep": {"list": [1, None, True]}},
            last_used_at=LATER,
            generation=2,
            superseded_by=row_id(0xDEF),
            dropped_at=LATER,
            reason="folded",
        )
        store.add(full)
        assert [entry.observation for entry in store.log(LogQuery(hidden=True))] == [full]
        assert store.observation(full.id) == full

    def test_a_row_with_nothing_optional_comes_back_the_same(self, store: Store) -> None:
        plain = row(1, session=None, project=None)
        store.add(plain)
        assert store.observation(plain.id) == plain

    def test_a_note_may_belong_to_a_session_nobody_knows(self, store: Store) -> None:
        """S1.13: nothing is rejected for an unknown session."""
        store.add(row(1, text="we ship on Friday", session="not here"))
        assert logged(store, session="not here") == ["we ship on Friday"]
        assert store.session("not here") is None
        assert store.sessions() == ()
        keep(store, said("hello"), to="not here")
        (summary,) = store.sessions()
        assert (summary.session, summary.observations) == (session("not here"), 1)

    def test_a_source_that_is_not_there_is_left_out(self, store: Store) -> None:
        keep(store, said("one"))
        store.add(row(1, sources=(1, 99)))
        found = store.observation(row_id(1))
        assert (found.sources, found.message_ids) == ((1,), ("k-one",))

    def test_half_a_surrogate_pair_in_a_row_becomes_a_replacement_character(self, store: Store) -> None:
        store.add(row(1, text="a\ud800b", project="/p\udfff"))
        found = store.observation(row_id(1))
        assert (found.text, found.project) == ("a�b", "/p�")
        assert logged(store, project="/p�") == ["a�b"]


class TestLog:
    @pytest.fixture
    def store(self, store: Store) -> Store:
        store.add(row(1, text="one", type=Type.DECISION, priority=Priority.HIGH, event_at="2026-03-01T00:00:00.000Z"))
        store.add(row(2, text="two", session="t", kind=Kind.NOTE, event_at="2026-02-01T00:00:00.000Z"))
        store.add(row(3, text="three", project="/src/other", priority=Priority.LOW))
        store.add(row(4, text="four", superseded_by=row_id(1)))
        store.add(row(5, text="five", session=None, project=None, dropped_at=NOW))
        return store

    @pytest.mark.parametrize(
        ("narrowed", "expected"),
        [
            ({}, ["one", "two", "three"]),
            ({"hidden": True}, ["one", "two", "three", "four", "five"]),
            ({"session": "s"}, ["one", "three"]),
            ({"session": "s", "hidden": True}, ["one", "three", "four"]),
            ({"session": "unknown"}, []),
            ({"project": "/src/app"}, ["one", "two"]),
            ({"project": "/src/app", "session": "t"}, ["two"]),
            ({"project": "/nowhere"}, []),
            ({"kinds": (Kind.NOTE,)}, ["two"]),
            ({"kinds": (Kind.NOTE, Kind.OBSERVATION), "types": (Type.DECISION,)}, ["one"]),
            ({"priorities": (Priority.HIGH, Priority.LOW)}, ["one", "three"]),
            ({"since": "2026-03-01T00:00:00.000Z"}, ["one", "three"]),
            ({"until": "2026-03-01T00:00:00.000Z"}, ["two"]),
            ({"since": "2026-03-01T00:00:00.000Z", "until": NOW}, ["one"]),
            ({"after": 1}, ["two", "three"]),
            ({"last": 2}, ["two", "three"]),
            ({"last": 1, "session": "s"}, ["three"]),
            ({"last": 0}, []),
            ({"last": 10}, ["one", "two", "three"]),
            ({"after": 2, "last": 5}, ["three"]),
        ],
        ids=str,
    )
    def test_every_field_narrows(self, store: Store, narrowed: dict[str, object], expected: list[str]) -> None:
        assert logged(store, **narrowed) == expected

    def test_a_follower_goes_on_after_the_last_position_it_saw(self, store: Store) -> None:
        *_, last = store.log(LogQuery(hidden=True))
        assert logged(store, after=last.position) == []
        store.add(row(6, text="six"))
        assert logged(store, after=last.position) == ["six"]

    def test_a_long_log_comes_whole_and_in_order(self, store: Store) -> None:
        for number in range(10, 1210):
            store.add(row(number, text=str(number), session="long"))
        assert logged(store, session="long") == [str(number) for number in range(10, 1210)]

    def test_a_row_is_found_by_its_id_or_the_beginning_of_its_handle(self, store: Store) -> None:
        store.add(row(0xABCDEF01, text="wanted"))
        store.add(row(0xABCDE000, text="other"))
        whole = row_id(0xABCDEF01)
        for reference in (whole, whole.upper(), whole.replace("-", ""), "abcdef01", "ABCDEF", " abcdef "):
            assert store.observation(reference).text == "wanted", reference

    @pytest.mark.parametrize("reference", ["", "abc", "abcde", "abcdef012", "zzzz", row_id(99), "0000 ", "üüüü", "?"])
    def test_an_id_that_names_no_row_or_several_is_refused(self, store: Store, reference: str) -> None:
        store.add(row(0xABCDEF01))
        store.add(row(0xABCDE000))
        with pytest.raises(UnknownId):
            store.observation(reference)

    def test_a_hidden_row_is_found_by_its_id(self, store: Store) -> None:
        assert store.observation(row_id(4)).text == "four"


class TestMessages:
    def test_messages_come_in_the_order_of_arrival_each_once(self, store: Store) -> None:
        keep(store, said("one"), said("two"), said("three"))
        assert texts(store.messages([3, 1, 99, 3])) == ["one", "three"]
        assert store.messages([]) == ()

    def test_a_message_is_found_by_its_printed_id(self, store: Store) -> None:
        keep(store, said("one", id="toolu_0123456789"), said("two", key="m0123456789"), said("three", key="9"))
        for key, text in (("toolu_0123456789", "one"), ("m0123456789", "two"), ("9", "three")):
            assert store.message(key).message.text == text

    def test_a_printed_id_of_no_message_or_of_several_is_refused(self, store: Store) -> None:
        keep(store, said("one", key="1"), to="a")
        keep(store, said("two", key="1"), to="b")
        for key in ("1", "2", "", "k\ud800"):
            with pytest.raises(UnknownId):
                store.message(key)


class TestAsOf:
    def test_the_log_as_of_a_place_has_rows_as_they_were_then(self, store: Store) -> None:
        """S2.34: without what came later, with what gave way to that; what was dropped or forgotten since is gone."""
        keep(store, said("one"), said("two"))
        rows = [row(number, text=f"row {number}") for number in range(1, 6)]
        gone = Replacement(row=rows[0].id, by=rows[4].id, reason="resolved")
        store.record(next_batch(store, max_tokens=1), rows[:4], outcome=Outcome.OBSERVED, now=NOW)
        store.record(next_batch(store), rows[4:], outcome=Outcome.OBSERVED, now=NOW, replaced=[gone], used=[rows[1].id])
        store.change(Change(verb=Verb.PRUNE, dropped=(Dropped(row=rows[2].id, reason="pruned"),)), now=LATER)
        store.change(Change(verb=Verb.FORGET, forgotten=(rows[3].id,)), now=LATER)
        for last in (None, 3):
            then = [each.observation for each in store.log(LogQuery(session="s", as_of=4, last=last))]
            assert [each.text for each in then] == ["row 1", "row 2"]
            assert all(each.is_visible and each.last_used_at is None for each in then)
        store.change(Change(verb=Verb.PRUNE, dropped=(Dropped(row=rows[4].id, reason="pruned"),)), now=LATER)
        assert [each.observation.text for each in store.log(LogQuery(as_of=4))] == ["row 2"]


class TestTail:
    def test_the_tail_is_the_newest_messages_that_fit_oldest_first(self, store: Store) -> None:
        keep(store, *(said(f"{number}", tokens=5) for number in range(4)))
        assert texts(store.tail("s", max_tokens=10)) == ["2", "3"]
        assert texts(store.tail("s", max_tokens=14)) == ["2", "3"]
        assert texts(store.tail("s", max_tokens=1000)) == ["0", "1", "2", "3"]

    def test_the_tail_has_no_gap_where_an_earlier_message_would_fit(self, store: Store) -> None:
        keep(store, said("small", tokens=1), said("large", tokens=100), said("last", tokens=1))
        assert texts(store.tail("s", max_tokens=10)) == ["last"]

    def test_the_tail_is_at_least_one_message(self, store: Store) -> None:
        keep(store, said("small", tokens=1), said("huge", tokens=1000))
        assert texts(store.tail("s", max_tokens=10)) == ["huge"]

    def test_the_tail_is_of_the_main_thread_of_one_session(self, store: Store) -> None:
        keep(store, said("main"), said("side", agent="explorer"))
        keep(store, said("elsewhere"), to="t")
        assert texts(store.tail("s", max_tokens=100)) == ["main"]
        assert store.tail("nobody", max_tokens=100) == ()

    def test_the_tail_does_not_care_what_is_observed(self, store: Store) -> None:
        keep(store, said("one"))
        store.record(next_batch(store), [], outcome=Outcome.EMPTY, now=NOW)
        assert texts(store.tail("s", max_tokens=100)) == ["one"]


class TestNumbers:
    def test_a_session_is_summed_up(self, store: Store) -> None:
        keep(
            store,
            said("one", at="2026-03-02T09:00:00.000Z"),
            said("two", at="2026-03-01T09:00:00.000Z"),
            said("/clear", role=Role.EVENT, aside=Aside.COMMAND),
        )
        store.record(next_batch(store, max_tokens=10), [row(1), row(2)], outcome=Outcome.OBSERVED, now=NOW)
        store.add(row(3, dropped_at=NOW))
        (summary,) = store.sessions()
        assert summary.session == session()
        assert (summary.messages, summary.observations, summary.pending) == (2, 2, 2)
        assert (summary.first_at, summary.last_at) == ("2026-03-01T09:00:00.000Z", "2026-03-02T09:00:00.000Z")
        keep(store, said("three", at="2026-02-01T09:00:00.000Z"), said("four", at="2026-03-01T10:00:00.000Z"))
        (summary,) = store.sessions()
        assert (summary.first_at, summary.last_at) == ("2026-02-01T09:00:00.000Z", "2026-03-02T09:00:00.000Z")

    def test_a_session_without_times_has_no_first_and_last(self, store: Store) -> None:
        keep(store, said("one"))
        (summary,) = store.sessions()
        assert (summary.first_at, summary.last_at, summary.seen_at) == (None, None, NOW)

    def test_sessions_come_most_recently_seen_first(self, store: Store) -> None:
        for name, cwd in (("a", "/x"), ("b", "/y"), ("c", "/x")):
            store.append(session(name, cwd=cwd), [said(name)], counter=COUNTER, now=NOW)
        keep(store, said("again"), to="b", now=LATER)
        keep(store, said("a"), to="a", now="2026-03-02T12:00:00.000Z")  # nothing new: not seen
        assert [summary.session.id for summary in store.sessions()] == ["b", "c", "a"]
        keep(store, said("and again"), to="b", now=NOW)  # a clock that went back
        assert [summary.session.id for summary in store.sessions(project="/x")] == ["c", "a"]
        assert [summary.session.id for summary in store.sessions(last=2)] == ["b", "c"]

    def test_the_status_counts_the_whole_store(self, store: Store) -> None:
        """D2: totals are per counter, and never added across counters."""
        keep(store, said("one", tokens=3), said("/clear", tokens=4, role=Role.EVENT, aside=Aside.COMMAND), to="a")
        keep(store, said("two", tokens=5), to="b", counter="chars4")
        store.record(next_batch(store, "a"), [row(1, session="a", tokens=7)], outcome=Outcome.OBSERVED, now=NOW)
        store.add(row(2, tokens=1, counter="chars4"))
        store.add(row(3, tokens=100, dropped_at=NOW))
        status = store.status()
        assert (status.sessions, status.messages, status.pending) == (2, 2, 1)
        assert (status.observations, status.hidden) == (2, 1)
        assert status.message_tokens == {COUNTER: 7, "chars4": 5}
        assert status.observation_tokens == {COUNTER: 7, "chars4": 1}

    def test_an_empty_store_counts_nothing(self, store: Store) -> None:
        status = store.status()
        assert (status.sessions, status.messages, status.observations, status.hidden, status.pending) == (0,) * 5
        assert (status.message_tokens, status.observation_tokens, status.errors) == ({}, {}, ())
        assert store.sessions() == ()

    def test_every_text_is_given_out_to_be_counted_anew(self, store: Store) -> None:
        """D2: a count of another counter is no use; the texts are there to count."""
        keep(store, *(said(f"message {number}") for number in range(600)))
        store.add(row(1, text="visible"))
        store.add(row(2, text="dropped", dropped_at=NOW))
        found = [stored.text for stored in store.stored_texts()]
        assert found == [*(f"message {number}" for number in range(600)), "visible"]


class TestLeases:
    ME, OTHER = "host:4711:1", "host:4712:1"

    def claim(self, store: Store, owner: str, *, now: str = NOW, until: str = LATER, lane: Lane = Lane.OBSERVE) -> None:
        store.claim("s", lane, owner=owner, now=now, expires_at=until)

    def test_a_lane_is_held_by_one_and_the_other_is_told_by_whom(self, store: Store) -> None:
        """T75: the loser is told, and loses nothing."""
        self.claim(store, self.ME)
        with pytest.raises(LaneTaken, match="4711"):
            self.claim(store, self.OTHER)

    def test_the_owner_may_extend_its_lease(self, store: Store) -> None:
        self.claim(store, self.ME, until=LATER)
        self.claim(store, self.ME, until="2026-03-02T12:00:00.000Z")
        with pytest.raises(LaneTaken):
            self.claim(store, self.OTHER, now=LATER, until="2026-03-02T12:00:00.000Z")

    def test_lanes_and_sessions_are_held_apart(self, store: Store) -> None:
        self.claim(store, self.ME)
        self.claim(store, self.OTHER, lane=Lane.REFLECT)
        store.claim("t", Lane.OBSERVE, owner=self.OTHER, now=NOW, expires_at=LATER)

    def test_an_expired_lease_is_taken_over(self, store: Store) -> None:
        """F24: no mark of a crashed program stays for ever."""
        self.claim(store, self.ME, until=LATER)
        self.claim(store, self.OTHER, now=LATER, until="2026-03-02T12:00:00.000Z")

    def test_a_lease_taken_under_a_clock_that_was_ahead_ends_when_one_of_ours_would(self, store: Store) -> None:
        """T75, F24: a holder that nobody can ask, on another host, died before the clock was put back four years."""
        self.claim(store, self.OTHER, now="2030-01-01T00:00:00.000Z", until="2030-01-01T00:10:00.000Z")
        for now, until in (("09:00", "09:10"), ("09:09", "09:19")):
            with pytest.raises(LaneTaken):
                self.claim(store, self.ME, now=f"2026-03-02T{now}:00.000Z", until=f"2026-03-02T{until}:00.000Z")
        self.claim(store, self.ME, now="2026-03-02T09:10:00.000Z", until="2026-03-02T09:20:00.000Z")

    def test_a_lease_that_ends_soon_is_not_made_longer_by_those_it_keeps_out(self, store: Store) -> None:
        self.claim(store, self.OTHER, until="2026-03-02T10:01:00.000Z")
        with pytest.raises(LaneTaken):
            self.claim(store, self.ME, until=LATER)
        self.claim(store, self.ME, now="2026-03-02T10:01:00.000Z")

    def test_a_lease_whose_owner_is_gone_is_taken_over(self, make_store: MakeStore) -> None:
        """F23, F24: the lease names its real holder, and ends with it."""
        store = make_store(lambda owner: owner == self.ME)
        self.claim(store, self.ME)
        self.claim(store, self.OTHER)
        with pytest.raises(LaneTaken, match="4712"):
            self.claim(store, "host:4713:1")

    def test_a_lease_given_back_is_free(self, store: Store) -> None:
        self.claim(store, self.ME)
        store.release("s", Lane.OBSERVE, owner=self.ME)
        self.claim(store, self.OTHER)

    def test_nobody_gives_back_the_lease_of_another(self, store: Store) -> None:
        self.claim(store, self.ME)
        store.release("s", Lane.OBSERVE, owner=self.OTHER)
        store.release("unknown", Lane.OBSERVE, owner=self.OTHER)
        with pytest.raises(LaneTaken):
            self.claim(store, self.OTHER)

    def test_a_lease_makes_no_session(self, store: Store) -> None:
        self.claim(store, self.ME)
        assert store.session("s") is None
        assert store.sessions() == ()


class TestPending:
    """What no observation covers yet, and what was offered already."""

    def test_messages_and_tokens_of_what_waits_are_told_by_counter(self, store: Store) -> None:
        keep(store, said("one", tokens=3), said("two", tokens=4))
        keep(store, said("three", tokens=5), counter="chars-4")
        store.record(next_batch(store, max_tokens=3), [], outcome=Outcome.EMPTY, now=NOW)
        assert store.pending("s") == Pending(
            messages=2, tokens={COUNTER: 4, "chars-4": 5}, fresh_tokens={COUNTER: 4, "chars-4": 5}
        )
        assert store.pending("nobody") == Pending(messages=0, tokens={}, fresh_tokens={})

    def test_a_deferred_batch_stays_uncovered_and_is_no_longer_fresh(self, store: Store) -> None:
        """T13: the cursor stays; what was offered is remembered, and what is used is used all the same."""
        keep(store, said("one", tokens=3))
        old = row(1)
        store.add(old)
        batch = next_batch(store)
        store.record(batch, [], outcome=Outcome.DEFERRED, now=LATER, used=[old.id])
        keep(store, said("two", tokens=4))
        again = next_batch(store)
        assert (again.after, again.deferred_through, texts(again.messages)) == (0, batch.through, ["one", "two"])
        assert store.pending("s") == Pending(messages=2, tokens={COUNTER: 7}, fresh_tokens={COUNTER: 4})
        assert store.observation(old.id).last_used_at == LATER
        store.record(again, [row(2, sources=(1,))], outcome=Outcome.OBSERVED, now=LATER)
        assert store.unobserved("s", max_tokens=10) is None

    def test_a_batch_holds_at_most_so_many_messages(self, store: Store) -> None:
        """S0.18: the oldest of them."""
        keep(store, *(said(text) for text in ("one", "two", "three", "four")))
        batch = store.unobserved("s", max_tokens=1000, max_messages=3)
        assert batch is not None
        assert texts(batch.messages) == ["one", "two", "three"]

    def test_a_call_waits_for_its_result_where_a_batch_of_so_many_can_hold_both(self, store: Store) -> None:
        """F71."""
        keep(store, said("one"), call("c"), result("c"))
        first = store.unobserved("s", max_tokens=1000, max_messages=2)
        assert first is not None
        assert [kept.message.role for kept in first.messages] == [Role.USER]


class TestFolding:
    """Reflections: whole or not at all."""

    SCOPE = Scope(session="s")

    def folding(self, *rows: Observation, ending: Ending = Ending.DONE, **more: Any) -> Folding:
        read = tuple(old.id for old in rows)
        return Folding(
            **{"scope": self.SCOPE, "fingerprint": fingerprint(rows), "ending": ending, "read": read, **more}
        )

    def test_rows_go_out_of_sight_behind_what_was_made_of_them_and_stay_in_the_store(self, store: Store) -> None:
        """T37, C8, D6: nothing is deleted."""
        old = [row(number, text=f"row {number}") for number in (1, 2, 3)]
        for each in old:
            store.add(each)
        made = row(4, text="both", kind=Kind.REFLECTION, generation=1, supports=(old[0].id, old[1].id))
        store.fold(
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
        assert store.observation(made.id).supports == (old[0].id, old[1].id)
        assert store.observation(old[0].id).superseded_by == made.id
        assert (store.observation(old[2].id).dropped_at, store.observation(old[2].id).reason) == (LATER, "trivial")
        assert [store.support(each.id) for each in old] == [1, 1, 0]

    def test_what_was_tried_last_on_a_scope_is_known(self, store: Store) -> None:
        """F35: the same rows are not tried again."""
        old = row(1)
        store.add(old)
        assert store.last_attempt(self.SCOPE) is None
        store.fold(self.folding(old, ending=Ending.EMPTY, figures={"tokens": 3}), now=NOW)
        store.fold(self.folding(old, scope=Scope(project="/src/app"), ending=Ending.DONE), now=NOW)
        found = store.last_attempt(self.SCOPE)
        assert found is not None
        assert (found.ending, found.fingerprint, found.figures) == (Ending.EMPTY, fingerprint([old]), {"tokens": 3})
        assert store.last_attempt(Scope()) is None

    def test_what_was_tried_on_rows_is_known_whatever_was_tried_since(self, store: Store) -> None:
        """F35: by the fingerprint of the rows, or of those that were left."""
        old, other = row(1), row(2)
        store.add(old)
        store.add(other)
        store.fold(self.folding(old, ending=Ending.EMPTY, figures={"left": "those"}), now=NOW)
        store.fold(self.folding(other, ending=Ending.EMPTY), now=LATER)
        for mark, at in ((fingerprint([old]), NOW), ("those", NOW), (fingerprint([other]), LATER)):
            found = store.last_attempt(self.SCOPE, mark)
            assert found is not None
            assert found.at == at
        assert store.last_attempt(self.SCOPE, "others") is None
        assert store.last_attempt(Scope(), "those") is None

    def test_a_reflection_on_rows_that_changed_meanwhile_writes_nothing(self, store: Store) -> None:
        """F28."""
        keep(store, said("one"))
        old, newer = row(1), row(2, sources=(1,))
        store.add(old)
        gone = [Replacement(row=old.id, by=newer.id, reason="again")]
        store.record(next_batch(store), [newer], outcome=Outcome.OBSERVED, now=NOW, replaced=gone)
        made = row(3, text="late", kind=Kind.REFLECTION, supports=(old.id,))
        with pytest.raises(StaleBatch):
            store.fold(self.folding(old, rows=(made,)), now=NOW)
        assert "late" not in logged(store, hidden=True)
        assert store.last_attempt(self.SCOPE) is None

    def test_a_failed_reflection_is_an_error_of_the_store_until_one_succeeds(self, store: Store) -> None:
        old = row(1)
        store.add(old)
        store.fold(self.folding(old, ending=Ending.FAILED, error="no answer"), now=NOW)
        assert [(error.session, error.lane, error.error) for error in store.status().errors] == [
            ("s", Lane.REFLECT, "no answer")
        ]
        store.fold(self.folding(old, ending=Ending.EMPTY), now=LATER)
        assert store.status().errors == ()

    def test_a_batch_and_a_folding_are_written_together(self, store: Store) -> None:
        keep(store, said("one"))
        store.add(row(1))
        folding = Folding(
            scope=Scope(session="s"),
            fingerprint="f",
            ending=Ending.DONE,
            read=(row_id(1),),
            rows=(row(2, kind=Kind.REFLECTION, text="folded", supports=(row_id(1),)),),
            replaced=(Replacement(row=row_id(1), by=row_id(2), reason="reflected"),),
        )
        observed = row(3, text="observed", sources=(1,))
        # The batch replaces the same row: the reflection came first.
        replaced = [Replacement(row=row_id(1), by=row_id(3), reason="replaced")]
        store.record(
            next_batch(store), [observed], outcome=Outcome.OBSERVED, now=NOW, replaced=replaced, folding=folding
        )
        assert logged(store) == ["folded", "observed"]
        assert store.observation(row_id(1)).superseded_by == row_id(2)
        assert store.pending("s").messages == 0

    def test_neither_is_where_one_cannot_be(self, store: Store) -> None:
        keep(store, said("one"))
        store.add(row(1))
        batch = next_batch(store)
        new = row(2, kind=Kind.REFLECTION, text="folded")
        late = Folding(scope=Scope(session="s"), fingerprint="f", ending=Ending.DONE, read=(row_id(9),), rows=(new,))
        with pytest.raises(StaleBatch):
            store.record(batch, [row(3, sources=(1,))], outcome=Outcome.OBSERVED, now=NOW, folding=late)
        assert (logged(store), store.pending("s").messages) == (["a fact"], 1)
        store.record(batch, (), outcome=Outcome.EMPTY, now=NOW)
        with pytest.raises(StaleBatch):
            store.record(batch, (), outcome=Outcome.EMPTY, now=NOW, folding=replace(late, read=(row_id(1),)))
        assert logged(store) == ["a fact"]
        assert store.last_attempt(Scope(session="s")) is None


class TestShownAgain:
    """A batch that somebody was shown, and answers later."""

    def test_it_is_the_same_whatever_was_said_since(self, store: Store) -> None:
        keep(store, said("one"), call("c"))
        shown = next_batch(store)
        keep(store, result("c"), said("two"))
        assert store.unobserved_up_to("s", shown.through) == shown

    def test_what_is_covered_or_elsewhere_is_no_batch(self, store: Store) -> None:
        keep(store, said("one"), said("two"))
        keep(store, said("other"), to="other")
        assert store.unobserved_up_to("s", 3) is None
        assert store.unobserved_up_to("nobody", 1) is None
        store.record(next_batch(store, max_tokens=10), (), outcome=Outcome.EMPTY, now=NOW)
        assert store.unobserved_up_to("s", 1) is None
        batch = store.unobserved_up_to("s", 2, standing=5)
        assert batch is not None
        assert texts(batch.messages) == ["two"]

    def test_it_comes_with_the_rows_that_stand(self, store: Store) -> None:
        keep(store, said("one"))
        store.add(row(1))
        batch = store.unobserved_up_to("s", 1, standing=5)
        assert batch is not None
        assert [standing.id for standing in batch.standing] == [row_id(1)]


def test_a_session_is_entitled_once(store: Store) -> None:
    keep(store, said("one"), said("two"))
    store.record(next_batch(store, max_tokens=10), (), outcome=Outcome.EMPTY, now=NOW, title="Tides")
    store.record(next_batch(store), (), outcome=Outcome.EMPTY, now=NOW, title="Ebb")
    found = store.session("s")
    assert found is not None
    assert found.title == "Tides"


class TestCovered:
    def test_a_batch_tells_its_messages_and_its_rows(self, store: Store) -> None:
        """C18, S1.11: the ends by id, and their places in the session; T10: half-open."""
        assert store.covered("s") == ()
        keep(store, *(said(text, tokens=10) for text in "abc"))
        keep(store, said("elsewhere"), to="t")
        keep(store, said("d", tokens=10))
        first = next_batch(store, max_tokens=20)
        store.record(first, [row(1), row(2)], outcome=Outcome.OBSERVED, now=NOW)
        store.add(row(3))
        store.record(next_batch(store), [], outcome=Outcome.FAILED, now=NOW, error="no answer")
        store.record(next_batch(store), [], outcome=Outcome.EMPTY, now=NOW)
        keys = [kept.key for kept in store.messages([1, 2, 3, 5])]
        assert store.covered("s") == (
            Covered(first=keys[0], last=keys[1], start=0, end=2, positions=(1, 2)),
            Covered(first=keys[2], last=keys[3], start=2, end=4, positions=()),
        )
        assert store.covered("t") == ()
