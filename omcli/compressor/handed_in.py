"""Messages as an agent's program has them: dicts, objects of an SDK, or om's own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from omcli.base.errors import BadInput
from omcli.memory.message import Message

if TYPE_CHECKING:
    from omcli.memory.transcript import Transcript


class Dumped(Protocol):
    """An object of a model's SDK that is a message: `response.choices[0].message`, or what Anthropic's answers with."""

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, Any]:
        """It as JSON has it."""


Said = Mapping[str, object] | Message | Dumped
"""A message in any of the shapes that agents have it in."""


def is_message(said: object) -> TypeGuard[Said]:
    """Whether something is a message, not several."""
    return isinstance(said, Mapping | Message) or callable(getattr(said, "model_dump", None))


def listed(messages: object) -> list[Said]:
    """Messages that were given one by one. Raises BadInput for what is none."""
    if isinstance(messages, str | bytes) or not isinstance(messages, Iterable):
        raise BadInput(
            f"a {type(messages).__name__} is no message", hint="a message is a dict with `role` and `content`"
        )
    said = list(messages)
    for number, message in enumerate(said, start=1):
        if not is_message(message):
            raise BadInput(
                f"message {number} is of type {type(message).__name__}", hint="messages are dicts, or `Message`s"
            )
    return said


def transcript_of(messages: Sequence[Said]) -> Transcript:
    """Messages as a transcript. Raises BadInput."""
    from omcli.memory.transcript import Transcript

    own = [message for message in messages if isinstance(message, Message)]
    if len(own) == len(messages):
        return Transcript(format="openai", items=own)
    if own:
        raise BadInput("dicts and `Message`s in one list", hint="all of a list are dicts, or all are `Message`s")
    from omcli.wiring.inputs import messages_in

    return messages_in(map(_as_json, messages))


def _as_json(message: object) -> str:
    try:
        return json.dumps(message, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"a message cannot be written as JSON: {error}") from None


def _plain(value: object) -> object:
    """What stands in JSON for an object of an SDK, or for another kind of mapping. Raises TypeError."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json", exclude_none=True)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a {type(value).__name__}")
