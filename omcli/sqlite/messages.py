"""Messages in the store, each appended once, their images, and bookmarks of the files they were read from."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from omcli.base.errors import SessionTaken, UnknownId
from omcli.memory.message import Incoming, KeptMessage, Message, Role
from omcli.memory.ports import Appended, Bookmarks, Lane, MessageLog
from omcli.memory.session import Session
from omcli.sqlite import codec, dialect, lanes, sessions
from omcli.sqlite.dialect import PAGE, Table

if TYPE_CHECKING:
    from omcli.memory.retention import MessageOutline
    from omcli.memory.transcript import Bookmark, IngestedFile, Origin

_HIDDEN = codec.MESSAGE.replace("FROM messages AS m", "FROM (SELECT * FROM aside_messages WHERE NOT erased) AS m")
"""`codec.MESSAGE` for messages that are hidden but not deleted."""
_WITH_KEY = (
    # The first condition compares the end of the id, which is indexed.
    "WHERE substr(coalesce(m.key, m.id), -8) = substr(:key, -8) AND coalesce(m.key, m.id) = :key ORDER BY m.seq"
)
_AT_ONCE = 500
"""Maximum number of parameters per statement. SQLite may be built with a limit of 999."""

_CURSOR = "coalesce((SELECT covers_up_to FROM cursors AS c WHERE c.session = s.number AND c.lane = :lane), 0)"
_WAITING_IMAGES = (
    f"SELECT m.images FROM sessions AS s JOIN messages AS m ON m.session = s.number AND m.seq > {_CURSOR}"
    " WHERE m.images IS NOT NULL"
    " UNION ALL SELECT m.images FROM passed_over AS p JOIN messages AS m ON m.seq = p.message"
    " UNION ALL SELECT m.images FROM passed_over AS p JOIN aside_messages AS m ON m.seq = p.message"
)
"""Images of pending messages: of messages after each session's cursor (found by the index), and of messages in
`passed_over`, even hidden ones.
"""
_OTHERWISE_COUNTED = """
    WHERE m.session IN (SELECT session FROM message_counts WHERE counter <> ? AND messages > 0)
        AND m.counter <> ? AND m.seq > ? ORDER BY m.seq LIMIT ?
