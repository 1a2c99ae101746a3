"""Prompts for models, stored as Markdown files."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """Return the prompt with this name: `observer`, `reflector`, `ask` or `agent_reply`."""
    return files(__name__).joinpath(f"{name}.md").read_text("utf-8").strip()
