"""Token counters by name. Nothing is loaded until an exact counter is asked for."""

from __future__ import annotations

from omcli.base.errors import BadUsage
from omcli.base.patterns import lazily
from omcli.memory.tokens import TokenCounter
from omcli.tokenizers import bpe
from omcli.tokenizers.approximate import APPROXIMATE
from omcli.tokenizers.counter import Counter, CountText

# Chinese characters and Hangul syllables. Kana are counted like Latin, as in the original program.
_CJK = lazily("[\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


def _per_token(characters_in_ten_tokens: int) -> CountText:
    return lambda text: -(-10 * len(text) // characters_in_ten_tokens)


def _by_language(text: str) -> int:
    cjk = 0 if text.isascii() else len(_CJK.findall(text))
    return (len(text) - cjk) // 4 + cjk // 2


CHARACTER_COUNTERS = (
    Counter(name="chars-2.5", count=_per_token(25), per_message=4, per_conversation=24),
    Counter(name="chars-3.2", count=_per_token(32)),
    Counter(name="chars-3.5-3", count=_per_token(35), count_tool=_per_token(30)),
    Counter(name="chars-4", count=_per_token(40)),
    Counter(name="chars-4-cjk-2", count=_by_language, per_message=4),
)

_BUILT_IN = {built_in.name: built_in for built_in in (APPROXIMATE, *CHARACTER_COUNTERS)}
DEFAULT = APPROXIMATE.name
NAMES = (*_BUILT_IN, *bpe.NAMES)


def counter(name: str = DEFAULT) -> TokenCounter:
    """Return the counter of this name.

    Raises BadUsage for an unknown name, and BadConfiguration for an exact counter whose rank file is not on disk.
    """
    if name in bpe.NAMES:
        return bpe.counter(name)
    try:
        return _BUILT_IN[name]
    except KeyError:
        raise BadUsage(f"unknown token counter {name!r}", hint=f"one of: {', '.join(NAMES)}") from None
