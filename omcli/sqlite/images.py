"""Images in the store: kept with their messages, until those are observed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from omcli.memory.message import Message
from omcli.memory.ports import Lane
from omcli.sqlite import codec

_CURSOR = "coalesce((SELECT covers_up_to FROM cursors AS c WHERE c.session = s.number AND c.lane = :lane), 0)"
_WAITING = (
    f"SELECT m.images FROM sessions AS s JOIN messages AS m ON m.session = s.number AND m.seq > {_CURSOR}"
    " UNION ALL SELECT m.images FROM passed_over AS p JOIN messages AS m ON m.seq = p.message"
    " UNION ALL SELECT m.images FROM passed_over AS p JOIN aside_messages AS m ON m.seq = p.message"
)
"""Images of what waits: of each session what follows its cursor, by the index."""


def keep(connection: sqlite3.Connection, messages: Iterable[Message]) -> None:
    """Keeps the images that come with messages."""
    images = [image for message in messages for image in message.images]
    connection.executemany(
        "INSERT OR IGNORE INTO pictures (sha256, content) VALUES (?, ?)",
        [(bytes.fromhex(image.sha256), image.content) for image in images if image.content],
    )


def let_go(connection: sqlite3.Connection, digests: Iterable[str]) -> None:
    """Takes images out that no message waits with, also none that is put aside and may come back."""
    # What waits is read once for all of them, and where none of them is kept not at all.
    connection.execute(
        "DELETE FROM pictures WHERE lower(hex(sha256)) IN (SELECT value FROM json_each(:digests))"
        " AND lower(hex(sha256)) NOT IN"
        f" (SELECT image.value ->> 'sha256' FROM ({_WAITING}) AS waiting, json_each(waiting.images) AS image)",
        {"digests": codec.compact_json(sorted(set(digests))), "lane": Lane.OBSERVE},
    )


def content(connection: sqlite3.Connection, sha256: str) -> bytes | None:
    """The bytes of an image, where they are kept."""
    found = connection.execute("SELECT content FROM pictures WHERE sha256 = ?", (bytes.fromhex(sha256),)).fetchone()
    return found["content"] if found else None
