"""What a sentence is: words that tell decisions, instructions, corrections, findings, results and blockers apart.

The cues are English; text in other languages goes through unclassified, as a request or as what the agent said.
"""

from __future__ import annotations

import re

from omcli.memory.observation import Type

# ---- what people say

_STANDING = re.compile(
    r"(?<!\bi )(?<!\bit )(?<!\bthat )(?<!\bwe )(?<!'ve )\balways\b|\b(?:from now on|going forward|"
    r"in (?:the )?future|as a rule|"
    r"(?:every|each|any) ?time you|whenever you|remember (?:to|that)|until (?:i|we) (?:say|tell)|"
    r"don'?t ever|do not ever)\b|"
    r"(?:^|[,;:.] ?|\band |\bor |\bplease |\bshould |\bmust )never (?!saw|had|got|been|was|were|did|mind|seen)\w",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(
    r"^(?:and |but |also |please |so )*(?:do not|don'?t|never|avoid|no need to|stop|make sure|ensure|only|must|"
    r"you must(?: not)?|"
    r"you should(?: not|n'?t)?|it (?:must|should|needs to))\b|\bmust (?:not |never )?(?:be|have|use|stay)\b",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"\b(?:i (?:really |usually |generally |also |still )?(?:prefer|like|love|enjoy|hate|dislike|"
    r"don'?t (?:really )?like|can'?t stand)"
    r"|i(?:'d| would) (?:rather|prefer|like it (?:if|better))|my (?:preferred|favou?rite)|i'?m not a fan of)\b",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^(?:no\b(?! (?:problem|worries|need|idea))|nope\b|wrong\b|wait\b|stop\b|hmm,? no|undo\b|revert\b|actually\b|"
    r"that(?:'s| is| was)"
    r" (?:not|wrong|incorrect)|this (?:is|was) (?:not|wrong)|it(?:'s| is) (?:not|wrong|still)|you (?:forgot|"
    r"missed|broke|didn'?t|"
    r"did not|should ?n'?t|should not|should have|removed|misunderst)|why (?:did|are|is|do|don'?t) you|i (?:said|"
    r"meant|did ?n'?t (?:ask|mean|"
    r"want))|not what i|please (?:undo|revert))",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:let'?s (?:use|go|keep|drop|do|not|make|stick|store|put|call|remove|add|have|just)|we(?:'ll| will|"
    r"'re going to) (?:use|go|"
    r"keep|drop|need|do|make|not|switch|stick)|(?:go|going|went) with|decided|use \S+ instead|agreed|"
    r"sounds good|option \w\b|i(?:'ll| will) (?:go|take|use|keep)|switch(?:ed|ing)? to|we(?:'re|"
    r" are) (?:using|dropping|keeping))\b",
    re.IGNORECASE,
)
_ABOUT_SELF = re.compile(
    r"\b(?:my name is|i(?:'m| am) (?:a|an|the|from|based|called|working|\w+ years)|i (?:work|live|moved|started|"
    r"bought|got|have|had|"
    r"went|was|use|own|study|teach|run|need)|my \w+ (?:is|are|was|has|works?|lives?)|we (?:use|have|run|live|went|"
    r"moved|got|are on)|"
    r"our \w+ (?:is|are|uses?|runs?))\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[?？]\s*[\"')\]]*$")
_ASKS_FOR_WORK = re.compile(
    r"^(?:and |so |ok(?:ay)?,? |now |then )*(?:can|could|would|will) (?:you|we)\b|\bplease\b", re.IGNORECASE
)

_AGREES = re.compile(
    r"^(?:yes|yep|yeah|yup|y|ok(?:ay)?|sure|go(?: ahead| for it)?|do (?:it|that|so|this)|sounds? good|lgtm|"
    r"looks? good|perfect|great|correct|"
    r"right|exactly|agreed|approved?|please do|proceed|continue|carry on|ship it|makes sense|fine|ja|oui|si|sí|да|"
    r"好|好的|はい|네)"
    r"(?:[\s,.!]+(?:yes|please|thanks?|thank you|do it|do that|go ahead|go|sure|continue|proceed|that'?s fine|"
    r"works|for me))*[\s.!]*$",
    re.IGNORECASE,
)
_DECLINES = re.compile(
    r"^(?:no|nope|nah|not now|don'?t|skip (?:it|that)|leave it|never ?mind|nein|non|нет|不|いいえ|"
    r"아니요)[\s.,!]*(?:thanks?|thank you)?[\s.!]*$",
    re.IGNORECASE,
)
_PLEASANT = re.compile(
    r"^(?:hi|hello|hey|thanks?|thank you|thx|cheers|good (?:morning|evening|afternoon|night|job|work|to (?:see|"
    r"hear))|nice|wow|cool|great|"
    r"awesome|perfect|amazing|sounds (?:great|good|fun|awesome|amazing)|that(?:'s| is) (?:great|awesome|amazing|"
    r"cool|wonderful|so \w+)|bye|"
    r"see you|take care|you(?:'re| are) (?:welcome|right)|no (?:problem|worries)|how (?:are|have) you|what'?s up|"
    r"congrat\w*|glad|haha\w*|lol|"
    r"have a (?:good|great|nice)|absolutely|definitely|of course|exactly|certainly|i'?d be happy to|"
    r"great question|good (?:question|point|call|catch|idea|thinking))\b",
    re.IGNORECASE,
)


def _straight(sentence: str) -> str:
    """With straight apostrophes: the cues are written with them."""
    return sentence.replace("\u2019", "'")


_BARE = re.compile(
    r"^(?:all )?(?:done|set|finished|understood|got it|noted|found it|yo|sup|hola|hallo|ciao|pause|谢谢|"
    r"多谢|你好|ありがとう|감사합니다)\W*$",
    re.IGNORECASE,
)


_STANDS_ALONE = frozenset({Type.PREFERENCE, Type.DECISION})


def user_type(sentence: str) -> Type | None:
    """What a sentence of a person is, or None where nothing tells: then it is part of a request."""
    sentence = _straight(sentence)
    asks = bool(_ASKS.search(sentence)) and not _ASKS_FOR_WORK.search(sentence)
    if _STANDING.search(sentence) and not asks:
        return Type.INSTRUCTION
    if _PREFERENCE.search(sentence) and not asks:
        return Type.PREFERENCE
    if _CORRECTION.match(sentence):
        return Type.CORRECTION
    if asks:
        return Type.QUESTION
    if _CONSTRAINT.search(sentence):
        return Type.INSTRUCTION
    if _DECISION.search(sentence):
        return Type.DECISION
    if _ABOUT_SELF.search(sentence):
        return Type.FACT
    return None


def stands_alone(sentence: str) -> bool:
    """Whether a sentence of a person holds beyond the request it stands in: a rule, a preference, a decision."""
    kind = user_type(sentence)
    return kind in _STANDS_ALONE or (kind is Type.INSTRUCTION and bool(_STANDING.search(_straight(sentence))))


def agrees(text: str) -> bool:
    """Whether a reply is a bare yes."""
    return bool(_AGREES.match(text))


def declines(text: str) -> bool:
    """Whether a reply is a bare no."""
    return bool(_DECLINES.match(text))


def asks(sentence: str) -> bool:
    """Whether a sentence is a question."""
    return bool(_ASKS.search(sentence))


def is_pleasantry(sentence: str) -> bool:
    """Whether a sentence says nothing: a greeting, thanks, applause - short, and naming no number or thing."""
    if _BARE.match(sentence):
        return True
    return len(sentence) <= 80 and bool(_PLEASANT.match(sentence)) and not re.search(r"\d|[`/_@#]", sentence)


# ---- what agents say

_FINDING = re.compile(
    r"\b(?:root cause|the (?:real |actual |main |underlying )?(?:issue|problem|bug|cause|culprit|reason|"
    r"difference|catch) (?:is|was|here)|turns out|"
    r"caused by|due to|i (?:found|discovered|noticed|confirmed)|found (?:it|that|the (?:issue|bug|problem|cause))|"
    r"this (?:means|explains|is because)|"
    r"that'?s (?:why|because)|never (?:called|set|used)|doesn'?t (?:exist|handle|support|actually)|"
    r"already (?:exists?|has|handled)|conflicts? with)\b",
    re.IGNORECASE,
)
_AGENT_DECISION = re.compile(
    r"\b(?:decided (?:to|on|against)|we(?:'ll| will) (?:use|go with|keep|drop)|going with|i(?:'ll|"
    r" will) (?:go with|use|keep|stick)|chose|chosen|opted|"
    r"settled on|recommend(?:ation|ed)?|trade-?off|out of scope|(?:we|i) (?:deferred|rejected)|"
    r"won'?t (?:be|do|add|support)|"
    r"i'?d (?:go with|recommend|suggest))\b",
    re.IGNORECASE,
)
_RESULT = re.compile(
    r"\b(?:done|fixed|implemented|added|created|updated|removed|deleted|refactored|renamed|migrated|committed|"
    r"pushed|merged|released|"
    r"deployed|published|rewrote|replaced|extracted|moved|(?:tests?|checks?|lint|build|ci)\b.{0,30}\b(?:pass(?:es|"
    r"ed|ing)?|green|clean|succeed(?:s|ed)?)|"
    r"now (?:works|supports|uses|shows|returns|handles|reads|has|is)|successful(?:ly)?|complete[d]?|resolved|"
    r"verified|works)\b",
    re.IGNORECASE,
)
_BLOCKER = re.compile(
    r"\b(?:blocked (?:by|on)|i (?:can'?t|cannot|couldn'?t|am unable|was unable)|unable to|not possible|(?:still|"
    r"keeps?) fail(?:s|ing)?|fails? with|"
    r"permission denied|requires? (?:you|your|access|manual|approval|credentials)|needs? (?:your|you to|access|"
    r"credentials|approval)|"
    r"waiting (?:for|on) (?:you|your|approval|access|review|credentials)|stuck|not (?:working|"
    r"available|installed|configured)|out of (?:memory|disk|quota)|"
    r"rate.limit)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"\b(?:underway|still|in progress|so far|keep (?:monitoring|watching)|is running|continuing)\b", re.IGNORECASE
)
_NEXT = re.compile(
    r"^(?:next(?: steps?)?|to ?do|remaining|follow-?ups?|still (?:to do|open|missing)|open (?:questions?|"
    r"items?|issues?))\b",
    re.IGNORECASE,
)
_NARRATES = re.compile(
    r"^(?:now,? |then |next,? |first,? |ok(?:ay)?,? |good[,.] |great[,.!] |perfect[,.!] |alright,? |"
    r"so )*(?:let me|let'?s|i(?:'ll| will|'m (?:now |also |just |still )?\w+ing| need to|"
    r" want to| should|'m now|'m also|'m just)|now (?:i|let|add|update|run|fix|create)|checking|looking|running|"
    r"reading|searching|updating|"
    r"adding|creating|starting|using the)\b",
    re.IGNORECASE,
)
_OFFERS = re.compile(
    r"^(?:would you like|do you want|want me to|shall i|should i|let me know|feel free|if you(?:'d like| want|"
    r" need| have)|is there anything|"
    r"anything else|happy to|i can also|ready (?:to|for|when)|how (?:can|may) i (?:help|assist))\b",
    re.IGNORECASE,
)


def agent_type(sentence: str) -> Type | None:
    """What a sentence of an agent is, or None where it only talks."""
    sentence = _straight(sentence)
    if _OFFERS.match(sentence) or _NARRATES.match(sentence):
        return None
    if _ASKS.search(sentence):
        return Type.QUESTION
    if _BLOCKER.search(sentence):
        return Type.BLOCKER
    if _FINDING.search(sentence):
        return Type.FACT
    if _AGENT_DECISION.search(sentence) and not _GOES_ON.search(sentence):
        return Type.DECISION
    if _RESULT.search(sentence) and not _GOES_ON.search(sentence):
        return Type.OUTCOME
    if _NEXT.match(sentence):
        return Type.PLAN
    return None


def is_talk(sentence: str) -> bool:
    """Whether a sentence of an agent only announces, offers or pleases."""
    sentence = _straight(sentence)
    return bool(_NARRATES.match(sentence) or _OFFERS.match(sentence)) or is_pleasantry(sentence)


def offers(sentence: str) -> bool:
    """Whether a question only offers to go on."""
    return bool(_OFFERS.match(sentence))


def opens_list_of_next(sentence: str) -> bool:
    """Whether a heading opens what is left to do."""
    return bool(_NEXT.match(sentence))
