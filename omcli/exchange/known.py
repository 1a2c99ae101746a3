"""Rows that are stored already, so that they are not imported again."""

from __future__ import annotations

from omcli.exchange.groups import FORMAT, ORIGINAL_ID
from omcli.memory.observation import Kind, Observation
from omcli.text.instants import minute
from omcli.text.similarity import folded_text


class KnownRows:
    """The rows of a session, or the items of a project."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str | None, bool], str] = {}
        """Id of the first row with this text and minute (None for any), among items (True) or all rows (False)."""
        self._originals: dict[tuple[object, object, str], str] = {}
        """Ids of imported rows by format, id in the imported file and folded text."""
        self._states: dict[tuple[object, object], dict[str, str]] = {}
        """Ids and dates of visible imported rows, by format and id in the imported file."""

    def note(self, row: Observation) -> None:
        """Remember a row, so that it is not imported again."""
        for at in (minute(row.dated), None):
            for of_items in {False, row.kind is Kind.ITEM}:
                self._texts.setdefault((row.text, at, of_items), row.id)
        if ORIGINAL_ID in row.metadata:
            self._originals.setdefault((*_origin(row), folded_text(row.text)), row.id)
            if row.is_visible:
                self._states.setdefault(_origin(row), {})[row.id] = row.dated

    def find(self, row: Observation, *, is_dated: bool, row_id: str | None) -> str | None:
        """Return the id of a stored row with the same text and minute, or None. Unless `is_dated`, any time matches. An
        item is known only if it is stored as an item, because observations do not last.

        A row with an id of its own in the file (`row_id`) is also known if a row with this id and text is stored,
        whatever its date, case and white space, or if a visible row with this id has a later date. But the row is new
        if the stored row with its text is hidden and all visible rows with this id are older: its text has changed
        back.
        """
        if row_id is not None:
            states = self._states.get(_origin(row), {})
            found = self._originals.get((*_origin(row), folded_text(row.text)))
            is_newest = is_dated and bool(states) and max(states.values()) < row.dated
            if found and (found in states or not is_newest):
                return found
            if later := [other for other, dated in states.items() if dated > row.dated]:
                return later[0]
        return self._texts.get((row.text, minute(row.dated) if is_dated else None, row.kind is Kind.ITEM))

    def earlier(self, row: Observation, now: str) -> list[str]:
        """Return the ids of the visible rows that a row of the file, stored as `now`, replaces: those with its id in
        the file and no later date. They have an earlier text, or come from another store that imported the same row.
        """
        states = self._states.get(_origin(row), {})
        return (
            [other for other, dated in states.items() if other != now and dated <= states[now]] if now in states else []
        )


def _origin(row: Observation) -> tuple[object, object]:
    return row.metadata.get(FORMAT), row.metadata.get(ORIGINAL_ID)
