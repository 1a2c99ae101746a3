"""Lasting facts, the most important first."""

from __future__ import annotations

from collections.abc import Collection

from omcli.memory.observation import Kind, Observation, Type
from omcli.memory.ports import LogQuery, Store
from omcli.pack.cross_session import ranked


def items(
    store: Store,
    *,
    now: str,
    tags: Collection[str] = (),
    types: tuple[Type, ...] = (),
    project: str | None = None,
    hidden: bool = False,
) -> tuple[Observation, ...]:
    """The items that have all of these tags, in the order in which packs of other sessions take them."""
    query = LogQuery(kinds=(Kind.ITEM,), types=types, project=project, hidden=hidden)
    wanted = {tag.casefold() for tag in tags}
    found = [
        logged.observation
        for logged in store.log(query)
        if wanted <= {tag.casefold() for tag in logged.observation.tags}
    ]
    return tuple(found[place] for place in ranked(found, now=now))
