"""Rows to be folded, and what a reflector leaves of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from omcli.memory.observation import Draft, Kind, Observation, Priority, Source, Status, Type
from omcli.memory.reflection import Material, Reflected
from tests.fakes import WordCounter
from tests.material import row_id

NOW = "2026-03-10T12:00:00.000Z"


def row(number: int, text: str, about: Type = Type.FACT, **columns: object) -> Observation:
    """A row of the day before `NOW`, as long as its words are many; `day` says another."""
    day = columns.pop("day", 9)
    priority = columns.get("priority", Priority.MEDIUM)
    assert isinstance(priority, Priority)
    plain = Observation(
        id=row_id(number),
        session="s",
        project="/src/app",
        kind=Kind.OBSERVATION,
        type=about,
        priority=priority,
        importance={Priority.HIGH: 8, Priority.MEDIUM: 5, Priority.LOW: 2}[priority],
        status=None,
        text=text,
        observed_at=NOW,
        event_at=f"2026-03-{day:02}T09:{number % 60:02}:00.000Z",
        refers_to=None,
        message_ids=(),
        sources=(number,),
        tokens=WordCounter().text(text),
        counter="words",
        source=Source.RULES,
    )
    return replace(plain, **columns)  # type: ignore[arg-type]


def material(*rows: Observation, target: int = 0, **columns: object) -> Material:
    """Rows with what is asked for."""
    return replace(Material(rows=rows, target=target, now=NOW, session="s"), **columns)  # type: ignore[arg-type]


def left(given: Material, reflected: Reflected) -> list[Observation]:
    """The rows that are in sight afterwards, the new ones as a store would keep them; each row went once at most."""
    gone = [dropped.row for dropped in reflected.dropped]
    gone += [row for draft in reflected.reflections for row in draft.replaces]
    assert len(gone) == len(set(gone))
    assert set(gone) <= {row.id for row in given.rows}
    kept = [row for row in given.rows if row.id not in gone]
    written = [stored(draft, 1000 + number, given.rows) for number, draft in enumerate(reflected.reflections)]
    return sorted((*kept, *written), key=lambda row: row.dated)


def stored(draft: Draft, number: int, rows: Sequence[Observation], kind: Kind = Kind.REFLECTION) -> Observation:
    """A draft as a row."""
    supports = [row for row in rows if row.id in draft.supports]
    return Observation(
        id=row_id(number),
        session="s",
        project="/src/app",
        kind=kind,
        type=draft.type,
        priority=draft.priority or Priority.of_importance(draft.importance),
        importance=draft.importance,
        status=draft.status,
        text=draft.text,
        observed_at=NOW,
        event_at=draft.event_at,
        refers_to=draft.refers_to,
        message_ids=(),
        sources=draft.sources,
        tokens=WordCounter().text(draft.text),
        counter="words",
        source=draft.source,
        tags=draft.tags,
        metadata=draft.metadata,
        generation=1 + max((row.generation for row in supports), default=0),
        supports=draft.supports,
    )


def tokens(rows: Iterable[Observation]) -> int:
    """Tokens of rows."""
    return sum(WordCounter().text(row.text) for row in rows)


def texts(rows: Iterable[Observation | Draft]) -> list[str]:
    """Texts of rows."""
    return [row.text for row in rows]


OPEN = Status.OPEN
DONE = Status.DONE
RESOLVED = Status.RESOLVED
HIGH, MEDIUM, LOW = Priority.HIGH, Priority.MEDIUM, Priority.LOW
