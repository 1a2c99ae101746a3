"""Promises of every store about reading: `Rows`, `Sessions`, and the messages of a `MessageLog` by id and in order."""

from __future__ import annotations

import pytest

from omcli.base.errors import UnknownId
from omcli.base.record import replace
from omcli.memory.batch import BatchOutcome, Covered
from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.message import MessageKind, Role
from omcli.memory.observation import Dropped, Kind, LogQuery, Observation, Priority, Replacement, Source, Status, Type
from omcli.memory.ports import Store
from omcli.memory.session import BY_HAND
from tests.contract.keeping import keep, logged, next_batch, texts
from tests.material import COUNTER, LATER, NOW, row, row_id, said, session


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
        store.rows.add(full)
        assert [entry.observation for entry in store.rows.log(LogQuery(hidden=True))] == [full]
        assert store.rows.find(full.id) == full

    def test_a_row_with_nothing_optional_comes_back_the_same(self, store: Store) -> None:
        plain = row(1, session=None, project=None)
        store.rows.add(plain)
        assert store.rows.find(plain.id) == plain

    def test_a_note_may_belong_to_a_session_nobody_knows(self, store: Store) -> None:
        """S1.13, XD2: nothing is rejected for an unknown session, which is one from then on."""
        store.rows.add(row(1, text="we ship on Friday", session="not here"))
        assert logged(store, session="not here") == ["we ship on Friday"]
        found = store.sessions.find("not here")
        assert found is not None
        assert (found.agent, found.project) == (BY_HAND, row(1).project)
        (summary,) = store.sessions.summaries()
        assert (summary.messages, summary.observations, summary.last_at) == (0, 1, row(1).dated)
        keep(store, said("hello"), to="not here")
        (summary,) = store.sessions.summaries()
        assert (summary.session, summary.observations) == (session("not here"), 1)

    def test_a_source_that_is_not_there_is_left_out(self, store: Store) -> None:
        keep(store, said("one"))
        store.rows.add(row(1, sources=(1, 99)))
        found = store.rows.find(row_id(1))
        assert (found.sources, found.message_ids) == ((1,), ("k-one",))

    def test_half_a_surrogate_pair_in_a_row_becomes_a_replacement_character(self, store: Store) -> None:
        store.rows.add(row(1, text="a\ud800b", project="/p\udfff"))
        found = store.rows.find(row_id(1))
        assert (found.text, found.project) == ("a�b", "/p�")
        assert logged(store, project="/p�") == ["a�b"]


class TestLog:
    @pytest.fixture
    def store(self, store: Store) -> Store:
        store.rows.add(
            row(1, text="one", type=Type.DECISION, priority=Priority.HIGH, event_at="2026-03-01T00:00:00.000Z")
        )
        store.rows.add(row(2, text="two", session="t", kind=Kind.NOTE, event_at="2026-02-01T00:00:00.000Z"))
        store.rows.add(row(3, text="three", project="/src/other", priority=Priority.LOW))
        store.rows.add(row(4, text="four", superseded_by=row_id(1)))
        store.rows.add(row(5, text="five", session=None, project=None, dropped_at=NOW))
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
        *_, last = store.rows.log(LogQuery(hidden=True))
        assert logged(store, after=last.position) == []
        store.rows.add(row(6, text="six"))
        assert logged(store, after=last.position) == ["six"]

    def test_a_long_log_comes_whole_and_in_order(self, store: Store) -> None:
        for number in range(10, 1210):
            store.rows.add(row(number, text=str(number), session="long"))
        assert logged(store, session="long") == [str(number) for number in range(10, 1210)]

    def test_a_row_is_found_by_its_id_or_the_beginning_of_its_handle(self, store: Store) -> None:
        store.rows.add(row(0xABCDEF01, text="wanted"))
        store.rows.add(row(0xABCDE000, text="other"))
        whole = row_id(0xABCDEF01)
        for reference in (whole, whole.upper(), whole.replace("-", ""), "abcdef01", "ABCDEF", " abcdef "):
            assert store.rows.find(reference).text == "wanted", reference

    @pytest.mark.parametrize("reference", ["", "abc", "abcde", "abcdef012", "zzzz", row_id(99), "0000 ", "üüüü", "?"])
    def test_an_id_that_names_no_row_or_several_is_refused(self, store: Store, reference: str) -> None:
        store.rows.add(row(0xABCDEF01))
        store.rows.add(row(0xABCDE000))
        with pytest.raises(UnknownId):
            store.rows.find(reference)

    def test_many_rows_are_found_by_their_ids_in_the_order_asked_for(self, store: Store) -> None:
        rows = [row(number, session=None, project=None, metadata={"n": number}) for number in range(20_000, 21_200)]
        store.rows.add(*rows)
        asked = [row_id(30_000), *(each.id for each in reversed(rows))]
        assert list(store.rows.find_all(asked)) == [None, *reversed(rows)]
        assert list(store.rows.find_all([rows[7].id], bare=True)) == [replace(rows[7], metadata={})]

    def test_a_hidden_row_is_found_by_its_id(self, store: Store) -> None:
        assert store.rows.find(row_id(4)).text == "four"


