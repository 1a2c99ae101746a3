"""The commands by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omcli.cli.options import Command

COMMANDS = (
    "observe", "reflect", "tick", "watch", "consolidate", "context", "compact", "log", "items", "show", "sessions",
    "status", "usage", "tokens", "note", "pending", "apply", "prune", "forget", "undo", "history", "export", "import",
    "schedule", "config",
)  # fmt: skip
"""In the order of `om --help`. Each is in a module of its name beside this one, with its `EXAMPLES`."""


def command(name: str) -> Command:
    """The command of this name; nothing is imported for any other."""
    module = _module(name)
    found: Command = getattr(import_module(f"omcli.cli.{module}"), module)
    return found


def examples(name: str) -> str:
    """How it is used, for its help."""
    text: str = import_module(f"omcli.cli.{_module(name)}").EXAMPLES
    return text


def _module(name: str) -> str:
    """A command's module, and the function in it: its name, but for a word that Python keeps to itself."""
    return "import_" if name == "import" else name
