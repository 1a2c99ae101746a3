"""What people state: who they are, what they did, what is another thing now, and what they want."""

from __future__ import annotations

from omcli.memory.patterns import lazily
from omcli.observers.rules.cues.matching import LEADS_IN, small, straight

# Who somebody is, and what they work with.
_ABOUT_SELF = lazily(
    r"\b(?i:my name is|i(?:'m| am) (?:a|an|the|from|based|called|working (?:at|for|as)|married|\d+)|"
    r"i (?:work|live|moved|was born|study|teach|own|run)|my (?:wife|husband|partner|son|daughter|mother|father|mom|"
    r"dad|brother|sister|boss|manager|team|company|job|email|address|birthday|phone|dog|cat)"
    r"(?:'s| is| are| has| was| works?| lives?)|we (?:use|run|live|moved|are on)|"
    r"our \w+ (?:is|are|uses?|runs?|has))\b|"
    r"\b[iI]'?m [A-Z][a-z]+\b(?=[,.]| and)",
)
_HAPPENED = lazily(
    r"\b(?:i|we)(?:'ve| have|'d| had)? (?:just |already |recently |finally |also )?"
    r"(?:went|had|have|was|were|need|use|been|bought|started|completed|finished|met|got|made|did|added|set|created|"
    r"built|found|received|spent|paid|signed|booked|scheduled|planned|achieved|reached|hit|implemented|tested|"
    r"reviewed|attended|learned|read|wrote|submitted|earned|saved|hired|joined|left)\b|"
    r"\bmy \w+ (?:is|are|was|were|has|works?)\b",
)
# A state that is another one now. Only what came about: "want to reduce it to 5" changes nothing yet.
_CHANGED = lazily(
    r"\b(?:no longer|not any ?more|used to be|as of (?:now|today|this)|has since|"
    r"instead of the (?:old|original|previous)|(?:is|are|am|'s|'re|'m|has|have|had|was|were) now|"
    r"now (?:is|are|at|have|\w+s|set|expected|due|\d)|new (?:\w+ ){1,4}?(?:of|is|at) \W?\d|"
    r"(?:increased|decreased|reduced|improved|dropped|risen|rose|grown|grew|fell|fallen|raised|lowered|extended|moved|"
    r"postponed|pushed(?: back| out)?|rescheduled|delayed|brought forward|changed|switched|updated|upgraded|"
    r"downgraded|renamed|cut|shortened|expanded|doubled|adjusted|bumped|revised) (?:\w+ ){0,4}?(?:to|from|by|until)|"
    r"(?:moving|rescheduling|postponing|extending|pushing|changing) (?:\w+ ){1,8}?(?:to|until) \w*\d?)\b",
)
# Begins as a statement does; what begins otherwise tells an agent what to do: "Put it in the handler".
_TELLS = lazily(
    r"^(?:(?:so|and|but|or|now|ok(?:ay)?|well|also|hi|hey|hmm+|alright|yes|yeah|yep|no|oh|ah|then|sure|right|thanks)"
    r"[,.!]* )*(?:(?:i|i'm|i've|i'd|i'll|we|we're|we've|my|our|the|there|it|it's|this|that|that's|he|she|they|these|"
    r"those|a|an|since|as|given|because|when|if|after|while|however|although|though|like|which|where|who|for example|"
    r"in|on|for|with|from|to|at|by|during|just let|let me|looking|would|here|[a-z]\w+ (?:is|are|was|were|has|have))\b|"
    r"[^:.?!]{1,40}: ?\W*\w+)",
)
# A thing that has a name or an article, and a verb that says how it is: "The port of the API is 8080".
_ASSERTS = lazily(
    r"^(?:(?i:the|our|my|its|their|this|these)|[A-Z][\w-]+)(?: [\w/.'`-]+){0,6}?"
    r" (?:is|are|was|were|has|have|had|owns|lives|happens?|belongs)\b",
)
_WANTS = lazily(
    r"\b(?:i|we)(?:'d| would| really| also| just| now)* (?:want|need|like|wish|hope|plan|aim|intend|have to)\b|"
    r"\b(?:trying|looking|hoping|planning|need|needs|want|wants|going) to\b|"
    r"\b(?:should|must|could)\b|"
    r"\bfeel like\b",
)
_WISHES = lazily(
    rf"^{LEADS_IN}(?:i (?:think|guess|feel(?: like)?) )?(?:i|we)(?: (?:also|really|still|just|actually|do|will))*"
    r"(?:'d like| would like| want| need| wish)\b",
)
# Tells somebody what to do, whatever its clauses tell: "Summarize what we changed". With "and" a sentence goes on.
_ORDERS = lazily(
    rf"^(?!and |but |or ){LEADS_IN}(?:add|apply|build|change|check|clean|close|commit|compare|convert|create|"
    r"delete|deploy|describe|do (?:the|this|that|it)|document|drop|ensure|explain|extract|find|finish|fix|implement|"
    r"include|install|investigate|list|look|make|merge|move|open|propose|push|rebase|refactor|remove|rename|replace|"
    r"rerun|restore|revert|review|rewrite|run|show|split|start|summari[sz]e|test|try|update|upgrade|use|verify|write)"
    r"\b(?! (?:is|are|was|were|has|have|had)\b)",
)
_NAMES_A_THING = lazily(r"\d|[`/_@#]|[\"“]\w")


def is_about_self(sentence: str) -> bool:
    """Whether a sentence says who somebody is, or what they work with: "Our server runs on port 8443"."""
    return bool(_ABOUT_SELF.search(straight(sentence)))


def tells_what_happened(sentence: str) -> bool:
    """Whether a sentence says what somebody did or has: "I finished 12 of the chapters"."""
    return bool(_HAPPENED.search(small(sentence)))


def tells_a_change(sentence: str) -> bool:
    """Whether a sentence says that something is another way now: "The deadline moved to 4 May"."""
    return bool(_CHANGED.search(small(sentence)))


def begins_as_statement(sentence: str) -> bool:
    """Whether a sentence begins as a statement does; what begins otherwise tells an agent what to do."""
    return bool(_TELLS.match(small(sentence)))


def states(sentence: str) -> bool:
    """Whether a sentence that no cue tells apart states something, rather than asking or wishing for it."""
    return begins_as_statement(sentence) and not _WANTS.search(small(sentence))


def asserts(sentence: str) -> bool:
    """Whether a sentence that no cue tells apart says how something is, and orders or wishes for nothing."""
    return bool(_ASSERTS.match(straight(sentence))) and not (orders(sentence) or _WANTS.search(small(sentence)))


def wishes(sentence: str) -> bool:
    """Whether a sentence says what somebody wants or needs: said to an agent at work, it asks for that."""
    return bool(_WISHES.match(small(sentence)))


def orders(sentence: str) -> bool:
    """Whether a sentence tells somebody what to do: "Summarize what we changed"."""
    return bool(_ORDERS.match(small(sentence)))


def names_a_thing(sentence: str) -> bool:
    """Whether a sentence has a number, a name as code has them, or something quoted in it."""
    return bool(_NAMES_A_THING.search(sentence))