class TestMessages:
    def test_messages_come_in_the_order_of_arrival_each_once(self, store: Store) -> None:
        keep(store, said("one"), said("two"), said("three"))
        assert texts(store.messages.by_seq([3, 1, 99, 3])) == ["one", "three"]
        assert store.messages.by_seq([]) == ()

    def test_a_message_is_found_by_its_printed_id(self, store: Store) -> None:
        keep(store, said("one", id="toolu_0123456789"), said("two", key="m0123456789"), said("three", key="9"))
        for key, text in (("toolu_0123456789", "one"), ("m0123456789", "two"), ("9", "three")):
            assert store.messages.by_key(key).message.text == text

    def test_a_printed_id_of_no_message_or_of_several_is_refused(self, store: Store) -> None:
        keep(store, said("one", key="1"), to="a")
        keep(store, said("two", key="1"), to="b")
        for key in ("1", "2", "", "k\ud800"):
            with pytest.raises(UnknownId):
                store.messages.by_key(key)


class TestBest:
    ROWS = tuple(replace(row(number), importance=importance) for number, importance in enumerate([9, 5, 7, 7, 1, 2], 1))

    @pytest.mark.parametrize(
        ("last", "best", "expected"),
        [
            (2, 0, [5, 6]),
            (1, 2, [1, 4, 6]),
            (0, 3, [1, 3, 4]),
            (3, 3, [1, 3, 4, 5, 6]),
            (0, 0, []),
            (9, 9, [*range(1, 7)]),
        ],
    )
    def test_the_most_important_rows_come_with_the_last_ones(
        self, store: Store, last: int, best: int, expected: list[int]
    ) -> None:
        """XG1: however old they are, of a session and of a project's types, each row once, in the order of the log."""
        store.rows.add(*self.ROWS)
        other = LogQuery(
            other_than="t", project="/src/app", kinds=(Kind.OBSERVATION,), types=(Type.DECISION, Type.FACT)
        )
        for query in (LogQuery(session="s"), other, LogQuery(session="s", as_of=6), LogQuery(has_replaced=True)):
            found = store.rows.log(replace(query, last=last, best=best))
            assert [logged.position for logged in found] == expected, query


class TestAsOf:
    def test_the_log_as_of_a_place_has_rows_as_they_were_then(self, store: Store) -> None:
        """S2.34: without what came later, with what gave way to that; what was dropped or forgotten since is gone."""
        keep(store, said("one"), said("two"))
        rows = [row(number, text=f"row {number}") for number in range(1, 6)]
        gone = Replacement(row=rows[0].id, by=rows[4].id, reason="resolved")
        store.batches.record(next_batch(store, max_tokens=1), rows[:4], outcome=BatchOutcome.OBSERVED, now=NOW)
        store.batches.record(
            next_batch(store), rows[4:], outcome=BatchOutcome.OBSERVED, now=NOW, replaced=[gone], used=[rows[1].id]
        )
        store.operations.change(
            OperationWrite(verb=OperationKind.PRUNE, dropped=(Dropped(row=rows[2].id, reason="pruned"),)), now=LATER
        )
        store.operations.change(OperationWrite(verb=OperationKind.FORGET, forgotten=(rows[3].id,)), now=LATER)
        for last in (None, 3):
            then = [each.observation for each in store.rows.log(LogQuery(session="s", as_of=4, last=last))]
            assert [each.text for each in then] == ["row 1", "row 2"]
            assert all(each.is_visible and each.last_used_at is None for each in then)
        store.operations.change(
            OperationWrite(verb=OperationKind.PRUNE, dropped=(Dropped(row=rows[4].id, reason="pruned"),)), now=LATER
        )
        assert [each.observation.text for each in store.rows.log(LogQuery(as_of=4))] == ["row 2"]


