"""A pack as chat messages that an agent can go on from: what is remembered as first message, then the last turns."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from omcli.base.record import record
from omcli.memory.message import Role, results_by_call
from omcli.memory.observation import Observation
from omcli.memory.row_json import json_line, quoted
from omcli.pack.budget import Tier
from omcli.pack.layouts.layout import PackContent, spoken
from omcli.pack.layouts.text import Text
from omcli.pack.tail import Turn

UNANSWERED = "(no result)"
"""What stands for the result of a call that nobody answered, where one has to be."""


@record
class AnsweredCall:
    """A call, and what came of it."""

    turn: Turn
    id: str
    """What joins it with its answer: no other call of the list has it."""
    results: tuple[Turn, ...]

    @property
    def answer(self) -> str:
        """What its results say."""
        return "\n".join(result.text for result in self.results) if self.results else UNANSWERED


@record
class ChatStep:
    """Content of one chat message, and its results."""

    spoken: Turn | None
    """Words; of the agent where calls follow them."""
    calls: tuple[AnsweredCall, ...] = ()
    """Made together."""
    is_open: bool = False
    """Whether nothing but results follows: calls that have none are left for the reader to answer."""

    @property
    def answered(self) -> tuple[AnsweredCall, ...]:
        """The calls that an answer has to follow."""
        return tuple(call for call in self.calls if call.results or not self.is_open)


def steps(turns: Sequence[Turn], *, spelled: Callable[[str], str]) -> Iterator[ChatStep]:
    """Turns in their order, calls that were made together in one step. Results stand with their calls, or nowhere.

    `spelled` is how an id is written.
    """
    found = results_by_call([turn.message for turn in turns])
    ids = _distinct((call_id(turn) for turn in turns if turn.message.role is Role.CALL), spelled)
    said: Turn | None = None  # by the agent: calls may follow
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


def _distinct(ids: Iterable[str], spelled: Callable[[str], str]) -> Iterator[str]:
    """Ids as they are written; one that is taken, which endpoints refuse, gets a number in front of it."""
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
    """What joins a call, or a result, with the other."""
    return turn.message.call_id or f"call-{turn.kept.key}"


def arguments(turn: Turn) -> Mapping[str, object]:
    """A call's arguments; free text, and what is cut, as the one argument `input`."""
    try:
        found = json.loads(turn.text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"input": turn.text}


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


def _openai_call(call: AnsweredCall) -> Entry:
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


def _anthropic_call(call: AnsweredCall) -> Entry:
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


@record
class Chat:
    """A JSON list of messages, one per line."""

    block: Text
    """How the rows are written in the first message."""
    dialect: Dialect = OPENAI

    def headings(self, observation: Observation) -> tuple[str, ...]:
        """As in text."""
        return self.block.headings(observation)

    def row(self, observation: Observation) -> str:
        """A row's line, as it stands in a JSON string."""
        return quoted(self.block.row(observation) + "\n")

    def turn(self, turn: Turn) -> str:
        """A message's object; a call's with the message around it."""
        if turn.message.role is Role.RESULT:
            return json_line(self.dialect.result(turn)) + ","
        return _lines(self.dialect.messages([turn])) + ","

    def overhead(self, tier: Tier) -> str:
        """A tier's heading in the first message."""
        return "" if tier is Tier.TAIL else quoted(self.block.overhead(tier) + "\n")

    def frame(self) -> str:
        """A list with an empty block."""
        return f"[\n{self._opening(self.block.frame())},\n\n]\n"

    def part(self, tier: Tier, shown: PackContent) -> str:
        """The tail's objects, or what another tier adds to the first message."""
        if tier is Tier.TAIL:
            return _lines(self.dialect.messages(shown.tail))
        return quoted(self.block.part(tier, shown))

    def whole(self, shown: PackContent, _tokens: Mapping[Tier, int]) -> str:
        """The list, also when it is empty."""
        block = self.block.remembered(shown)
        if shown.tail and not block:
            block = self.block.frame()  # by which the pack is known when it is read again
        entries = [entry for entry in (block and self._opening(block), self.part(Tier.TAIL, shown)) if entry]
        return "\n".join(["[", *filter(None, [",\n".join(entries)]), "]", ""])

    def _opening(self, block: str) -> str:
        return json_line(self.dialect.opening(block))


def _lines(entries: Sequence[Entry]) -> str:
    return ",\n".join(json_line(entry) for entry in entries)
