"""What is in sight while rows are folded and dropped, and what became of the others."""

from __future__ import annotations

from omcli.base.record import field, mutable_record
from omcli.memory.observation import PINNED, Draft, Kind, Observation, Status
from omcli.memory.ports import TokenCounter
from omcli.memory.recount import row_tokens, rows_tokens
from omcli.memory.roles import Dropped, Material


@mutable_record
class Sight:
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
    def of(cls, material: Material, counter: TokenCounter) -> Sight:
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
