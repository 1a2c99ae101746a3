"""Lanes of sessions: their progress (cursors and the log of batches) and their owners (leases)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from omcli.base.errors import LaneTaken, StaleBatch
from omcli.base.record import record
from omcli.memory.batch import Batch, BatchOutcome
from omcli.memory.ports import Lane, LaneError, Leases
from omcli.memory.session import Author
from omcli.sqlite import codec, dialect
from omcli.sqlite.dialect import Database, Table
from omcli.text.clean import printed_name

BUFFERED = "ahead"
"""Outcome recorded for a batch that was buffered."""
_UNKNOWN = "-"
_LONGEST_NAME = 200
"""Maximum number of characters that are kept of the name of an author or a machine."""
_DEAD = frozenset("ZX")
"""States of a Linux process that has ended but whose parent has not noticed yet."""


def cursor(connection: sqlite3.Connection, *, session: int, lane: Lane) -> int:
    """Return the `seq` up to which the lane has covered the session, or 0 if nothing is covered."""
    found = connection.execute(
        "SELECT covers_up_to FROM cursors WHERE session = ? AND lane = ?", (session, lane)
    ).fetchone()
    return found["covers_up_to"] if found else 0


def last_end(connection: sqlite3.Connection, *, session: int, cursor: int) -> tuple[int, int]:
    """Return the `seq` at which the session's last buffered batch ends, or the cursor if that is later, and the number
    of buffered batches.
    """
    end, buffered = connection.execute(
        "SELECT coalesce(max(through), 0), count(*) FROM blocks WHERE session = ?", (session,)
    ).fetchone()
    return max(end, cursor), buffered


def deferred(connection: sqlite3.Connection, *, session: int, after: int) -> int:
    """Return the `seq` up to which an observer deferred messages in a batch that began at `after`, or 0 if there is no
    such batch.
    """
    (through,) = connection.execute(
        "SELECT coalesce(max(through), 0) FROM batches WHERE session = ? AND lane = ? AND after = ? AND outcome = ?"
        " AND NOT late",
        (session, Lane.OBSERVE, after, BatchOutcome.DEFERRED),
    ).fetchone()
    assert isinstance(through, int)
    return through


@record
class Late:
    """A run of pending messages, `after < seq <= through`, that the cursor has passed."""

    after: int
    through: int


def late_messages(connection: sqlite3.Connection, *, session: int) -> frozenset[int]:
    """Return the `seq` of all pending messages that the cursor has passed."""
    found = connection.execute(
        "SELECT m.seq FROM passed_over AS p JOIN messages AS m ON m.seq = p.message WHERE p.session = ?", (session,)
    )
    return frozenset(seq for (seq,) in found)


def first_late(connection: sqlite3.Connection, *, session: int) -> Late | None:
    """Return the first run of messages that the cursor has passed but no batch covers, or None if there is none."""
    late = (
        "SELECT m.seq FROM passed_over AS p JOIN messages AS m ON m.seq = p.message"
        " WHERE p.session = :session ORDER BY p.message"
    )
    first = connection.execute(f"{late} LIMIT 1", {"session": session}).fetchone()
    if first is None:
        return None
    (through,) = connection.execute(
        f"SELECT max(seq) FROM ({late}) AS late"
        " WHERE seq < coalesce((SELECT min(seq) FROM messages WHERE session = :session"
        f" AND seq > :first AND seq NOT IN ({late})), seq + 1)",
        {"session": session, "first": first["seq"]},
    ).fetchone()
    return Late(after=first["seq"] - 1, through=through)


def cover(connection: sqlite3.Connection, batch: Batch, *, session: int, outcome: BatchOutcome) -> bool:
    """Mark a batch's messages as covered, unless its outcome leaves them pending. Return True if the batch is late.

    Buffered batches that the cursor has passed are deleted. Raise StaleBatch if the batch is no longer pending or is
    incomplete.
    """
    is_late = batch.through <= cursor(connection, session=session, lane=Lane.OBSERVE)
    if is_late:
        _cover_late(connection, batch, session=session, outcome=outcome)
    else:
        _move(connection, batch, session=session, outcome=outcome)
    check_whole(connection, batch, session=session)
    covered = cursor(connection, session=session, lane=Lane.OBSERVE)
    connection.execute("DELETE FROM blocks WHERE session = ? AND through <= ?", (session, covered))
    return is_late


def _cover_late(connection: sqlite3.Connection, batch: Batch, *, session: int, outcome: BatchOutcome) -> None:
    which = dialect.as_list(kept.seq for kept in batch.messages)
    these = f"session = ? AND {dialect.among('message')}"
    (late,) = connection.execute(f"SELECT count(*) FROM passed_over WHERE {these}", (session, which)).fetchone()
    if not batch.messages or late != len(batch.messages):
        raise stale(batch)
    if outcome in (BatchOutcome.OBSERVED, BatchOutcome.EMPTY):
        connection.execute(f"DELETE FROM passed_over WHERE {these}", (session, which))


def _move(connection: sqlite3.Connection, batch: Batch, *, session: int, outcome: BatchOutcome) -> None:
    """Move the cursor from the start of the batch to its end. If the outcome leaves the cursor in place, only record
    that the messages were shown to an observer (`offered_up_to`).

    The cursor is compared and set in one statement. A batch that leaves it in place may also start where a buffered
    batch ends.
    """
    connection.execute(
        "INSERT INTO cursors (session, lane) VALUES (?, ?) ON CONFLICT DO NOTHING", (session, Lane.OBSERVE)
    )
    moved = connection.execute(
        "UPDATE cursors SET"
        " offered_up_to = CASE WHEN offered_up_to > :through THEN offered_up_to ELSE :through END,"
        " covers_up_to = CASE WHEN :stays THEN covers_up_to ELSE :through END"
        " WHERE session = :session AND lane = :lane AND (covers_up_to = :after OR (:stays AND EXISTS"
        " (SELECT 1 FROM blocks WHERE session = :session AND through = :after)))",
        {
            "through": batch.through,
            "stays": outcome in (BatchOutcome.FAILED, BatchOutcome.DEFERRED),
            "session": session,
            "lane": Lane.OBSERVE,
            "after": batch.after,
        },
    ).rowcount
    if not moved:
        raise stale(batch)


def check_whole(connection: sqlite3.Connection, batch: Batch, *, session: int) -> None:
    """Raise StaleBatch unless the batch contains exactly the visible messages of its range."""
    found = connection.execute(
        "SELECT seq FROM messages WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq",
        (session, batch.after, batch.through),
    )
    if [seq for (seq,) in found] != [kept.seq for kept in batch.messages]:
        raise StaleBatch(
            f"messages of session {batch.session} were forgotten, or brought back, while they were observed",
            hint="nothing was lost; run it again for what is left",
        )


def stale(batch: Batch) -> StaleBatch:
    """Return the error for a batch that another process has recorded first."""
    return StaleBatch(
        f"session {batch.session} was worked on by another process meanwhile",
        hint="nothing was lost; run it again for what is left",
    )


def note_batch(
    connection: sqlite3.Connection,
    batch: Batch,
    *,
    session: int,
    outcome: str,
    error: str | None,
    now: str,
    observations: int,
    is_late: bool = False,
) -> int:
    """Log a batch with its outcome (`BatchOutcome` or BUFFERED) and return its number."""
    columns: dialect.Columns = {
        "session": session,
        "lane": Lane.OBSERVE,
        "after": batch.after,
        "through": batch.through,
        "outcome": outcome,
        "error": error,
        "at": now,
        "observations": observations,
        "late": is_late,
    }
    return dialect.insert(connection, "batches", columns)


def last_errors(connection: sqlite3.Connection) -> tuple[LaneError, ...]:
    """Return, oldest first, the failure of each lane of a session if its latest batch failed, and of each scope if its
    latest reflection failed.
    """
    same_scope = (
        f"{dialect.same('later.session', 'tried.session')} AND {dialect.same('later.project', 'tried.project')}"
    )
    found = connection.execute(
        "SELECT s.id AS session, b.lane, b.at, b.error FROM batches AS b JOIN sessions AS s ON s.number = b.session"
        " WHERE b.outcome = 'failed' AND b.number = (SELECT max(number) FROM batches AS later"
        " WHERE later.session = b.session AND later.lane = b.lane)"
        " UNION ALL SELECT s.id, 'reflect', tried.at, tried.error FROM operations AS tried"
        " LEFT JOIN sessions AS s ON s.number = tried.session"
        " WHERE tried.outcome = 'failed' AND tried.number = (SELECT max(number) FROM operations AS later"
        f" WHERE later.verb = tried.verb AND {same_scope}) ORDER BY 3"
    )
    return tuple(
        LaneError(session=row["session"], lane=Lane(row["lane"]), at=row["at"], error=row["error"] or "")
        for row in found
    )


# ---- leases: the owner of each lane, and checking if that process still runs


class SqliteLeases(Table, Leases):
    """Leases in the table `leases`. `is_gone` returns True if an owner has ended."""

    def __init__(self, database: Database, *, is_gone: Callable[[str], bool]) -> None:
        super().__init__(database)
        self._is_gone = is_gone

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        with self._database.writing(session) as connection:
            number = codec.add_session(connection, session)
            held = connection.execute(
                "SELECT owner, expires_at, id FROM leases JOIN sessions ON number = session"
                " WHERE session = ? AND lane = ?",
                (number, lane),
            ).fetchone()
            if held is None or held["owner"] == owner or held["expires_at"] <= now or self._is_gone(held["owner"]):
                connection.execute(
                    "INSERT INTO leases (session, lane, owner, expires_at) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (session, lane) DO UPDATE SET owner = excluded.owner,"
                    " expires_at = excluded.expires_at",
                    (number, lane, owner, expires_at),
                )
                return
            until = _limit(connection, held, session=number, lane=lane, expires_at=expires_at)
        # Raised after the shortened lease is committed.
        raise LaneTaken(
            f"{owner_name(held['owner'])} is at the {lane} lane of session {held['id']}",
            hint=f"its messages are kept; try again when it is done, at the latest at {until}",
        )

    def release(self, session: str, lane: Lane, *, owner: str) -> None:
        with self._database.writing(session) as connection:
            number = codec.session_number(connection, session)
            connection.execute("DELETE FROM leases WHERE session = ? AND lane = ? AND owner = ?", (number, lane, owner))


def _limit(connection: sqlite3.Connection, held: sqlite3.Row, *, session: int, lane: Lane, expires_at: str) -> str:
    """Shorten a lease to the end requested by another process, unless it ends earlier, and return its end.

    The holder may have died while its clock was ahead, which would leave a lease of years. A live holder extends its
    lease with its next batch.
    """
    until: str = min(held["expires_at"], expires_at)
    connection.execute(
        "UPDATE leases SET expires_at = :until WHERE session = :session AND lane = :lane AND expires_at > :until",
        {"until": until, "session": session, "lane": lane},
    )
    return until


def current_process(worker: str = "") -> str:
    """Return this process as an owner: `host:pid:start`, followed by `/worker` if several workers share the process.

    The start time distinguishes it from a later process with the same pid.
    """
    pid = os.getpid()
    state = _state_and_start(pid)
    return f"{system_name()}:{pid}:{state[1] if state else _UNKNOWN}{worker and f'/{worker}'}"


def current_author(name: str | None) -> Author:
    """Return who writes: this name, or else that of the user, at this machine."""
    user = name or os.environ.get("LOGNAME") or os.environ.get("USER") or _user()
    by, machine = (printed_name(each)[:_LONGEST_NAME] or _UNKNOWN for each in (user, system_name()))
    return Author(name=by, machine=machine)


def system_name() -> str:
    """Return the name of this machine."""
    return os.uname().nodename


def _user() -> str:
    import pwd  # noqa: PLC0415 - it may ask another machine

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def is_gone(owner: str) -> bool:
    """Return True if the owner is known to have ended. Owners on other hosts and text that names no owner never count
    as ended.
    """
    at, pid, start = _parts(owner)
    if at != system_name() or not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    state = _state_and_start(pid)
    return state is not None and (state[0] in _DEAD or start not in (state[1], _UNKNOWN))


def owner_name(owner: str) -> str:
    """Return the owner for display: `process 4711`, with its host if that is a different one."""
    at, pid, _ = _parts(owner)
    if not pid:
        return owner
    return f"process {pid}" if at == system_name() else f"process {pid} on {at}"


def _parts(owner: str) -> tuple[str, int, str]:
    """Return host, pid and start, with pid 0 if the text names no owner."""
    at, _, rest = owner.partition(":") if owner.count(":") == 2 else ("", "", "")
    pid, _, start = rest.partition("/")[0].partition(":")
    return at, int(pid) if pid.isascii() and pid.isdecimal() else 0, start


def _state_and_start(pid: int) -> tuple[str, str] | None:
    """Return a process's state letter and start (in clock ticks after boot), or None if /proc does not show them."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name before the last parenthesis may itself contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return fields[0], fields[19]
