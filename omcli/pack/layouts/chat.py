"""A pack as chat messages for an agent to continue: a message with the memory, then the last turns."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from omcli.base.record import record
from omcli.memory.message import Role, results_by_call
from omcli.memory.notation import TAG
from omcli.memory.observation import Observation
from omcli.pack.budget import Tier
from omcli.pack.layouts.layout import PackContent, spoken
from omcli.pack.layouts.text import Text
from omcli.pack.tail import Turn
from omcli.text.clean import json_line, quoted

UNANSWERED = "(no result)"
"""Placeholder for the result of a call that has none, because chat formats require one."""


@record
class AnsweredCall:
    turn: Turn
    id: str
    """Id that links the call to its result; unique in the list."""
    results: tuple[Turn, ...]

    @property
    def answer(self) -> str:
        """Text of all results, or a placeholder if there are none."""
        return "\n".join(result.text for result in self.results) if self.results else UNANSWERED


@record
class ChatStep:
    """Content of one chat message: words, tool calls, or both. The results of the calls are printed after it."""

    spoken: Turn | None
    """The message in words; None if the agent called tools without a word."""
    calls: tuple[AnsweredCall, ...] = ()
    """Calls that the agent made together."""
    is_open: bool = False
    """True if nothing but results follows the calls. Calls without a result are then left for the reader to answer."""

    @property
    def answered(self) -> tuple[AnsweredCall, ...]:
        """The calls for which a result is printed."""
        return tuple(call for call in self.calls if call.results or not self.is_open)


def steps(turns: Sequence[Turn], *, spelled: Callable[[str], str]) -> Iterator[ChatStep]:
    """Yield the steps of a conversation. Successive calls form one step.

    Results are attached to their calls, and results without a call are left out. `spelled` converts a call's id to the
    form that the format accepts.
    """
    found = results_by_call([turn.message for turn in turns])
    ids = _each_once((call_id(turn) for turn in turns if turn.message.role is Role.CALL), spelled)
    said: Turn | None = None  # the agent's last words, which calls may follow
    for is_call, run in groupby(range(len(turns)), key=lambda place: turns[place].message.role is Role.CALL):
        places = tuple(run)
        if is_call:
            yield ChatStep(
                spoken=said,
                calls=tuple(_call(turns, place, found[place], next(ids)) for place in places),
                is_open=all(turn.message.role is Role.RESULT for turn in turns[places[-1] + 1 :]),
            )
            said = None
            continue
        for turn in (turns[place] for place in places if turns[place].message.role is not Role.RESULT):
            if said is not None:
                yield ChatStep(spoken=said)
            said = turn if turn.message.role is Role.ASSISTANT else None
            if said is None:
                yield ChatStep(spoken=turn)
    if said is not None:
        yield ChatStep(spoken=said)


def _call(turns: Sequence[Turn], place: int, results: Iterable[int], its_id: str) -> AnsweredCall:
    return AnsweredCall(turn=turns[place], id=its_id, results=tuple(turns[result] for result in results))


def _each_once(ids: Iterable[str], spelled: Callable[[str], str]) -> Iterator[str]:
    """Yield each id as `spelled` writes it. A repeated id gets a number in front, as endpoints refuse duplicates."""
    taken: set[str] = set()
    used: Counter[str] = Counter()
    for each in ids:
        found = own = spelled(each)
        while found in taken:
            used[own] += 1
            found = spelled(f"{used[own] + 1}-{each}")
        taken.add(found)
        yield found


def call_id(turn: Turn) -> str:
    """Return the id that links a call with its results. If the message has no call id, one is made from its key."""
    return turn.message.call_id or f"call-{turn.kept.key}"


def call_input(turn: Turn) -> Mapping[str, object]:
    """Return the arguments of a call.

    Text that is not a JSON object (because it was cut, for example) becomes a single argument named `input`.
    """
    try:
        found = json.loads(turn.text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"input": turn.text}


Entry = Mapping[str, object]
"""A chat message as printed."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME, _LONGEST_OPENAI_NAME = 128, 64
_LONGEST_OPENAI_ID = 40
_LEFT_OUT = f"<{TAG}>Earlier messages are left out.</{TAG}>"
"""A message of om itself. It is not stored if it comes back in an agent's transcript."""
_NOTHING = "(nothing)"
"""Replacement for blank text, which Anthropic refuses."""


@record
class MessageFormat:
    """A provider's format of chat messages."""

    opening: Callable[[str], Entry]
    """Function that builds the message with the memory."""
    messages: Callable[[Sequence[Turn]], list[Entry]]
    """Function that converts turns to messages: one assistant message for calls made together, then their results.

    A call without a result gets a placeholder, because models cannot continue without one. Calls at the very end are
    instead left for the reader to answer.
    """
    result: Callable[[Turn], Entry]
    begins_with_user: bool = False
    """True if the first message of a list must be a user's."""

    def conversation(self, turns: Sequence[Turn]) -> list[Entry]:
        """Return all messages of a list without the memory. If the first must be a user's and is not, one is put before
        it (`_LEFT_OUT`).
        """
        entries = self.messages(turns)
        if self.begins_with_user and entries and entries[0]["role"] != "user":
            entries.insert(0, self.opening(_LEFT_OUT))
        return entries


