"""Memory files of other designs: written by `om export`, read by `om import`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from omcli.base.errors import BadUsage
from omcli.base.patterns import lazily

if TYPE_CHECKING:
    from omcli.exchange.groups import Exchange

# Names, and the modules they are in, imported when asked.
_MODULES = {
    "pi": "pi",
    "zora": "zora",
    "zora-jsonl": "zora",
    "duet-groups": "duet",
    "duet-headings": "duet",
    "lango": "lango",
    "lango-jsonl": "lango",
}
NAMES = tuple(_MODULES)

_STRING = r'"(?:[^"\\]|\\.)*"'
# Written rows quote what was said, after `User:` as often as not: they must not be taken for a dialogue.
_BEGINNING = lazily(
    r"\s*(?:Date: [0-9]{4}-[0-9]{2}-[0-9]{2}\n- \[[!?i]\] [0-9]{2}:[0-9]{2} "
    r"|\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}\] (?:CRITICAL|IMPORTANT|NOTE) "
    r"|<observation-group\s"
    r"|## Group `[^`\n]*`\n"
    r"|## Conversation Memory\n\n### (?:Summary|Recent)\n"
    rf'|\{{"id":{_STRING},"(?:sessionId":{_STRING},"createdAt":"[^"]*","tier|type":"[a-z]+","category)":"'
    r'|\{"session_key":)'
)


def named(name: str) -> Exchange:
    """Return the format of this name. Raises BadUsage."""
    if name not in _MODULES:
        raise BadUsage(f"memory is not written as `{name}`", hint=f"one of: {', '.join(NAMES)}")
    found: dict[str, Exchange] = import_module(f"omcli.exchange.{_MODULES[name]}").EXCHANGES
    return found[name]


def is_written(beginning: str) -> bool:
    """Return True if a file with this beginning is exported memory rather than a transcript."""
    return _BEGINNING.match(beginning) is not None
