"""Images in the store: kept with their messages, until those are observed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from omcli.memory.message import Message


def keep(connection: sqlite3.Connection, messages: Iterable[Message]) -> None:
    """Keeps the images that come with messages."""
    images = [image for message in messages for image in message.images]
    connection.executemany(
        "INSERT OR IGNORE INTO pictures (sha256, content) VALUES (?, ?)",
        [(bytes.fromhex(image.sha256), image.content) for image in images if image.content],
    )


def let_go(connection: sqlite3.Connection, messages: Iterable[Message]) -> None:
    """Takes out the images of messages that are covered."""
    images = {image.sha256 for message in messages for image in message.images}
    connection.executemany("DELETE FROM pictures WHERE sha256 = ?", [(bytes.fromhex(digest),) for digest in images])


def content(connection: sqlite3.Connection, sha256: str) -> bytes | None:
    """The bytes of an image, where they are kept."""
    found = connection.execute("SELECT content FROM pictures WHERE sha256 = ?", (bytes.fromhex(sha256),)).fetchone()
    return found["content"] if found else None
