"""Messages in the store: appending them once, and the stretches of a session that observers and packs read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from omcli.base.errors import SessionTaken, StaleBatch, UnknownId
from omcli.memory.batch import Batch, Waiting, batch_length
from omcli.memory.message import KeptMessage, Role
from omcli.memory.ports import Appended, Incoming, Lane, MessageLog
from omcli.memory.session import Session
from omcli.sqlite import codec, cursors, sessions
from omcli.sqlite.database import PAGE, Table

if TYPE_CHECKING:
    from omcli.memory.retention import Outlined

_LAST = (1 << 63) - 1
"""No message has a greater `seq`."""
_ASIDE = codec.MESSAGE.replace("FROM messages AS m", "FROM (SELECT * FROM aside_messages WHERE NOT erased) AS m")
"""`codec.MESSAGE` of those that are put aside, and not deleted."""
_NAMED = (
    # The first condition is what the index holds: the end of the id.
    "WHERE substr(coalesce(m.key, m.id), -8) = substr(:key, -8) AND coalesce(m.key, m.id) = :key ORDER BY m.seq"
)
_ASKED_AT_ONCE = 500
"""Values in one statement; SQLite may be built for no more than 999."""


class SqliteMessageLog(Table, MessageLog):
    """The message log in the tables `messages`, `aside_messages` and `identities`."""

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> Appended:
        with self._database.writing() as connection:
            number = sessions.merge(connection, session, now=now)
            _rename(connection, messages)
            first = [incoming.identity for incoming in messages[:opening]]
            if not _begins_with(connection, first, session=number):
                raise SessionTaken(f"session {session.id} was begun by another process meanwhile", hint="run it again")
            new = _add(connection, messages, session=number, counter=counter)
            added = [incoming.message for incoming, is_new in zip(messages, new, strict=True) if is_new]
            if added:
                from omcli.sqlite import images  # noqa: PLC0415 - a transcript read again adds nothing

                images.keep(connection, added)
                instants = [message.at for message in added if message.at]
                sessions.note_new(connection, number, instants=instants, now=now)
        return Appended(new=new)

    def begins_with(self, session: str, identities: Sequence[str]) -> bool:
        with self._database.session(session) as (connection, number):
            return number is None or _begins_with(connection, identities, session=number)

    def known(self, identities: Sequence[str]) -> tuple[bool, ...]:
        asked = [bytes.fromhex(identity) for identity in identities]
        with self._database.reading() as connection:
            taken = _taken(connection, asked)
        return tuple(identity in taken for identity in asked)

    def newest(self, session: str, count: int) -> tuple[KeptMessage, ...]:
        with self._database.session(session) as (connection, number):
            return _select(connection, "WHERE m.session = ? ORDER BY m.seq DESC LIMIT ?", (number, count))[::-1]

    def by_seq(self, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
        with self._database.reading() as connection:
            return by_seq(connection, seqs)

    def by_key(self, key: str) -> KeptMessage:
        with self._database.reading() as connection:
            found = _select(connection, _NAMED, {"key": key})
        if not found:
            raise UnknownId(f"no message has the id `{key}`", hint="`om show` prints the ids of messages")
        if len(found) > 1:
            those = ", ".join(sorted({kept.session for kept in found}))
            raise UnknownId(f"{len(found)} messages have the id `{key}`", hint=f"they are in: {those}")
        return found[0]

    def named(self, key: str) -> tuple[KeptMessage, ...]:
        with self._database.reading() as connection:
            gone = codec.execute(connection, f"SELECT {_ASIDE} {_NAMED}", {"key": key})
            there = _select(connection, _NAMED, {"key": key})
            return tuple(sorted((*there, *map(codec.kept_message, gone)), key=lambda kept: kept.seq))

    def containing(self, text: str) -> tuple[KeptMessage, ...]:
        from omcli.sqlite import text_search  # noqa: PLC0415 - for forgetting only

        with self._database.reading() as connection:
            return text_search.messages_containing(connection, text)

    def all(self) -> Iterator[KeptMessage]:
        def read(connection: sqlite3.Connection, after: int) -> Sequence[KeptMessage]:
            return _select(connection, "WHERE m.seq > ? ORDER BY m.seq LIMIT ?", (after, PAGE))

        return self._database.pages(read, place=lambda kept: kept.seq)

    def tail(self, session: str, *, max_tokens: int, after: int = 0) -> tuple[KeptMessage, ...]:
        with self._database.session(session) as (connection, number):
            newest = connection.execute(
                "SELECT seq, tokens FROM messages WHERE session = ? AND agent IS NULL AND seq > ? ORDER BY seq DESC",
                (number, after),
            )
            first, room = None, max_tokens
            for seq, tokens in newest:
                room -= tokens
                if first is not None and room < 0:
                    break
                first = seq
            return _select(
                connection, "WHERE m.session = ? AND m.agent IS NULL AND m.seq >= ? ORDER BY m.seq", (number, first)
            )

    def outline(self, session: str) -> tuple[Outlined, ...]:
        with self._database.session(session) as (connection, number):
            return _outline(connection, session=number) if number is not None else ()

    def tokens(self, session: str) -> Mapping[str, int]:
        with self._database.session(session) as (connection, number):
            found = connection.execute(
                "SELECT agent IS NULL, counter, sum(tokens) FROM messages WHERE session = ? GROUP BY 1, 2 ORDER BY 1",
                (number,),
            ).fetchall()
        has_main = bool(found and found[-1][0])
        return {counter: tokens for is_main, counter, tokens in found if is_main or not has_main}

    def image(self, sha256: str) -> bytes | None:
        from omcli.sqlite import images  # noqa: PLC0415 - most sessions have none

        with self._database.reading() as connection:
            return images.content(connection, sha256)


def _add(
    connection: sqlite3.Connection, messages: Sequence[Incoming], *, session: int, counter: str
) -> tuple[bool, ...]:
    """Add the messages that were never ingested, in order; for each True if it was new."""
    identities = [bytes.fromhex(incoming.identity) for incoming in messages]
    taken = _taken(connection, identities)
    new = []
    added: list[tuple[bytes, int]] = []
    for identity, incoming in zip(identities, messages, strict=True):
        is_new = identity not in taken
        if is_new:
            taken.add(identity)
            columns = codec.message_columns(incoming, session=session, counter=counter)
            added.append((identity, codec.insert(connection, "messages", columns)))
        new.append(is_new)
    # In their order: it is the order of the table, and pages are then filled one after another.
    connection.executemany("INSERT INTO identities (identity, message) VALUES (?, ?)", sorted(added))
    return tuple(new)


def _rename(connection: sqlite3.Connection, messages: Iterable[Incoming]) -> None:
    """Lets messages that are known by an identity they had formerly go by the present one."""
    present = {
        bytes.fromhex(incoming.formerly): bytes.fromhex(incoming.identity) for incoming in messages if incoming.formerly
    }
    known = [(present[formerly], formerly) for formerly in _taken(connection, list(present))]
    connection.executemany("UPDATE OR IGNORE identities SET identity = ? WHERE identity = ?", known)


def _taken(connection: sqlite3.Connection, identities: Sequence[bytes]) -> set[bytes]:
    """Those of the identities whose messages were taken in before."""
    found: set[bytes] = set()
    for at in range(0, len(identities), _ASKED_AT_ONCE):
        some = identities[at : at + _ASKED_AT_ONCE]
        asked = f"SELECT identity FROM identities WHERE identity IN ({', '.join('?' * len(some))})"
        found.update(identity for (identity,) in connection.execute(asked, some))
    return found


def _begins_with(connection: sqlite3.Connection, identities: Iterable[str], *, session: int) -> bool:
    """Whether the session's first messages are those of these identities, as far as both of them go."""
    asked = [bytes.fromhex(identity) for identity in dict.fromkeys(identities)]
    expected: list[int | None] = []
    for at in range(0, len(asked), _ASKED_AT_ONCE):
        some = asked[at : at + _ASKED_AT_ONCE]
        found = connection.execute(
            "SELECT i.identity, i.message, coalesce(m.session, a.session) FROM identities AS i"
            " LEFT JOIN messages AS m ON m.seq = i.message LEFT JOIN aside_messages AS a ON a.seq = i.message"
            f" WHERE i.identity IN ({', '.join('?' * len(some))})",
            some,
        )
        known = {identity: (seq, of) for identity, seq, of in found}
        places = (known.get(identity, (None, session)) for identity in some)
        expected += [seq for seq, of in places if of == session]
    first = of_session(connection, session, limit=len(expected))
    return all(seq == wanted for seq, wanted in zip(first, expected, strict=False))


