"""Foundation of all other packages: records, errors, and functions that every package may need."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def ignore(*_: object) -> None:
    """Do nothing: the default of callbacks that report rows, messages or progress."""


def lazily(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled on first use, because compiling all patterns takes longer than reading a small
    transcript.

    An invalid expression raises its error only at the first use.
    """
    return cast("re.Pattern[AnyStr]", _LazilyCompiled(expression, flags))


class _LazilyCompiled:
    """Stand-in for a compiled pattern. It caches the pattern's methods, so that later calls cost nothing extra."""

    def __init__(self, expression: Any, flags: int) -> None:
        self._expression = expression
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._expression, self._flags), name)
        setattr(self, name, value)
        return value
