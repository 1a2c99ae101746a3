"""Questions: whether a sentence asks, for work or for words, and whether it names what it asks for."""

from __future__ import annotations

from omcli.memory.patterns import lazily
from omcli.observers.rules.cues.matching import LEADS_IN, small, words

_ASKS = lazily(r"[?？؟][\"')\]”’»]*\s*$")
_ASKING_WORD = words(
    "(?:what|why|how)(?:'s| is| are| was| do| does| did| can| could| should| would| will| about| long| much| many|"
    " often)",
    "(?:is|are|was|were|does|did|has|had|should) (?:i|we|you|it|there|this|that|the|my|our|these|those|he|she|they)",
    at_start=True,
)  # fmt: skip
# A question without its mark; "do the same" is none.
_ASKING = words(
    f"{LEADS_IN}(?:like,? )?(?:"
    "(?:what|why|how|which|who|where|when)(?:'s| is| are| was| were| do| does| did| can| could| should| would|"
    " will)|(?:should|can|could|shall|does|did|is|are|was|were|will|would|has)"
    " (?:i|we|you|it|there|this|that|these|those|the|my|our|your|they|he|she)|(?:do|have) (?:i|we|you|they))",
    at_start=True,
)  # fmt: skip
_ASKS_FOR_WORK = lazily(
    r"^(?:and |so |but |also |ok(?:ay)?,? |now |then |hi,? |hey,? )*(?:can|could|would|will) (?:you|we)\b|"
    r"\bplease\b|"
    r"^[^,?]{1,40},(?: [^,?]{1,40},)? (?:can|could|would|will) (?:you|we)\b|"
    r"^i (?:need|want|would like|'?d like) you to\b",
)
# Asks for words, not for work: the answer is a text.
_ASKS_FOR_WORDS = lazily(
    r"\b(?:can|could|would|will) you (?:please |also |maybe |just |possibly )*"
    r"(?:help|assist|explain|tell|show|suggest|recommend|describe|compare|advise|clarify|elaborate|guide|walk|share|"
    r"give|provide|offer|review|check if|confirm|summarize|summarise|point|list|outline|break (?:it|this|that) down|"
    r"think|recall|remind|know|happen|have)\b|"
    r"\b(?:can|could|may) i (?:get|have|ask)\b|"
    r"\bany (?:advice|tips|suggestions|ideas|thoughts|recommendations)\b|"
    r"\b(?:what|how|which|why|where|when|who) (?:\w+ ){0,3}?(?:do|does|should|can|could|would|is|are|will|might)"
    r" (?:i|we|you)\b|"
    r"\bi(?:'d| would) (?:like|love|appreciate) (?:to (?:know|hear|see|get|understand)|some|your|any|an?)\b",
)
# Nothing is named: "can you help me with that?", "does that make sense?".
_ASKS_NOTHING = lazily(
    r"^(?:and |so |but |also )*(?:(?:can|could|would|will) you (?:please |also |maybe )*"
    r"(?:help|assist|explain|show|tell|guide|review|check|suggest|provide|give)(?: me| us)?(?: out)?"
    r"(?: (?:with|on|about|through|understand|figure))?(?: (?:out|how|some|any|a few|more))?"
    r"(?: (?:this|that|it|these|those|things?|here|feedback|guidance|advice|tips|suggestions|ideas|examples?|details|"
    r"information)){0,3}|(?:do you have )?any (?:advice|tips|suggestions|ideas|thoughts|recommendations)"
    r"(?: on (?:this|that))?|what do you (?:think|suggest|recommend)(?: (?:about|of) (?:this|that|it))?|"
    r"how (?:can|do|should|would|could) (?:i|we) (?:do|fix|handle|approach|improve|achieve|solve) (?:this|that|it)|"
    r"(?:does|is) (?:this|that|it) (?:make sense|right|correct|ok(?:ay)?|work(?: for you)?)|"
    r"is (?:this|that) (?:right|correct))\W*$",
)


def asks(sentence: str) -> bool:
    """Whether a sentence is a question."""
    return bool(_ASKS.search(sentence))


def is_question(sentence: str) -> bool:
    """Whether a sentence is a question, with or without its mark."""
    return asks(sentence) or bool(_ASKING.match(small(sentence)))


def asks_for_work(sentence: str) -> bool:
    """Whether a sentence asks for something to be done: "Can you split the module?"."""
    return bool(_ASKS_FOR_WORK.search(small(sentence)))


def asks_for_words(sentence: str) -> bool:
    """Whether a sentence asks for an answer that is a text: "Can you explain the cache?"."""
    return bool(_ASKS_FOR_WORDS.search(small(sentence)))


def asks_nothing(sentence: str) -> bool:
    """Whether a question names nothing that it asks for: "can you help me with that?"."""
    return bool(_ASKS_NOTHING.match(small(sentence)))


def begins_question(clause: str) -> bool:
    """Whether a clause after a comma begins a question of its own: "…, can you", "…, how do I"."""
    said = clause.lower()
    return bool(_ASKS_FOR_WORK.match(said) or _ASKS_FOR_WORDS.match(said) or _ASKING_WORD.match(said))
