"""The reflector that needs no model. It drops repeats, folds details, and drops the least informative rows."""

from __future__ import annotations

from omcli.memory.message import TokenCounter, rows_tokens
from omcli.memory.reflection import Material, Reflected
from omcli.reflectors.drafts import lasting
from omcli.reflectors.rules import folds

_MOST_LEFT = 0.8
"""Maximum share of the tokens that may be left. A fold that saves less than a fifth is not worth a changed pack."""
_SMALL = 2_000
"""Rows are not dropped to reach a target below this number of tokens, because a pack holds that many anyway. No preset
folds fewer.
"""


class RuleReflector:
    """Reduces rows by rules. The result is deterministic and takes its wording from the rows."""

    def __init__(self, counter: TokenCounter, *, small: int = _SMALL) -> None:
        """`small` is the number of tokens below which no rows are dropped to meet the target."""
        self._counter = counter
        self._small = small

    def reflect(self, material: Material) -> Reflected:
        """Return fewer rows, or nothing but items if neither the target nor `small` tokens can be reached, or if less
        than a fifth would be saved.

        First, repeated and outdated rows are dropped. In a session, repeated commands, resolved failures and edits of a
        file are folded; details of several sessions do not belong together. Then, unless the target is larger than all
        rows, rows are dropped, the least informative first, until the target is met and a fifth is saved, or until
        `small` tokens are left. Rows are never joined to meet `material.most_rows`, because a pack could then choose
        all of them or none.
        """
        items = lasting(material.rows)
        whole = rows_tokens(material.rows, self._counter)
        most_left = int(_MOST_LEFT * whole)
        target = max(self._small, min(material.target, most_left)) if material.target <= whole else material.target
        working = folds.WorkingSet.of(material, self._counter, target=target)
        for outdated in folds.stale(list(working.rows.values()), working.rows_to_merge()):
            working.drop(outdated)
        for repeated in folds.repeated(working.rows_to_merge()):
            working.drop(repeated)
        for find in folds.ALL if material.session else ():
            for fold in find(working.rows_to_fold()):
                working.fold(fold)
        for loss in folds.by_value(working) if not working.fits else ():
            if working.fits or working.is_last:
                break
            working.drop(loss)
        if not working.fits or working.tokens > most_left:
            return Reflected(items=items)
        return Reflected(reflections=tuple(working.drafts), dropped=tuple(working.dropped), items=items)