def of_session(connection: sqlite3.Connection, session: int, *, limit: int = -1) -> list[int]:
    """`seq` of the first messages that a session ever had, or of all, those that are put aside as well."""
    found = connection.execute(
        "SELECT seq FROM messages WHERE session = :session"
        " UNION ALL SELECT seq FROM aside_messages WHERE session = :session ORDER BY 1 LIMIT :limit",
        {"session": session, "limit": limit},
    )
    return [seq for (seq,) in found]


def keys(connection: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, str]:
    """The printed ids of messages, of those that are put aside as well."""
    asked = "SELECT seq, coalesce(key, id) FROM {} WHERE seq IN (SELECT value FROM json_each(:which))"
    found = connection.execute(
        f"{asked.format('messages')} UNION ALL {asked.format('aside_messages')}",
        {"which": codec.compact_json(list(seqs))},
    )
    return dict(found.fetchall())


class Stretch(NamedTuple):
    """Messages of a session that no batch covers: those with `seq > after`, up to another one."""

    after: int
    through: int
    is_late: bool
    """Whether the cursor has passed them."""


def uncovered(
    connection: sqlite3.Connection, *, session: int, ahead: bool = False, through: int | None = None
) -> Stretch:
    """The first stretch, or that in which a message may be; `ahead`: what follows the last pending block."""
    cursor = cursors.cursor(connection, session=session, lane=Lane.OBSERVE)
    if ahead:
        end, _ = cursors.last_end(connection, session=session, cursor=cursor)
        return Stretch(after=end, through=_LAST, is_late=False)
    late = cursors.passed(connection, session=session) if through is None or through <= cursor else None
    if late is not None:
        return Stretch(after=late.after, through=late.through, is_late=True)
    return Stretch(after=cursor, through=_LAST, is_late=False)


