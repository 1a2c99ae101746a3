"""The reflector that needs no model. It drops repeats, folds details, and drops the least important rows."""

from __future__ import annotations

from omcli.base.record import replace
from omcli.memory.message import TokenCounter, rows_tokens
from omcli.memory.observation import Kind
from omcli.memory.reflection import Material, Reflected
from omcli.reflectors.drafts import lasting
from omcli.reflectors.rules import drops, groups, working_set
from omcli.reflectors.rules.working_set import WorkingSet

_JOINED = 0.75
"""Rows are reduced to this share of their tokens before they are joined, if joining alone would save nothing."""
_WORTH_JOINING = 200
"""Minimum number of tokens that rows must have to be reduced before they are joined."""


class RuleReflector:
    """Reduces rows by rules. The result is deterministic and takes its wording from the rows."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def reflect(self, material: Material) -> Reflected:
        """Return fewer rows.

        Lossless steps are always taken: repeated and outdated rows are dropped, and repeated commands and resolved
        failures are folded and counted. Other steps are taken only until the target is met: reads, edits of a file and
        requests that are done are folded, and then rows are dropped, the least important first. If `material.most_rows`
        is set, the remaining rows are joined.
        """
        items = lasting(material.rows)
        working = WorkingSet.of(material, self._counter)
        for outdated in drops.stale(list(working.rows.values()), working.rows_to_merge()):
            working.drop(outdated)
        for repeated in drops.repeated(working.rows_to_merge()):
            working.drop(repeated)
        for find in (groups.by_command, groups.failures):
            for fold in find(working.rows_to_fold()):
                working.fold(fold)
        for fold in groups.others(working):
            if working.fits:
                break
            working.fold(fold)
        for loss in drops.by_importance(working, now=material.now):
            if working.fits or working.is_last:
                break
            working.drop(loss)
        if material.most_rows:
            drafts = working_set.single_row(material, working)
            fresh = (row for row in material.rows if row.kind is not Kind.REFLECTION)
            whole = rows_tokens(fresh, self._counter)
            if not drafts and whole >= _WORTH_JOINING and material.target > _JOINED * whole:
                # Joining alone saves nothing, and text as long as its rows would be rejected.
                return self.reflect(replace(material, target=int(_JOINED * whole)))
            return Reflected(reflections=drafts, dropped=tuple(working.dropped) if drafts else (), items=items)
        return Reflected(reflections=tuple(working.drafts), dropped=tuple(working.dropped), items=items)
