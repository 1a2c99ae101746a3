"""What `om consolidate` is to look after, by settings and by what lies on disk."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from omcli.base.record import replace
from omcli.notes import NotesFolder
from omcli.operations.consolidate import Agenda, Source
from omcli.operations.daily_notes import Archiving
from omcli.operations.observe import Input
from omcli.wiring import readings
from omcli.wiring.places import Places, looked_through

if TYPE_CHECKING:
    from omcli.memory.retention import Rules
    from omcli.wiring import Wiring


def agenda(
    wiring: Wiring, session: str | None, named: Sequence[Path] | None, *, takes_in: bool, read_only: bool
) -> tuple[Agenda, Places]:
    """What is to be done, and what the places came to. `named` are places in place of those of the settings."""
    said = wiring.settings.consolidate
    notes = None if said.notes is None else Path(os.path.realpath(said.notes))
    places = Places()
    if takes_in:
        store = wiring.reading if read_only else wiring.existing
        asked = said.places if named is None else named
        places = looked_through(asked, store.taken_in(), os.environ, others=named is None, without=notes)
    found = Agenda(
        session=session,
        sources=[
            Source(
                input=Input(
                    name=known.name,
                    open=partial(wiring.transcript, known.name, format_name=known.format_name, session=known.session),
                ),
                session=known.session,
            )
            for known in places.changed
        ],
        notebook=None if notes is None or session is not None else _notebook(notes),
        archiving=Archiving(before=_before(wiring, said.archive_after)),
        min_age=wiring.settings.reflect.min_age,
        batch_tokens=wiring.settings.reflect.batch_tokens,
        rules=_rules(wiring.retention(), session),
        backups=0 if session is not None else said.backups,
    )
    return found, places


def _rules(rules: Rules, session: str | None) -> Rules:
    """What is kept; of one session where only that is looked after."""
    return rules if session is None else replace(rules, session=session, keep_sessions=None)


def _notebook(folder: Path) -> NotesFolder:
    from omcli.memory.daily_notes import FORMAT

    return NotesFolder(
        folder, terms=partial(readings.terms, FORMAT), stamp=readings.stamp, settled=readings.settled_stamp
    )


def _before(wiring: Wiring, age: float | None) -> str | None:
    """The day that notes so many days old are of, where this machine is; None where there are none."""
    today = date.fromtimestamp(wiring.clock.milliseconds() / 1000)  # noqa: DTZ012 - a note is of the day it was here
    if age is None or age >= today.toordinal() - 1:
        return None
    return (today - timedelta(days=math.ceil(age))).isoformat()
