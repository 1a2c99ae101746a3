"""What an agent hands over as it works is kept, each message once: one by one, or all of it again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import BadInput
from omcli.memory.message import Incoming, KeptMessage, Message, Role
from omcli.memory.ports import Appended
from omcli.memory.session import Session
from omcli.memory.transcript import Item, Reason, Skip, Transcript
from omcli.observers.rules import RuleObserver
from omcli.operations.clock import Clock, id_at
from omcli.operations.deps import Deps
from omcli.operations.ingest.files import FileInput, ingest_files
from omcli.operations.ingest.window import Ingested, ingest
from omcli.reflectors.rules import RuleReflector
from omcli.sqlite.dialect import Database
from omcli.sqlite.messages import SqliteMessageLog
from tests.fakes import MemoryStore, WordCounter
from tests.fakes.deps import by_observer, by_reflector

NOW = "2026-02-10T09:00:00.000Z"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
OK, DONE, GO_ON = (
    Message(role=Role.USER, text="ok"),
    Message(role=Role.ASSISTANT, text="Done."),
    Message(role=Role.USER, text="go on"),
)


class Memory:
    """A store in memory, and what is handed over to it."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()

    def take(
        self, *items: Item, is_next: bool = False, name: str = "openai", project: str | None = "/src/app"
    ) -> Ingested:
        """Hands over messages of one session."""
        transcript = Transcript(format=name, items=items)
        return ingest(transcript, self.deps, session="s", project=project, is_next=is_next)

    @property
    def deps(self) -> Deps:
        """What keeps and does not observe."""
        numbers = count()
        return Deps(
            open_store=lambda: self.store,
            counter=WordCounter(),
            observer=by_observer(RuleObserver()),
            reflector=by_reflector(RuleReflector(WordCounter())),
            clock=Clock(NOW),
            new_id=lambda: id_at(0, next(numbers)),
            owner="test",
            wait=0,
        )

    @property
    def said(self) -> list[str]:
        """The texts that are kept, in the order they came."""
        return [kept.message.text for kept in self.store.messages.newest("s", 1000)]


def talk(length: int, *, start: int = 0) -> list[Message]:
    """Prompts and answers that all differ."""
    return [
        Message(role=Role.ASSISTANT if number % 2 else Role.USER, text=f"message {number}")
        for number in range(start, start + length)
    ]


def tool(number: int, text: str) -> list[Message]:
    """A call and its result."""
    call = Message(role=Role.CALL, text="{}", tool="Bash", call_id=f"c{number}")
    return [call, Message(role=Role.RESULT, text=text, tool="Bash", call_id=f"c{number}")]


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


_REPETITIVE = st.lists(st.sampled_from([OK, DONE, GO_ON]), max_size=14)


@given(_REPETITIVE, st.lists(st.integers(0, 14)))
def test_a_list_that_grows_is_kept_once_however_often_it_comes(conversation: list[Message], cuts: list[int]) -> None:
    """S0.8: also where people repeat themselves, and where an older state of it comes late."""
    memory, longest = Memory(), 0
    for cut in cuts:
        some = conversation[:cut]
        report = memory.take(*some)
        assert report.new == max(0, len(some) - longest)
        assert report.new + report.known == len(some)
        longest = max(longest, len(some))
    assert memory.said == texts(conversation[:longest])


@given(_REPETITIVE)
def test_what_comes_next_is_new_also_where_the_same_was_said_before(conversation: list[Message]) -> None:
    """S0.8: an event at a time."""
    memory = Memory()
    for message in conversation:
        assert memory.take(message, is_next=True).new == 1
    assert memory.said == texts(conversation)
    assert memory.take(*conversation).new == 0, "all of it again, as one list"


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), max_size=8))
def test_a_window_of_a_conversation_is_known_by_where_it_reaches_what_was_kept(windows: list[tuple[int, int]]) -> None:
    """An agent whose list was cut at its beginning hands over what is left of it, and what came since."""
    memory, length = Memory(), 1
    conversation = talk(100)
    memory.take(conversation[0])
    for kept, grown in windows:
        window = conversation[max(0, length - max(1, kept)) : length + grown]
        report = memory.take(*window)
        assert (report.new, report.known) == (grown, len(window) - grown)
        length += grown
    assert memory.said == texts(conversation[:length])


_WAYS = st.sampled_from(["a file", "all of it", "an older state", "a window", "one by one"])