def next_length(
    connection: sqlite3.Connection, stretch: Stretch, *, session: int, max_tokens: int, max_messages: int | None
) -> int:
    """How many messages the next batch of a stretch has; 0 where there are none in it."""
    waiting = connection.execute(
        "SELECT tokens, role, call_id FROM messages WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq",
        (session, stretch.after, stretch.through),
    )
    return batch_length(map(Waiting._make, waiting), max_tokens=max_tokens, max_messages=max_messages)


def length_up_to(connection: sqlite3.Connection, stretch: Stretch, *, session: int, through: int) -> int:
    """How many messages a batch of a stretch has that ends with this `seq`; 0 where it is elsewhere."""
    if through > stretch.through:
        return 0
    count, last = connection.execute(
        "SELECT count(*), max(seq) FROM messages WHERE session = ? AND seq > ? AND seq <= ?",
        (session, stretch.after, through),
    ).fetchone()
    return count if last == through else 0


def check_whole(connection: sqlite3.Connection, batch: Batch, *, session: int) -> None:
    """Raises StaleBatch where a batch does not hold the messages, all of them and no other, that it would cover."""
    there = connection.execute(
        "SELECT seq FROM messages WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq",
        (session, batch.after, batch.through),
    )
    if [seq for (seq,) in there] != [kept.seq for kept in batch.messages]:
        raise StaleBatch(
            f"messages of session {batch.session} were forgotten, or brought back, while they were observed",
            hint="nothing was lost; run it again for what is left",
        )


