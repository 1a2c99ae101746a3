"""Sentences that need the one beside them: they lean on what was said, or point to what comes next."""

from __future__ import annotations

from omcli.memory.patterns import lazily
from omcli.observers.rules.cues.matching import small, words

_LEANS = words(
    "it(?:'s|'ll|'d)?", "this", "that(?:'s)?", "they(?:'re|'ve|'ll)?", "these", "those", "he(?:'s)?", "she(?:'s)?",
    "because", "since", "so", "which", "otherwise", "the (?:reason|other|others|same|latter|former)", "and", "but",
    "also", "or", "instead", "rather", "plus", "not", "too", "there(?:'s)?", "here", "both", "for example", r"e\.g\.",
    r"i\.e\.", "however", "therefore", "weil", "denn", "car", "parce que", "porque", "perché", "perche", "потому что",
    "это", at_start=True,
)  # fmt: skip
_LEANS_UNSPACED = lazily(r"^(?:因为|因為|所以|这|這|它|なぜなら|それ|これ|そのため|왜냐하면|그래서|그것)")
_POINTS = lazily(
    r"^(?:(?:and|so|now|then|but|maybe|okay|ok|sure|yes),? )*(?:here(?:'s|'re| is| are)|this is|these are|below is|"
    r"below are|like|something like|for example|as follows|the following|e\.g\.|"
    r"i(?:'ve| have) (?:got|written|tried)?(?: the)?)[^.?!:]{0,90}:$",
)


def leans(sentence: str) -> bool:
    """Whether a sentence needs the one before it to make sense: it gives its reason, or begins with a pronoun."""
    said = small(sentence)
    return bool(_LEANS.match(said) or _LEANS_UNSPACED.match(said))


def points(sentence: str) -> bool:
    """Whether a sentence only points to what comes next, as code that is left out: "Here's what I have so far:"."""
    return bool(_POINTS.match(small(sentence)))
