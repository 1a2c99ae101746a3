"""What the rules cost for each tool event, and what they make of it: over the stories, and shared transcripts if any.

Run as `python -m tests.benchmarks.tool_rules [FILE...]`; with files, those are measured instead. The aim is less than a
millisecond per tool event (S4.2). `tools` is what tool events alone cost, `all` the whole observer with what was said.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from omcli.base.errors import OmError
from omcli.memory.batch import Batch, MessageSize, batch_length
from omcli.memory.message import KeptMessage, Message, Role
from omcli.observers.rules import RuleObserver
from omcli.tokenizers import counter
from omcli.wiring.inputs import transcript_in
from tests.shared import TRANSCRIPTS

_STORIES = Path(__file__).parents[1] / "stories"
_SHARED = ("claude-code", "codex", "pi")
_BATCH_TOKENS = 10_000
_AIM = 1.0
"""Milliseconds per tool event."""


def main(paths: Sequence[str]) -> None:
    """Prints one row per file that holds tool events, and the total."""
    files = [Path(path) for path in paths] or [*sorted(_STORIES.glob("*.json*")), *_shared()]
    print(f"{'':44}{'events':>8}{'rows':>8}{'tools ms/event':>16}{'all ms/event':>14}")
    events, tools, everything = 0, 0.0, 0.0
    for path in files:
        said = list(_messages(path))
        count = sum(kept.message.role is Role.RESULT for kept in said)
        if not count:
            continue
        rows, whole = _observed(_batches(said))
        _, alone = _observed(_batches([kept for kept in said if kept.message.role in (Role.CALL, Role.RESULT)]))
        print(f"{path.name[-42:]:44}{count:8}{rows:8}{alone / count:16.3f}{whole / count:14.3f}")
        events, tools, everything = events + count, tools + alone, everything + whole
    if events:
        print(f"{f'all (aim: tools < {_AIM:g})':44}{events:8}{'':8}{tools / events:16.3f}{everything / events:14.3f}")


def _shared() -> Iterator[Path]:
    for name in _SHARED:
        yield from sorted((TRANSCRIPTS / name).glob("*.jsonl"))


def _messages(path: Path) -> Iterator[KeptMessage]:
    """The messages of a file as a store would give them; those of all its sessions in one row."""
    tokens = counter()
    try:
        with path.open("rb") as stream:
            opened = transcript_in(stream)
            said = [item for item in opened.items if isinstance(item, Message)]
    except OmError as error:
        print(f"{path.name}: {error.message}", file=sys.stderr)
        return
    for seq, message in enumerate(said, start=1):
        yield KeptMessage(
            seq=seq, session="s", key=f"m{seq}", message=message, tokens=tokens.message(message), counter=tokens.name
        )


def _batches(said: list[KeptMessage]) -> list[Batch]:
    """The messages in batches as `om observe` makes them."""
    batches = []
    calls: dict[str | None, KeptMessage] = {}
    while said:
        length = batch_length(
            (MessageSize(kept.tokens, kept.message.role, kept.message.call_id) for kept in said),
            max_tokens=_BATCH_TOKENS,
        )
        batch, said = said[:length], said[length:]
        earlier = tuple(calls[kept.message.call_id] for kept in batch if kept.message.call_id in calls)
        batches.append(Batch(session="s", after=0, through=batch[-1].seq, messages=tuple(batch), earlier_calls=earlier))
        calls |= {kept.message.call_id: kept for kept in batch if kept.message.role is Role.CALL}
    return batches


def _observed(batches: Sequence[Batch]) -> tuple[int, float]:
    """How many rows the batches give, and the milliseconds of CPU that takes: the best of three."""
    observe = RuleObserver().observe
    taken, rows = [], 0
    for _ in range(3):
        start = time.process_time()
        rows = sum(len(observe(batch).drafts) for batch in batches)
        taken.append(1000 * (time.process_time() - start))
    return rows, min(taken)


if __name__ == "__main__":
    main(sys.argv[1:])
