"""Prompts for models; data, not code."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """Return the instructions for a role: `observer`, `reflector`."""
    return files(__name__).joinpath(f"{name}.md").read_text("utf-8").strip()
