"""The last messages as steps of a conversation: words, or calls with what was said before and what came of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from omcli.base.record import record
from omcli.memory.message import Role, answers
from omcli.pack.tail import Turn

UNANSWERED = "(no result)"
"""What stands for the result of a call that nobody answered, where one has to be."""


@record
class Call:
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
class Step:
    """What belongs into one message of a chat, and what answers it."""

    spoken: Turn | None
    """Words; of the agent where calls follow them."""
    calls: tuple[Call, ...] = ()
    """Made together."""
    is_open: bool = False
    """Whether nothing but results follows: calls that have none are left for the reader to answer."""

    @property
    def answered(self) -> tuple[Call, ...]:
        """The calls that an answer has to follow."""
        return tuple(call for call in self.calls if call.results or not self.is_open)


def steps(turns: Sequence[Turn], *, spelled: Callable[[str], str]) -> Iterator[Step]:
    """Turns in their order, calls that were made together in one step. Results stand with their calls, or nowhere.

    `spelled` is how an id is written.
    """
    found = answers([turn.message for turn in turns])
    ids = _distinct((call_id(turn) for turn in turns if turn.message.role is Role.CALL), spelled)
    said: Turn | None = None  # by the agent: calls may follow
    for is_call, run in groupby(range(len(turns)), key=lambda place: turns[place].message.role is Role.CALL):
        places = tuple(run)
        if is_call:
            yield Step(
                spoken=said,
                calls=tuple(_call(turns, place, found[place], next(ids)) for place in places),
                is_open=all(turn.message.role is Role.RESULT for turn in turns[places[-1] + 1 :]),
            )
            said = None
            continue
        for turn in (turns[place] for place in places if turns[place].message.role is not Role.RESULT):
            if said is not None:
                yield Step(spoken=said)
            said = turn if turn.message.role is Role.ASSISTANT else None
            if said is None:
                yield Step(spoken=turn)
    if said is not None:
        yield Step(spoken=said)


def _call(turns: Sequence[Turn], place: int, results: Iterable[int], its_id: str) -> Call:
    return Call(turn=turns[place], id=its_id, results=tuple(turns[result] for result in results))


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
