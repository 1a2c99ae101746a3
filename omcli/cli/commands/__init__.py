"""The commands by name; each module has one command or a few.

`om --help` and completion import all commands, so a command imports large modules only when it runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omcli.cli.command import CliCommand

GROUPS = {
    "Remember": ("observe", "watch", "tick", "reflect", "consolidate"),
    "Use": ("context", "recall", "embed", "ask", "compact"),
    "Inspect": ("log", "items", "show", "why", "trace", "replay", "sessions", "status", "doctor", "usage", "tokens"),
    "Edit": ("note", "review", "prune", "forget", "undo", "history"),
    "Use another program as the observer": ("pending", "apply"),
    "Exchange and set up": ("install", "uninstall", "hook", "mcp", "export", "import", "schedule", "config"),
}
"""The commands in groups, in the order of `om --help`."""
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
ALIASES = {"search": "recall"}
"""Other names of commands, which help and completion don't show."""
_MODULES = {
    "embed": "recall",
    "doctor": "config",
    "items": "log",
    "show": "log",
    "trace": "why",
    "usage": "tokens",
    "status": "sessions",
    "note": "forget",
    "apply": "pending",
    "undo": "history",
    "replay": "history",
    "export": "exchange",
    "import": "exchange",
    "uninstall": "install",
}
"""Modules that are not named after their command."""


def command(name: str) -> CliCommand:
    """Return the command with this name. Only its module is imported."""
    module = import_module(f"{__name__}.{_MODULES.get(name, name)}")
    found: CliCommand = getattr(module, "import_" if name == "import" else name)
    return found
