"""Formats for exchanging memory with other tools, used by `om export` and `om import`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from omcli.base.errors import BadUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_READ_ONLY = {
    "observational-memory": "observational_memory",
    "claude-mem": "claude_mem",
    "mem0": "mem0",
    "chatgpt": "chatgpt",
}
OWN = "jsonl"
"""om's own format, for the whole memory (`operations/records.py`). The other formats are for rows alone."""
NAMES = tuple(_MODULES)
DOCUMENT_NAMES = ("markdown", "agents-md")
"""Forms of documents that `om export` writes and om does not read back (`omcli.exchange.markdown`)."""
OUTPUT_NAMES = (OWN, *NAMES, *DOCUMENT_NAMES)
INPUT_NAMES = (OWN, *NAMES, *_READ_ONLY)


def named(name: str, names: Sequence[str] = INPUT_NAMES) -> Exchange:
    """Return the format with this name, except `OWN` and documents. Raise BadUsage if it is not one of `names`."""
    if name not in names:
        verb = "read" if names is INPUT_NAMES else "written"
        raise BadUsage(f"memory is not {verb} as `{name}`", hint=f"one of: {', '.join(names)}")
    module = _MODULES.get(name) or _READ_ONLY[name]
    found: dict[str, Exchange] = import_module(f"omcli.exchange.{module}").EXCHANGES
    return found[name]
