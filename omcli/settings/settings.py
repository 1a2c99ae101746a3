"""What a run goes by: flags first, then `OM_*` variables, then defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from omcli.memory.record import record

DEFAULT_WAIT = 10.0

_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"", "0", "false", "no", "off"})


@record
class Flags:
    """What the command line says; None where it is silent."""

    db: Path | None = None
    counter: str | None = None
    wait: float | None = None


@record
class Settings:
    """What a run goes by."""

    db: Path
    """The store."""
    counter: str | None
    """Name of the token counter; None for the default one."""
    wait: float
    """Seconds to wait for a lock or a lane that somebody else holds."""
    budget: int | None
    """Tokens a context pack may have; None for what its tiers may have together."""
    disabled: bool
    """Nothing is written."""
    warnings: tuple[str, ...] = ()
    """What was wrong with the environment; the default is used then."""


def resolve(flags: Flags, environment: Mapping[str, str]) -> Settings:
    """Settles every setting. Variables that make no sense are left out, with a warning; unknown ones are ignored."""
    variables = _Variables(environment)
    budget = variables.number("OM_CONTEXT_BUDGET")
    return Settings(
        db=flags.db or variables.path("OM_DB") or default_store(),
        counter=flags.counter or environment.get("OM_COUNTER") or None,
        wait=_first(flags.wait, variables.number("OM_WAIT"), DEFAULT_WAIT),
        budget=None if budget is None else int(budget),
        disabled=variables.switch("OM_DISABLED"),
        warnings=tuple(variables.warnings),
    )


def default_store() -> Path:
    """`memory.db` in the user's data folder for `om`."""
    # 3 ms that a run with a store of its own need not pay.
    from platformdirs import user_data_path  # noqa: PLC0415

    return user_data_path("om", appauthor=False) / "memory.db"


class _Variables:
    """The `OM_*` variables. Unknown ones are nobody's mistake: another program reads some with that prefix."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.warnings: list[str] = []
        self._environment = environment

    def path(self, name: str) -> Path | None:
        value = self._environment.get(name, "")
        return Path(value).expanduser() if value else None

    def number(self, name: str) -> float | None:
        text = self._environment.get(name, "").strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = -1
        if not 0 <= value < 1e9:
            self._warn(name, text, "no number from 0 up")
            return None
        return value

    def switch(self, name: str) -> bool:
        value = self._environment.get(name, "").strip().lower()
        if value not in _YES | _NO:
            self._warn(name, value, "neither yes nor no")
        return value in _YES

    def _warn(self, name: str, value: str, why: str) -> None:
        self.warnings.append(f"`{name}={value}` is {why}, and is ignored")


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)
