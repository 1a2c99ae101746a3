"""The rows that are still visible while others are folded and dropped, and joining them into a few rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omcli.base.record import field, mutable_record, positional_record, replace
from omcli.llm.schema import rules_of_user
from omcli.memory.message import TokenCounter, row_tokens, rows_tokens
from omcli.memory.observation import PINNED, Draft, Dropped, Kind, Observation, Status
from omcli.memory.reflection import Material
from omcli.reflectors.drafts import folded, in_rows
from omcli.text.phrases import speaker


@mutable_record
class WorkingSet:
    """The visible rows and the drafts while rows are folded and dropped."""

    counter: TokenCounter
    target: int
    tokens: int
    """Number of tokens in all visible rows, including drafts."""
    rows: dict[str, Observation]
    """Rows of the material that are still visible, by id, oldest first."""
    protected: frozenset[str]
    """Ids of rows that must stay visible."""
    fixed: frozenset[str]
    """Ids of rows that must not be merged or folded."""
    drafts: list[Draft] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    @classmethod
    def of(cls, material: Material, counter: TokenCounter) -> WorkingSet:
        """Return a working set of all rows in the material. Reflections can be folded again only if all rows are
        reflections.
        """
        again = all(row.kind is Kind.REFLECTION for row in material.rows)
        fixed = {row.id for row in material.rows if is_kept(row) or (is_reflection(row) and not again)}
        return cls(
            counter=counter,
            target=material.target,
            tokens=rows_tokens(material.rows, counter),
            rows={row.id: row for row in material.rows},
            protected=material.protected,
            fixed=material.protected | fixed,
        )

    @property
    def fits(self) -> bool:
        """True if the visible rows meet the target."""
        return self.tokens <= self.target

    @property
    def is_last(self) -> bool:
        """True if at most one row is left."""
        return len(self.rows) + len(self.drafts) <= 1

    def rows_to_merge(self) -> list[Observation]:
        """Return the rows that may be replaced with a row of the same content."""
        return [row for row in self.rows.values() if row.id not in self.fixed]

    def rows_to_fold(self) -> list[Observation]:
        """Return the rows whose wording may change."""
        return [row for row in self.rows_to_merge() if not (row.is_in_force or rules_of_user(row))]

    def drop(self, dropped: Dropped) -> None:
        self.tokens -= row_tokens(self.rows.pop(dropped.row), self.counter)
        self.dropped.append(dropped)

    def fold(self, draft: Draft) -> None:
        """Replace rows with a draft, unless the draft is longer or some of the rows are no longer visible."""
        if not all(row in self.rows for row in draft.replaces):
            return
        before = rows_tokens((self.rows[row] for row in draft.replaces), self.counter)
        after = self.counter.text(draft.text)
        if after <= before:
            for row in draft.replaces:
                del self.rows[row]
            self.tokens += after - before
            self.drafts.append(draft)


def is_kept(row: Observation) -> bool:
    """Return True if a row must not be changed: if it is open, pinned, a note or an item."""
    return row.status is Status.OPEN or PINNED in row.tags or row.kind in (Kind.NOTE, Kind.ITEM)


def is_reflection(row: Observation) -> bool:
    """Return True if a row was made by folding others."""
    return row.kind is Kind.REFLECTION


@positional_record
class _Part:
    text: str
    rows: tuple[Observation, ...]


def single_row(material: Material, working: WorkingSet) -> tuple[Draft, ...]:
    """Join the remaining rows, except protected ones, into at most `material.most_rows` reflections.

    Return an empty tuple if that would give no fewer rows, or more tokens. There are more reflections if one would be
    too long for a row (see `in_rows`).
    """
    given = {row.id: row for row in material.rows}
    left = [_Part(row.text, (row,)) for row in working.rows.values() if row.id not in working.protected]
    left += [_Part(draft.text, tuple(given[row] for row in draft.replaces)) for draft in working.drafts]
    if not left:
        return ()
    left.sort(key=lambda piece: max(row.dated for row in piece.rows))
    drafts = tuple(map(_one, in_rows(left, most_rows=material.most_rows)))
    before = [row_tokens(row, working.counter) for row in material.rows if row.id not in working.protected]
    is_less = len(drafts) < len(before) and sum(working.counter.text(draft.text) for draft in drafts) <= sum(before)
    return drafts if is_less else ()


def _one(pieces: Sequence[_Part]) -> Draft:
    rows = [row for piece in pieces for row in piece.rows]
    return replace(folded(rows, _text(pieces), reason="folded"), status=None)


def _text(pieces: Iterable[_Part]) -> str:
    """Join pieces of text. After the first, the speaker and the date are given only where they change."""
    texts: list[str] = []
    who = day = ""
    for piece in pieces:
        name, dated = speaker(piece.text), piece.rows[-1].dated[:10]
        text = piece.text.removeprefix(f"{name}: ") if name and (name, dated) == (who, day) else piece.text
        texts.append(f"[{dated}] {text}" if day and dated != day else text)
        who, day = name, dated
    return " · ".join(texts)
