"""Foundation of all other packages: records, errors, and regular expressions compiled on first use."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def lazily(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled on first use, because compiling all patterns takes longer than reading a small
    transcript.

    An invalid expression raises its error only then.
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
