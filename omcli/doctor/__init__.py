"""Checks of everything that `om` depends on. Each reports in one line that it passes, or what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from omcli.base import telling
from omcli.base.errors import OmError
from omcli.base.record import record, replace
from omcli.settings.settings import ServerUrl, exists
from omcli.sqlite import checks
from omcli.wiring import Wiring

if TYPE_CHECKING:
    from pathlib import Path

    from omcli.settings.settings import Files, Settings
    from omcli.sqlite import SqliteStore

DAY = 86_400


class Result(StrEnum):
    """Result of a check."""

    PASS = "pass"  # noqa: S105
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"
    """Nothing to check, because the feature is not set up, or is turned off."""


@record
class Check:
    """One line of the doctor's report."""

    name: str
    result: Result
    text: str
    hint: str = ""
    settle: Callable[[], str] | None = None
    """Function that mends the fault and returns a word such as `rebuilt`; None if there is nothing safe to do."""


def pass_(name: str, text: str) -> Check:
    return Check(name=name, result=Result.PASS, text=text)


def warn(name: str, text: str, hint: str = "", settle: Callable[[], str] | None = None) -> Check:
    return Check(name=name, result=Result.WARN, text=text, hint=hint, settle=settle)


def failure(name: str, text: str, hint: str = "", settle: Callable[[], str] | None = None) -> Check:
    return Check(name=name, result=Result.FAIL, text=text, hint=hint, settle=settle)


def skip(name: str, text: str, hint: str = "") -> Check:
    return Check(name=name, result=Result.SKIP, text=text, hint=hint)


class Doctor:
    """The things to check: the settings and store of a run, and its environment."""

    def __init__(
        self,
        wiring: Wiring,
        *,
        files: Files,
        environment: Mapping[str, str],
        project: str,
        thoroughly: bool = False,
        pings: bool = False,
    ) -> None:
        """Check all of the store `thoroughly`, which takes longer. With `pings`, send a prompt to each model."""
        self.wiring = wiring
        self.files = files
        self.environment = environment
        self.project = project
        self.is_thorough = thoroughly
        self.pings = pings

    @property
    def settings(self) -> Settings:
        return self.wiring.settings

    @property
    def path(self) -> Path:
        """Path of the store, or what stands for the database of a server (see `Wiring.spool_path`)."""
        return self.wiring.spool_path

    @property
    def is_on_server(self) -> bool:
        return isinstance(self.settings.db, ServerUrl)

    @cached_property
    def now(self) -> str:
        return self.wiring.clock.now()

    def ago(self, seconds: float) -> str:
        """Return the time this many seconds before now."""
        return self.wiring.clock.after(-seconds)

    @cached_property
    def has_store(self) -> bool:
        """True if there is a store that can be opened."""
        try:
            return self.wiring.has_store and self.store is not None
        except OmError:
            return False

    @property
    def is_damaged(self) -> bool:
        """True if there is something at the store's path that cannot be opened, or a server does not let the store be
        read. The check `store` tells why.
        """
        if not self.is_on_server:
            return exists(self.path) and not self.has_store
        try:
            return self.wiring.has_store and not self.has_store
        except OmError:
            return True

    @property
    def store(self) -> SqliteStore:
        """The store for reading only. Raise the errors of `SqliteStore.open` if it cannot be opened."""
        with checks.any_error(self.path):
            return self.wiring.reading

    def write(self, change: Callable[[SqliteStore], object]) -> None:
        """Change the store, which exists. It is closed again at once."""
        with closing(Wiring(self.settings)) as wiring, checks.any_error(self.path):
            change(wiring.store)


Section = Mapping[str, Callable[[Doctor], Iterable[Check]]]
"""Functions that yield checks, each with the name of the line to print if it raises an error."""


def check_all(doctor: Doctor, sections: Mapping[str, Section], *, settles: bool = False) -> Iterator[tuple[str, Check]]:
    """Yield the results of all checks, each with its heading. A check that fails never stops the others.

    With `settles`, all that can safely be mended is mended.
    """
    each = [(heading, *check) for heading, section in sections.items() for check in section.items()]
    for done, (heading, name, function) in enumerate(each):
        telling.get()(f"checking {name}", "check", done, len(each))
        for found in _checked(doctor, name, function):
            yield heading, _settled(found) if settles and found.settle is not None else found


def _checked(doctor: Doctor, name: str, function: Callable[[Doctor], Iterable[Check]]) -> Iterator[Check]:
    try:
        with checks.any_error(doctor.path):
            yield from function(doctor)
    except OmError as error:
        yield failure(name, error.message, error.hint)
    except OSError as error:
        yield failure(name, _reason(error))


def _settled(found: Check) -> Check:
    assert found.settle is not None
    try:
        return replace(found, result=Result.PASS, text=f"{found.settle()} ({found.text})", hint="")
    except OmError as error:
        return replace(found, hint=f"could not be mended: {error.message}")
    except OSError as error:
        return replace(found, hint=f"could not be mended: {_reason(error)}")


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """Return a number of bytes in words."""
    for unit, power in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= power:
            return f"{number / power:.1f} {unit}"
    return counted(number, "byte")


def shown(path: Path | str, environment: Mapping[str, str]) -> str:
    """Return a path with `~` for the home folder."""
    home, path = environment.get("HOME", ""), str(path)
    return f"~{path[len(home) :]}" if home and path.startswith(home.rstrip(os.sep) + os.sep) else path
