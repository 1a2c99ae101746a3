"""The memory as records, which another store can merge (`merge`).

Records refer to other things by ids that are the same in every store: to sessions by their ids, to messages by their
identities, to rows by their UUIDs, and to operations by store, number and time. Stores with the same memory yield the
same records in the same order. Data of one machine is left out, such as bookmarks, leases, buffered batches, vectors,
token counts and the ledger of model calls.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter

from omcli.memory.changes import RECORDS_HEADER, MemoryRecord
from omcli.memory.session import author_fields
from omcli.sqlite import codec, dialect
from omcli.sqlite.dialect import PAGE
from omcli.sqlite.stamps import OWN, observed, store_ids

SESSION_COLUMNS = tuple("agent cwd branch title model parent first_at last_at seen_at".split())
MESSAGE_COLUMNS = tuple(
    "role aside counted id key at utc_offset name agent cwd tool call_id failed exit_code images text".split()
)
ROW_COLUMNS = tuple(
    "kind type priority status importance text observed_at event_at refers_to source tags metadata generation"
    " last_used_at".split()
)
OPERATION_COLUMNS = tuple("verb at outcome error fingerprint figures final_at".split())
JSON_COLUMNS = frozenset({"images", "tags", "metadata", "figures"})
"""Columns whose text is JSON. A record has the parsed value."""
FLAGS = frozenset({"counted", "failed"})
"""Columns with flags. A record has 0 or 1."""
UNDOES = "undoes"
"""Figure of an undo: the number of the operation that it undid."""
_PLACED = f"""
    SELECT o.number, coalesce(a.original, o.number) AS original, h.id AS host FROM ({{numbers}}) AS o
    LEFT JOIN arrivals AS a ON a.kind = '{{kind}}' AND a.number = o.number
    JOIN hosts AS h ON h.number = coalesce(a.host, {OWN})
