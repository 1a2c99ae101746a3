"""Bytes in, items out, whether or not the reader recognises them: for inputs that no program writes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from omcli.formats import Format
from omcli.formats.source import RecordStream
from omcli.memory.message import Message, Role
from omcli.memory.transcript import Facts, Item, NewConversation, Skip
from tests.shared import TRANSCRIPTS, expected
from tests.unit.formats.readings import facts_of_file


def document(value: object) -> bytes:
    """A value as one JSON document over many lines."""
    return json.dumps(value, indent=1).encode()


def items_of(reader: Format, content: bytes) -> list[Item]:
    """Everything the reader yields."""
    return list(reader.read(RecordStream(io.BytesIO(content))))


def messages_of(reader: Format, content: bytes) -> list[Message]:
    """The messages alone."""
    return [item for item in items_of(reader, content) if isinstance(item, Message)]


def skipped_of(reader: Format, content: bytes) -> list[Skip]:
    """Skip records."""
    return [item for item in items_of(reader, content) if isinstance(item, Skip)]


def facts_of(reader: Format, content: bytes) -> list[Facts]:
    """Facts of the session."""
    return [item for item in items_of(reader, content) if isinstance(item, Facts)]


def spoken(reader: Format, content: bytes) -> list[tuple[Role, str]]:
    """Role and text of each message."""
    return [(message.role, message.text) for message in messages_of(reader, content)]


def is_sniffed(reader: Format, content: bytes) -> bool:
    """Return True if the format is detected."""
    return reader.detect(RecordStream(io.BytesIO(content)).sample)


def per_conversation(items: list[Item]) -> list[list[Message]]:
    """The messages between the marks."""
    conversations: list[list[Message]] = [[]]
    for item in items:
        if isinstance(item, NewConversation):
            conversations.append([])
        elif isinstance(item, Message):
            conversations[-1].append(item)
    return conversations


def shared_files(folder: str, *, role: str) -> list[Any]:
    """Parameters: the shared transcripts of a folder with this role; one that is skipped where there are none."""
    paths = [path for path, entry in expected().items() if path.startswith(f"{folder}/") and entry["role"] == role]
    absent = pytest.param("", marks=pytest.mark.skip(reason="the shared transcripts are not beside this checkout"))
    return list(paths) or [absent]


def settled(path: str) -> dict[str, object]:
    """The settled part of `expected.json` for a shared transcript."""
    return {name: fact for name, fact in expected()[path]["facts"].items() if fact is not None}


def found(reader: Format, path: str) -> dict[str, object]:
    """The same counts as read from a shared transcript."""
    facts = facts_of_file(reader, TRANSCRIPTS / path)
    return {name: facts[name] for name in settled(path) if name in facts}


def is_sniffed_shared(reader: Format, path: str) -> bool:
    """Return True if the format of a shared transcript is detected."""
    with (TRANSCRIPTS / path).open("rb") as stream:
        return reader.detect(RecordStream(stream).sample)
