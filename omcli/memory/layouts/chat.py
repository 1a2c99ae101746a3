"""A pack as chat messages that an agent can go on from: what is remembered as system message, then the last turns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from omcli.memory.layouts.layout import Shown, spoken
from omcli.memory.layouts.text import Text
from omcli.memory.message import Role
from omcli.memory.observation import Observation
from omcli.memory.record import record
from omcli.memory.rows import json_line
from omcli.memory.tail import Turn, answers
from omcli.memory.tier import Tier

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNANSWERED = "(no result)"

_Entry = dict[str, object]


@record
class Chat:
    """A JSON list in OpenAI's chat shape, a message per line."""

    block: Text
    """How the rows are written in the system message."""

    def headings(self, observation: Observation) -> tuple[str, ...]:
        """As in text."""
        return self.block.headings(observation)

    def row(self, observation: Observation) -> str:
        """A row's line, as it stands in a JSON string."""
        return _quoted(self.block.row(observation) + "\n")

    def turn(self, turn: Turn) -> str:
        """A message's object; a call's with the message around it."""
        if turn.message.role is Role.RESULT:
            return json_line(_result(turn, turn.text)) + ","
        return _lines(conversation([turn])) + ","

    def furniture(self, tier: Tier) -> str:
        """A tier's heading in the system message."""
        return "" if tier is Tier.TAIL else _quoted(self.block.furniture(tier) + "\n")

    def frame(self) -> str:
        """A list with an empty block."""
        return f"[\n{_system(self.block.frame())},\n\n]\n"

    def part(self, tier: Tier, shown: Shown) -> str:
        """The tail's objects, or what another tier adds to the system message."""
        return _lines(conversation(shown.tail)) if tier is Tier.TAIL else _quoted(self.block.part(tier, shown))

    def whole(self, shown: Shown, _tokens: Mapping[Tier, int]) -> str:
        """The list, also when it is empty."""
        block = self.block.block(
            self.block.part(tier, shown) for tier in self.block.head.order if tier is not Tier.TAIL
        )
        if shown.tail and not block:
            block = self.block.frame()  # by which the pack is known when it is read again
        entries = [entry for entry in (block and _system(block), self.part(Tier.TAIL, shown)) if entry]
        return "\n".join(["[", *filter(None, [",\n".join(entries)]), "]", ""])


def conversation(turns: Sequence[Turn]) -> list[_Entry]:
    """Turns in OpenAI's chat shape: calls made together in one assistant message, their results right behind it.

    A call that nobody answered gets a result that says so, or no model could go on from the list; calls at the very
    end are left for the reader to answer.
    """
    results = answers([turn.message for turn in turns])
    entries: list[_Entry] = []
    for is_call, run in groupby(range(len(turns)), key=lambda place: turns[place].message.role is Role.CALL):
        places = tuple(run)
        if not is_call:
            entries += [_entry(turns[place]) for place in places if turns[place].message.role is not Role.RESULT]
            continue
        spoken_before = entries.pop() if entries and entries[-1]["role"] == "assistant" else {"role": "assistant"}
        entries.append({**spoken_before, "tool_calls": [_call(turns[place]) for place in places]})
        is_over = all(turn.message.role is Role.RESULT for turn in turns[places[-1] + 1 :])
        for place in places:
            said = [turns[result].text for result in results[place]]
            if said or not is_over:
                entries.append(_result(turns[place], "\n".join(said) if said else _UNANSWERED))
    return entries


def _entry(turn: Turn) -> _Entry:
    said = turn.message
    if said.role is Role.EVENT:
        return {"role": "system", "content": spoken(turn)}
    name = {"name": said.name} if said.name and _NAME.fullmatch(said.name) else {}
    return {"role": str(said.role), **name, "content": turn.text}


def _call(turn: Turn) -> _Entry:
    name = turn.message.tool or "tool"
    return {"id": _call_id(turn), "type": "function", "function": {"name": name, "arguments": _arguments(turn)}}


def _result(turn: Turn, text: str) -> _Entry:
    return {"role": "tool", "tool_call_id": _call_id(turn), "content": text}


def _call_id(turn: Turn) -> str:
    return turn.message.call_id or f"call-{turn.kept.key}"


def _arguments(turn: Turn) -> str:
    """A call's arguments as JSON text; free text, and what is cut, as the one argument `input`."""
    try:
        is_object = isinstance(json.loads(turn.text), dict)
    except (ValueError, RecursionError):
        is_object = False
    return turn.text if is_object else json.dumps({"input": turn.text}, ensure_ascii=False)


def _quoted(text: str) -> str:
    """Text as it stands between the quotes of a JSON string."""
    return json_line(text)[1:-1]


def _system(block: str) -> str:
    return json_line({"role": "system", "content": block})


def _lines(entries: Sequence[_Entry]) -> str:
    return ",\n".join(json_line(entry) for entry in entries)
