"""The verbs over a store in memory: whose session a message is, what is kept, what is observed, and when not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import BadInput, BadUsage, LaneTaken, NoInput, OmError, StaleBatch, StoreLocked, UnknownId
from omcli.memory.batch import Batch, BatchOutcome, Observed
from omcli.memory.message import Incoming, Message, MessageKind, Role
from omcli.memory.observation import Draft, Kind, LogQuery, Observation, Priority, Source, Type
from omcli.memory.ports import Appended, Lane
from omcli.memory.session import Session
from omcli.memory.transcript import Checkpoint, Facts, Item, NewConversation, Reason, Skip, Transcript
from omcli.operations.clock import Clock, id_at, period
from omcli.operations.context import Place, context
from omcli.operations.deps import BATCH_TOKENS, Deps, StoreOrSpool
from omcli.operations.ingest.files import CHUNK, FileInput, FileReport
from omcli.operations.ingest.sessions import TranscriptSessions
from omcli.operations.lookup import follow, show
from omcli.operations.note import note
from omcli.operations.observe.session import observe_files, observe_session
from omcli.operations.sizes import status
from omcli.pack.budget import budgets
from omcli.reflectors.rules import RuleReflector
from omcli.sqlite.dialect import Database
from omcli.sqlite.messages import SqliteMessageLog
from omcli.tokenizers import counter
from tests.fakes import MemoryStore
from tests.fakes.deps import by_observer, by_reflector

NOW = "2026-02-10T09:00:00.000Z"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


def user(text: str, **fields: object) -> Message:
    return replace(Message(role=Role.USER, text=text), **fields)  # type: ignore[arg-type]


def assistant(text: str, **fields: object) -> Message:
    return replace(Message(role=Role.ASSISTANT, text=text), **fields)  # type: ignore[arg-type]


def made_of(items: Iterable[Item], *, copies: bool = False, name: str = "made") -> FileInput:
    """An input that a reader would give these items for."""

    @contextmanager
    def opened() -> Iterator[Transcript]:
        yield Transcript(format=name, copies=copies, items=iter(items))

    return FileInput(name="input", open=opened)


@dataclass(slots=True)
class EchoObserver:
    """Writes down every prompt that says `keep`, and remembers the batches it was shown."""

    batches: list[Batch] = field(default_factory=list)
    meanwhile: Callable[[Batch], None] = lambda _: None

    def observe(self, batch: Batch) -> Observed:
        self.batches.append(batch)
        self.meanwhile(batch)
        drafts = tuple(
            Draft(text=kept.message.text, type=Type.FACT, importance=7, sources=(kept.seq,), event_at=kept.message.at)
            for kept in batch.messages
            if "keep" in kept.message.text
        )
        return Observed(drafts=drafts)


class SteppingClock(Clock):
    """Waiting takes no time, but the measuring clock moves on; what happens at each step can be given."""

    def __init__(self, at_step: Callable[[int], None] = lambda _: None) -> None:
        super().__init__(NOW)
        self.slept = 0.0
        self._at_step = at_step
        self._steps = count(1)

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self._at_step(next(self._steps))


NUMBERS = count()
"""No store takes an id twice."""


def deps(store: MemoryStore, observer: EchoObserver | None = None, clock: Clock | None = None) -> Deps:
    return Deps(
        open_store=lambda: store,
        counter=counter("chars-4"),
        observer=by_observer(observer or EchoObserver()),
        reflector=by_reflector(RuleReflector(counter("chars-4"))),
        clock=clock or SteppingClock(),
        new_id=lambda: id_at(1_770_714_000_000, next(NUMBERS)),
        owner="me",
        wait=1.0,
    )


def observe(store: MemoryStore, *items: Item, session: str | None = None, copies: bool = False) -> FileReport:
    (report,) = observe_files([made_of(items, copies=copies)], deps(store), session=session)
    return report


def written(store: MemoryStore) -> list[Observation]:
    return [logged.observation for logged in store.rows.log(LogQuery())]


def texts(store: MemoryStore, session: str) -> list[str]:
    return [kept.message.text for kept in store.messages.tail(session, max_tokens=10**9)]


TRANSCRIPTS = st.lists(st.sampled_from([user("a"), assistant("b"), assistant("c"), user("d")]), max_size=8).map(
    lambda said: [user("go"), *said]
)


class TestSessions:
    """Whose session a message is."""

    def test_the_given_session_counts_more_than_the_named_one_and_that_more_than_a_derived_one(self) -> None:
        store = MemoryStore()
        assert observe(store, Facts(session="named"), user("a"), session="given").sessions == ("given",)
        assert observe(store, Facts(session="named"), user("a")).sessions == ("named",)
        (derived,) = observe(store, user("a")).sessions
        assert derived.startswith("made-")

    def test_messages_before_the_session_is_named_belong_to_it(self) -> None:
        store = MemoryStore()
        assistant_first = [assistant(f"preamble {number}") for number in range(19)]
        report = observe(store, *assistant_first, Facts(session="named", cwd="/p"), user("go"))
        assert report.sessions == ("named",)
        assert texts(store, "named")[0] == "preamble 0"
        assert store.sessions.find("named") == Session(id="named", agent="made", cwd="/p")

    def test_the_session_is_derived_from_the_first_prompt_also_when_the_transcript_has_grown(self) -> None:
        store = MemoryStore()
        short = observe(store, assistant("hello"), user("where is it?"))
        grown = observe(store, assistant("hello"), user("where is it?"), assistant("there"))
        assert short.sessions == grown.sessions
        assert (grown.new_messages, grown.known_messages) == (1, 2)

    def test_without_a_prompt_among_twenty_messages_the_first_message_names_the_session(self) -> None:
        one = [assistant("same"), *(assistant(str(number)) for number in range(30))]
        (first,) = observe(MemoryStore(), *one).sessions
        (second,) = observe(MemoryStore(), *one, user("a prompt, much later")).sessions
        (third,) = observe(MemoryStore(), assistant("same"), assistant("other"), user("a prompt")).sessions
        assert first == second
        assert first != third

    def test_conversations_that_begin_alike_in_one_input_are_told_apart(self) -> None:
        store = MemoryStore()
        report = observe(store, user("hi"), NewConversation(), user("hi"), NewConversation(), user("hi"), user("bye"))
        first, second, third = report.sessions
        assert (second, third) == (f"{first}~2", f"{first}~3")
        assert texts(store, third) == ["hi", "bye"]
        assert report.counts.messages == report.new_messages == 4

    def test_transcripts_that_begin_alike_are_told_apart_by_their_answers(self) -> None:
        """The same prompt every night, each time in a file of its own."""
        store = MemoryStore()
        nights = [(user("run the tests"), assistant(answer), user("thanks")) for answer in ("3 failed", "all passed")]
        reports = [observe(store, *night) for night in (*nights, *nights)]
        assert [report.new_messages for report in reports] == [3, 3, 0, 0]
        first, second = reports[0].sessions[0], reports[1].sessions[0]
        assert second == f"{first}~2"
        assert texts(store, second) == ["run the tests", "all passed", "thanks"]
        grown = observe(store, *nights[1], assistant("any time"))
        assert (grown.sessions, grown.new_messages) == ((second,), 1)

    def test_what_the_agent_did_tells_transcripts_apart_before_it_says_anything(self) -> None:
        store = MemoryStore()
        call = Message(role=Role.CALL, text="pytest", tool="bash", call_id="call-1")
        for output in ("3 failed", "40 passed"):
            result = Message(role=Role.RESULT, text=output, call_id="call-1")
            observe(store, user("run the tests"), call)
            assert observe(store, user("run the tests"), call, result).new_messages in (1, 3)
            assert observe(store, user("run the tests"), call, result, assistant("done")).new_messages == 1
        assert [summary.messages for summary in store.sessions.summaries()] == [4, 4]

    @given(st.lists(TRANSCRIPTS, min_size=1, max_size=5))
    def test_nothing_of_transcripts_that_begin_alike_is_lost_and_nothing_kept_twice(
        self, transcripts: list[list[Message]]
    ) -> None:
        store = MemoryStore()
        for transcript in transcripts:
            (session,) = observe(store, *transcript).sessions
            said, kept = [message.text for message in transcript], texts(store, session)
            opening = next((at + 1 for at, word in enumerate(said) if word in "bc"), len(said))
            assert kept[:opening] == said[:opening]
            assert Counter(said) <= Counter(kept)
        assert [observe(store, *transcript).new_messages for transcript in transcripts] == [0] * len(transcripts)

    @given(TRANSCRIPTS)
    def test_a_transcript_that_grows_is_one_session_however_little_there_was_at_first(
        self, transcript: list[Message]
    ) -> None:
        store = MemoryStore()
        for length in range(1, len(transcript) + 1):
            assert observe(store, *transcript[:length]).new_messages == 1
        (summary,) = store.sessions.summaries()
        assert texts(store, summary.session.id) == [message.text for message in transcript]

    @pytest.mark.parametrize("length", [0, CHUNK - 3, CHUNK - 2, CHUNK, 3 * CHUNK])
    def test_a_conversation_that_another_came_before_moves_as_a_whole(self, length: int) -> None:
        """F20: its session was free when it was derived, and is not when its first messages are kept."""
        store = MemoryStore()
        rest = [user(f"keep {number} {SECRET}") for number in range(length)]

        def meanwhile() -> Iterator[Item]:
            yield from (Facts(title="Tides"), user("hi"), assistant("one"))
            observe(store, user("hi"), assistant("another"))
            observe(store, user("hi"), assistant("yet another"))
            yield from rest
            yield from (NewConversation(), user("hi"), user("o"))

        (report,) = observe_files([made_of(meanwhile())], deps(store))
        first, _ = report.sessions
        assert [len(texts(store, name)) for name in report.sessions] == [2 + length, 2]
        assert [summary.messages for summary in store.sessions.summaries()].count(2) >= 3
        assert texts(store, first)[:2] == ["hi", "one"]
        assert store.sessions.find(first) == Session(id=first, agent="made", title="Tides")
        assert (report.new_messages, report.known_messages) == (4 + length, 0)
        assert sum(report.redactions.values()) == length
        assert store.sessions.status().pending == 0
        again = observe(store, user("hi"), assistant("one"), *rest)
        assert (again.sessions, again.new_messages) == ((first,), 0)

    def test_a_file_of_conversations_that_begin_alike_can_be_taken_in_again(self) -> None:
        store = MemoryStore()
        file: list[Item] = [
            user("hi"),
            assistant("yes?"),
            NewConversation(),
            user("hi"),
            NewConversation(),
            user("hi"),
            user("o"),
        ]
        observe(store, user("hi"), assistant("another"))
        first, again = observe(store, *file), observe(store, *file)
        assert (first.new_messages, again.new_messages, again.sessions) == (4, 0, first.sessions)
        grown = observe(store, *file, assistant("what?"))
        assert (grown.new_messages, grown.sessions) == (1, first.sessions)

    def test_facts_of_one_conversation_do_not_reach_the_next(self) -> None:
        store = MemoryStore()
        report = observe(store, Facts(session="a", cwd="/a", title="A"), user("x"), NewConversation(), user("y"))
        assert store.sessions.find(report.sessions[1]) == Session(id=report.sessions[1], agent="made")

    def test_a_named_session_routes_the_messages_that_follow(self) -> None:
        store = MemoryStore()
        named = Facts(session="a", cwd="/a", branch="main", title="A", model="m")
        report = observe(
            store, named, user("1"), Facts(session="b", title="B"), user("2"), Facts(session="a"), user("3")
        )
        assert report.sessions == ("a", "b")
        assert (texts(store, "a"), texts(store, "b")) == (["1", "3"], ["2"])
        expected = Session(id="b", agent="made", cwd="/a", branch="main", title="B", model="m")
        assert store.sessions.find("b") == expected, "it goes on in the same place, under a title of its own"

    def test_what_is_learnt_after_the_last_message_is_kept_as_well(self) -> None:
        store = MemoryStore()
        observe(store, Facts(session="a"), user("x"), Facts(title="Tide tables"))
        known = store.sessions.find("a")
        assert known is not None
        assert known.title == "Tide tables"

    def test_the_report_names_what_was_written_first(self) -> None:
        report = observe(
            MemoryStore(), Facts(session="a", cwd="/a"), user("1"), Facts(session="b", cwd="/b"), user("2")
        )
        assert (report.session_id, report.cwd) == ("a", "/a")

    @given(
        st.lists(
            st.sampled_from(["a", "b"]).map(lambda name: Facts(session=name))
            | st.just(NewConversation())
            | st.sampled_from([user("u"), assistant("v"), user("w", kind=MessageKind.QUEUED), user("x", agent="sub")])
            | st.just(Skip(Reason.NOISE)),
            max_size=60,
        )
    )
    def test_every_message_is_routed_once_and_in_order(self, items: list[Item]) -> None:
        conversations = TranscriptSessions(Transcript(format="made", items=items), open_store=MemoryStore)
        routed = [step for step in conversations if not isinstance(step, Checkpoint)]
        assert [message for _, message in routed] == [item for item in items if isinstance(item, Message)]
        assert {session for session, _ in routed} <= set(conversations.sessions)


class TestKeeping:
    """What is kept, and what of it is new."""

    def test_a_report_tells_new_from_known_and_asides_and_side_chains_apart(self) -> None:
        store = MemoryStore()
        items: list[Item] = [
            Facts(session="a"), user("1"), assistant("2"), user("aside", kind=MessageKind.REMARK),
            user("sub", agent="s1"), Skip(Reason.NOISE), Skip(Reason.UNKNOWN_TYPE, "foo"),
        ]  # fmt: skip
        report = observe(store, *items)
        assert (report.new_messages, report.known_messages, report.counts.messages) == (2, 0, 2)
        assert (report.counts.asides, report.side_messages) == (1, 1)
        assert report.skipped == {"noise": 1, "unknown-type:foo": 1}
        assert report.faults == {"unknown-type:foo": 1}
        again = observe(store, *items)
        assert (again.new_messages, again.known_messages) == (0, 2)

    def test_a_transcript_that_is_all_side_chain_counts_as_one(self) -> None:
        report = observe(MemoryStore(), Facts(session="a"), assistant("1", agent="s1"), assistant("2", agent="s1"))
        assert (report.counts.messages, report.new_messages, report.side_messages) == (2, 2, 0)

    def test_secrets_are_taken_out_after_the_identity_was_taken(self) -> None:
        """F46: better rules for secrets must not double a message."""
        store = MemoryStore()
        report = observe(store, Facts(session="a", title=f"use {SECRET}"), user(f"keep {SECRET}", id="m1"))
        assert sum(report.redactions.values()) == 1
        assert SECRET not in repr(store.messages.by_seq(range(9))) + repr(store.sessions.find("a")) + repr(report)
        redacted_elsewhere = observe(
            store, Facts(session="a"), user(store.messages.by_seq([1])[0].message.text, id="m1")
        )
        assert redacted_elsewhere.new_messages == 1, "the identity is that of the text as it was read"

    def test_copies_in_a_resumed_session_are_known_where_the_format_makes_them(self) -> None:
        first = (Facts(session="a"), user("1", id="m1"), assistant("2", at=NOW))
        resumed = (Facts(session="b"), *first[1:], user("3", id="m3"))
        for copies, new in ((True, 1), (False, 3)):
            store = MemoryStore()
            observe(store, *first, copies=copies)
            assert observe(store, *resumed, copies=copies).new_messages == new

    def test_a_chunk_is_one_transaction_and_what_was_kept_before_a_failure_stays(self) -> None:
        class FullLog(SqliteMessageLog):
            def __init__(self, database: Database) -> None:
                super().__init__(database)
                self.sizes: list[int] = []

            def append(
                self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
            ) -> Appended:
                given = list(messages)
                if len(self.sizes) == 2:
                    raise StoreLocked("somebody else is writing")
                self.sizes.append(len(given))
                return super().append(session, given, counter=counter, now=now)

        class Full(MemoryStore):
            @cached_property
            def messages(self) -> FullLog:
                return FullLog(self.database)

        store = Full()
        report = observe(store, Facts(session="a"), *(user(f"keep {number}") for number in range(3 * CHUNK)))
        assert store.messages.sizes == [CHUNK, CHUNK]
        assert isinstance(report.error, StoreLocked)
        assert (report.new_messages, report.known_messages) == (2 * CHUNK, 0)
        assert report.observations == 0
        store.messages.sizes.clear()
        store.messages.sizes.extend([0] * 3)
        later = observe(store, Facts(session="a"), *(user(f"keep {number}") for number in range(3 * CHUNK)))
        assert (later.new_messages, later.known_messages) == (CHUNK, 2 * CHUNK)
        assert later.observations == 3 * CHUNK

    def test_an_input_in_which_all_is_faulty_is_refused(self) -> None:
        """F57."""
        report = observe(MemoryStore(), Skip(Reason.NOT_JSON), Skip(Reason.NOT_AN_OBJECT))
        assert isinstance(report.error, BadInput)
        assert observe(MemoryStore(), Skip(Reason.NOISE), Skip(Reason.NOT_JSON)).error is None

    def test_what_is_wrong_with_one_input_stops_no_other(self) -> None:
        """F66."""

        def missing() -> None:
            raise NoInput("no such file")

        store = MemoryStore()
        inputs = [made_of([user("1")]), FileInput(name="gone", open=missing), made_of([user("2")])]  # type: ignore[arg-type]
        first, second, third = observe_files(inputs, deps(store))
        assert [isinstance(report.error, OmError) for report in (first, second, third)] == [False, True, False]
        assert third.new_messages == 1


class TestObserving:
    """What is observed, and when not."""

    def test_rows_know_where_they_come_from(self) -> None:
        store = MemoryStore()
        said: list[Item] = [Facts(session="a", cwd="/p"), user("no"), user("keep this", at="2026-01-02T03:04:05.000Z")]
        rows: list[Observation] = []
        (report,) = observe_files([made_of(said)], deps(store), each=rows.append)
        (row,) = rows
        assert [logged.observation for logged in store.rows.log(LogQuery())] == [row]
        assert report.observations == 1
        assert (row.session, row.project, row.kind, row.source) == ("a", "/p", Kind.OBSERVATION, Source.RULES)
        assert (row.priority, row.importance) == (Priority.HIGH, 7)
        assert (row.observed_at, row.event_at) == (NOW, "2026-01-02T03:04:05.000Z")
        assert row.sources == (2,)
        assert row.message_ids == (store.messages.by_seq([2])[0].key,)
        assert (row.tokens, row.counter) == (3, "chars-4")

    def test_batches_are_bounded_and_cover_everything_once(self) -> None:
        """F65, F17: oldest first, never a larger request than the cap."""
        store, observer = MemoryStore(), EchoObserver()
        items: list[Item] = [Facts(session="a"), *(user(f"{number} " + "word " * 4000) for number in range(30))]
        (report,) = observe_files([made_of(items)], deps(store, observer))
        assert report.error is None
        assert len(observer.batches) > 3
        covered = [kept.seq for batch in observer.batches for kept in batch.messages]
        assert covered == list(range(1, 31))
        assert all(sum(kept.tokens for kept in batch.messages) <= BATCH_TOKENS for batch in observer.batches)

    def test_a_batch_with_nothing_worth_noting_is_covered_all_the_same(self) -> None:
        store, observer = MemoryStore(), EchoObserver()
        for _ in range(2):
            list(observe_files([made_of([Facts(session="a"), user("nothing")])], deps(store, observer)))
        assert len(observer.batches) == 1

    def test_messages_said_while_the_observer_thinks_are_observed_next_time(self) -> None:
        """F1: the batch carries its own ends."""
        store = MemoryStore()

        def say(batch: Batch) -> None:
            late = Incoming(message=user("keep, late"), identity="1a7e" * 8, key="late", tokens=1)
            if batch.after == 0:
                store.messages.append(Session(id="a", agent="made"), [late], counter="chars-4", now=NOW)

        observer = EchoObserver(meanwhile=say)
        observe_files_of = made_of([Facts(session="a"), user("keep, early")])
        (report,) = observe_files([observe_files_of], deps(store, observer))
        assert report.observations == 2
        assert [row.text for row in written(store)] == ["keep, early", "keep, late"]
        assert [len(batch.messages) for batch in observer.batches] == [1, 1]

    def test_a_lane_is_waited_for_and_then_left_with_the_messages_kept(self) -> None:
        """T75: exit 75, and the next run covers them."""
        store = MemoryStore()
        store.leases.claim("a", Lane.OBSERVE, owner="somebody", now=NOW, expires_at="2099-01-01T00:00:00.000Z")
        clock = SteppingClock()
        (report,) = observe_files([made_of([Facts(session="a"), user("keep")])], deps(store, clock=clock))
        assert isinstance(report.error, LaneTaken)
        assert (report.new_messages, report.observations) == (1, 0)
        assert 1.0 <= clock.slept < 1.5
        store.leases.release("a", Lane.OBSERVE, owner="somebody")
        assert observe(store, Facts(session="a"), user("keep")).observations == 1

    def test_a_lane_that_is_given_back_in_time_is_taken(self) -> None:
        store = MemoryStore()
        store.leases.claim("a", Lane.OBSERVE, owner="somebody", now=NOW, expires_at="2099-01-01T00:00:00.000Z")

        def give_back(step: int) -> None:
            if step == 3:
                store.leases.release("a", Lane.OBSERVE, owner="somebody")

        clock = SteppingClock(give_back)
        (report,) = observe_files([made_of([Facts(session="a"), user("keep")])], deps(store, clock=clock))
        assert (report.error, report.observations) == (None, 1)

    def test_nobody_is_waited_for_where_nothing_is_left_to_observe(self) -> None:
        store = MemoryStore()
        observe(store, Facts(session="a"), user("keep"))
        store.leases.claim("a", Lane.OBSERVE, owner="somebody", now=NOW, expires_at="2099-01-01T00:00:00.000Z")
        assert observe(store, Facts(session="a"), user("keep")).error is None

    def test_a_batch_that_somebody_else_recorded_meanwhile_is_not_written_again(self) -> None:
        store = MemoryStore()

        def overtake(batch: Batch) -> None:
            store.batches.record(batch, [], outcome=BatchOutcome.EMPTY, now=NOW)

        observer = EchoObserver(meanwhile=overtake)
        (report,) = observe_files([made_of([Facts(session="a"), user("keep")])], deps(store, observer))
        assert isinstance(report.error, StaleBatch)
        assert list(store.rows.log(LogQuery())) == []

    def test_the_lane_is_given_back_whatever_happens(self) -> None:
        store = MemoryStore()

        def fail(batch: Batch) -> None:
            raise KeyboardInterrupt

        items: list[Item] = [Facts(session="a"), user("keep")]
        with pytest.raises(KeyboardInterrupt):
            list(observe_files([made_of(items)], deps(store, EchoObserver(meanwhile=fail))))
        store.leases.claim("a", Lane.OBSERVE, owner="somebody", now=NOW, expires_at="2099-01-01T00:00:00.000Z")

    def test_a_session_whose_messages_were_left_uncovered_is_observed_the_next_time_it_is_seen(self) -> None:
        store = MemoryStore()
        incoming = [Incoming(message=user("keep"), identity="ab" * 16, key="x", tokens=1)]
        store.messages.append(Session(id="a", agent="made"), incoming, counter="chars-4", now=NOW)
        assert [row.text for step in observe_session("a", deps(store)) for row in step.rows] == ["keep"]
        assert list(observe_session("a", deps(store))) == []


class TestReading:
    """Log, show, note, status and context."""

    def test_following_goes_on_where_the_log_ended(self) -> None:
        store = MemoryStore()
        observe(store, Facts(session="a"), user("keep 1"), user("keep 2"))

        def write(step: int) -> None:
            if step == 2:
                observe(store, Facts(session="a"), user("keep 1"), user("keep 2"), user("keep 3"))

        followed = follow(store, LogQuery(last=1), SteppingClock(write))
        assert [next(followed).text, next(followed).text] == ["keep 2", "keep 3"]

    def test_show_finds_rows_and_messages_and_says_when_there_is_neither(self) -> None:
        store = MemoryStore()
        observe(store, Facts(session="a"), user("keep", id="msg-1"))
        (row,) = written(store)
        assert show(store, row.id[-8:]).observation == row
        assert show(store, "msg-1").messages[0].message.text == "keep"
        with pytest.raises(UnknownId):
            show(store, "nothing")

    def noted(self, store: MemoryStore, text: str, name: str = "chars-4") -> Observation:
        made = note(
            text,
            target=StoreOrSpool(lambda: store),
            counter=counter(name),
            clock=Clock(NOW),
            new_id=lambda: id_at(1, len(text)),
            project="/p",
        )
        return made.observation

    def test_a_note_is_one_line_without_secrets(self) -> None:
        """T66, D14."""
        store = MemoryStore()
        row = self.noted(store, f" the token\nis {SECRET}\t ")
        assert row.text.startswith("the token is [redacted:")
        assert (row.kind, row.source, row.priority, row.importance) == (Kind.NOTE, Source.USER, Priority.MEDIUM, 5)
        with pytest.raises(BadUsage):
            self.noted(store, " \n ")

    def test_totals_are_by_one_counter(self) -> None:
        """T7, D2."""
        store = MemoryStore()
        observe(store, Facts(session="a"), user("keep this"))
        self.noted(store, "another", name="chars-2.5")
        numbers = status(store, counter("chars-2.5"))
        assert numbers.recounted
        assert (numbers.message_tokens, numbers.observation_tokens) == (4 + 4, 4 + 3)
        assert not status(MemoryStore(), counter()).recounted

    def test_context_of_nothing_is_nothing(self) -> None:
        """T59."""
        made = context(MemoryStore(), Place(project="/p"), budgets=budgets(), counter=counter(), now=NOW)
        assert (made.pack.printed, made.note) == ("", None)

    @given(total=st.integers(0, 600))
    def test_a_budget_holds_for_all_of_a_store(self, total: int) -> None:
        """F50."""
        store = MemoryStore()
        for name in ("a", "b"):
            observe(store, Facts(session=name, cwd="/p"), *(user(f"keep {number} of {name}") for number in range(30)))
        place = Place(project="/p", session="a")
        made = context(store, place, budgets=budgets(total=total), counter=counter(), now=NOW)
        assert counter().text(made.pack.printed) <= total

    def test_an_old_note_is_found_behind_thousands_of_rows(self) -> None:
        store = MemoryStore()
        self.noted(store, "always run make lint")
        observe(store, Facts(session="b", cwd="/p"), *(user(f"keep {number}") for number in range(6000)))
        made = context(store, Place(project="/p", session="new"), budgets=budgets(), counter=counter(), now=NOW)
        assert "always run make lint" in made.pack.printed


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, (None, None)),
        ("2026-02-10", None, ("2026-02-10T00:00:00.000Z", None)),
        (None, "2026-02-28", (None, "2026-03-01T00:00:00.000Z")),
        ("2026-02-10T09:30", None, ("2026-02-10T09:30:00.000Z", None)),
        ("2026-02-10T09:30+02:00", None, ("2026-02-10T07:30:00.000Z", None)),
        ("90m", None, ("2026-02-10T07:30:00.000Z", None)),
        ("2w", "1d", ("2026-01-27T09:00:00.000Z", "2026-02-09T09:00:00.000Z")),
        ("2026-02-10", "2026-02-10", ("2026-02-10T00:00:00.000Z", "2026-02-11T00:00:00.000Z")),
    ],
)
def test_periods_are_days_instants_or_ages(
    since: str | None, until: str | None, expected: tuple[str | None, str | None]
) -> None:
    assert period(since, until, now=NOW) == expected


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2026-02-30", None), ("2026-13-01", None), ("tomorrow", None), ("", None), ("999999w", None), ("7", None),
        ("2026-02-11", "2026-02-10"), ("1d", "2d"), ("2026-02-10T09:30", "2026-02-10T09:30"), ("1234567890123", None),
        (None, "0001-01-01"), (None, "9999-12-31"),
    ],
)  # fmt: skip
def test_impossible_periods_are_refused(since: str | None, until: str | None) -> None:
    """T65."""
    with pytest.raises(BadUsage):
        period(since, until, now=NOW)


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**80 - 1))
def test_ids_are_version_7_and_sort_by_time(milliseconds: int, randomness: int) -> None:
    made = id_at(milliseconds, randomness)
    assert len(made) == 36
    assert made[14] == "7"
    assert made[19] in "89ab"
    assert int(made.replace("-", "")[:12], 16) == milliseconds
