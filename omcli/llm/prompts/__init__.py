"""The prose that models are given; data, not code."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """The rules for a role: `observer`, `reflector`. What a model is shown never gets in here."""
    return files(__name__).joinpath(f"{name}.md").read_text("utf-8").strip()
