"""Rows of one reply that say the same, made one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omcli.memory.counts import with_times
from omcli.memory.observation import Draft
from omcli.memory.record import replace
from omcli.memory.repetition import is_repetitive, normalised

_Group = list[Draft]


def each_once(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Rows that say the same as one, with the sources of all.

    In a reply that repeats itself, rows of the same sources that differ in nothing but numbers are one as well, and the
    row tells how many there were: what was said forty times is not forty facts.
    """
    loops = is_repetitive([draft.text for draft in drafts])
    groups = _together([[draft] for draft in drafts], lambda group: (group[0].text, group[0].type))
    if loops:
        groups = _together(groups, lambda group: (normalised(group[0].text), group[0].type, _sources(group)))
    return tuple(_as_one(group, is_counted=loops) for group in groups)


def _together(groups: Sequence[_Group], key: Callable[[_Group], object]) -> list[_Group]:
    found: dict[object, _Group] = {}
    for group in groups:
        found.setdefault(key(group), []).extend(group)
    return list(found.values())


def _sources(group: _Group) -> tuple[int, ...]:
    return tuple(sorted({seq for draft in group for seq in draft.sources}))


def _as_one(group: _Group, *, is_counted: bool) -> Draft:
    first = group[0]
    if len(group) == 1:
        return first
    return replace(
        first,
        text=with_times(first.text, len(group)) if is_counted else first.text,
        importance=max(draft.importance for draft in group),
        sources=_sources(group),
        replaces=tuple(dict.fromkeys(row for draft in group for row in draft.replaces)),
    )
