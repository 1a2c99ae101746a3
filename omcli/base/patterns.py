"""Patterns that are compiled when they are first used: most runs use a few of them."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def lazily(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile(expression, flags)`, later: compiling all that the rules know takes longer than a small transcript.

    An error in the expression is raised when it is used.
    """
    return cast("re.Pattern[AnyStr]", _Uncompiled(expression, flags))


class _Uncompiled:
    """Takes what it is asked for from the compiled pattern, and keeps it: afterwards it is as fast as that."""

    def __init__(self, expression: Any, flags: int) -> None:
        self._expression = expression
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._expression, self._flags), name)
        setattr(self, name, value)
        return value
