"""What the shell offers where a command wants a name or an id."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omcli.memory.errors import OmError

if TYPE_CHECKING:
    from omcli.memory.ports import Store

# Typer knows its context by the name `ctx`, where it is not annotated as what only Typer has.
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


def preset_names() -> list[str]:
    """Presets of settings."""
    from omcli.settings.layers import PRESETS

    return list(PRESETS)


def exchange_names() -> list[str]:
    """Ways to write memory down."""
    from omcli.memory.exchange import NAMES

    return list(NAMES)


def notation_names() -> list[str]:
    """Notations of rows."""
    from omcli.memory.notation import NOTATIONS

    return [notation.name for notation in NOTATIONS]


def provider_names() -> list[str]:
    """Whose models observe and reflect."""
    from omcli.providers.table import ENDPOINTS

    return [*ENDPOINTS, "rules"]


def session_ids(ctx: Any) -> list[tuple[str, str]]:
    """The last sessions, with their titles. Nothing where anything goes wrong: a TAB is no place for errors."""
    with suppress(OmError, OSError):
        found = _reading(ctx).sessions(last=_LAST)
        return [(summary.session.id, summary.session.title or summary.session.project or "") for summary in found]
    return []


def handles(ctx: Any) -> list[tuple[str, str]]:
    """The last rows, with the beginning of their texts. Nothing where anything goes wrong."""
    from omcli.memory.observation import handle
    from omcli.memory.ports import LogQuery

    with suppress(OmError, OSError):
        rows = [logged.observation for logged in _reading(ctx).log(LogQuery(last=_LAST))]
        return [(handle(row.id), row.text[:60]) for row in rows]
    return []


def operation_numbers(ctx: Any) -> list[tuple[str, str]]:
    """The last operations that can be taken back, with what they were. Nothing where anything goes wrong."""
    from omcli.memory.dates import minute

    with suppress(OmError, OSError):
        found = [done for done in _reading(ctx).history() if done.can_be_undone][:_LAST]
        return [(str(done.number), f"{done.verb}, {minute(done.at)}") for done in found]
    return []


def _reading(ctx: Any) -> Store:
    """The store that the command would read."""
    from omcli.settings.resolve import resolve
    from omcli.wiring import Wiring

    db, config = (ctx.params.get(name) or ctx.parent.params.get(name) for name in ("db", "config"))
    return Wiring(
        resolve({"db": Path(db) if db else None}, os.environ, config=Path(config) if config else None)
    ).reading
