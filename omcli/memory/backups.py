"""Backups of the store by their names: whether one is due, and which are too many."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from omcli.base.record import record

APART = timedelta(hours=20)
"""How old the newest has to be before there is another one: a day, for a job that starts a little earlier each time."""
_NAME = re.compile(r"\.(\d{4}-\d{2}-\d{2}T\d{6})Z(?:-(\d{1,6}))?\.bak\Z", re.ASCII)


@record
class BackedUp:
    """What became of the backups of a store."""

    path: str | None
    """The one that was made; None where none was due."""
    removed: tuple[str, ...] = ()


@record
class Backup:
    """A backup, as its name tells of it."""

    name: str
    at: datetime
    number: int
    """Of those made at one moment."""


def label(now: str) -> str:
    """What a copy made at an instant is called: `<store>.<label>.bak`."""
    return f"{now[:19].replace(':', '')}Z"


def backups_among(names: Iterable[str], store: str) -> tuple[Backup, ...]:
    """Those of the files beside a store that are copies of it made at some moment, oldest first."""
    found = []
    for name in names:
        told = _NAME.fullmatch(name.removeprefix(store)) if name.startswith(store) else None
        at = _moment(told[1]) if told else None
        if told and at:
            found.append(Backup(name=name, at=at, number=int(told[2] or 1)))
    return tuple(sorted(found, key=lambda backup: (backup.at, backup.number)))


def is_due(backups: Iterable[Backup], now: str) -> bool:
    """Whether it is time for another one. Those from the future are of a clock that was wrong, and do not count."""
    moment = _of(now)
    return not any(moment - APART < backup.at <= moment for backup in backups)


def surplus(backups: Iterable[Backup], *, keep: int, now: str) -> tuple[Backup, ...]:
    """Those that are too many, oldest first; one from the future is taken to be the oldest."""
    moment = _of(now)
    ordered = sorted(backups, key=lambda backup: (backup.at <= moment, backup.at, backup.number))
    return tuple(ordered[: max(0, len(ordered) - keep)])


def _of(now: str) -> datetime:
    return datetime.fromisoformat(now[:19])


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H%M%S")  # noqa: DTZ007 - all of them are UTC
    except ValueError:
        return None
