"""Everything that is left as a few rows, for those who keep one reflection: text after text, oldest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omcli.base.record import positional_record, replace
from omcli.memory.observation import Draft, Observation
from omcli.memory.recount import row_tokens
from omcli.memory.roles import Material
from omcli.reflectors.folding import folded, in_rows
from omcli.reflectors.rules.sight import Sight
from omcli.text.speakers import speaker


@positional_record
class _Piece:
    """A text that is left, and the rows it stands for."""

    text: str
    rows: tuple[Observation, ...]


def joined(material: Material, sight: Sight) -> tuple[Draft, ...]:
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
