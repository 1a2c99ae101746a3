"""What people say to each other: what will be asked for later, and what only reacts to the other."""

from __future__ import annotations

from omcli.memory.patterns import lazily
from omcli.observers.rules.cues.matching import small, straight, words
from omcli.observers.rules.cues.people import LASTING, user_type
from omcli.observers.rules.cues.statements import is_about_self, names_a_thing, tells_what_happened

_WHEN = words(
    "yesterday", "today", "tomorrow", "tonight",
    r"(?:last|next|this|past|every|each) (?:\w+ )?(?:night|week|weekend|month|year|spring|summer|fall|autumn|winter|"
    r"mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?",
    r"\w+ (?:days?|weeks?|months?|years?) ago", "(?:mon|tues|wednes|thurs|fri|satur|sun)days?",
    "(?:in|since|until|by|on|of) (?:january|february|march|april|may|june|july|august|september|october|november|"
    "december)",
)  # fmt: skip
# Goes on, or is to: "to always stay dry", "but never tried", not what a sentence begins with.
_ON_AND_ON = lazily(r"(?:[,;:.(] |\b(?:and|but|so|or|to|you|then) )(?:always|never) \w")
_OWN = words("i", "i'(?:m|ve|d|ll)", "my", "we", "we'(?:re|ve|d|ll)", "our", "me", "us", "mine")
_DID = lazily(
    r"\b(?:i|we|my \w+|our \w+)(?:'ve| have| has|'d| had)? (?:\w+ly |just |also |even |never |always |both |all )*"
    r"(?:\w{2,}ed|took|gave|came|saw|told|said|ran|began|kept|brought|wrote|won|lost|drove|flew|ate|drank|sang|swam|"
    r"taught|thought|felt|fell|grew|knew|sold|sent|slept|spoke|wore|broke|chose|caught|fought|forgot|hung|held|hurt|"
    r"led|lent|let|paid|rode|rose|shot|showed|stood|stuck|threw|woke|made|did|got|had|went|met|found|bought|built|"
    r"left|spent|heard|read|set|cut)\b",
)
_NAME_INSIDE = lazily(r"(?<=[a-z,] )(?!I\b|I')[A-Z][a-z]+")
_ABOUT_YOU = lazily(
    r"^(?:and |but |so |well,? |i (?:think|know|bet|'?m sure) (?:that )?)*(?:you(?:'re| are|'ll be| will be|'ve got|"
    r" have| look| sound| seem| must| deserve| guys| rock| inspire)|your \w+(?: \w+)?"
    r"(?:'s| is| are| means?| looks?| sounds?))\b",
)
_REACTS = words(
    "(?:that|this|it|those|they)(?:'s| is| was| sounds?| looks?| must(?: be| have been)?| seems?|'re| are)(?: like)?"
    "(?: been)?(?: really| so| very| super| pretty| such| quite| truly| absolutely)*(?: an?| the)?(?: real)?"
    " (?:great|awesome|amazing|cool|wonderful|fantastic|incredible|lovely|beautiful|nice|sweet|inspiring|impressive|"
    "exciting|fun|good|gorgeous|stunning|tough|hard|rough|sad|terrible|awful|interesting|perfect|neat|delicious|"
    "adorable|cute|important|special)",
    r"(?:i'?m |so |really |super )*(?:proud|happy|glad|excited|thrilled|sorry|pleased|grateful|thankful)(?: \w+)?"
    r" (?:of|for|to|that|you)(?= (?:you|hear|see|know|have you|be (?:here|part)))",
    "(?:looks?|sounds?|feels?) (?:like|so|really|great|good|amazing|awesome|delicious|fun)",
    "can'?t wait to (?:hear|see)", "(?:i )?(?:hope|wish)(?:ing)? (?:you|it|that|things|all)", "let me know",
    "good luck", "best of luck", "enjoy", r"keep \w+ing", "way to go",
    "i (?:totally |completely |really |100% )?(?:agree|get it|hear you|understand|know what you mean)",
    "i'?m (?:always )?here (?:for|if)",
    "(?:so|how|such an?|what an?) (?:true|great|awesome|amazing|cool|wonderful|nice|sweet|lovely|beautiful|exciting|"
    "inspiring)",
    "(?:i )?(?:really )?appreciate (?:you|your|it|the)", "thanks for", "thank you for", "love (?:that|it|your|the|how)",
    "don'?t (?:give up|worry|forget to)", "let'?s (?:keep|catch|chat|talk|do it)", "we got this", at_start=True,
)  # fmt: skip
_SHORT_REACTION = 50
"""Characters beyond which "It was awesome" goes on to say what was."""
_LONG_REACTION = 100
_OF_ONES_OWN = lazily(r"\d|\b(?:i|my|we|our)\b")


def told_importance(sentence: str) -> int:
    """0 to 10, between people: what somebody did or keeps to, and what has a name, a number or a day in it, is asked
    for later."""
    said = small(sentence)
    did = bool(_DID.search(said)) or tells_what_happened(said)
    named = names_a_thing(said) or bool(_NAME_INSIDE.search(straight(sentence)) or _WHEN.search(said))
    if is_about_self(sentence) or (did and named):
        return 7
    if did or named or _ON_AND_ON.search(said) or user_type(sentence) in LASTING:
        return 6
    return 5 if _OWN.search(said) else 3


def is_reaction(sentence: str) -> bool:
    """Whether a sentence only speaks of the one it is said to, or of what that one said: praise, wishes, sympathy."""
    said = small(sentence)
    reacts = _ABOUT_YOU.match(said) or (_REACTS.match(said) if len(said) <= _SHORT_REACTION else None)
    return bool(reacts and len(said) <= _LONG_REACTION and not _OF_ONES_OWN.search(said, reacts.end()))
