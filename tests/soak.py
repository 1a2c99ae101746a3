"""Marks for the tests that `pytest -m soak` runs and `pytest` leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_only(values: Iterable[Any]) -> list[Any]:
    """Return parameters of which only the first is in the suite."""
    first, *others = values
    return [first, *more_in_soak(*others)]


def more_in_soak(*values: Any) -> list[Any]:
    """Return parameters of soak tests."""
    return [pytest.param(value, marks=pytest.mark.soak) for value in values]