class TestTail:
    def test_the_tail_is_the_newest_messages_that_fit_oldest_first(self, store: Store) -> None:
        keep(store, *(said(f"{number}", tokens=5) for number in range(4)))
        assert texts(store.messages.tail("s", max_tokens=10)) == ["2", "3"]
        assert texts(store.messages.tail("s", max_tokens=14)) == ["2", "3"]
        assert texts(store.messages.tail("s", max_tokens=1000)) == ["0", "1", "2", "3"]

    def test_the_tail_has_no_gap_where_an_earlier_message_would_fit(self, store: Store) -> None:
        keep(store, said("small", tokens=1), said("large", tokens=100), said("last", tokens=1))
        assert texts(store.messages.tail("s", max_tokens=10)) == ["last"]

    def test_the_tail_is_at_least_one_message(self, store: Store) -> None:
        keep(store, said("small", tokens=1), said("huge", tokens=1000))
        assert texts(store.messages.tail("s", max_tokens=10)) == ["huge"]

    def test_the_tail_is_of_the_main_thread_of_one_session(self, store: Store) -> None:
        keep(store, said("main"), said("side", agent="explorer"))
        keep(store, said("elsewhere"), to="t")
        assert texts(store.messages.tail("s", max_tokens=100)) == ["main"]
        assert store.messages.tail("nobody", max_tokens=100) == ()

    def test_what_was_said_is_what_the_main_thread_said_or_subagents_alone(self, store: Store) -> None:
        keep(store, said("main", tokens=3), said("side", agent="explorer", tokens=5))
        keep(store, said("one", agent="explorer", tokens=7), said("two", agent="other", tokens=1), to="t")
        assert store.messages.tokens("s") == {COUNTER: 3}
        assert store.messages.tokens("t") == {COUNTER: 8}
        assert store.messages.tokens("nobody") == {}

    def test_the_tail_does_not_care_what_is_observed(self, store: Store) -> None:
        keep(store, said("one"))
        store.batches.record(next_batch(store), [], outcome=BatchOutcome.EMPTY, now=NOW)
        assert texts(store.messages.tail("s", max_tokens=100)) == ["one"]


