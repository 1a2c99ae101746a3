"""The shapes of chat messages that agents and endpoints take: OpenAI's, and Anthropic's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from omcli.base.record import record
from omcli.memory.message import Role
from omcli.pack.layouts.layout import spoken
from omcli.pack.layouts.steps import Call, arguments, call_id, steps
from omcli.pack.tail import Turn

Entry = Mapping[str, object]
"""A message as it is printed."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME, _LONGEST_OPENAI_NAME = 128, 64
_LONGEST_OPENAI_ID = 40
_NOTHING = "(nothing)"
"""What stands for words that are blank: Anthropic takes none of those."""


@record
class Dialect:
    """One shape of messages."""

    opening: Callable[[str], Entry]
    """The message that holds what is remembered."""
    messages: Callable[[Sequence[Turn]], list[Entry]]
    """Turns: calls made together in one message of the assistant, their results right behind it.

    A call that nobody answered gets a result that says so, or no model could go on from the list; calls at the very
    end are left for the reader to answer.
    """
    result: Callable[[Turn], Entry]
    """A result by itself."""


def _openai_messages(turns: Sequence[Turn]) -> list[Entry]:
    entries: list[Entry] = []
    for step in steps(turns, spelled=_openai_id):
        said: Entry = {"role": "assistant"} if step.spoken is None else _openai_words(step.spoken)
        entries.append({**said, "tool_calls": list(map(_openai_call, step.calls))} if step.calls else said)
        entries += [_openai_answer(call.id, call.answer) for call in step.answered]
    return entries


def _openai_words(turn: Turn) -> Entry:
    said = turn.message
    if said.role is Role.EVENT:
        return {"role": "system", "content": spoken(turn)}
    name = {"name": said.name} if said.name and _NAME.fullmatch(said.name) else {}
    return {"role": str(said.role), **name, "content": turn.text}


def _openai_call(call: Call) -> Entry:
    turn = call.turn
    given = arguments(turn)
    written = json.dumps(given, ensure_ascii=False) if given == {"input": turn.text} else turn.text
    name = _plain(turn.message.tool or "tool")[:_LONGEST_OPENAI_NAME]
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": written}}


def _openai_answer(to: str, text: str) -> Entry:
    return {"role": "tool", "tool_call_id": to, "content": text}


def _openai_id(written: str) -> str:
    """An id with as many characters as OpenAI takes in one."""
    return written[:_LONGEST_OPENAI_ID]


def _anthropic_messages(turns: Sequence[Turn]) -> list[Entry]:
    entries: list[Entry] = []
    for step in steps(turns, spelled=_plain):
        said = [] if step.spoken is None else [_text(_anthropic_words(step.spoken))]
        is_agent = bool(step.calls) or (step.spoken is not None and step.spoken.message.role is Role.ASSISTANT)
        blocks = [*said, *map(_anthropic_call, step.calls)]
        entries.append({"role": "assistant" if is_agent else "user", "content": blocks})
        if answered := [
            _anthropic_answer(call.id, call.answer, failed=any(result.message.failed for result in call.results))
            for call in step.answered
        ]:
            entries.append({"role": "user", "content": answered})
    return entries


def _anthropic_words(turn: Turn) -> str:
    """Words as they were said; a speaker that shares a role is named, and an event told in brackets."""
    if turn.message.name or turn.message.role is Role.EVENT:
        return spoken(turn)
    return turn.text


def _anthropic_call(call: Call) -> Entry:
    name = _plain(call.turn.message.tool or "tool")
    return {"type": "tool_use", "id": call.id, "name": name, "input": arguments(call.turn)}


def _anthropic_answer(to: str, text: str, *, failed: bool) -> Entry:
    is_error = {"is_error": True} if failed else {}
    return {"type": "tool_result", "tool_use_id": to, "content": text, **is_error}


def _text(text: str) -> Entry:
    return {"type": "text", "text": text if text.strip() else _NOTHING}


def _plain(name: str) -> str:
    """A name or an id with the characters that Anthropic takes in one."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME]


OPENAI = Dialect(
    opening=lambda block: {"role": "system", "content": block},
    messages=_openai_messages,
    result=lambda turn: _openai_answer(_openai_id(call_id(turn)), turn.text),
)
OPENAI_FROM_USER = Dialect(
    opening=lambda block: {"role": "user", "content": block}, messages=OPENAI.messages, result=OPENAI.result
)
"""With what is remembered in the user's role: some endpoints take a system message at the very beginning alone, and an
agent has one of its own there."""
ANTHROPIC = Dialect(
    opening=lambda block: {"role": "user", "content": [_text(block)]},
    messages=_anthropic_messages,
    result=lambda turn: {
        "role": "user",
        "content": [_anthropic_answer(_plain(call_id(turn)), turn.text, failed=bool(turn.message.failed))],
    },
)
