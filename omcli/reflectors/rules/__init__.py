"""The reflector that needs no model: repeats become one row, detail is folded, what matters least leaves sight."""

from __future__ import annotations

from omcli.base.record import replace
from omcli.memory.observation import Kind
from omcli.memory.reflection import Material, Reflected
from omcli.memory.tokens import TokenCounter, rows_tokens
from omcli.reflectors.drafts import lasting
from omcli.reflectors.rules import drops, groups, working_set
from omcli.reflectors.rules.working_set import WorkingSet

_JOINED = 0.75
"""The part of their tokens that rows are to have when they are joined into a few."""
_WORTH_JOINING = 200
"""Tokens of rows from which on some may go for that."""


class RuleReflector:
    """Fewer rows by rules: pure, deterministic, without a model. Nothing is said that no row says."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def reflect(self, material: Material) -> Reflected:
        """What the rows come to.

        What costs nothing is always done: repeats go, runs of one command are counted, failures of one thing that were
        mended are one row. Then, only as far as the target asks for it: what was looked at, edits of a file and what
        was asked for and done are folded, and rows are dropped, the least needed first.
        """
        items = lasting(material.rows)
        sight = WorkingSet.of(material, self._counter)
        for outdated in drops.superseded(list(sight.rows.values()), sight.mergeable()):
            sight.drop(outdated)
        for repeated in drops.repeated(sight.mergeable()):
            sight.drop(repeated)
        for find in (groups.runs, groups.failures):
            for fold in find(sight.foldable()):
                sight.fold(fold)
        for fold in groups.detail(sight):
            if sight.fits:
                break
            sight.fold(fold)
        for loss in drops.in_order(sight, now=material.now):
            if sight.fits or sight.is_last:
                break
            sight.drop(loss)
        if material.most_rows:
            drafts = working_set.joined(material, sight)
            fresh = (row for row in material.rows if row.kind is not Kind.REFLECTION)
            whole = rows_tokens(fresh, self._counter)
            if not drafts and whole >= _WORTH_JOINING and material.target > _JOINED * whole:
                # Joining alone saves nothing, and a text as long as the rows it is made of counts for nothing.
                return self.reflect(replace(material, target=int(_JOINED * whole)))
            return Reflected(reflections=drafts, dropped=tuple(sight.dropped) if drafts else (), items=items)
        return Reflected(reflections=tuple(sight.drafts), dropped=tuple(sight.dropped), items=items)