def _openai_messages(turns: Sequence[Turn]) -> list[Entry]:
    entries: list[Entry] = []
    for step in steps(turns, spelled=_openai_id):
        said: Entry = {"role": "assistant"} if step.spoken is None else _openai_words(step.spoken)
        entries.append({**said, "tool_calls": list(map(_openai_call, step.calls))} if step.calls else said)
        entries += [_openai_answer(call.id, call.answer) for call in step.answered]
    return entries


def _openai_words(turn: Turn) -> Entry:
    said = turn.message
    if said.role is Role.EVENT:  # not "system", because it may quote a program or a summary
        return {"role": "user", "content": spoken(turn)}
    name = {"name": said.name} if said.name and _NAME.fullmatch(said.name) else {}
    return {"role": str(said.role), **name, "content": turn.text}


def _openai_call(call: AnsweredCall) -> Entry:
    turn = call.turn
    given = call_input(turn)
    written = json.dumps(given, ensure_ascii=False) if given == {"input": turn.text} else turn.text
    name = _plain(turn.message.tool or "tool")[:_LONGEST_OPENAI_NAME]
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": written}}


def _openai_answer(to: str, text: str) -> Entry:
    return {"role": "tool", "tool_call_id": to, "content": text}


def _openai_id(written: str) -> str:
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
    """Return the text of a message. It begins with the speaker if the message names one (`user Ada: …`), or with the
    kind of an event (`[interrupt] …`).
    """
    if turn.message.name or turn.message.role is Role.EVENT:
        return spoken(turn)
    return turn.text


def _anthropic_call(call: AnsweredCall) -> Entry:
    name = _plain(call.turn.message.tool or "tool")
    return {"type": "tool_use", "id": call.id, "name": name, "input": call_input(call.turn)}


def _anthropic_answer(to: str, text: str, *, failed: bool) -> Entry:
    is_error = {"is_error": True} if failed else {}
    return {"type": "tool_result", "tool_use_id": to, "content": text, **is_error}


def _text(text: str) -> Entry:
    return {"type": "text", "text": text if text.strip() else _NOTHING}


def _plain(name: str) -> str:
    """Replace the characters that Anthropic refuses in a name or id, and limit the length."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME]


OPENAI = MessageFormat(
    opening=lambda block: {"role": "system", "content": block},
    messages=_openai_messages,
    result=lambda turn: _openai_answer(_openai_id(call_id(turn)), turn.text),
)
OPENAI_FROM_USER = MessageFormat(
    opening=lambda block: {"role": "user", "content": block}, messages=OPENAI.messages, result=OPENAI.result
)
"""OpenAI's format with the memory in a user message.

Some endpoints accept a system message only at the very beginning, where an agent puts its own.
"""
ANTHROPIC = MessageFormat(
    opening=lambda block: {"role": "user", "content": [_text(block)]},
    messages=_anthropic_messages,
    result=lambda turn: {
        "role": "user",
        "content": [_anthropic_answer(_plain(call_id(turn)), turn.text, failed=bool(turn.message.failed))],
    },
    begins_with_user=True,
)


@record
class Chat:
    """Layout as a JSON list of chat messages, one per line."""

    block: Text
    """Layout of the memory in the first message."""
    dialect: MessageFormat = OPENAI

    def headings(self, observation: Observation) -> tuple[str, ...]:
        return self.block.headings(observation)

    def row(self, observation: Observation) -> str:
        """Return a row's line, escaped for a JSON string."""
        return quoted(self.block.row(observation) + "\n")

    def turn(self, turn: Turn) -> str:
        """Return the JSON object of a message, followed by a comma."""
        if turn.message.role is Role.RESULT:
            return json_line(self.dialect.result(turn)) + ","
        return _lines(self.dialect.messages([turn])) + ","

    def overhead(self, tier: Tier) -> str:
        """Return a tier's heading in the first message. The tail has none."""
        return "" if tier is Tier.TAIL else quoted(self.block.overhead(tier) + "\n")

    def frame(self) -> str:
        """Return a list with a single message, which contains an empty pack."""
        return f"[\n{self._opening(self.block.frame())},\n\n]\n"

    def part(self, tier: Tier, shown: PackContent) -> str:
        """Return the tail's messages, or another tier's text, quoted for the first message."""
        if tier is Tier.TAIL:
            return _lines(self.dialect.messages(shown.tail))
        return quoted(self.block.part(tier, shown))

    def whole(self, shown: PackContent, _tokens: Mapping[Tier, int]) -> str:
        """Return the JSON list, even if it is empty. Without rows, it has no message with the memory."""
        block = self.block.without_tail(shown)
        tail = self.part(Tier.TAIL, shown) if block else _lines(self.dialect.conversation(shown.tail))
        entries = [entry for entry in (block and self._opening(block), tail) if entry]
        return "\n".join(["[", *filter(None, [",\n".join(entries)]), "]", ""])

    def _opening(self, block: str) -> str:
        return json_line(self.dialect.opening(block))


def _lines(entries: Sequence[Entry]) -> str:
    return ",\n".join(json_line(entry) for entry in entries)
