"""Stores of any number of rows for benchmarks, the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from omcli.base.record import replace
from omcli.memory.batch import Batch, BatchOutcome
from omcli.memory.message import Incoming, Message, Role
from omcli.memory.observation import Kind, Observation, Priority, Source, Status, Type
from omcli.memory.session import Session
from omcli.memory.transcript import Identities, printed_key
from omcli.operations.clock import id_at
from omcli.sqlite import SqliteStore
from omcli.text.instants import format_time
from omcli.tokenizers import APPROXIMATE

PROJECT = "/home/ada/harbour"
SESSION = "7b1e4c52-0000-4000-8000-000000000000"
"""The session that a tenth of the rows belong to; the others hold `_ROWS_OF_A_SESSION` each."""
_ROWS_OF_A_SESSION = 400
_PROJECTS = 5
"""A fifth of the other sessions is in the same project."""
_MESSAGES = 400
_OTHER_MESSAGES = 20
_OF_A_TALK = 2_000
_VOCABULARY = 100_000
_BEGIN = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)

# What rules write down of real sessions, in hundredths.
_TYPES = {
    Type.COMMAND_RUN: 24, Type.FILE_MODIFIED: 16, Type.FILE_READ: 14, Type.SEARCH_PERFORMED: 10, Type.COMMAND_ERROR: 6,
    Type.REQUEST: 7, Type.FACT: 9, Type.OUTCOME: 6, Type.DECISION: 3, Type.INSTRUCTION: 2, Type.CORRECTION: 1,
    Type.QUESTION: 1, Type.BLOCKER: 1,
}  # fmt: skip
_HIGH = frozenset({Type.REQUEST, Type.DECISION, Type.INSTRUCTION, Type.CORRECTION, Type.COMMAND_ERROR, Type.BLOCKER})
_LOW = frozenset({Type.FILE_READ, Type.SEARCH_PERFORMED})
_WORDS = (
    "berth crane tide gate pilot ledger queue parser schedule buoy manifest ferry lock beacon cargo channel".split()
)


def fill(path: Path, rows: int) -> None:
    """Makes a store with this many rows, through the store itself, as sessions that were observed one after another."""
    random = Random(rows)
    with SqliteStore.open(path, wait=10) as store:
        own = rows // 10
        number = 0
        for nth, many in enumerate([*_sessions(rows - own), own]):
            last = number + many == rows
            project = PROJECT if last or nth % _PROJECTS == 0 else f"/home/ada/wharf-{nth % _PROJECTS}"
            session = Session(id=SESSION if last else f"{SESSION[:24]}{nth + 1:012}", agent="claude-code", cwd=project)
            _observe(store, session, many, first=number, random=random)
            number += many


def fill_for_search(path: Path, rows: int) -> None:
    """Makes a store with this many messages and as many rows, each of one message, in words as rare as in real text."""
    random = Random(rows)
    with SqliteStore.open(path, wait=10) as store:
        for nth, begin in enumerate(range(0, rows, _OF_A_TALK)):
            session = Session(id=f"{SESSION[:24]}{nth + 1:012}", agent="claude-code", cwd=PROJECT)
            talk = [_saying(begin + at, random) for at in range(min(_OF_A_TALK, rows - begin))]
            incoming = [
                Incoming(message=each, identity=f"{begin + at:032x}", key=f"k{begin + at}", tokens=len(each.text) // 4)
                for at, each in enumerate(talk)
            ]
            store.messages.append(session, incoming, counter=APPROXIMATE.name, now=_at(begin))
            batch = store.batches.unobserved(session.id, max_tokens=1 << 40)
            assert batch is not None
            written = [
                replace(_row(session, begin + at, batch, random), text=kept.message.text[:120], sources=(kept.seq,))
                for at, kept in enumerate(batch.messages)
            ]
            store.batches.record(batch, written, outcome=BatchOutcome.OBSERVED, now=_at(begin))


def query() -> str:
    """A query of a very common, a common and two rare words."""
    return " ".join(map(_word, (3, 60, 2_000, 30_000)))


def _saying(number: int, random: Random) -> Message:
    words = [_word(int(_VOCABULARY ** random.random())) for _ in range(random.randrange(5, 80))]
    return Message(role=Role.ASSISTANT if number % 2 else Role.USER, text=" ".join(words), at=_at(number))


def _word(number: int) -> str:
    """The word with this rank: the nth is said once in n times, as in real text."""
    letters = ""
    while number:
        number, digit = divmod(number, 20)
        letters += "bcdfghjklmnpqrstvwxz"[digit] + "aeiou"[digit % 5]
    return letters or "a"


def words(random: Random) -> str:
    """Return the text of a row."""
    return " ".join(random.choices(_WORDS, k=random.randrange(4, 30)))


def _sessions(rows: int) -> Iterator[int]:
    """How many rows each of the other sessions has."""
    for begin in range(0, rows, _ROWS_OF_A_SESSION):
        yield min(_ROWS_OF_A_SESSION, rows - begin)


def _observe(store: SqliteStore, session: Session, many: int, *, first: int, random: Random) -> None:
    """Takes in a session's messages, and its rows as one batch."""
    now = _at(first)
    identities = Identities(session.id, format_name="claude-code", copies=True)
    messages = [_message(nth, random) for nth in range(_MESSAGES if session.id == SESSION else _OTHER_MESSAGES)]
    incoming = [
        Incoming(
            message=message,
            identity=(identity := identities.of(message)),
            key=printed_key(message, identity),
            tokens=APPROXIMATE.message(message),
        )
        for message in messages
    ]
    store.messages.append(session, incoming, counter=APPROXIMATE.name, now=now)
    batch = store.batches.unobserved(session.id, max_tokens=1 << 40)
    assert batch is not None
    written = [_row(session, number, batch, random) for number in range(first, first + many)]
    store.batches.record(batch, written, outcome=BatchOutcome.OBSERVED, now=now)


def _row(session: Session, number: int, batch: Batch, random: Random) -> Observation:
    (kind,) = random.choices(list(_TYPES), weights=list(_TYPES.values()))
    told = words(random)
    path = f"src/{random.choice(_WORDS)}/{random.choice(_WORDS)}.py"
    text = f"{kind.replace('_', ' ').capitalize()} {path}: {told}"
    source = random.choice(batch.messages)
    importance = 8 if kind in _HIGH else 2 if kind in _LOW else 5
    return Observation(
        id=id_at(1_767_600_000_000 + number * 1000, random.getrandbits(80)),
        session=session.id,
        project=session.project,
        kind=Kind.OBSERVATION,
        type=kind,
        priority=Priority.of_importance(importance),
        importance=importance,
        status=Status.DONE if kind is Type.FILE_MODIFIED else None,
        text=text,
        observed_at=_at(number),
        event_at=_at(number),
        refers_to=None,
        message_ids=(source.key,),
        sources=(source.seq,),
        tokens=APPROXIMATE.text(text),
        counter=APPROXIMATE.name,
        source=Source.RULES,
        metadata={"path": path} if number % 2 else {},
    )


def _message(nth: int, random: Random) -> Message:
    text = " ".join(random.choices(_WORDS, k=random.randrange(5, 200)))
    return Message(role=Role.ASSISTANT if nth % 2 else Role.USER, text=text, id=f"m-{random.getrandbits(64):x}")


def _at(number: int) -> str:
    return format_time(_BEGIN + timedelta(seconds=number)) or ""
