"""Foundation of all other packages: records, errors, and functions that every package may need."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, AnyStr, cast

_KEEPS_PROGRAMS = sys.version_info < (3, 15)
"""True for versions of Python whose compiler of patterns is known. With later ones, no program is kept."""
if _KEEPS_PROGRAMS:
    import _sre  # type: ignore[import-not-found]
    from re import _compiler, _parser  # type: ignore[attr-defined] # not in the stubs


def ignore(*_: object) -> None:
    """Do nothing: the default of callbacks that report rows, messages or progress."""


def lazily(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled on first use, because compiling all patterns takes longer than reading a small
    transcript.

    An invalid expression raises its error only at the first use.
    """
    return cast("re.Pattern[AnyStr]", _LazilyCompiled(expression, flags))


Program = tuple[int, Sequence[int], int, dict[str, int], tuple[str | None, ...]]
"""What Python compiles a pattern to: its flags, the program, the number of groups, groups by name, names of groups."""
programs: dict[tuple[str | bytes, int], Program] = {}
"""Programs of patterns by expression and flags: those used in this process, and those kept by earlier ones."""


class _LazilyCompiled:
    """Stand-in for a compiled pattern. It caches the pattern's methods, so that later calls cost nothing extra."""

    def __init__(self, expression: Any, flags: int) -> None:
        self._key = (expression, int(flags))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compiled() if _KEEPS_PROGRAMS else re.compile(*self._key), name)
        setattr(self, name, value)
        return value

    def _compiled(self) -> Any:
        """Compile the pattern as `re.compile` does, unless its program is known."""
        program = programs.get(self._key)
        if program is None:
            parsed = _parser.parse(*self._key)
            state, code = parsed.state, _compiler._code(parsed, self._key[1])  # noqa: SLF001
            names = dict(map(reversed, state.groupdict.items()))
            by_number = tuple(map(names.get, range(state.groups)))
            program = (self._key[1] | state.flags, code, state.groups - 1, state.groupdict, by_number)
            programs[self._key] = program
        return _sre.compile(self._key[0], program[0], list(program[1]), *program[2:])
