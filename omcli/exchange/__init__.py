"""Formats for exchanging memory with other tools, used by `om export` and `om import`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from omcli.base.errors import BadUsage

if TYPE_CHECKING:
    from omcli.exchange.groups import Exchange

# Maps each format to its module, which is imported on demand.
_MODULES = {
    "pi": "pi",
    "zora": "zora",
    "zora-jsonl": "zora",
    "duet-groups": "duet",
    "duet-headings": "duet",
    "lango": "lango",
    "lango-jsonl": "lango",
}
OWN = "jsonl"
"""om's own format, which holds the whole memory (`operations/records.py`). It is not one of those for rows."""
NAMES = tuple(_MODULES)


def named(name: str) -> Exchange:
    """Return the format with this name. Raise BadUsage if it does not exist."""
    if name not in _MODULES:
        raise BadUsage(f"memory is not written as `{name}`", hint=f"one of: {', '.join((OWN, *NAMES))}")
    found: dict[str, Exchange] = import_module(f"omcli.exchange.{_MODULES[name]}").EXCHANGES
    return found[name]
