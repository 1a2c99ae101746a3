"""The commands by name; each module has one command or a few.

`om --help` and the completion of a command's name import none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omcli.cli.command import CliCommand

GROUPS = {
    "Remember": {
        "observe": "Read transcripts and print the new observations.",
        "watch": "Follow transcripts as they are written, until Ctrl-C.",
        "tick": "Observe and reflect on the sessions where this is due.",
        "reflect": "Fold observations into fewer rows and extract lasting facts.",
        "consolidate": "Maintain the memory, daily or after a session has ended.",
    },
    "Use": {
        "context": "Print what an agent should know, within a token budget.",
        "recall": "Search rows and messages, the best result first.",
        "embed": "Make vectors, so that `om recall` also finds texts that say the same in other words.",
        "ask": "Answer a question with a model, from what `om recall` finds.",
        "compact": "Shorten a session to what an agent needs to continue it.",
    },
    "Inspect": {
        "log": "Show the observation log, one line per row.",
        "diff": "Show what the memory learnt, changed and forgot in a period: by default in the last day.",
        "items": "List items (lasting facts), the most important first.",
        "show": "Show a row with its messages, or one message.",
        "why": "Show which session, request and decision changed a file or set a rule.",
        "trace": "Follow a text from messages through rows into a pack, and show where it was lost.",
        "replay": "Print the pack of a session as it was at an earlier time.",
        "sessions": "List sessions, the one with the latest message first and empty ones last.",
        "status": "Show the store, its contents, and pending work.",
        "doctor": "Check the store, settings, hooks, schedule, models and this program.",
        "usage": "Show what models cost: calls, tokens, dollars and time.",
        "tokens": "Count the tokens of text or of a transcript.",
    },
    "Edit": {
        "note": "Write a note to the memory.",
        "review": "Go through contradictions, unverified rows and old rows, the most important first.",
        "prune": "Hide old or surplus rows or messages.",
        "forget": "Forget rows and messages, and keep their content from coming back.",
        "undo": "Undo an operation: restore what it hid, and hide what it made.",
        "history": "List operations on the memory, the newest first.",
        "backup": "Copy the store to a backup beside it, and print its path.",
        "restore": "Put a backup in the place of the store.",
        "store": "Encrypt or decrypt the store, or copy it to a server or back.",
    },
    "Use another program as the observer": {
        "pending": "Show pending messages to an agent that acts as the observer.",
        "apply": "Store the observations in an agent's reply to `om pending`.",
    },
    "Exchange and set up": {
        "install": "Have clients such as Claude Code use the memory.",
        "uninstall": "Undo `om install`.",
        "hook": "Answer a hook of a client, such as Claude Code.",
        "mcp": "Serve the memory to an agent: an MCP server on stdin and stdout.",
        "export": "Write the memory as JSON Lines, in another tool's format, or as a document.",
        "import": "Read memory that another machine or tool wrote.",
        "schedule": "Run `om consolidate` every day.",
        "config": "Print or change the settings.",
    },
}
"""The commands in groups, in the order of `om --help`, and what each does: the first sentence of its docstring."""
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
ALIASES = {"search": "recall"}
"""Other names of commands, which help and completion don't show."""
_MODULES = {
    "embed": "recall",
    "doctor": "config",
    "diff": "log",
    "items": "log",
    "show": "log",
    "trace": "why",
    "usage": "tokens",
    "status": "sessions",
    "note": "forget",
    "apply": "pending",
    "undo": "history",
    "replay": "history",
    "backup": "history",
    "restore": "history",
    "export": "exchange",
    "import": "exchange",
    "schedule": "install",
    "uninstall": "install",
}
"""Modules that are not named after their command."""


def command(name: str) -> CliCommand:
    """Return the command with this name. Only its module is imported."""
    module = import_module(f"{__name__}.{_MODULES.get(name, name)}")
    found: CliCommand = getattr(module, "import_" if name == "import" else name)
    return found