"""


class SqliteMessageLog(Table, MessageLog):
    """The message log in the tables `messages`, `aside_messages`, `identities` and `pictures`."""

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> Appended:
        with self._database.writing(session.id) as connection:
            number = sessions.merge(connection, session, now=now, author=self._database.author)
            _replace_identities(connection, messages)
            first = [incoming.identity for incoming in messages[:opening]]
            if not _begins_with(connection, first, session=number):
                raise SessionTaken(f"session {session.id} was begun by another process meanwhile", hint="run it again")
            new, forgotten = _add(connection, messages, session=number, counter=counter)
            added = [incoming.message for incoming, is_new in zip(messages, new, strict=True) if is_new]
            if added:
                keep_images(connection, added)
                instants = [message.at for message in added if message.at]
                sessions.note_new(connection, number, instants=instants, now=now)
        return Appended(new=new, forgotten=forgotten)

    def begins_with(self, session: str, identities: Sequence[str]) -> bool:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            return number is None or _begins_with(connection, identities, session=number)

    def known(self, identities: Sequence[str]) -> tuple[bool, ...]:
        asked = [bytes.fromhex(identity) for identity in identities]
        with self._database.reading() as connection:
            found = _known(connection, asked)
        return tuple(identity in found for identity in asked)

    def newest(self, session: str, count: int) -> tuple[KeptMessage, ...]:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            return select(connection, "WHERE m.session = ? ORDER BY m.seq DESC LIMIT ?", (number, count))[::-1]

    def by_seq(self, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
        with self._database.reading() as connection:
            return by_seq(connection, seqs)

    def by_key(self, key: str) -> KeptMessage:
        with self._database.reading() as connection:
            found = select(connection, _WITH_KEY, {"key": key})
        if not found:
            raise UnknownId(f"no message has the id `{key}`", hint="`om show` prints the ids of messages")
        if len(found) > 1:
            those = ", ".join(sorted({kept.session for kept in found}))
            raise UnknownId(f"{len(found)} messages have the id `{key}`", hint=f"they are in: {those}")
        return found[0]

    def named(self, key: str) -> tuple[KeptMessage, ...]:
        with self._database.reading() as connection:
            visible = select(connection, _WITH_KEY, {"key": key})
            hidden = _select_hidden(connection, _WITH_KEY, {"key": key})
        return tuple(sorted((*visible, *hidden), key=lambda kept: kept.seq))

    def all(self, *, other_counter: str | None = None) -> Iterator[KeptMessage]:
        def read(connection: sqlite3.Connection, after: int) -> Sequence[KeptMessage]:
            if other_counter is None:
                return select(connection, "WHERE m.seq > ? ORDER BY m.seq LIMIT ?", (after, PAGE))
            return select(connection, _OTHERWISE_COUNTED, (other_counter, other_counter, after, PAGE))

        return self._database.read_all(read, place=lambda kept: kept.seq)

    def tail(self, session: str, *, max_tokens: int, after: int = 0) -> tuple[KeptMessage, ...]:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
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
            return select(
                connection, "WHERE m.session = ? AND m.agent IS NULL AND m.seq >= ? ORDER BY m.seq", (number, first)
            )

    def outline(self, session: str) -> tuple[MessageOutline, ...]:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            return _outline(connection, session=number) if number is not None else ()

    def tokens(self, session: str) -> Mapping[str, int]:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            found = connection.execute(
                "SELECT agent IS NULL, counter, sum(tokens) FROM messages WHERE session = ? GROUP BY 1, 2 ORDER BY 1",
                (number,),
            ).fetchall()
        has_main = bool(found and found[-1][0])
        return {counter: tokens for is_main, counter, tokens in found if is_main or not has_main}

    def image(self, sha256: str) -> bytes | None:
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT content FROM pictures WHERE sha256 = ?", (bytes.fromhex(sha256),)
            ).fetchone()
        return found["content"] if found else None


# Appending.


def _add(
    connection: sqlite3.Connection, messages: Sequence[Incoming], *, session: int, counter: str
) -> tuple[tuple[bool, ...], int]:
    """Add new messages. Return, for each message, True if it was new and not forgotten, and the number of forgotten
    ones.
    """
    identities = [bytes.fromhex(incoming.identity) for incoming in messages]
    known = _known(connection, identities)
    fresh: dict[bytes, Incoming] = {}
    columns: list[dialect.Columns] = []
    new: list[bool] = []
    for identity, incoming in zip(identities, messages, strict=True):
        new.append(identity not in known)
        if identity not in known:
            known.add(identity)
            fresh[identity] = incoming
            columns.append(codec.message_columns(incoming, session=session, counter=counter))
    if sessions.has_tombstones(connection):
        forgotten, seqs = _add_forgotten(connection, fresh, columns)
    else:
        forgotten, seqs = set[bytes](), dialect.insert_all(connection, "messages", columns)
    # In the order of the table, so that its pages are filled one after another.
    added = sorted(zip(fresh, seqs, strict=True))
    connection.executemany("INSERT INTO identities (identity, message) VALUES (?, ?)", added)
    shown = [is_new and identity not in forgotten for identity, is_new in zip(identities, new, strict=True)]
    return tuple(shown), len(forgotten)


def _forgotten_by(connection: sqlite3.Connection, message: Message) -> int | None:
    """Return the operation that forgot the text of a message, if any."""
    from omcli.memory.coverage import message_tombstones  # noqa: PLC0415 - most stores have no tombstones

    digests = message_tombstones(message.text)
    if message.name:  # a forgotten row begins with the name
        digests += message_tombstones(f"{message.name}: {message.text}")
    return sessions.forgotten_by(connection, digests)


def _add_forgotten(
    connection: sqlite3.Connection, fresh: Mapping[bytes, Incoming], columns: Sequence[dialect.Columns]
) -> tuple[set[bytes], list[int]]:
    """Add messages, and hide those whose text was forgotten by an operation. Return their identities, and the numbers
    of all messages.

    They are stored nevertheless, because undoing brings them back, and the messages of a session keep their order. If
    the operation cannot be undone, only a stub is stored, so that none of its words gets into the index.
    """
    from omcli.sqlite import soft_delete  # noqa: PLC0415 - most stores have no tombstones

    operations = [_forgotten_by(connection, incoming.message) for incoming in fresh.values()]
    final = {each: soft_delete.is_final(connection, each) for each in operations if each is not None}
    stubs = [
        {**each, "text": "", "name": None} if operation is not None and final[operation] else each
        for each, operation in zip(columns, operations, strict=True)
    ]
    seqs = dialect.insert_all(connection, "messages", stubs)
    forgotten = set()
    for identity, seq, operation in zip(fresh, seqs, operations, strict=True):
        if operation is not None:
            soft_delete.hide_forgotten(connection, seq, operation, is_final=final[operation])
            forgotten.add(identity)
    return forgotten, seqs


def _replace_identities(connection: sqlite3.Connection, messages: Iterable[Incoming]) -> None:
    """Replace former identities of messages by the current ones."""
    present = {
        bytes.fromhex(incoming.formerly): bytes.fromhex(incoming.identity) for incoming in messages if incoming.formerly
    }
    connection.executemany(
        "UPDATE identities SET identity = :present WHERE identity = :former"
        " AND NOT EXISTS (SELECT 1 FROM identities WHERE identity = :present)",
        [{"present": present[former], "former": former} for former in _known(connection, list(present))],
    )


def _known(connection: sqlite3.Connection, identities: Sequence[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for at in range(0, len(identities), _AT_ONCE):
        some = identities[at : at + _AT_ONCE]
        query = f"SELECT identity FROM identities WHERE identity IN ({', '.join('?' * len(some))})"
        found.update(identity for (identity,) in connection.execute(query, some))
    return found


def _begins_with(connection: sqlite3.Connection, identities: Iterable[str], *, session: int) -> bool:
    """Return True if the session's first messages have these identities, compared up to the shorter length. Identities
    of messages in other sessions are skipped.
    """
    asked = [bytes.fromhex(identity) for identity in dict.fromkeys(identities)]
    expected: list[int | None] = []
    for at in range(0, len(asked), _AT_ONCE):
        some = asked[at : at + _AT_ONCE]
        found = connection.execute(
            "SELECT i.identity, i.message, coalesce(m.session, a.session) FROM identities AS i"
            " LEFT JOIN messages AS m ON m.seq = i.message LEFT JOIN aside_messages AS a ON a.seq = i.message"
            f" WHERE i.identity IN ({', '.join('?' * len(some))})",
            some,
        )
        known = {identity: (seq, of) for identity, seq, of in found}
        places = (known.get(identity, (None, session)) for identity in some)
        expected += [seq for seq, of in places if of == session]
    first = seq_of(connection, session, limit=len(expected))
    return all(seq == wanted for seq, wanted in zip(first, expected, strict=False))


# Reading.


def select(connection: sqlite3.Connection, clauses: str, values: dialect.Values) -> tuple[KeptMessage, ...]:
    """Return the messages selected by these clauses, in which the table is called `m`."""
    found = dialect.execute(connection, f"SELECT {codec.MESSAGE} {clauses}", values)
    return tuple(map(codec.message_reader(), found))


def by_seq(connection: sqlite3.Connection, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
    """Return the visible messages with these `seq`, ascending. Other numbers are ignored."""
    return select(connection, f"WHERE {dialect.among('m.seq')} ORDER BY m.seq", (dialect.as_list(seqs),))


def hidden_by_seq(connection: sqlite3.Connection, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
    """Return the messages with these `seq` that are hidden but not deleted, ascending."""
    return _select_hidden(connection, f"WHERE {dialect.among('m.seq')} ORDER BY m.seq", (dialect.as_list(seqs),))


def _select_hidden(connection: sqlite3.Connection, clauses: str, values: dialect.Values) -> tuple[KeptMessage, ...]:
    return tuple(map(codec.message_reader(), dialect.execute(connection, f"SELECT {_HIDDEN} {clauses}", values)))


def seq_of(connection: sqlite3.Connection, session: int, *, limit: int = dialect.NO_LIMIT) -> list[int]:
    """Return the `seq` of the session's first `limit` messages, including hidden and deleted ones."""
    found = connection.execute(
        "SELECT seq FROM messages WHERE session = :session"
        " UNION ALL SELECT seq FROM aside_messages WHERE session = :session ORDER BY 1 LIMIT :limit",
        {"session": session, "limit": limit},
    )
    return [seq for (seq,) in found]