@given(st.lists(st.tuples(_WAYS, st.integers(2, 9), st.integers(0, 5)), max_size=9))
def test_in_whichever_ways_a_conversation_comes_each_message_is_kept_once(steps: list[tuple[str, int, int]]) -> None:
    """S0.8, T73: from the command line and from Python, whole, in pieces, late; every third time somebody says ok."""
    conversation = [OK if number % 3 == 2 else said for number, said in enumerate(talk(60))]
    memory, length = Memory(), 2
    memory.take(*conversation[:2])
    for way, back, grown in steps:
        new = conversation[length : length + grown]
        length += grown
        if way == "a file":
            [_] = ingest_files([_as_file(conversation[:length])], memory.deps, session="s")
        elif way == "one by one":
            for message in new:
                memory.take(message, is_next=True)
        elif way == "a window":
            memory.take(*conversation[max(0, length - grown - back) : length])
        else:
            memory.take(*conversation[:length])
            memory.take(*conversation[: max(0, length - back) if way == "an older state" else length])
        assert memory.said == texts(conversation[:length]), way


def _as_file(messages: Sequence[Message]) -> FileInput:
    """A transcript as `om observe` opens one."""

    @contextmanager
    def opened() -> Iterator[Transcript]:
        yield Transcript(format="openai", items=iter(messages))

    return FileInput(name="chat.json", open=opened)


def test_what_is_said_in_a_window_again_is_new() -> None:
    """It is not known by having been said once, long ago."""
    memory = Memory()
    memory.take(*talk(2), GO_ON, DONE, *talk(4, start=2))
    report = memory.take(*talk(2, start=4), GO_ON, DONE, GO_ON)
    assert (report.new, report.known) == (3, 2)
    assert memory.said[-5:] == ["message 4", "message 5", "go on", "Done.", "go on"]


def test_turns_that_come_on_their_own_are_all_kept() -> None:
    """A list of what is new and nothing else; its answer was given before."""
    memory = Memory()
    for number in range(4):
        memory.take(Message(role=Role.USER, text=f"question {number}"), DONE)
    assert memory.said == [text for number in range(4) for text in (f"question {number}", "Done.")]


def test_a_list_whose_tool_results_were_cut_adds_only_what_is_new() -> None:
    """Agents clear what tools answered long ago; calls and results are known by their ids."""
    memory = Memory()
    conversation = [*talk(2), *tool(1, "long " * 50), *talk(2, start=2), *tool(2, "long " * 50)]
    memory.take(*conversation)
    cleared = [*conversation[:3], replace(conversation[3], text="[cleared]"), *conversation[4:]]
    assert memory.take(*cleared, *talk(1, start=4)).new == 1
    assert memory.take(*cleared[2:-1], replace(conversation[-1], text="[cut]"), *talk(3, start=4)).new == 2
    assert memory.said == texts([*conversation, *talk(3, start=4)])


def test_a_list_with_something_rewritten_keeps_that_and_nothing_twice() -> None:
    memory = Memory()
    conversation = talk(6)
    memory.take(*conversation)
    rewritten = [conversation[0], replace(conversation[5], text="another answer")]
    report = memory.take(*rewritten, *talk(1, start=6))
    assert memory.said == [*texts(conversation), "another answer", "message 6"]
    assert (report.new, report.known) == (2, 1)


def test_what_has_an_id_or_a_time_is_known_by_it() -> None:
    """S2.10: an event that is delivered twice."""
    memory = Memory()
    for known in (replace(OK, id="7"), replace(OK, at="2026-02-10T09:00:01.000Z")):
        assert memory.take(known, is_next=True).new == 1
        again = memory.take(known, is_next=True)
        assert (again.new, again.known) == (0, 1)
    assert memory.said == ["ok", "ok"]


@pytest.mark.parametrize("order", [("openai", "anthropic"), ("anthropic", "openai")])
def test_a_list_that_is_read_as_another_format_later_is_the_same_list(order: tuple[str, str]) -> None:
    """Plain turns look alike in both; with the first tool call it shows which it is."""
    memory = Memory()
    memory.take(OK, DONE, OK, name=order[0])
    assert memory.take(OK, DONE, OK, *tool(1, "x"), name=order[1]).new == 2
    assert memory.take(OK, name=order[0], is_next=True).new == 1
    assert memory.take(OK, DONE, OK, *tool(1, "x"), OK, name=order[1]).new == 0
    assert memory.said == ["ok", "Done.", "ok", "{}", "x", "ok"]