"""
"""Query for numbers with the store that each came from, and its number there."""


def read_records(connection: sqlite3.Connection) -> Iterator[MemoryRecord]:
    """Yield the whole memory."""
    yield RECORDS_HEADER
    yield from _sessions(connection)
    yield from _operations(connection)
    yield from _messages(connection)
    yield from _rows(connection)
    for (identity,) in connection.execute("SELECT id FROM erased_rows ORDER BY id"):
        yield {"record": "erased", "id": codec.unpacked(identity)}


def operation_ids(connection: sqlite3.Connection) -> dict[int, str]:
    """Map the numbers of operations to ids that name them in every store. The ids contain the time, because copies
    of a store give the same numbers to different operations.
    """
    placed = _PLACED.format(kind="operation", numbers="SELECT number FROM operations")
    found = connection.execute(f"SELECT p.*, o.at FROM ({placed}) AS p JOIN operations AS o USING (number)")
    return {number: f"{host}.{original}.{at}" for number, original, host, at in found}


def _record(name: str, columns: Mapping[str, object]) -> MemoryRecord:
    """Return a record without the columns that are NULL and the lists that are empty."""
    return {"record": name, **{key: value for key, value in columns.items() if value not in (None, [])}}


def _columns(row: sqlite3.Row, names: Iterable[str]) -> dict[str, object]:
    fields = {name: row[name] for name in names}
    for name in (JSON_COLUMNS | FLAGS) & fields.keys():
        if fields[name] is not None:
            fields[name] = int(fields[name]) if name in FLAGS else codec.parsed(fields[name])
    return fields


def _author(row: sqlite3.Row) -> dict[str, str]:
    return author_fields(codec.author(row))


def _in_order(
    connection: sqlite3.Connection, kind: str, numbers: str, key: Callable[[int], str | None]
) -> Iterator[list[sqlite3.Row]]:
    """Yield pages of numbers, each with the store that it came from and the number there, in an order that is the same
    in every store. Copies of a store give one number to different things, which are sorted by `key`.
    """
    placed = _PLACED.format(kind=kind, numbers=numbers)
    found = connection.execute(f"{placed} ORDER BY host, original")
    same = (list(group) for _, group in groupby(found, key=itemgetter("host", "original")))
    ordered = (
        row
        for rows in same
        for row in (rows if len(rows) == 1 else sorted(rows, key=lambda row: key(row["number"]) or ""))
    )
    while page := list(islice(ordered, PAGE)):
        yield page


def _sessions(connection: sqlite3.Connection) -> Iterator[MemoryRecord]:
    # A session without an agent has only a lease so far. What else refers to one names it.
    for row in connection.execute(
        f"SELECT s.*, {codec.AUTHOR} FROM sessions AS s{codec.with_author('s')} WHERE s.agent IS NOT NULL ORDER BY s.id"
    ):
        yield _record("session", {"id": row["id"], **_columns(row, SESSION_COLUMNS), **_author(row)})


def _operations(connection: sqlite3.Connection) -> Iterator[MemoryRecord]:
    ids = operation_ids(connection)
    tombstones = defaultdict(list)
    for number, digest in connection.execute(
        f"SELECT operation, {dialect.digest_text('digest')} FROM tombstones ORDER BY digest"
    ):
        tombstones[number].append(digest)
    titles = defaultdict(list)
    for number, session, title in connection.execute(
        "SELECT t.put_by, s.id, t.title FROM aside_titles AS t JOIN sessions AS s ON s.number = t.session ORDER BY 2, 3"
    ):
        titles[number].append([session, title])
    found = connection.execute(
        f"SELECT o.*, s.id AS session_id, p.path, {codec.AUTHOR} FROM operations AS o"
        " LEFT JOIN sessions AS s ON s.number = o.session"
        f" LEFT JOIN projects AS p ON p.number = o.project{codec.with_author('o')}"
    )
    for row in sorted(found, key=lambda row: (row["at"], ids[row["number"]])):
        columns = _columns(row, OPERATION_COLUMNS)
        figures = dict(codec.parsed(row["figures"]))
        undoes = figures.pop(UNDOES, None)
        yield _record(
            "operation",
            {
                "id": ids[row["number"]],
                "session": row["session_id"],
                "project": row["path"],
                **columns,
                **_author(row),
                "figures": figures,
                "part_of": ids.get(row["part_of"]),
                UNDOES: ids.get(undoes),
                "tombstones": tombstones[row["number"]],
                "titles": titles[row["number"]],
            },
        )


def _messages(connection: sqlite3.Connection) -> Iterator[MemoryRecord]:
    columns = ", ".join(MESSAGE_COLUMNS)
    ids = operation_ids(connection)
    session_ids = dict(map(tuple, connection.execute("SELECT number, id FROM sessions")))
    of_session = lru_cache(maxsize=100)(lambda session: observed(connection, session))
    identities = _Identities(connection)
    everything = "SELECT seq AS number FROM messages UNION ALL SELECT seq FROM aside_messages"
    for page in _in_order(connection, "message", everything, identities.of):
        which = {"which": dialect.as_list(row["number"] for row in page)}
        these = dialect.among("seq", ":which")
        held = connection.execute(
            f"SELECT message, operation FROM message_holds WHERE {dialect.among('message', ':which')}", which
        ).fetchall()
        holds: dict[int, list[str]] = defaultdict(list)
        for seq, operation in held:
            holds[seq].append(ids[operation])
        found = connection.execute(
            f"SELECT seq, session, FALSE AS erased, {columns} FROM messages WHERE {these}"
            f" UNION ALL SELECT seq, session, erased, {columns} FROM aside_messages WHERE {these}",
            which,
        )
        rows = {row["seq"]: row for row in found}
        for seq, original, host in page:
            row = rows[seq]
            stamp = of_session(row["session"]).get(seq)
            yield _record(
                "message",
                {
                    "identity": identities.of(seq),
                    "session": session_ids[row["session"]],
                    "host": host,
                    "number": original,
                    **_columns(row, MESSAGE_COLUMNS),
                    "observed": list(stamp) if stamp else None,
                    "erased": True if row["erased"] else None,
                    "holds": [] if row["erased"] else sorted(holds[seq]),
                },
            )


def _rows(connection: sqlite3.Connection) -> Iterator[MemoryRecord]:
    ids = operation_ids(connection)
    names = store_ids(connection)
    identities = _Identities(connection)
    batches = {
        number: [at, names[host]] for number, at, host in connection.execute("SELECT number, at, host FROM batches")
    }
    successors = defaultdict(list)
    for replaced, by, reason in connection.execute("SELECT row, by, reason FROM successors ORDER BY by"):
        successors[replaced].append([codec.unpacked(by), reason])
    sources = f"(SELECT {dialect.list_of('message')} FROM observation_sources WHERE observation = position)"
    supports = f"(SELECT {dialect.list_of('supported')} FROM observation_supports WHERE observation = position)"
    select = (
        f"SELECT o.*, s.id AS session_id, p.path, {codec.AUTHOR}, {{}} FROM {{}} AS o"
        " LEFT JOIN sessions AS s ON s.number = o.session"
        f" LEFT JOIN projects AS p ON p.number = o.project{codec.with_author('o')} WHERE {dialect.among('position')}"
    )
    everything = "SELECT position AS number FROM observations UNION ALL SELECT position FROM aside_observations"
    for page in _in_order(connection, "row", everything, lambda position: _row_ids(connection, [position])[position]):
        which = dialect.as_list(row["number"] for row in page)
        found = {}
        for table, links in (
            ("observations", f"{sources} AS sources, {supports} AS supports"),
            ("aside_observations", "1"),
        ):
            found.update({row["position"]: row for row in connection.execute(select.format(links, table), (which,))})
        holds = defaultdict(list)
        for position, operation in connection.execute(
            f"SELECT position, operation FROM row_holds WHERE {dialect.among('position')}", (which,)
        ):
            holds[position].append(ids[operation])
        made_of = {position: codec.parsed(row["supports"]) for position, row in found.items()}
        of_rows = _row_ids(connection, {each for supported in made_of.values() for each in supported})
        for position, original, host in page:
            row = found[position]
            yield _record(
                "row",
                {
                    "id": codec.unpacked(row["id"]),
                    "session": row["session_id"],
                    "project": row["path"],
                    "host": host,
                    "number": original,
                    **_columns(row, ROW_COLUMNS),
                    **_author(row),
                    "batch": batches.get(row["batch"]),
                    "sources": sorted(filter(None, map(identities.of, codec.parsed(row["sources"])))),
                    "supports": sorted(of_rows[each] for each in made_of[position] if each in of_rows),
                    **hidden_state(row, ids),
                    "made_by": ids.get(row["made_by"]),
                    "holds": sorted(holds[position]),
                    "successors": successors.get(row["id"], []),
                },
            )


def hidden_state(row: sqlite3.Row, operations: Mapping[int, str]) -> dict[str, str | None]:
    """Return the fields that describe how a row is hidden, all None if it is visible."""
    return {
        "superseded_by": row["superseded_by"] and codec.unpacked(row["superseded_by"]),
        "dropped_at": row["dropped_at"],
        "reason": row["reason"],
        "hidden_by": operations.get(row["hidden_by"]),
    }


def _row_ids(connection: sqlite3.Connection, positions: Iterable[int]) -> dict[int, str]:
    which = {"which": dialect.as_list(positions)}
    these = dialect.among("position", ":which")
    found = connection.execute(
        f"SELECT position, id FROM observations WHERE {these}"
        f" UNION ALL SELECT position, id FROM aside_observations WHERE {these}",
        which,
    )
    return {position: codec.unpacked(identity) for position, identity in found}


class _Identities:
    """The identities of all messages by `seq`, 16 bytes each: no index finds them, and a dictionary would be large."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        (last,) = connection.execute("SELECT coalesce(max(message), 0) FROM identities").fetchone()
        self._packed = bytearray(16 * (last + 1))
        for identity, seq in connection.execute("SELECT identity, message FROM identities"):
            self._packed[16 * seq : 16 * seq + 16] = identity

    def of(self, seq: int) -> str | None:
        """Return the identity of a message, or None if there is no such message."""
        found = self._packed[16 * seq : 16 * seq + 16]
        return found.hex() if any(found) else None
