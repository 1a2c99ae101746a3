"""Leases in the store: the owner of each lane of a session, and if that process still runs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from omcli.base.errors import LaneTaken
from omcli.memory.ports import Lane, Leases
from omcli.sqlite import codec
from omcli.sqlite.database import Database, Table

_UNKNOWN = "-"
_DEAD = frozenset("ZX")
"""States of a Linux process that has ended and waits for its parent to notice."""


class SqliteLeases(Table, Leases):
    """Leases in the table `leases`. `is_gone` says if an owner has ended."""

    def __init__(self, database: Database, *, is_gone: Callable[[str], bool]) -> None:
        super().__init__(database)
        self._is_gone = is_gone

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        with self._database.writing() as connection:
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
            until = _limit_lease(connection, held, session=number, lane=lane, expires_at=expires_at)
        # Raised after the shorter lease is committed.
        raise LaneTaken(
            f"{owner_name(held['owner'])} is at the {lane} lane of session {held['id']}",
            hint=f"its messages are kept; try again when it is done, at the latest at {until}",
        )

    def release(self, session: str, lane: Lane, *, owner: str) -> None:
        with self._database.writing() as connection:
            number = codec.session_number(connection, session)
            connection.execute("DELETE FROM leases WHERE session = ? AND lane = ? AND owner = ?", (number, lane, owner))


def _limit_lease(
    connection: sqlite3.Connection, held: sqlite3.Row, *, session: int, lane: Lane, expires_at: str
) -> str:
    """Shorten a lease to what another process asked for, and return its end.

    The holder may have died while its clock was ahead, which would leave a lease of years. A live holder extends its
    lease at its next batch.
    """
    until: str = min(held["expires_at"], expires_at)
    connection.execute(
        "UPDATE leases SET expires_at = :until WHERE session = :session AND lane = :lane AND expires_at > :until",
        {"until": until, "session": session, "lane": lane},
    )
    return until


def current_process(worker: str = "") -> str:
    """This process as an owner, `host:pid:start`, and `/worker` if several work in it.

    The start distinguishes it from a later process with the same pid.
    """
    pid = os.getpid()
    state = _state_and_start(pid)
    return f"{os.uname().nodename}:{pid}:{state[1] if state else _UNKNOWN}{worker and f'/{worker}'}"


def is_gone(owner: str) -> bool:
    """True if the owner is known to have ended: never for an owner on another host, or for text that names no owner."""
    host, pid, start = _parts(owner)
    if host != os.uname().nodename or not pid:
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
    """The owner as printed: `process 4711`, with its host if that is a different one."""
    host, pid, _ = _parts(owner)
    if not pid:
        return owner
    return f"process {pid}" if host == os.uname().nodename else f"process {pid} on {host}"


def _parts(owner: str) -> tuple[str, int, str]:
    """Host, pid and start; pid 0 if the text names no owner."""
    host, _, rest = owner.partition(":") if owner.count(":") == 2 else ("", "", "")
    pid, _, start = rest.partition("/")[0].partition(":")
    return host, int(pid) if pid.isascii() and pid.isdecimal() else 0, start


def _state_and_start(pid: int) -> tuple[str, str] | None:
    """State letter and start (clock ticks after boot) of a process, if the system has /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name before the last parenthesis may hold spaces and parentheses itself.
    fields = stat.rpartition(")")[2].split()
    return fields[0], fields[19]
