"""Buffered batches: observed before they are due, and written to memory later.

Mastra observes ahead in small steps and activates the results later. Zora prepares one chunk before its threshold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Self

from omcli.base.record import fields_of, record
from omcli.memory.batch import Batch, Observed
from omcli.memory.observation import Draft, Priority, Source, Status, Type

_ROUNDING = 1e-6
"""Added before rounding down, because `(1 - 0.8) * 30000` is 5999.999999999999."""


@record
class BufferedBatch:
    """Result of observing messages before they are due. It is not part of memory until it is written."""

    batch: Batch
    """The observed messages. When read from the store, only those neither hidden nor covered; possibly none."""
    begins: int
    """`batch.after` at the time of observation. `batch` may now start later because the cursor has moved."""
    observed: Observed
    ids: tuple[str, ...]
    """Ids of the future rows, one per draft, so that later observations can refer to them."""
    source: Source
    """`RULES` or `MODEL`."""
    at: str


class Span(NamedTuple):
    """The messages of a session with `after < seq <= through`."""

    after: int
    through: int


def is_covered(span: Span, others: Iterable[Span], cursor: int) -> bool:
    """Return True if the cursor has reached the end of the span, or if one of `others` contains the span."""
    held = any(other.after <= span.after and span.through <= other.through for other in others)
    return held or span.through <= cursor


def in_line(spans: Iterable[Span], cursor: int) -> Iterator[tuple[Span, int]]:
    """Yield the spans that can be written one after another from the cursor, each with the `seq` after which to start.
    Messages up to that `seq` are covered by then. Spans contained in others are skipped. A gap ends the sequence.
    """
    for span in sorted(spans, key=lambda span: (span.after, -span.through)):
        if span.through <= cursor:
            continue
        if span.after > cursor:
            return
        yield span, cursor
        cursor = span.through


def count_due(sizes: Sequence[int], *, waiting: int, floor: int) -> int:
    """Return the number of buffered batches to write, oldest first: as many as leave at least `floor` tokens
    unobserved, but at least one, if any is buffered. `sizes` lists the tokens of each batch's messages, oldest first,
    and `waiting` is the number of tokens in all pending messages.
    """
    fitting = sum(waiting - end >= floor for end in accumulate(sizes))
    return max(fitting, min(1, len(sizes)))


def tokens_of(amount: float, whole: int) -> int:
    """Convert an amount to tokens, rounding down. An amount up to 1 is a share of `whole`; others are in tokens."""
    return int(amount * whole + _ROUNDING) if amount <= 1 else int(amount)


@record
class BufferPolicy:
    """Thresholds for observing ahead; 0 disables one. Tokens are new if they are neither buffered nor deferred."""

    at: int = 0
    """Observe ahead when at least this many tokens are new and no batch is buffered. Ignored if `every` is set."""
    every: int = 0
    """Observe ahead each time at least this many tokens are new."""
    late: int = 0
    """Number of tokens that replaces `every` once at least `late_from` tokens are pending."""
    late_from: int = 0
    messages: int = 0
    """Observe ahead only when at least this many messages are not yet buffered."""

    @classmethod
    def of(cls, amount: float, *, tokens: int, late: int, late_from: int, messages: int) -> Self:
        """Build the policy from settings. An `amount` up to 1 sets `at`, as a share of the observing threshold
        `tokens`. A larger amount sets `every`.
        """
        if amount <= 1:
            return cls(at=tokens_of(amount, tokens), messages=messages)
        return cls(every=int(amount), late=late, late_from=late_from, messages=messages)

    def step(self, waiting: int) -> int:
        """Return the number of new tokens at which to observe ahead if `waiting` are pending: `late` or `every`."""
        return self.late if self.late and waiting >= self.late_from else self.every

    def is_due(self, *, waiting: int, fresh: int, messages: int, blocks: int) -> bool:
        """Return True if the next batch should be observed ahead. `waiting` counts all pending tokens, `fresh` those
        neither buffered nor deferred, `messages` the messages not yet buffered, and `blocks` the buffered batches.
        """
        needed = self.step(waiting) if self.every else self.at if not blocks else 0
        return 0 < needed <= fresh and messages >= self.messages


_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def written(observed: Observed, ids: tuple[str, ...]) -> str:
    """Return an observer's result as JSON, without `waits_after`, `stopped`, and empty fields of the drafts."""
    rows = [{"id": name, **_plain(draft)} for name, draft in zip(ids, observed.drafts, strict=True)]
    said = {"rows": rows, "used": observed.used, "title": observed.title, "findings": dict(observed.findings)}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def _plain(draft: Draft) -> dict[str, object]:
    said = fields_of(draft) | {"metadata": dict(draft.metadata)}
    return {name: value for name, value in said.items() if value or name == "importance"}


def read(text: str) -> tuple[Observed, tuple[str, ...]]:
    """Parse JSON made by `written` into the result and the ids of its rows. Raise ValueError if it is malformed."""
    try:
        said: Any = json.loads(text)
        rows = _list(said["rows"])
        observed = Observed(
            drafts=tuple(map(_draft, rows)),
            used=_ids(said["used"]),
            title=None if said["title"] is None else _text(said["title"]),
            findings={_text(name): _number(count) for name, count in _mapping(said["findings"]).items()},
        )
        return observed, _ids([row["id"] for row in rows])
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a valid buffered batch: {error!r}") from error


def _draft(row: Mapping[str, object]) -> Draft:
    fields: dict[str, Any] = {name: meaning(row[name]) for name, meaning in _MEANINGS.items() if name in row}
    draft = Draft(**fields)
    if not (draft.text and draft.sources and 0 <= draft.importance <= 10) or "\n" in draft.text:
        raise ValueError("a row without a text in one line, a source, or an importance from 0 to 10")
    return draft


def _is(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r} is not a valid {kind.__name__}")
    return value


def _text(value: object) -> str:
    found: str = _is(str, value)
    return found


def _number(value: object) -> int:
    found: int = _is(int, value)
    return found


def _list(value: object) -> list[Any]:
    found: list[Any] = _is(list, value)
    return found


def _mapping(value: object) -> dict[str, object]:
    found: dict[str, object] = _is(dict, value)
    return found


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _numbers(value: object) -> tuple[int, ...]:
    return tuple(map(_number, _list(value)))


def _ids(value: object) -> tuple[str, ...]:
    ids = _texts(value)
    if not all(map(_ID.fullmatch, ids)):
        raise ValueError(f"{ids!r} are not all ids of rows")
    return ids


_MEANINGS: Mapping[str, Callable[[object], object]] = {
    "text": _text,
    "type": lambda value: Type(_text(value)),
    "importance": _number,
    "sources": _numbers,
    "priority": lambda value: Priority(_text(value)),
    "status": lambda value: Status(_text(value)),
    "event_at": _text,
    "refers_to": _text,
    "tags": _texts,
    "metadata": _mapping,
    "replaces": _ids,
    "reason": _text,
    "supports": _ids,
    "source": lambda value: Source(_text(value)),
    "under": _text,
}