def keys(connection: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, str]:
    """Map `seq` to the printed ids of messages, including hidden ones."""
    query = f"SELECT seq, coalesce(key, id) FROM {{}} WHERE {dialect.among('seq', ':which')}"
    found = connection.execute(
        f"{query.format('messages')} UNION ALL {query.format('aside_messages')}", {"which": dialect.as_list(seqs)}
    )
    return dict(found.fetchall())


def _outline(connection: sqlite3.Connection, *, session: int) -> tuple[MessageOutline, ...]:
    from omcli.memory.retention import MessageOutline  # noqa: PLC0415 - for pruning only

    after = lanes.cursor(connection, session=session, lane=Lane.OBSERVE)
    found = connection.execute(
        "SELECT seq, at, role, call_id, agent, counted FROM messages WHERE session = ? ORDER BY seq", (session,)
    )
    late = {
        seq for (seq,) in connection.execute("SELECT message FROM passed_over WHERE session = ?", (session,)).fetchall()
    }
    return tuple(
        MessageOutline(
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


# Images: kept until their messages are observed.


def keep_images(connection: sqlite3.Connection, messages: Iterable[Message]) -> None:
    images = [image for message in messages for image in message.images]
    connection.executemany(
        "INSERT INTO pictures (sha256, content) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(bytes.fromhex(image.sha256), image.content) for image in images if image.content],
    )


def drop_images(connection: sqlite3.Connection, digests: Iterable[str]) -> None:
    """Delete these images, unless a pending message has them, even a hidden one, which may be restored."""
    # The images of pending messages are read once for all digests, and only if one of the digests is stored.
    kept = dialect.digest_text("sha256")
    connection.execute(
        f"DELETE FROM pictures WHERE {dialect.among(kept, ':digests')}"
        f" AND {kept} NOT IN ({dialect.digest_query(_WAITING_IMAGES)})",
        {"digests": dialect.as_list(sorted(set(digests))), "lane": Lane.OBSERVE},
    )


# Bookmarks: how far each file was ingested.


class SqliteBookmarks(Table, Bookmarks):
    """Bookmarks in the table `bookmarks`."""

    def find(self, origin: Origin) -> tuple[Bookmark, ...]:
        from omcli.memory.transcript import Bookmark  # noqa: PLC0415 - packs need no transcripts

        with self._database.reading() as connection:
            found = dialect.execute(
                connection,
                "SELECT place, digest, found, carried FROM bookmarks WHERE path = ? AND terms = ? ORDER BY place",
                (origin.path, origin.terms),
            ).fetchall()
        return tuple(
            Bookmark(offset=row["place"], digest=row["digest"], found=row["found"], carried=row["carried"])
            for row in found
        )

    def put(self, origin: Origin, bookmarks: Sequence[Bookmark]) -> None:
        with self._database.writing(f"\0{origin.path}") as connection:
            dialect.execute(connection, "DELETE FROM bookmarks WHERE path = ?", (origin.path,))
            for mark in bookmarks:
                columns = {"path": origin.path, "place": mark.offset, "terms": origin.terms, "digest": mark.digest}
                dialect.insert(connection, "bookmarks", {**columns, "found": mark.found, "carried": mark.carried})

    def files(self) -> tuple[IngestedFile, ...]:
        from omcli.memory.transcript import STAMP, IngestedFile, Origin  # noqa: PLC0415 - packs need no transcripts

        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT path, terms, found FROM bookmarks AS b"
                " WHERE place = (SELECT max(place) FROM bookmarks AS of WHERE of.path = b.path) ORDER BY path"
            ).fetchall()
        return tuple(
            IngestedFile(
                origin=Origin(path=row["path"], terms=row["terms"]), stamp=codec.parsed(row["found"]).get(STAMP)
            )
            for row in found
        )
