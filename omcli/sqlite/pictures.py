"""Images in the store: kept with their messages, until those are observed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from omcli.memory.message import Message
from omcli.memory.ports import Lane

_CURSOR = "coalesce((SELECT covers_up_to FROM cursors AS c WHERE c.session = s.number AND c.lane = :lane), 0)"
_WITH_IT = "m.images IS NOT NULL AND instr(m.images, :digest)"
_WAITS_WITH_IT = (
    f"SELECT 1 FROM sessions AS s JOIN messages AS m ON m.session = s.number AND m.seq > {_CURSOR} WHERE {_WITH_IT}"
    f" UNION ALL SELECT 1 FROM passed_over AS p JOIN messages AS m ON m.seq = p.message WHERE {_WITH_IT}"
    f" UNION ALL SELECT 1 FROM passed_over AS p JOIN aside_messages AS m ON m.seq = p.message WHERE {_WITH_IT}"
)
"""Reads only what waits: of each session what follows its cursor, by the index."""


def keep(connection: sqlite3.Connection, messages: Iterable[Message]) -> None:
    """Keeps the images that come with messages."""
    images = [image for message in messages for image in message.images]
    connection.executemany(
        "INSERT OR IGNORE INTO pictures (sha256, content) VALUES (?, ?)",
        [(bytes.fromhex(image.sha256), image.content) for image in images if image.content],
    )


def let_go(connection: sqlite3.Connection, digests: Iterable[str]) -> None:
    """Takes images out that no message waits with, also none that is put aside and may come back."""
    for digest in set(digests):
        connection.execute(
            f"DELETE FROM pictures WHERE sha256 = :sha256 AND NOT EXISTS ({_WAITS_WITH_IT})",
            {"sha256": bytes.fromhex(digest), "digest": digest, "lane": Lane.OBSERVE},
        )


def content(connection: sqlite3.Connection, sha256: str) -> bytes | None:
    """The bytes of an image, where they are kept."""
    found = connection.execute("SELECT content FROM pictures WHERE sha256 = ?", (bytes.fromhex(sha256),)).fetchone()
    return found["content"] if found else None
