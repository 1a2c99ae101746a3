"""The messages and context rows shown to a model, by label. The model's reply is checked against them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from omcli.base.record import field, mutable_record, record
from omcli.memory.message import KeptMessage, Role, TokenCounter
from omcli.memory.observation import CURRENT, TOOL_EVENTS, Observation, Priority, Status
from omcli.observers.model.transcript import TranscriptView
from omcli.pack.tail import excerpt
from omcli.text.clean import below, one_line
from omcli.text.instants import minute
from omcli.text.phrases import searchable, unknown_names
from omcli.text.terms import terms_of

_RECENT = 12
"""Number of newest rows that are chosen before open and high-priority ones."""
_ROW_CHARS = 400


@record
class ContextRows:
    """The context rows shown to a model, by label and as printed lines, oldest first."""

    labels: Mapping[str, Observation]
    lines: tuple[str, ...]
    shared_lines: tuple[str, ...] = ()
    """Lines of rows that may be used, but not replaced, best first."""

    def is_shared(self, label: str) -> bool:
        """Return True if the row with this label must not be replaced."""
        return label.startswith(_SHARED)


_SHARED = "p"
"""First letter of the labels of shared rows (`Batch.shared_rows`)."""
_SHARED_PART = 3
"""Shared rows get at most the room divided by this number."""
_MOST_SHARED = 40


def select_context_rows(
    rows: Sequence[Observation], *, room: int | None, counter: TokenCounter, shared: Sequence[Observation] = ()
) -> ContextRows:
    """Choose the most useful rows that fit into `room` tokens, or all rows if `room` is None.

    Of `shared`, which is ordered best first, at most `_MOST_SHARED` rows are chosen, and they get at most a third of
    the room. Rows for tool events in `rows` are shown only if they are open, because rules write such rows anyway.
    """
    candidates = [row for row in rows if row.type not in TOOL_EVENTS or row.status is Status.OPEN]
    fitting = list(
        _fitting(shared[:_MOST_SHARED], room=None if room is None else room // _SHARED_PART, counter=counter)
    )
    left_over = None if room is None else room - sum(cost for _, cost in fitting)
    chosen: set[int] = set()
    for place in _row_order(candidates):
        cost = counter.text(f"o99 {_line(candidates[place])}\n")
        if left_over is None or cost <= left_over:
            chosen.add(place)
            left_over = None if left_over is None else left_over - cost
    kept = [candidates[place] for place in sorted(chosen)]
    own = {f"o{number}": row for number, row in enumerate(kept, start=1)}
    others = {f"{_SHARED}{number}": row for number, (row, _) in enumerate(fitting, start=1)}
    return ContextRows(
        labels=own | others,
        lines=tuple(f"{label} {_line(row)}" for label, row in own.items()),
        shared_lines=tuple(f"{label} {_line(row)}" for label, row in others.items()),
    )


def _fitting(
    rows: Sequence[Observation], *, room: int | None, counter: TokenCounter
) -> Iterator[tuple[Observation, int]]:
    """Yield the rows that fit into `room` tokens, or all rows if `room` is None, each with its number of tokens."""
    for row in rows:
        cost = counter.text(f"p99 {_line(row)}\n")
        if room is None or cost <= room:
            room = None if room is None else room - cost
            yield row, cost


def _row_order(rows: Sequence[Observation]) -> Iterator[int]:
    """Yield row indexes, the most useful first.

    The order is: current task, recent rows, open rows, high priority, others. Each group is newest first.
    """
    newest = range(len(rows) - 1, -1, -1)
    tests: tuple[Callable[[int], bool], ...] = (
        lambda place: CURRENT in rows[place].tags,
        lambda place: place >= len(rows) - _RECENT,
        lambda place: rows[place].status is Status.OPEN,
        lambda place: rows[place].priority is Priority.HIGH,
        lambda place: place >= 0,
    )
    return iter(dict.fromkeys(chain.from_iterable(filter(test, newest) for test in tests)))


def _line(row: Observation) -> str:
    status = f" {row.status}" if row.status else ""
    return f"{minute(row.dated)} {row.priority} {row.type}{status}: {one_line(excerpt(row.text, _ROW_CHARS))}"


_NEAR = 3
"""Number of messages before and after each cited one to search for missing anchors. For example, a row that cites a
result may contain a path from its call.
"""
_SAID = frozenset({Role.USER, Role.ASSISTANT})


@mutable_record
class Evidence:
    """The messages and rows shown to a model, and searches in them."""

    shown: TranscriptView
    recorded: ContextRows
    cwd: str | None
    searched: dict[str, str] = field(default_factory=dict)

    def messages(self, labels: Iterable[str]) -> tuple[KeptMessage, ...]:
        """Return the messages with these labels, ordered by `seq`."""
        return tuple(sorted((self.shown.labels[label] for label in set(labels)), key=lambda kept: kept.seq))

    def in_order(self, labels: Iterable[str]) -> tuple[str, ...]:
        """Return the labels of messages without duplicates, in the order shown."""
        wanted = set(labels)
        return tuple(label for label in self.shown.labels if label in wanted)

    def support(self, text: str, labels: Sequence[str], also: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the labels of the messages that support `text`, and the names in `text` that none of them contains
        (see `unknown_names`).

        Nearby messages that contain a missing anchor are added to those in `labels`. Anchors that occur in `also` are
        not missing.
        """
        missing = self._missing(text, labels, also)
        supporting = list(labels)
        for label in self._near(labels) if missing else ():
            still_missing = tuple(name for name in missing if not self._has_name(label, name))
            if len(still_missing) < len(missing):
                supporting.append(label)
                missing = still_missing
        return self.in_order(supporting), missing

    def _near(self, labels: Sequence[str]) -> list[str]:
        order = list(self.shown.labels)
        places = {label: place for place, label in enumerate(order)}
        cited = [places[label] for label in labels]
        near = {at for place in cited for at in range(place - _NEAR, place + _NEAR + 1) if 0 <= at < len(order)}
        return [order[at] for at in sorted(near.difference(cited))]

    def nearest_message(self, text: str, at: str) -> tuple[str, ...]:
        """Return the label of the new message that a row without sources is most likely about.

        Messages from users and agents are preferred, and among them those whose displayed time contains `at`. Of these,
        the message that shares the most words with the row is chosen, or the latest if several do. The result is empty
        if none of them shares a word with the row.
        """
        labels = [label for label in self.shown.labels if label in self.shown.new]
        candidates = [label for label in labels if self.shown.labels[label].message.role in _SAID] or labels
        if at and (same_time := [label for label in candidates if at in (self.shown.minutes.get(label, ""))]):
            candidates = same_time
        wanted, *message_terms = terms_of([text, *(self.shown.labels[label].message.text for label in candidates)])
        shared = [len(wanted & terms) for terms in message_terms]
        best = max(range(len(candidates)), key=lambda place: (shared[place], place), default=None)
        return (candidates[best],) if best is not None and shared[best] else ()

    def rows(self, labels: Iterable[str]) -> tuple[Observation, ...]:
        """Return the context rows with these labels."""
        return tuple(self.recorded.labels[label] for label in labels)

    def _missing(self, text: str, labels: Iterable[str], also: Sequence[str]) -> tuple[str, ...]:
        labels = tuple(labels)
        names = unknown_names(text, [*(self._searchable(label) for label in labels), *map(searchable, also)])
        return tuple(name for name in names if not any(self._has_name(label, name) for label in labels))

    def _has_name(self, label: str, name: str) -> bool:
        """Return True if a message contains the anchor `name`. A path may be relative to the working directory."""
        return " ".join(below(self.cwd, name).split()) in self._searchable(label)

    def _searchable(self, label: str) -> str:
        if label not in self.searched:
            message = self.shown.labels[label].message
            when = self.shown.minutes.get(label, "")
            words = f"{when} {message.name or ''} {message.tool or ''} {message.exit_code or ''} {message.text}"
            self.searched[label] = searchable(words)
        return self.searched[label]
