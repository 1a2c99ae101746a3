"""What the rows of a reply can be checked against: the messages and the rows that a model was shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omcli.memory.anchors import searchable, unsupported
from omcli.memory.message import KeptMessage, Role
from omcli.memory.observation import Observation
from omcli.memory.record import field, mutable_record
from omcli.memory.text import below
from omcli.memory.worth import terms_of
from omcli.observers.model.standing import Standing
from omcli.observers.model.transcript import Shown

_NEAR = 3
"""Messages around those a row cites in which what it names may stand as well: a call and its result, a question and its
answer."""
_SAID = frozenset({Role.USER, Role.ASSISTANT})


@mutable_record
class Evidence:
    """What was shown, searched once."""

    shown: Shown
    recorded: Standing
    cwd: str | None
    searched: dict[str, str] = field(default_factory=dict)

    def messages(self, labels: Iterable[str]) -> tuple[KeptMessage, ...]:
        """The messages of these labels, in the order of arrival."""
        return tuple(sorted((self.shown.labels[label] for label in set(labels)), key=lambda kept: kept.seq))

    def in_order(self, labels: Iterable[str]) -> tuple[str, ...]:
        """Labels of messages, each once, in the order of arrival."""
        wanted = set(labels)
        return tuple(label for label in self.shown.labels if label in wanted)

    def borne_by(
        self, text: str, labels: Sequence[str], also: Sequence[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The messages that bear what a row names, and the names that stand in none of them.

        To the messages it cites those near them are added where they have what is missing there. `also` are texts that
        the row may name things of as well.
        """
        missing = self._missing(text, labels, also)
        bearing = list(labels)
        for label in self._near(labels) if missing else ():
            left = tuple(name for name in missing if not self._names(label, name))
            if len(left) < len(missing):
                bearing.append(label)
                missing = left
        return self.in_order(bearing), missing

    def _near(self, labels: Sequence[str]) -> list[str]:
        """Labels around some, without those."""
        order = list(self.shown.labels)
        places = {label: place for place, label in enumerate(order)}
        cited = [places[label] for label in labels]
        near = {at for place in cited for at in range(place - _NEAR, place + _NEAR + 1) if 0 <= at < len(order)}
        return [order[at] for at in sorted(near.difference(cited))]

    def like(self, text: str, at: str) -> tuple[str, ...]:
        """The message of the batch that a row without sources is about: the one said then, or with most of its words.

        None where no message has any of them. `at` is a time as it was shown, or a part of one.
        """
        labels = [label for label in self.shown.labels if label in self.shown.new]
        told = [label for label in labels if self.shown.labels[label].message.role in _SAID] or labels
        if at and (then := [label for label in told if at in (self.shown.minutes.get(label, ""))]):
            told = then
        wanted, *said = terms_of([text, *(self.shown.labels[label].message.text for label in told)])
        shared = [len(wanted & terms) for terms in said]
        best = max(range(len(told)), key=lambda place: (shared[place], place), default=None)
        return (told[best],) if best is not None and shared[best] else ()

    def rows(self, labels: Iterable[str]) -> tuple[Observation, ...]:
        """The recorded rows of these labels."""
        return tuple(self.recorded.labels[label] for label in labels)

    def _missing(self, text: str, labels: Iterable[str], also: Sequence[str]) -> tuple[str, ...]:
        """The names in a text that stand neither in these messages nor in `also`."""
        labels = tuple(labels)
        names = unsupported(text, [*(self._search(label) for label in labels), *map(searchable, also)])
        return tuple(name for name in names if not any(self._names(label, name) for label in labels))

    def _names(self, label: str, name: str) -> bool:
        """Whether a message has a name, or a path without the working directory."""
        return " ".join(below(self.cwd, name).split()) in self._search(label)

    def _search(self, label: str) -> str:
        if label not in self.searched:
            said = self.shown.labels[label].message
            when = self.shown.minutes.get(label, "")
            words = f"{when} {said.name or ''} {said.tool or ''} {said.exit_code or ''} {said.text}"
            self.searched[label] = searchable(words)
        return self.searched[label]
