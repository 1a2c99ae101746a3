"""The last messages as steps of a conversation: words, or calls with what was said before and what came of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from omcli.memory.message import Role
from omcli.memory.record import record
from omcli.memory.tail import Turn, answers

UNANSWERED = "(no result)"
"""What stands for the result of a call that nobody answered, where one has to be."""


@record
class Step:
    """What belongs into one message of a chat, and what answers it."""

    spoken: Turn | None
    """Words; of the agent where calls follow them."""
    calls: tuple[Turn, ...] = ()
    """Made together."""
    results: tuple[tuple[Turn, ...], ...] = ()
    """What came of each call."""
    is_open: bool = False
    """Whether nothing but results follows: calls that have none are left for the reader to answer."""

    @property
    def answered(self) -> Iterator[tuple[Turn, tuple[Turn, ...], str]]:
        """The calls that an answer has to follow, with their results and what those say."""
        for call, results in zip(self.calls, self.results, strict=True):
            if results or not self.is_open:
                yield call, results, "\n".join(result.text for result in results) if results else UNANSWERED


def steps(turns: Sequence[Turn]) -> Iterator[Step]:
    """Turns in their order, calls that were made together in one step. Results stand with their calls, or nowhere."""
    found = answers([turn.message for turn in turns])
    said: Turn | None = None  # by the agent: calls may follow
    for is_call, run in groupby(range(len(turns)), key=lambda place: turns[place].message.role is Role.CALL):
        places = tuple(run)
        if is_call:
            yield Step(
                spoken=said,
                calls=tuple(turns[place] for place in places),
                results=tuple(tuple(turns[result] for result in found[place]) for place in places),
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
