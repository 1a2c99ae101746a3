"""Few words that are all of a reply or a sentence: a bare yes, a bare no, a greeting, thanks."""

from __future__ import annotations

from omcli.memory.patterns import lazily
from omcli.observers.rules import languages
from omcli.observers.rules.cues.matching import small, words
from omcli.observers.rules.cues.statements import names_a_thing

_AGREES = lazily(
    r"^(?:yes|yep|yeah|yup|y|ok(?:ay)?|sure|go(?: ahead| for it)?|(?:let'?s )?do (?:it|that|so|this)|sounds? good|"
    r"lgtm|looks? good|perfect|great|correct|right|exactly|agreed|approved?|please do|proceed|continue|carry on|"
    rf"ship it|makes sense|fine|please|absolutely|of course|definitely|{languages.YES})"
    r"(?:[\s,.!]+(?:yes|please|thanks?|thank you|do it|do that|go ahead|go|sure|continue|proceed|that'?s fine|works|"
    r"for me))*[\s.!。！]*$",
)
_DECLINES = lazily(
    rf"^(?:no|nope|nah|not now|don'?t|skip (?:it|that)|leave it|never ?mind|no need|rather not|{languages.NO})"
    r"(?:[\s.,!。！]*(?:thanks?|thank you)[\s.!。！]*|[\s.,!。！]*)$",
)
_PLEASANT = words(
    "hi", "hello", "hey", "thanks?", "thank you", "thx", "cheers",
    "good (?:morning|evening|afternoon|night|job|work|luck|to (?:see|hear))", "nice", "wow", "cool", "great", "awesome",
    "perfect", "amazing", "sounds? (?:great|good|fun|awesome|amazing)",
    r"that(?:'s| is) (?:great|awesome|amazing|cool|wonderful|so \w+)", "bye", "see you", "take care",
    "you(?:'re| are) (?:welcome|right)", "no (?:problem|worries|doubt)", "how (?:are|have) you", "what'?s (?:up|new)",
    r"congrat\w*", "glad", r"haha\w*", "lol", "have a (?:good|great|nice)", "absolutely", "definitely", "of course",
    "exactly", "certainly", "i'?d be happy to", "great question", "good (?:question|point|call|catch|idea|thinking)",
    "totally", "long time no", "keep (?:it|up)", "sure thing", "you(?:'ve)? got this",
    "talk (?:to you )?(?:soon|later)", "same here", "me too",
    r"(?:(?:yes|yeah|ok(?:ay)?|sure|oh|ah),? )?(?:that|this|it|everything)(?: \w+ly)?"
    r" (?:helps?|works|makes sense|clears|looks good)",
    "you (?:raise|make) a (?:good|fair|great)", "(?:ah|oh|ok(?:ay)?|well),? (?:thanks?|great|nice|cool|i see|got it)",
    "appreciate (?:it|that|your)", "sorry to hear", at_start=True,
)  # fmt: skip
_BARE = lazily(
    r"^\W?(?:(?:all )?(?:done|set|finished|sure|ok(?:ay)?|alright|understood|got it|noted|found it|yo|sup|pause)"
    rf"|{languages.COURTESY})\W*$",
)


def agrees(text: str) -> bool:
    """Whether a reply is a bare yes."""
    return bool(_AGREES.match(text.lower()))


def declines(text: str) -> bool:
    """Whether a reply is a bare no."""
    return bool(_DECLINES.match(text.lower()))


def is_pleasantry(sentence: str) -> bool:
    """Whether a sentence says nothing: a greeting, thanks, applause - short, and naming no number or thing."""
    if _BARE.match(sentence.lower()):
        return True
    said = small(sentence)
    return len(said) <= 80 and bool(_PLEASANT.match(said)) and not names_a_thing(said)
