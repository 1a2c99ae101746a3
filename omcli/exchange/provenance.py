"""Where an imported row comes from: what its metadata keep of how it was written there."""

from __future__ import annotations

from collections.abc import Mapping

from omcli.exchange.groups import Group, Reach

FORMAT = "imported_from"
ORIGINAL_ID = "original_id"
"""Of the group, or of the item."""
WRITTEN_AT = "written_at"
CWD = "cwd"
CATEGORY = "category"
MARK = "mark"
"""What the row was marked with; see `notation.line`."""
_ENDS = {"first": "first_message", "last": "last_message", "start": "first_place", "end": "end_place"}
"""The keys of a `Reach`."""


def provenance(group: Group, *, format_name: str) -> dict[str, object]:
    """What the rows of a group keep of it; what it does not say is left out."""
    said: dict[str, object] = {
        FORMAT: format_name,
        ORIGINAL_ID: group.id,
        WRITTEN_AT: group.created_at,
        CWD: group.cwd,
        CATEGORY: group.category,
        **{key: getattr(group.reach, name) for name, key in _ENDS.items()},
    }
    return {name: value for name, value in said.items() if value is not None}


def imported_reach(metadata: Mapping[str, object]) -> Reach:
    """The messages that a row was made of, as its group said."""
    first, last, start, end = (metadata.get(key) for key in _ENDS.values())
    return Reach(
        first=first if isinstance(first, str) else None,
        last=last if isinstance(last, str) else None,
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
    )
