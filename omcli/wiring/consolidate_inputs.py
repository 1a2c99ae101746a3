"""Inputs of `om consolidate`, from the settings and the disk."""

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
from omcli.operations.consolidate.daily_notes import ArchivePolicy
from omcli.operations.consolidate.run import ConsolidateInput, TranscriptFile
from omcli.operations.ingest.files import FileInput, InputFile
from omcli.wiring import inputs as readings
from omcli.wiring import policies
from omcli.wiring.folders import Folders
from omcli.wiring.inputs import asked, file_stamp, terms

if TYPE_CHECKING:
    from omcli.memory.retention import RetentionRules
    from omcli.wiring import Wiring


def consolidate_input(
    wiring: Wiring, session: str | None, named: Sequence[Path] | None, *, takes_in: bool, read_only: bool
) -> tuple[ConsolidateInput, KnownFiles]:
    """Return the maintenance to do and the files found. `named` places are searched instead of those in the settings
    and of all files ingested before. For one `session`, there are no notes, vectors or backups.

    Unless `takes_in`, no files are searched for. With `read_only`, the store is only read.
    """
    said = wiring.settings.consolidate
    notes = None if said.notes is None else Path(os.path.realpath(said.notes))
    places = KnownFiles()
    if takes_in:
        store = wiring.reading if read_only else wiring.store_or_empty
        asked = said.places if named is None else named
        places = changed_files(asked, store.bookmarks.files(), os.environ, others=named is None, without=notes)
    found = ConsolidateInput(
        session=session,
        sources=[
            TranscriptFile(
                input=FileInput(
                    name=known.name,
                    open=partial(wiring.transcript, known.name, format_name=known.format_name, session=known.session),
                    file=InputFile(path=known.name, format_name=known.format_name, session=known.session),
                ),
                session=known.session,
            )
            for known in places.changed
        ],
        notebook=None if notes is None or session is not None else _notebook(notes),
        archiving=ArchivePolicy(before=_before(wiring, said.archive_after)),
        min_age=wiring.settings.reflect.min_age,
        batch_tokens=wiring.settings.reflect.batch_tokens,
        rules=_rules(policies.retention(wiring.settings, wiring.clock), session),
        open_embedder=wiring.embedder if session is None and wiring.settings.embeddings.is_set else None,
        backups=0 if session is not None else said.backups,
    )
    return found, places


def _rules(rules: RetentionRules, session: str | None) -> RetentionRules:
    return rules if session is None else replace(rules, session=session, keep_sessions=None)


def _notebook(folder: Path) -> NotesFolder:
    from omcli.exchange.daily_notes import FORMAT

    return NotesFolder(
        folder, terms=partial(readings.terms, FORMAT), stamp=readings.stamp, settled=readings.settled_stamp
    )


def _before(wiring: Wiring, age: float | None) -> str | None:
    """Return the local date that is this many days ago (rounded up), or None if there is no age or no such date."""
    today = date.fromtimestamp(wiring.clock.milliseconds() / 1000)  # noqa: DTZ012 - notes have local dates
    if age is None or age >= today.toordinal() - 1:
        return None
    return (today - timedelta(days=math.ceil(age))).isoformat()


_IN_FOLDERS = (*(f"*{ending}" for ending in TRANSCRIPTS), "*.json", "opencode*.db")
"""Name patterns of transcripts in folders. A file that is named explicitly may have any name."""


@record
class ChangedFile:
    name: str
    format_name: str | None = None
    session: str | None = None


@record
class KnownFiles:
    """Files found in the known places."""

    changed: tuple[ChangedFile, ...] = ()
    unchanged: int = 0
    missing: tuple[str, ...] = ()
    """Named places that cannot be read, each with the reason."""
    unseen: tuple[str, ...] = ()
    """Subfolders that cannot be read, each with the reason."""


def changed_files(
    places: Sequence[Path] | None,
    taken_in: Iterable[IngestedFile],
    environment: Mapping[str, str],
    *,
    others: bool,
    without: Path | None,
) -> KnownFiles:
    """Return the new and changed files in some places, by default the folders of known agents. With `others`, all files
    ingested before are looked at too.

    Files in the folder `without` are skipped. A file is read again with the format and session with which it was
    ingested before.
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
            continue  # it belongs to another folder of notes
        if taken and taken == _as_it_is(taken.origin, format_name, session, by_terms):
            unchanged += 1
        else:
            changed.append(ChangedFile(name=name, format_name=format_name, session=session))
    return KnownFiles(changed=tuple(changed), unchanged=unchanged, missing=tuple(missing), unseen=tuple(unseen))


def _is_nothing_to_read(path: str) -> bool:
    """Return True if the file is missing or is not a regular file: reading a pipe, for example, could block."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # reading it reports the error


def _as_it_is(
    origin: Origin, format_name: str | None, session: str | None, by_terms: dict[str, str]
) -> IngestedFile | None:
    """Return the state that the file will have once all of it is ingested, or None if it cannot be looked at."""
    if origin.terms not in by_terms:
        by_terms[origin.terms] = terms(format_name, session)
    try:
        return IngestedFile(
            origin=Origin(path=origin.path, terms=by_terms[origin.terms]),
            stamp=file_stamp(origin.path),
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
        yield from sorted(looked.files)  # a session sorts before its subagents


def _why(error: OSError) -> str:
    is_gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
    return "no such file or folder" if is_gone else str(error.strerror)