def _outline(connection: sqlite3.Connection, *, session: int) -> tuple[Outlined, ...]:
    """The messages of a session without what they say, in order."""
    from omcli.memory.retention import Outlined  # noqa: PLC0415 - for pruning only

    after = cursors.cursor(connection, session=session, lane=Lane.OBSERVE)
    found = connection.execute(
        "SELECT seq, at, role, call_id, agent, counted FROM messages WHERE session = ? ORDER BY seq", (session,)
    )
    late = {
        seq for (seq,) in connection.execute("SELECT message FROM passed_over WHERE session = ?", (session,)).fetchall()
    }
    return tuple(
        Outlined(
            seq=seq,
            at=at,
            role=Role(role),
            call_id=call_id,
            is_main=agent is None,
            is_covered=seq <= after and seq not in late,
            is_counted=bool(counted),
        )
        for seq, at, role, call_id, agent, counted in found
    )


def batch(connection: sqlite3.Connection, session: Session, stretch: Stretch, *, number: int, length: int) -> Batch:
    """So many messages, at least one, of a stretch of a session. `number` is the session's."""
    after = stretch.after
    messages = _select(connection, "WHERE m.session = ? AND m.seq > ? ORDER BY m.seq LIMIT ?", (number, after, length))
    last_said = _select(
        connection,
        "WHERE m.session = ? AND m.seq <= ? AND m.agent IS NULL AND m.role = ? ORDER BY m.seq DESC LIMIT 1",
        (number, after, Role.ASSISTANT),
    )
    return Batch(
        session=session.id,
        after=after,
        through=messages[-1].seq,
        messages=messages,
        earlier_calls=_earlier_calls(connection, messages, session=number, after=after),
        last_said=last_said[0] if last_said else None,
        cwd=session.cwd,
        deferred_through=0 if stretch.is_late else cursors.deferred(connection, session=number, after=after),
        is_late=stretch.is_late,
    )


def between(connection: sqlite3.Connection, *, session: int, after: int, through: int) -> tuple[KeptMessage, ...]:
    """The messages of a session behind one `seq`, up to another."""
    return _select(
        connection, "WHERE m.session = ? AND m.seq > ? AND m.seq <= ? ORDER BY m.seq", (session, after, through)
    )


def are_aside(connection: sqlite3.Connection, *, session: int, after: int, through: int) -> bool:
    """Whether any of those is put aside."""
    asked = "SELECT 1 FROM aside_messages WHERE session = ? AND seq > ? AND seq <= ? LIMIT 1"
    return connection.execute(asked, (session, after, through)).fetchone() is not None


def _earlier_calls(
    connection: sqlite3.Connection, messages: Sequence[KeptMessage], *, session: int, after: int
) -> tuple[KeptMessage, ...]:
    """The covered calls that results among the messages answer: of several with one call id, the latest."""
    called: set[str] = set()
    missing: list[str] = []
    for kept in messages:
        call_id = kept.message.call_id
        if call_id is None:
            continue
        if kept.message.role is Role.RESULT and call_id not in called:
            missing.append(call_id)
        called.add(call_id)
    if not missing:
        return ()
    # With `+` the index of calls is taken: by that of sessions, all messages before these would be looked at.
    found = connection.execute(
        "SELECT max(seq) FROM messages WHERE role = 'call' AND call_id IN (SELECT value FROM json_each(?))"
        " AND +session = ? AND +seq <= ? GROUP BY call_id",
        (codec.compact_json(missing), session, after),
    )
    return by_seq(connection, (seq for (seq,) in found))


def by_seq(connection: sqlite3.Connection, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
    """Messages by `seq`, ascending; unknown ones are left out."""
    return _select(
        connection, "WHERE m.seq IN (SELECT value FROM json_each(?)) ORDER BY m.seq", (codec.compact_json(list(seqs)),)
    )


def aside(connection: sqlite3.Connection, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
    """Messages that are put aside, and not deleted, by `seq`."""
    which = "WHERE m.seq IN (SELECT value FROM json_each(?)) ORDER BY m.seq"
    return tuple(
        map(codec.kept_message, connection.execute(f"SELECT {_ASIDE} {which}", (codec.compact_json(list(seqs)),)))
    )


def _select(connection: sqlite3.Connection, clauses: str, values: codec.Values) -> tuple[KeptMessage, ...]:
    return tuple(map(codec.kept_message, codec.execute(connection, f"SELECT {codec.MESSAGE} {clauses}", values)))
