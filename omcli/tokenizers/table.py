"""The token counters by name."""

from __future__ import annotations

from omcli.base.errors import BadUsage
from omcli.memory.ports import TokenCounter
from omcli.tokenizers import bpe
from omcli.tokenizers.approximate import APPROXIMATE
from omcli.tokenizers.characters import CHARACTER_COUNTERS

_BUILT_IN = {built_in.name: built_in for built_in in (APPROXIMATE, *CHARACTER_COUNTERS)}
DEFAULT = APPROXIMATE.name
NAMES = (*_BUILT_IN, *bpe.NAMES)


def counter(name: str = DEFAULT) -> TokenCounter:
    """The counter of this name.

    Raises BadUsage for a name that is not in `NAMES`, and BadConfiguration for an exact counter whose rank file is not
    on disk.
    """
    if name in bpe.NAMES:
        return bpe.exact(name)
    try:
        return _BUILT_IN[name]
    except KeyError:
        raise BadUsage(f"there is no token counter {name!r}", hint=f"one of: {', '.join(NAMES)}") from None
