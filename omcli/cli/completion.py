"""What the shell offers where a command wants a name or an id."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from omcli.memory.errors import OmError

if TYPE_CHECKING:
    from omcli.memory.ports import Store

_LAST = 50
"""How many sessions or rows are offered."""


def format_names() -> list[str]:
    """Formats of transcripts."""
    from omcli.wiring import formats

    return list(formats())


def counter_names() -> list[str]:
    """Token counters."""
    from omcli.wiring import counters

    return list(counters())


def session_ids(context: typer.Context) -> list[tuple[str, str]]:
    """The last sessions, with their titles. Nothing where anything goes wrong: a TAB is no place for errors."""
    with suppress(OmError, OSError):
        found = _reading(context).sessions(last=_LAST)
        return [(summary.session.id, summary.session.title or summary.session.project or "") for summary in found]
    return []


def handles(context: typer.Context) -> list[tuple[str, str]]:
    """The last rows, with the beginning of their texts. Nothing where anything goes wrong."""
    from omcli.memory.observation import handle
    from omcli.memory.ports import LogQuery

    with suppress(OmError, OSError):
        rows = [logged.observation for logged in _reading(context).log(LogQuery(last=_LAST))]
        return [(handle(row.id), row.text[:60]) for row in rows]
    return []


def _reading(context: typer.Context) -> Store:
    """The store that the command would read."""
    from omcli.settings.settings import Flags, resolve
    from omcli.wiring import Wiring

    db = context.params.get("db")
    return Wiring(resolve(Flags(db=Path(db) if db else None), os.environ)).reading
