"""The rows still visible while others are folded and dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omcli.base.record import field, mutable_record, positional_record, replace
from omcli.memory.observation import PINNED, Draft, Dropped, Kind, Observation, Status
from omcli.memory.reflection import Material
from omcli.memory.tokens import TokenCounter, row_tokens, rows_tokens
from omcli.reflectors.drafts import folded, in_rows
from omcli.text.phrases import speaker


@mutable_record
class WorkingSet:
    """Rows on their way to fewer."""

    counter: TokenCounter
    target: int
    tokens: int
    """Of everything in sight, new rows included."""
    rows: dict[str, Observation]
    """Those given that are still in sight, by id, oldest first."""
    protected: frozenset[str]
    """Ids of rows that have to stay."""
    fixed: frozenset[str]
    """Ids of rows whose place none takes."""
    drafts: list[Draft] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    @classmethod
    def of(cls, material: Material, counter: TokenCounter) -> WorkingSet:
        """Everything, to begin with. Reflections are folded again only where nothing else is given."""
        again = all(row.kind is Kind.REFLECTION for row in material.rows)
        fixed = {row.id for row in material.rows if is_untouchable(row) or (is_reflection(row) and not again)}
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
        """Whether what is in sight holds the target."""
        return self.tokens <= self.target

    @property
    def is_last(self) -> bool:
        """Whether there is but one row left."""
        return len(self.rows) + len(self.drafts) <= 1

    def mergeable(self) -> list[Observation]:
        """Rows that may give way to one that says the same."""
        return [row for row in self.rows.values() if row.id not in self.fixed]

    def foldable(self) -> list[Observation]:
        """Rows whose wording may change."""
        return [row for row in self.mergeable() if not row.is_in_force]

    def drop(self, dropped: Dropped) -> None:
        """Takes a row out of sight."""
        self.tokens -= row_tokens(self.rows.pop(dropped.row), self.counter)
        self.dropped.append(dropped)

    def fold(self, draft: Draft) -> None:
        """Puts a row in the place of those it replaces, where that is no longer and they are all still there."""
        if not all(row in self.rows for row in draft.replaces):
            return
        before = rows_tokens((self.rows[row] for row in draft.replaces), self.counter)
        after = self.counter.text(draft.text)
        if after <= before:
            for row in draft.replaces:
                del self.rows[row]
            self.tokens += after - before
            self.drafts.append(draft)


def is_untouchable(row: Observation) -> bool:
    """Whether a row stays as it is whatever is asked for: open, pinned, or written by hand or for later sessions."""
    return row.status is Status.OPEN or PINNED in row.tags or row.kind in (Kind.NOTE, Kind.ITEM)


def is_reflection(row: Observation) -> bool:
    """Whether a row was folded already."""
    return row.kind is Kind.REFLECTION


@positional_record
class _Piece:
    """A text that is left, and the rows it stands for."""

    text: str
    rows: tuple[Observation, ...]


def joined(material: Material, sight: WorkingSet) -> tuple[Draft, ...]:
    """What is left but for protected rows as `material.most_rows` reflections, none where that is no less.

    They are more where one would be longer than a row may be (`in_rows`).
    """
    given = {row.id: row for row in material.rows}
    left = [_Piece(row.text, (row,)) for row in sight.rows.values() if row.id not in sight.protected]
    left += [_Piece(draft.text, tuple(given[row] for row in draft.replaces)) for draft in sight.drafts]
    if not left:
        return ()
    left.sort(key=lambda piece: max(row.dated for row in piece.rows))
    drafts = tuple(map(_one, in_rows(left, most_rows=material.most_rows)))
    before = [row_tokens(row, sight.counter) for row in material.rows if row.id not in sight.protected]
    is_less = len(drafts) < len(before) and sum(sight.counter.text(draft.text) for draft in drafts) <= sum(before)
    return drafts if is_less else ()


def _one(pieces: Sequence[_Piece]) -> Draft:
    rows = [row for piece in pieces for row in piece.rows]
    return replace(folded(rows, _text(pieces), reason="folded"), status=None)


def _text(pieces: Iterable[_Piece]) -> str:
    """The texts in a row; who speaks and the day are said where they change."""
    told: list[str] = []
    who = day = ""
    for piece in pieces:
        told_by, dated = speaker(piece.text), piece.rows[-1].dated[:10]
        text = piece.text.removeprefix(f"{told_by}: ") if told_by and (told_by, dated) == (who, day) else piece.text
        told.append(f"[{dated}] {text}" if day and dated != day else text)
        who, day = told_by, dated
    return " · ".join(told)