class InterruptedLog(SqliteMessageLog):
    """A log that another process appends the same messages to, right before it is asked to append them."""

    is_raced = True

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> Appended:
        if messages and self.is_raced:
            self.is_raced = False
            super().append(session, messages, counter=counter, now=now)
        return super().append(session, messages, counter=counter, now=now, opening=opening)


class Interrupted(MemoryStore):
    @cached_property
    def messages(self) -> InterruptedLog:
        return InterruptedLog(self.database)


def test_the_same_said_by_two_at_one_moment_is_two_messages() -> None:
    memory = Memory(Interrupted())
    assert memory.take(OK, is_next=True).new == 1
    assert memory.said == ["ok", "ok"]


def test_the_same_conversation_from_two_at_one_moment_is_one() -> None:
    memory = Memory(Interrupted())
    report = memory.take(*talk(4))
    assert (report.new, report.known) == (0, 4)
    assert memory.said == texts(talk(4))


class OvertakenLog(SqliteMessageLog):
    """A log to which another process appends more of the conversation between two looks at it."""

    def __init__(self, database: Database, *, at: int, more: Callable[[], object]) -> None:
        super().__init__(database)
        self.at, self._more = at, more
        self.looks = 0

    def known(self, identities: Sequence[str]) -> tuple[bool, ...]:
        self._look()
        return super().known(identities)

    def newest(self, session: str, count: int) -> tuple[KeptMessage, ...]:
        self._look()
        return super().newest(session, count)

    def begins_with(self, session: str, identities: Sequence[str]) -> bool:
        self._look()
        return super().begins_with(session, identities)

    def _look(self) -> None:
        self.looks += 1
        if self.looks == self.at:
            self._more()


class Overtaken(MemoryStore):
    def __init__(self, *, at: int, more: Sequence[Message]) -> None:
        super().__init__()
        self._at, self._more = at, more

    @cached_property
    def messages(self) -> OvertakenLog:
        return OvertakenLog(self.database, at=self._at, more=lambda: Memory(self).take(*self._more))


@pytest.mark.parametrize("at", range(1, 40))
@pytest.mark.parametrize("start", [0, 3], ids=["the whole", "a window"])
def test_who_is_overtaken_while_looking_doubles_nothing(at: int, start: int) -> None:
    """The same growing conversation from two programs."""
    conversation = [*talk(4), GO_ON, DONE, GO_ON, DONE, *talk(2, start=4)]
    store = Overtaken(at=0, more=conversation[:8])
    memory = Memory(store)
    memory.take(*conversation[:5])
    store.messages.at = store.messages.looks + at
    memory.take(*conversation[start:])
    memory.take(*conversation)
    assert memory.said == texts(conversation)


def test_secrets_stop_at_the_door_and_what_held_one_is_known_again() -> None:
    memory = Memory()
    told = Message(role=Role.USER, text=f"The key is {SECRET}, and the second one too.")
    report = memory.take(*talk(2), told)
    assert sum(report.redactions.values()) == 1
    assert SECRET not in "".join(memory.said)
    assert memory.take(told, *talk(1, start=2)).new == 1, "a window is compared with what is kept: without secrets"
    assert memory.take(*talk(2), told, *talk(1, start=2)).new == 0


def test_what_gives_no_message_is_counted_and_nothing_but_that_is_an_error() -> None:
    memory = Memory()
    report = memory.take(Skip(Reason.INJECTED), *talk(1), Skip(Reason.MALFORMED))
    assert (report.new, report.skipped, report.faults) == (1, {"injected": 1, "malformed": 1}, {"malformed": 1})
    assert memory.take(Skip(Reason.INJECTED)).new == 0
    with pytest.raises(BadInput, match="nothing in it is a message"):
        memory.take(Skip(Reason.MALFORMED))


def test_a_result_that_failed_is_one_message() -> None:
    failed = Message(role=Role.RESULT, text="Error", tool="Bash", call_id="c1", failed=True)
    report = Memory().take(*talk(2), failed, is_next=True)
    assert report.new == 3


def test_a_session_is_put_into_a_project_once() -> None:
    memory = Memory()
    memory.take(*talk(1), project=None)
    memory.take(*talk(2), project="/src/app")
    memory.take(*talk(3), project="/src/other")
    found = memory.store.sessions.find("s")
    assert found is not None
    assert found.project == "/src/app"
