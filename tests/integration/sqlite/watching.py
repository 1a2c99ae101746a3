"""Check a store while other processes work on it: nothing is lost, doubled or undone."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from omcli.memory.batch import Batch, Observed
from omcli.memory.observation import Draft, Type
from omcli.operations.clock import Clock
from tests.e2e.contents import Place, connected

_BATCHES = """
    SELECT session, lane, after, through, outcome FROM batches
    WHERE outcome NOT IN ('failed', 'deferred', 'ahead') ORDER BY number
"""
_NOTED = """
    SELECT s.message FROM observation_sources AS s JOIN observations AS o ON o.position = s.observation
    WHERE o.kind = 'observation' ORDER BY s.message
"""
_ROWS = "SELECT id, kind, position, superseded_by, dropped_at, reason, hidden_by, visible, text FROM observations"
_MADE_OF = """
    SELECT o.id, made_of.id, made_of.superseded_by, made_of.visible AND made_of.priority <> 'high'
    FROM observation_supports AS s
    JOIN observations AS o ON o.position = s.observation JOIN observations AS made_of ON made_of.position = s.supported
    WHERE o.kind = 'reflection'
"""


class SetClock(Clock):
    """Stands where it was put, also back."""

    moment = datetime(2026, 3, 2, 10, tzinfo=UTC)

    def _moment(self) -> datetime:
        return self.moment


def word_for_word(batch: Batch) -> Observed:
    """Each message as a row."""
    facts = (
        Draft(text=kept.message.text, type=Type.FACT, importance=5, sources=(kept.seq,)) for kept in batch.messages
    )
    return Observed(drafts=tuple(facts))


class Watcher:
    """Looks at the store after each step, through a connection of its own."""

    def __init__(self, store: Place) -> None:
        self._used = ExitStack()
        self._connection = self._used.enter_context(connected(store))
        self._begin = "BEGIN ISOLATION LEVEL REPEATABLE READ"
        if isinstance(store, Path):
            self._connection.row_factory = sqlite3.Row
            self._begin = "BEGIN"
        self._cursors: dict[tuple[int, str], int] = {}
        self.covered = 0
        """Messages, when last looked."""
        self.in_vain = 0
        """Messages that were shown to a model which found nothing in them: as many may be covered without a row."""

    def close(self) -> None:
        self._used.close()

    def look(self) -> None:
        """Fails where a cursor went back, where a message that is covered does not have its row, once (a model may find
        nothing in some), and where a row is out of sight without another in its place."""
        self._connection.execute(self._begin)  # everything is of one moment
        try:
            self._look_at_batches()
            self._look_at_rows()
            self._look_at_reflections()
        finally:
            self._connection.execute("COMMIT")

    def texts(self) -> list[str]:
        """Of all messages."""
        return [text for (text,) in self._connection.execute("SELECT text FROM messages ORDER BY seq")]

    def observed(self) -> list[str]:
        """What observers wrote, in sight or not: when a reflection comes decides which rows are folded together."""
        found = self._connection.execute("SELECT text FROM observations WHERE kind = 'observation' ORDER BY text")
        return [text for (text,) in found]

    def untold(self) -> list[str]:
        """Messages whose row does not say what they said."""
        found = self._connection.execute(
            "SELECT m.text FROM messages AS m JOIN observation_sources AS s ON s.message = m.seq"
            " JOIN observations AS o ON o.position = s.observation"
            " WHERE o.kind = 'observation' AND instr(o.text, m.text) = 0"
        )
        return [text for (text,) in found]

    def outcomes(self) -> Counter[str]:
        """Of batches and reflections, how often."""
        found = self._connection.execute(
            "SELECT lane || ' ' || outcome, count(*) FROM batches GROUP BY 1"
            " UNION ALL SELECT verb || ' ' || outcome, count(*) FROM operations GROUP BY 1"
        )
        return Counter(dict(found.fetchall()))

    def _look_at_batches(self) -> None:
        cursors = {
            (session, lane): covers
            for session, lane, covers in self._connection.execute("SELECT session, lane, covers_up_to FROM cursors")
        }
        assert all(cursors[lane] >= before for lane, before in self._cursors.items()), "a cursor went back"
        self._cursors, reached = cursors, dict.fromkeys(cursors, 0)
        noted: list[int] = []
        for session, lane, after, through, outcome in self._connection.execute(_BATCHES):
            assert reached[session, lane] == after, "batches leave a gap, or overlap"
            reached[session, lane] = through
            covered = self._connection.execute(
                "SELECT seq FROM messages WHERE session = ? AND seq > ? AND seq <= ?", (session, after, through)
            ).fetchall()
            noted += [seq for (seq,) in covered if outcome == "observed"]
        assert reached == cursors
        self.covered = len(noted)
        rows = [seq for (seq,) in self._connection.execute(_NOTED)]
        assert len(rows) == len(set(rows)), "a message has two rows"
        assert set(rows) <= set(noted), "a message has a row and is not covered"
        assert len(noted) - len(rows) <= self.in_vain, "a covered message has no row"

    def _look_at_rows(self) -> None:
        rows = {row["id"]: row for row in self._connection.execute(_ROWS)}
        for row in rows.values():
            last = _end(row, rows)
            assert last["visible"] or (last["dropped_at"] and last["reason"] and last["hidden_by"]), (
                f"nothing is in sight in place of {row['text']!r}"
            )

    def _look_at_reflections(self) -> None:
        made_of = self._connection.execute(_MADE_OF).fetchall()
        told = Counter(supported for _, supported, *_ in made_of)
        assert max(told.values(), default=1) == 1, "a row was folded twice"
        for reflection, _, superseded_by, is_left in made_of:
            assert not is_left, "a row that need not stay is in sight beside what was made of it"
            assert superseded_by in (None, reflection), "a row gave way to another than was made of it"


def _end(row: sqlite3.Row, rows: Mapping[bytes, sqlite3.Row]) -> sqlite3.Row:
    """The row at the end of those that took the place of one."""
    seen: set[bytes] = set()
    while row["superseded_by"] is not None:
        assert row["id"] not in seen, "rows take each other's place"
        seen.add(row["id"])
        row = rows[row["superseded_by"]]
    return row


def happened_often(happened: Counter[str], what: Iterable[str], *, times: int) -> None:
    """Fails where chance did not bring something so often: a fuzz that meets nothing proves nothing."""
    assert min(happened[name] for name in what) >= times, happened
