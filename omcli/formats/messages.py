"""Messages of Python programs: dicts, objects of providers' SDKs, and our own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any, Protocol, TypeGuard

from omcli.base.errors import BadInput
from omcli.formats import detect_chat
from omcli.formats.source import RecordStream
from omcli.memory.message import Message
from omcli.memory.transcript import Transcript


class ModelMessage(Protocol):
    """A message object from a provider's SDK, such as `response.choices[0].message` or Anthropic's response."""

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, Any]:
        """Return the message as a JSON-compatible dict."""


Said = Mapping[str, object] | Message | ModelMessage
"""A message in any of the accepted forms."""


def is_message(said: object) -> TypeGuard[Said]:
    """Return True if the value is a single message."""
    return isinstance(said, Mapping | Message) or callable(getattr(said, "model_dump", None))


def message_list(messages: object) -> list[Said]:
    """Return the messages as a list. Raise BadInput if the argument is not iterable or contains anything else."""
    if isinstance(messages, str | bytes) or not isinstance(messages, Iterable):
        raise BadInput(
            f"{type(messages).__name__} is not a valid message", hint="a message is a dict with `role` and `content`"
        )
    said = list(messages)
    for number, message in enumerate(said, start=1):
        if not is_message(message):
            raise BadInput(
                f"message {number} is of type {type(message).__name__}", hint="messages are dicts, or `Message`s"
            )
    return said


def transcript_of(messages: Sequence[Said]) -> Transcript:
    """Return the messages as a transcript. Raise BadInput if one is invalid, or if they include both dicts and
    `Message`s, and UnknownFormat if they are of no known format.
    """
    own = [message for message in messages if isinstance(message, Message)]
    if len(own) == len(messages):
        return Transcript(format="openai", items=own)
    if own:
        raise BadInput("dicts and `Message`s in one list", hint="use only dicts or only `Message`s")
    source = RecordStream(BytesIO("\n".join(map(_as_json, messages)).encode("utf-8")))
    found = detect_chat(source)
    return Transcript(format=found.name, copies=found.copies, items=found.read(source))


def _as_json(message: object) -> str:
    try:
        return json.dumps(message, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"a message cannot be written as JSON: {error}") from None


def _plain(value: object) -> object:
    """Return an SDK's object or a mapping as a JSON-compatible dict. Raise TypeError for anything else."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json", exclude_none=True)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it contains a {type(value).__name__}")
