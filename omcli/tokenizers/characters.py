"""Counters that divide characters: the estimates of the programs whose presets `om` knows, named for what they do.

They over-count English prose and under-count CJK text, digits and hexadecimal; they are here so that thresholds stated
in their units mean what they meant.
"""

from __future__ import annotations

from omcli.base.patterns import lazily
from omcli.tokenizers.counter import Counter, CountText

# Chinese characters and Hangul syllables; kana count as other characters, as they did upstream.
_CJK = lazily("[\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


def _up(characters_in_ten_tokens: int) -> CountText:
    return lambda text: -(-10 * len(text) // characters_in_ten_tokens)


def _four_or_two(text: str) -> int:
    cjk = 0 if text.isascii() else len(_CJK.findall(text))
    return (len(text) - cjk) // 4 + cjk // 2


CHARACTER_COUNTERS = (
    Counter(name="chars-2.5", count=_up(25), per_message=4, per_conversation=24),
    Counter(name="chars-3.2", count=_up(32)),
    Counter(name="chars-3.5-3", count=_up(35), count_tool=_up(30)),
    Counter(name="chars-4", count=_up(40)),
    Counter(name="chars-4-cjk-2", count=_four_or_two, per_message=4),
)
