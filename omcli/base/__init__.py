"""Foundation of all other packages: records, errors, and functions that every package may need."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, AnyStr, cast

try:
    import _sre  # type: ignore[import-not-found]
    from re import _compiler, _parser  # type: ignore[attr-defined] # not in the stubs
except ImportError:  # a later Python may have them elsewhere: then no program is kept
    _sre = None


def ignore(*_: object) -> None:
    """Do nothing: the default of callbacks that report rows, messages or progress."""


telling: ContextVar[Callable[..., object]] = ContextVar("telling", default=ignore)
"""Function that long work calls all the time if a person waits for it. Its arguments are what is done, the noun of the
steps, how many are done, and of how many; without arguments it only says that the work goes on.
"""


def lazily(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled on first use, because compiling all patterns takes longer than reading a small
    transcript.

    An invalid expression raises its error only at the first use.
    """
    return cast("re.Pattern[AnyStr]", _LazilyCompiled(expression, flags))


Program = tuple[int, Sequence[int], int, dict[str, int], tuple[str | None, ...]]
"""A compiled pattern: its flags, its code, the number of groups, their numbers by name, and their names by number."""
programs: dict[tuple[str | bytes, int], Program] = {}
"""Programs of patterns by expression and flags: those used in this process, and those kept by earlier ones."""


class _LazilyCompiled:
    """Stand-in for a compiled pattern. It caches the pattern's methods, so that later calls cost nothing extra."""

    def __init__(self, expression: Any, flags: int) -> None:
        self._key = (expression, int(flags))

    def __getattr__(self, name: str) -> Any:
        program = programs.get(self._key)
        if program is None and _sre is not None:  # compile it as `re.compile` does, but keep the program
            parsed = _parser.parse(*self._key)
            state, code = parsed.state, _compiler._code(parsed, self._key[1])  # noqa: SLF001
            names = dict(map(reversed, state.groupdict.items()))
            by_number = tuple(map(names.get, range(state.groups)))
            program = (self._key[1] | state.flags, code, state.groups - 1, state.groupdict, by_number)
            programs[self._key] = program
        if program is None:
            pattern = re.compile(*self._key)
        else:
            pattern = _sre.compile(self._key[0], program[0], list(program[1]), *program[2:])
        value = getattr(pattern, name)
        setattr(self, name, value)
        return value
