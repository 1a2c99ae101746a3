"""What `om consolidate` is to look after, by settings and by what lies on disk."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from omcli.base.record import record, replace
from omcli.formats import NAMES, TRANSCRIPTS, agent_files
from omcli.memory.transcript import IngestedFile, Origin
from omcli.notes import NotesFolder
from omcli.operations.consolidate.daily_notes import Archiving
from omcli.operations.consolidate.run import Agenda, Source
from omcli.operations.ingest.files import FileInput
from omcli.wiring import inputs as readings
from omcli.wiring.folders import Folders
from omcli.wiring.inputs import asked, stamp, terms

if TYPE_CHECKING:
    from omcli.memory.retention import RetentionRules
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
        places = looked_through(asked, store.bookmarks.files(), os.environ, others=named is None, without=notes)
    found = Agenda(
        session=session,
        sources=[
            Source(
                input=FileInput(
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


def _rules(rules: RetentionRules, session: str | None) -> RetentionRules:
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


_IN_FOLDERS = (*(f"*{ending}" for ending in TRANSCRIPTS), "*.json")
"""How files of folders are called that count; what is named itself may be called anything."""


@record
class Known:
    """A file to take in, and how."""

    name: str
    format_name: str | None = None
    session: str | None = None


@record
class Places:
    """What lies in the known places."""

    changed: tuple[Known, ...] = ()
    unchanged: int = 0
    missing: tuple[str, ...] = ()
    """Places that cannot be looked at."""
    unseen: tuple[str, ...] = ()
    """Folders in them that cannot."""


def looked_through(
    places: Sequence[Path] | None,
    taken_in: Iterable[IngestedFile],
    environment: Mapping[str, str],
    *,
    others: bool,
    without: Path | None,
) -> Places:
    """The files in some places, or (None) where agents keep theirs; with `others` also all that were taken in before.

    `without` is a folder whose files are left alone. A file is read again as it was read the first time.
    """
    known = {taken.origin.path: taken for taken in taken_in}
    missing, unseen = list[str](), list[str]()
    found = {os.path.realpath(file): str(file) for file in _files(places, environment, missing, unseen)}
    for path in known if others else ():
        found.setdefault(path, path)
    found = {path: name for path, name in found.items() if not _is_nothing_to_read(path)}
    changed, unchanged = [], 0
    by_terms: dict[str, str] = {}
    for path, name in found.items():
        if without is not None and Path(path).is_relative_to(without):
            continue
        taken = known.get(path)
        format_name, session = asked(taken.origin.terms) if taken else (None, None)
        if format_name is not None and format_name not in NAMES:
            continue  # of another folder of notes
        if taken and taken == _as_it_is(taken.origin, format_name, session, by_terms):
            unchanged += 1
        else:
            changed.append(Known(name=name, format_name=format_name, session=session))
    return Places(changed=tuple(changed), unchanged=unchanged, missing=tuple(missing), unseen=tuple(unseen))


def _is_nothing_to_read(path: str) -> bool:
    """Whether there is no such file any more; or a pipe, say, in which one could wait for a writer for ever."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # reading it says what is wrong


def _as_it_is(
    origin: Origin, format_name: str | None, session: str | None, by_terms: dict[str, str]
) -> IngestedFile | None:
    """What a file is known by when all of it is taken in as it is now; None for one that cannot be looked at."""
    if origin.terms not in by_terms:
        by_terms[origin.terms] = terms(format_name, session)
    try:
        return IngestedFile(
            origin=Origin(path=origin.path, terms=by_terms[origin.terms]),
            stamp=stamp(os.stat(origin.path)),  # noqa: PTH116
        )
    except OSError:
        return None


def _files(
    places: Sequence[Path] | None, environment: Mapping[str, str], missing: list[str], unseen: list[str]
) -> Iterator[str | Path]:
    if places is None:
        yield from agent_files(environment)
        return
    for place in places:
        try:
            is_folder = stat.S_ISDIR(place.stat().st_mode)
        except OSError as error:
            missing.append(f"{place}: {_why(error)}")
            continue
        if not is_folder:
            yield place
            continue
        looked = Folders([str(place)], _IN_FOLDERS).look()
        (missing if str(place) in looked.faults else unseen).extend(
            f"{folder}: {error.message}" for folder, error in looked.faults.items()
        )
        yield from sorted(looked.files)  # a session comes before its subagents, as their names do


def _why(error: OSError) -> str:
    is_gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
    return "there is no such file or folder" if is_gone else str(error.strerror)