class TestNumbers:
    def test_a_session_is_summed_up(self, store: Store) -> None:
        keep(
            store,
            said("one", at="2026-03-02T09:00:00.000Z"),
            said("two", at="2026-03-01T09:00:00.000Z"),
            said("/clear", role=Role.EVENT, kind=MessageKind.COMMAND),
        )
        store.batches.record(next_batch(store, max_tokens=10), [row(1), row(2)], outcome=BatchOutcome.OBSERVED, now=NOW)
        store.rows.add(row(3, dropped_at=NOW))
        (summary,) = store.sessions.summaries()
        assert summary.session == session()
        assert (summary.messages, summary.observations, summary.pending) == (2, 2, 1)
        assert not summary.is_observed
        assert (summary.first_at, summary.last_at) == ("2026-03-01T09:00:00.000Z", "2026-03-02T09:00:00.000Z")
        keep(store, said("three", at="2026-02-01T09:00:00.000Z"), said("four", at="2026-03-01T10:00:00.000Z"))
        (summary,) = store.sessions.summaries()
        assert (summary.first_at, summary.last_at) == ("2026-02-01T09:00:00.000Z", "2026-03-02T09:00:00.000Z")

    def test_a_session_without_times_has_no_first_and_last(self, store: Store) -> None:
        keep(store, said("one"))
        (summary,) = store.sessions.summaries()
        assert (summary.first_at, summary.last_at, summary.seen_at) == (None, None, NOW)

    def test_sessions_come_most_recently_seen_first(self, store: Store) -> None:
        for name, cwd in (("a", "/x"), ("b", "/y"), ("c", "/x")):
            store.messages.append(session(name, cwd=cwd), [said(name)], counter=COUNTER, now=NOW)
        keep(store, said("again"), to="b", now=LATER)
        keep(store, said("a"), to="a", now="2026-03-02T12:00:00.000Z")  # nothing new: not seen
        assert [summary.session.id for summary in store.sessions.summaries()] == ["b", "c", "a"]
        keep(store, said("and again"), to="b", now=NOW)  # a clock that went back
        assert [summary.session.id for summary in store.sessions.summaries(project="/x")] == ["c", "a"]
        assert [summary.session.id for summary in store.sessions.summaries(last=2)] == ["b", "c"]

    def test_the_status_counts_the_whole_store(self, store: Store) -> None:
        """D2: totals are per counter, and never added across counters."""
        keep(store, said("one", tokens=3), said("/clear", tokens=4, role=Role.EVENT, kind=MessageKind.COMMAND), to="a")
        keep(store, said("two", tokens=5), to="b", counter="chars4")
        store.batches.record(
            next_batch(store, "a"), [row(1, session="a", tokens=7)], outcome=BatchOutcome.OBSERVED, now=NOW
        )
        store.rows.add(row(2, tokens=1, counter="chars4"))
        store.rows.add(row(3, tokens=100, dropped_at=NOW))
        status = store.sessions.status()
        assert (status.sessions, status.messages, status.pending) == (3, 2, 1), "s has rows alone"
        assert (status.observations, status.hidden) == (2, 1)
        assert status.message_tokens == {COUNTER: 7, "chars4": 5}
        assert status.observation_tokens == {COUNTER: 7, "chars4": 1}

    def test_an_empty_store_counts_nothing(self, store: Store) -> None:
        status = store.sessions.status()
        assert (status.sessions, status.messages, status.observations, status.hidden, status.pending) == (0,) * 5
        assert (status.message_tokens, status.observation_tokens, status.errors) == ({}, {}, ())
        assert store.sessions.summaries() == ()

    def test_every_text_is_given_out_to_be_counted_anew(self, store: Store) -> None:
        """D2: a count of another counter is no use; the texts are there to count."""
        keep(store, *(said(f"message {number}") for number in range(600)))
        store.rows.add(row(1, text="visible"))
        store.rows.add(row(2, text="dropped", dropped_at=NOW))
        assert texts(tuple(store.messages.all())) == [f"message {number}" for number in range(600)]
        assert logged(store) == ["visible"]


class TestCovered:
    def test_a_batch_tells_its_messages_and_its_rows(self, store: Store) -> None:
        """C18, S1.11: the ends by id, and their places in the session; T10: half-open."""
        assert store.batches.covered("s") == ()
        keep(store, *(said(text, tokens=10) for text in "abc"))
        keep(store, said("elsewhere"), to="t")
        keep(store, said("d", tokens=10))
        first = next_batch(store, max_tokens=20)
        store.batches.record(first, [row(1), row(2)], outcome=BatchOutcome.OBSERVED, now=NOW)
        store.rows.add(row(3))
        store.batches.record(next_batch(store), [], outcome=BatchOutcome.FAILED, now=NOW, error="no answer")
        store.batches.record(next_batch(store), [], outcome=BatchOutcome.EMPTY, now=NOW)
        keys = [kept.key for kept in store.messages.by_seq([1, 2, 3, 5])]
        assert store.batches.covered("s") == (
            Covered(first=keys[0], last=keys[1], start=0, end=2, positions=(1, 2)),
            Covered(first=keys[2], last=keys[3], start=2, end=4, positions=()),
        )
        assert store.batches.covered("t") == ()
