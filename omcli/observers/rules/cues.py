"""What a sentence is: words that tell decisions, instructions, corrections, findings, results and blockers apart.

These cues are English; a few of other languages stand in `languages`. What no cue tells apart is kept all the same, as
a request or as what the agent said.
"""

from __future__ import annotations

import re
from functools import lru_cache

from omcli.memory.observation import Type
from omcli.memory.patterns import lazily
from omcli.observers.rules import languages


def _words(*alternatives: str, at_start: bool = False) -> re.Pattern[str]:
    """Any of the alternatives as whole words; `at_start` of the sentence only."""
    begin = "^" if at_start else r"\b"
    return lazily(rf"{begin}(?:{'|'.join(alternatives)})\b", re.IGNORECASE)


_REMEMBERED = 512
"""Sentences of which is remembered what they are: each is looked at a few times while its text is."""

# ---- what people say

# "always" as a rule, not what somebody always did or what always happens.
_ALWAYS = lazily(
    r"(?:^|[,;:.(] ?|\b(?:and|but|so|or|please|should|must|to|will|you|then|do) )always (?!had|has|been|was|were|"
    r"wanted|loved)\w",
    re.IGNORECASE,
)
_NEVER = lazily(
    r"(?:^|[,;:.(] ?|\b(?:and|but|so|or|please|should|must|to|you|then) )never (?!saw|had|got|been|was|were|did|mind|"
    r"seen|"
    r"knew|thought|heard|really|quite)\w",
    re.IGNORECASE,
)
_RULE = r"(?:include|use|provide|give|format|mention|explain|list|avoid|add|show|keep|make sure|ensure|be sure)"
_OCCASION = (
    r"(?:i (?:ask|mention|request|talk|say)|you (?:answer|respond|reply|write|give|provide|explain|suggest|discuss))"
)
_STANDING = _words(
    "from now on", "from here on", "(?:going|moving) forward", r"in (?:the )?future", "as a rule", "by default,",
    r"(?:every|each|any) ?time (?:you|i (?:ask|mention|request))", rf"whenever (?:you|{_OCCASION})",
    "remember (?:to|that)", "until (?:i|we) (?:say|tell)", "don'?t ever", "do not ever",
    rf"(?:when|if) {_OCCASION}\b[^?]{{0,200}}\b{_RULE}",
    rf"{_RULE}\b[^?]{{1,200}}\b(?:when|if|each time) {_OCCASION}",
)  # fmt: skip
_CONSTRAINT = lazily(
    r"^(?:and |but |also |please |so )*(?:do not|don'?t|never|avoid|no need to|make sure|ensure|be sure|only|must|"
    r"you must(?: not)?|you should(?: not|n'?t)?|it (?:must|should|needs to))\b|"
    r"\bmust (?:not |never )?(?:be|have|use|stay)\b|"
    r"[,;] (?:so |and |but )?no need (?:to|for)\b",
    re.IGNORECASE,
)
_PREFERENCE = lazily(
    r"\b(?:i(?: really| usually| generally| also| still| personally| much| definitely| do|'d| would)* (?:prefer|love|"
    r"enjoy|hate|"
    r"dislike|favou?r)(?! to (?:hear|know|see|get)\b)"
    r"|i(?: really| usually| generally| also| still)* (?:like|don'?t (?:really )?like|can'?t stand)"
    r"|i(?:'d| would)(?: much)? (?:rather|like it (?:if|better)|like (?:you|us|everything|all|my|our)\b)"
    r"|i'?m (?:not a|a (?:big|huge)) fan of|i (?:tend|lean) (?:to|toward)|works? (?:best|better) for me)\b"
    r"|\bmy (?:preferred|preference|favou?rite)|^prefers?\b",
    re.IGNORECASE,
)
_CORRECTION = _words(
    "no(?! (?:problem|worries|need|idea|longer|doubt|one|matter|more))", "nope", "wrong", "wait", "stop", "hmm,? no",
    "undo", "revert", "actually", "that(?:'s| is| was) (?:not|wrong|incorrect)", "this (?:is|was) (?:not|wrong)",
    "it(?:'s| is) (?:not|wrong|still)",
    "you (?:forgot|missed|broke|didn'?t|did not|should ?n'?t|should not|should have|"
    "removed|misunderst)", "why (?:did|are|is|do|don'?t) you", "i (?:said|meant|did ?n'?t (?:ask|mean|want))",
    "not what i",
    "please (?:undo|revert)",
    at_start=True,
)  # fmt: skip
_WRONG = lazily(
    r"\b(?:is|are|was|were)(?: not|n'?t) (?:correct|right|true|accurate|what i)\b|^[^,;:]{1,60} (?:is|are) (?:wrong|"
    r"incorrect)\b",
    re.IGNORECASE,
)
_DECISION = lazily(
    r"\b(?:let'?s (?:use|go (?:with|for)|keep|drop|do|not|make(?! sure)|stick|store|put|call|remove|just)|"
    r"we(?:'ll| will|'re going to) (?:use|go|keep|drop|need|do|make|not|switch|stick)|"
    r"(?:will |'ll )?go with|going with|went with|decided|use \S+ instead|agreed|sounds good|option \w\b|"
    r"i(?:'ll| will) (?:go (?:with|for)|take (?:the|option)|use|stick|keep (?:the|it|using|this|that|my|our))|(?:i|"
    r"we)(?:'ve|'re|'m| have| are| am)? switch(?:ed|ing) to|we(?:'re|"
    r" are) (?:using|dropping|keeping)|"
    r"(?:i|we)(?:'ve| have)? (?:chosen|chose|opted|settled|picked|ruled out|rejected|agreed|committed))\b",
    re.IGNORECASE,
)
# Weighed, not decided: "I'm thinking of using X", "maybe a cache".
_TENTATIVE = lazily(
    r"^(?:so |and |but |or )*(?:maybe|perhaps|possibly|what if|i wonder)\b|"
    r"\b(?:(?:i'?m|we'?re|i am|we are|i was|been) (?:\w+ )?(?:thinking (?:of|about)|considering|debating|leaning|torn)|"
    r"(?:i|we) (?:might|may)|not (?:yet )?decided|(?:haven'?t|never) decided|should (?:i|we)|"
    r"(?:not (?:so )?sure|unsure|do(?:n'?t| not) (?:know|remember|recall)|doubt)"
    r"(?: if| whether| that)? (?:i|we|they) (?:ever |really )?(?:decided|agreed|settled|chose|picked))\b",
    re.IGNORECASE,
)
_LEADS_IN = (
    r"(?:(?:so+|and|but|or|now|ok(?:ay)?|well|also|alright|right|then|next|first|finally|lastly|please|just|hmm+|yes|"
    r"if so|oh|wait)[,.!]* )*"
)
_WISHES = lazily(
    rf"^{_LEADS_IN}(?:i (?:think|guess|feel(?: like)?) )?(?:i|we)(?: (?:also|really|still|just|actually|do|will))*"
    r"(?:'d like| would like| want| need| wish)\b",
    re.IGNORECASE,
)
# Tells somebody what to do, whatever its clauses tell: "Summarize what we changed". With "and" a sentence goes on.
_ORDERS = lazily(
    rf"^(?!and |but |or ){_LEADS_IN}(?:add|apply|build|change|check|clean|close|commit|compare|convert|create|"
    r"delete|deploy|describe|"
    r"do (?:the|this|that|it)|document|drop|ensure|explain|extract|find|finish|fix|implement|include|"
    r"install|investigate|list|look|make|merge|"
    r"move|open|propose|push|rebase|refactor|remove|rename|replace|rerun|restore|revert|review|rewrite|run|show|split|"
    r"start|summari[sz]e|test|try|update|upgrade|use|verify|write)\b(?! (?:is|are|was|were|has|have|had)\b)",
    re.IGNORECASE,
)
# Who somebody is, and what they work with.
_ABOUT_SELF = lazily(
    r"\b(?i:my name is|i(?:'m| am) (?:a|an|the|from|based|called|working (?:at|for|as)|married|\d+)|"
    r"i (?:work|live|moved|was born|study|teach|own|run)|my (?:wife|husband|partner|son|daughter|mother|father|mom|dad|"
    r"brother|sister|boss|manager|team|company|job|email|address|birthday|phone|dog|cat)(?:'s| is| are| has| was|"
    r" works?| "
    r"lives?)|we (?:use|run|live|moved|are on)|our \w+ (?:is|are|uses?|runs?|has))\b|\b[iI]'?m [A-Z][a-z]+\b(?=[,.]|"
    r" and)"
)
_HAPPENED = lazily(
    r"\b(?:i|we)(?:'ve| have|'d| had)? (?:just |already |recently |finally |also )?(?:went|had|have|was|were|need|use|"
    r"been|bought|started|completed|finished|met|got|made|did|added|set|created|built|found|received|spent|paid|signed|"
    r"booked|scheduled|planned|achieved|reached|hit|implemented|tested|reviewed|attended|learned|read|wrote|submitted|"
    r"earned|saved|hired|joined|left)\b|\bmy \w+ (?:is|are|was|were|has|works?)\b",
    re.IGNORECASE,
)
# A state that is another one now. Only what came about: "want to reduce it to 5" changes nothing yet.
_CHANGED = lazily(
    r"\b(?:no longer|not any ?more|used to be|as of (?:now|today|this)|has since|"
    r"instead of the (?:old|original|previous)|"
    r"(?:is|are|am|'s|'re|'m|has|have|had|was|were) now|"
    r"now (?:is|are|at|have|\w+s|set|expected|due|\d)|"
    r"new (?:\w+ ){1,4}?(?:of|is|at) \W?\d|"
    r"(?:increased|decreased|reduced|improved|dropped|risen|rose|grown|grew|fell|fallen|raised|lowered|extended|moved|"
    r"postponed|pushed(?: back| out)?|rescheduled|delayed|brought forward|changed|switched|updated|upgraded|downgraded|"
    r"renamed|cut|shortened|expanded|doubled|adjusted|bumped|revised) (?:\w+ ){0,4}?(?:to|from|by|until)|"
    r"(?:moving|rescheduling|postponing|extending|pushing|changing) (?:\w+ ){1,8}?(?:to|until) \w*\d?)\b",
    re.IGNORECASE,
)
# Begins as a statement does; what begins otherwise tells an agent what to do: "Put it in the handler".
_TELLS = lazily(
    r"^(?:(?:so|and|but|or|now|ok(?:ay)?|well|also|hi|hey|hmm+|alright|yes|yeah|yep|no|oh|ah|then|sure|right|"
    r"thanks)[,.!]* )*"
    r"(?:(?:i|i'm|i've|i'd|i'll|we|we're|we've|my|our|the|there|it|it's|this|that|that's|he|she|they|these|those|a|an|"
    r"since|"
    r"as|given|because|when|if|after|while|however|although|though|like|which|where|who|for example|in|on|for|with|"
    r"from|to|"
    r"at|by|during|just let|let me|looking|would|here|[A-Z]\w+ (?:is|are|was|were|has|have))\b|[^:.?!]{1,40}: ?\W*\w+)",
    re.IGNORECASE,
)
_WANTS = lazily(
    r"\b(?:i|we)(?:'d| would| really| also| just| now)* (?:want|need|like|wish|hope|plan|aim|intend|have to)\b|"
    r"\b(?:trying|looking|hoping|planning|need|needs|want|wants|going) to\b|\b(?:should|must|could)\b|\bfeel like\b",
    re.IGNORECASE,
)
# A thing that has a name or an article, and a verb that says how it is: "The port of the API is 8080".
_ASSERTS = lazily(
    r"^(?:(?i:the|our|my|its|their|this|these)|[A-Z][\w-]+)(?: [\w/.'`-]+){0,6}? "
    r"(?:is|are|was|were|has|have|had|owns|lives|happens?|belongs)\b"
)
_ASKS = lazily(r"[?？؟][\"')\]”’»]*\s*$")
_ASKING_WORD = _words(
    "(?:what|why|how)(?:'s| is| are| was| do| does| did| can| could| should| would| will| about| long| much| many|"
    " often)",
    "(?:is|are|was|were|does|did|has|had|should) (?:i|we|you|it|there|this|that|the|my|our|these|those|he|she|they)",
    at_start=True,
)
# A question without its mark; "do the same" is none.
_ASKING = _words(
    f"{_LEADS_IN}(?:like,? )?(?:"
    "(?:what|why|how|which|who|where|when)(?:'s| is| are| was| were| do| does| did| can| could| should| would| will)|"
    "(?:should|can|could|shall|does|did|is|are|was|were|will|would|has) "
    "(?:i|we|you|it|there|this|that|these|those|the|my|our|your|they|he|she)|"
    "(?:do|have) (?:i|we|you|they))",
    at_start=True,
)
_ASKS_FOR_WORK = lazily(
    r"^(?:and |so |but |also |ok(?:ay)?,? |now |then |hi,? |hey,? )*(?:can|could|would|will) (?:you|we)\b|\bplease\b|"
    r"^[^,?]{1,40},(?: [^,?]{1,40},)? (?:can|could|would|will) (?:you|we)\b|"
    r"^i (?:need|want|would like|'?d like) you to\b",
    re.IGNORECASE,
)
# Asks for words, not for work: the answer is a text.
_ASKS_FOR_WORDS = lazily(
    r"\b(?:can|could|would|will) you (?:please |also |maybe |just |possibly )*(?:help|assist|explain|tell|show|"
    r"suggest|recommend|"
    r"describe|compare|advise|clarify|elaborate|guide|walk|share|give|provide|offer|review|check if|confirm|summarize|"
    r"summarise|point|list|outline|break (?:it|this|that) down|think|recall|remind|know|happen|have)\b|"
    r"\b(?:can|could|may) i (?:get|have|ask)\b|\bany (?:advice|tips|suggestions|ideas|thoughts|recommendations)\b|"
    r"\b(?:what|how|which|why|where|when|who) (?:\w+ ){0,3}?(?:do|does|should|can|could|would|is|are|will|might) (?:i|"
    r"we|you)\b|"
    r"\bi(?:'d| would) (?:like|love|appreciate) (?:to (?:know|hear|see|get|understand)|some|your|any|an?)\b",
    re.IGNORECASE,
)
# Nothing is named: "can you help me with that?", "does that make sense?".
_ASKS_NOTHING = lazily(
    r"^(?:and |so |but |also )*(?:(?:can|could|would|will) you (?:please |also |maybe )*(?:help|assist|explain|show|"
    r"tell|guide|"
    r"review|check|suggest|provide|give)(?: me| us)?(?: out)?(?: (?:with|on|about|through|understand|figure))?"
    r"(?: (?:out|how|some|any|a few|more))?(?: (?:this|that|it|these|those|things?|here|feedback|guidance|advice|tips|"
    r"suggestions|ideas|examples?|details|information)){0,3}|"
    r"(?:do you have )?any (?:advice|tips|suggestions|ideas|thoughts|recommendations)(?: on (?:this|that))?|"
    r"what do you (?:think|suggest|recommend)(?: (?:about|of) (?:this|that|it))?|"
    r"how (?:can|do|should|would|could) (?:i|we) (?:do|fix|handle|approach|improve|achieve|solve) (?:this|that|it)|"
    r"(?:does|is) (?:this|that|it) (?:make sense|right|correct|ok(?:ay)?|work(?: for you)?)|is (?:this|that) (?:right|"
    r"correct))"
    r"\W*$",
    re.IGNORECASE,
)
_POINTS = lazily(
    r"^(?:(?:and|so|now|then|but|maybe|okay|ok|sure|yes),? )*(?:here(?:'s|'re| is| are)|this is|these are|below is|"
    r"below are|like|"
    r"something like|for example|as follows|the following|e\.g\.|i(?:'ve| have) (?:got|written|tried)?(?: the)?)"
    r"[^.?!:]{0,90}:$",
    re.IGNORECASE,
)
_AGREES = lazily(
    r"^(?:yes|yep|yeah|yup|y|ok(?:ay)?|sure|go(?: ahead| for it)?|(?:let'?s )?do (?:it|that|so|this)|sounds? good|lgtm|"
    r"looks? good|perfect|great|correct|right|exactly|agreed|approved?|please do|proceed|continue|carry on|ship it|"
    rf"makes sense|fine|please|absolutely|of course|definitely|{languages.YES})"
    r"(?:[\s,.!]+(?:yes|please|thanks?|thank you|do it|do that|go ahead|go|sure|continue|proceed|that'?s fine|"
    r"works|for me))*[\s.!。！]*$",
    re.IGNORECASE,
)
_DECLINES = lazily(
    rf"^(?:no|nope|nah|not now|don'?t|skip (?:it|that)|leave it|never ?mind|no need|rather not|{languages.NO})"
    r"[\s.,!。！]*(?:thanks?|thank you)?[\s.!。！]*$",
    re.IGNORECASE,
)
_PLEASANT = _words(
    "hi", "hello", "hey", "thanks?", "thank you", "thx", "cheers",
    "good (?:morning|evening|afternoon|night|job|work|luck|"
    "to (?:see|hear))", "nice", "wow", "cool", "great", "awesome", "perfect", "amazing",
    "sounds? (?:great|good|fun|awesome|"
    "amazing)", "that(?:'s| is) (?:great|awesome|amazing|cool|wonderful|so \\w+)", "bye", "see you", "take care",
    "you(?:'re| are) (?:welcome|right)", "no (?:problem|worries|doubt)", "how (?:are|have) you", "what'?s (?:up|new)",
    "congrat\\w*", "glad", "haha\\w*", "lol", "have a (?:good|great|nice)", "absolutely", "definitely", "of course",
    "exactly",
    "certainly", "i'?d be happy to", "great question", "good (?:question|point|call|catch|idea|thinking)", "totally",
    "long time no", "keep (?:it|up)", "sure thing", "you(?:'ve)? got this", "talk (?:to you )?(?:soon|later)",
    "same here",
    "me too",
    "(?:(?:yes|yeah|ok(?:ay)?|sure|oh|ah),? )?(?:that|this|it|everything)(?: \\w+ly)? (?:helps?|works|makes sense|"
    "clears|"
    "looks good)", "you (?:raise|make) a (?:good|fair|great)",
    "(?:ah|oh|ok(?:ay)?|well),? (?:thanks?|great|nice|cool|i see|got it)", "appreciate (?:it|that|your)",
    "sorry to hear",
    at_start=True,
)  # fmt: skip
_BARE = lazily(
    r"^\W?(?:(?:all )?(?:done|set|finished|sure|ok(?:ay)?|alright|understood|got it|noted|found it|yo|sup|pause)"
    rf"|{languages.COURTESY})\W*$",
    re.IGNORECASE,
)
_NAMES_A_THING = lazily(r"\d|[`/_@#]|[\"“]\w")

_WHEN = _words(
    "yesterday", "today", "tomorrow", "tonight",
    r"(?:last|next|this|past|every|each) (?:\w+ )?(?:night|week|weekend|month|year|"
    "spring|summer|fall|autumn|winter|mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?",
    r"\w+ (?:days?|weeks?|months?|years?) ago",
    "(?:mon|tues|wednes|thurs|fri|satur|sun)days?",
    "(?:in|since|until|by|on|of) (?:january|february|march|april|may|june|july|"
    "august|september|october|november|december)",
)  # fmt: skip
_OWN = _words("i", "i'(?:m|ve|d|ll)", "my", "we", "we'(?:re|ve|d|ll)", "our", "me", "us", "mine")
_DID = lazily(
    r"\b(?:i|we|my \w+|our \w+)(?:'ve| have| has|'d| had)? (?:\w+ly |just |also |even |never |always |both |all )*"
    r"(?:\w{2,}ed|took|gave|came|saw|told|said|ran|began|kept|brought|wrote|won|lost|drove|flew|ate|drank|sang|swam|"
    r"taught|"
    r"thought|felt|fell|grew|knew|sold|sent|slept|spoke|wore|broke|chose|caught|fought|forgot|hung|held|hurt|led|lent|"
    r"let|paid|"
    r"rode|rose|shot|showed|stood|stuck|threw|woke|made|did|got|had|went|met|found|bought|built|left|spent|heard|read|"
    r"set|cut)\b",
    re.IGNORECASE,
)
_NAME_INSIDE = lazily(r"(?<=[a-z,] )(?!I\b|I')[A-Z][a-z]+")

# ---- what people say to each other

_ABOUT_YOU = lazily(
    r"^(?:and |but |so |well,? |i (?:think|know|bet|'?m sure) (?:that )?)*(?:you(?:'re| are|'ll be| will be|'ve got|"
    r" have|"
    r" look| sound| seem| must| deserve| guys| rock| inspire)|your \w+(?: \w+)?(?:'s| is| are| means?| looks?|"
    r" sounds?))\b",
    re.IGNORECASE,
)
_REACTS = _words(
    "(?:that|this|it|those|they)(?:'s| is| was| sounds?| looks?| must(?: be| have been)?| seems?|'re|"
    " are)(?: like)?(?: been)?"
    "(?: really| so| very| super| pretty| such| quite| truly| absolutely)*(?: an?| the)?(?: real)? (?:great|awesome|"
    "amazing|cool|"
    "wonderful|fantastic|incredible|lovely|beautiful|nice|sweet|inspiring|impressive|exciting|fun|good|gorgeous|"
    "stunning|"
    "tough|hard|rough|sad|terrible|awful|interesting|perfect|neat|delicious|adorable|cute|important|special)",
    "(?:i'?m |so |really |super )*(?:proud|happy|glad|excited|thrilled|sorry|pleased|grateful|thankful)"
    "(?: \\w+)? (?:of|for|to|that|you)(?= (?:you|hear|see|know|have you|be (?:here|part)))",
    "(?:looks?|sounds?|feels?) (?:like|so|really|great|good|amazing|awesome|delicious|fun)",
    "can'?t wait to (?:hear|see)",
    "(?:i )?(?:hope|wish)(?:ing)? (?:you|it|that|things|all)", "let me know", "good luck", "best of luck", "enjoy",
    "keep \\w+ing",
    "way to go", "i (?:totally |completely |really |100% )?(?:agree|get it|hear you|understand|know what you mean)",
    "i'?m (?:always )?here (?:for|if)",
    "(?:so|how|such an?|what an?) (?:true|great|awesome|amazing|cool|wonderful|nice|sweet|"
    "lovely|beautiful|exciting|inspiring)", "(?:i )?(?:really )?appreciate (?:you|your|it|the)", "thanks for",
    "thank you for",
    "love (?:that|it|your|the|how)", "don'?t (?:give up|worry|forget to)", "let'?s (?:keep|catch|chat|talk|do it)",
    "we got this",
    at_start=True,
)  # fmt: skip


_SHORT_REACTION = 50
"""Characters beyond which "It was awesome" goes on to say what was."""
_LONG_REACTION = 100
_OF_ONES_OWN = lazily(r"\d|\b(?:i|my|we|our)\b", re.IGNORECASE)


def _straight(sentence: str) -> str:
    """With straight apostrophes: the cues are written with them."""
    return sentence.replace("\u2019", "'")


_LASTING = frozenset({Type.PREFERENCE, Type.DECISION, Type.INSTRUCTION})
_IMPORTANCE = {
    Type.PREFERENCE: 8, Type.DECISION: 8, Type.CORRECTION: 8, Type.REQUEST: 7, Type.QUESTION: 5, Type.FACT: 5,
    Type.PLAN: 4,
}  # fmt: skip


@lru_cache(maxsize=_REMEMBERED)
def user_type(sentence: str) -> Type | None:
    """What a sentence of a person is, or None where nothing tells: then it is part of a request."""
    said = _straight(sentence)
    is_question = bool(_ASKS.search(said) or _ASKING.match(said))
    asks = (is_question and not _ASKS_FOR_WORK.search(said)) or bool(_ASKS_FOR_WORDS.search(said))
    if not is_question and is_standing(said):
        return Type.INSTRUCTION
    if not asks and (_PREFERENCE.search(said) or languages.PREFERENCE.search(said)):
        return Type.PREFERENCE
    if _CORRECTION.match(said) or _WRONG.search(said) or languages.CORRECTION.match(said):
        return Type.CORRECTION
    if asks:
        return Type.REQUEST if is_question and languages.REQUEST.search(said) else Type.QUESTION
    if _CONSTRAINT.search(said):
        return Type.INSTRUCTION
    if _TENTATIVE.search(said):
        return Type.PLAN
    if _DECISION.search(said) or languages.DECISION.search(said):
        return Type.DECISION
    if is_question or _ASKS_FOR_WORK.search(said) or languages.REQUEST.search(said):
        return Type.REQUEST
    is_fact = _ABOUT_SELF.search(said) or _CHANGED.search(said) or _HAPPENED.search(said)
    return Type.FACT if is_fact and not _ORDERS.match(said) else None


def states(sentence: str) -> bool:
    """Whether a sentence that no cue tells apart states something, rather than asking or wishing for it."""
    said = _straight(sentence)
    return bool(_TELLS.match(said)) and not _WANTS.search(said)


def asserts(sentence: str) -> bool:
    """Whether a sentence that no cue tells apart says how something is, and orders or wishes for nothing."""
    said = _straight(sentence)
    return bool(_ASSERTS.match(said)) and not (_ORDERS.match(said) or _WANTS.search(said))


def wishes(sentence: str) -> bool:
    """Whether a sentence says what somebody wants or needs: said to an agent at work, it asks for that."""
    return bool(_WISHES.match(_straight(sentence)))


def is_standing(sentence: str) -> bool:
    """Whether a sentence rules what follows, not only one request."""
    said = _straight(sentence)
    return any(cue.search(said) for cue in (_ALWAYS, _NEVER, _STANDING, languages.STANDING))


def user_importance(sentence: str, kind: Type | None) -> int:
    """0 to 10: what rules later work, who somebody is and what has changed count more than what is asked."""
    said = _straight(sentence)
    if kind is Type.INSTRUCTION:
        return 9 if is_standing(said) else 8
    if kind is Type.FACT and (_ABOUT_SELF.search(said) or (_CHANGED.search(said) and not _WISHES.match(said))):
        return 7
    if kind is None and not _TELLS.match(said):
        return _IMPORTANCE[Type.REQUEST]  # "Put it in the handler": what it is told, an agent does
    if kind in (Type.FACT, None) and _NAMES_A_THING.search(said):
        return 6
    return _IMPORTANCE.get(kind, 5) if kind else 5


def lasts(sentence: str, kind: Type | None) -> bool:
    """Whether what a person says holds beyond the request it stands in: a rule, a preference, a decision."""
    return kind in _LASTING and (kind is not Type.INSTRUCTION or is_standing(sentence))


def agrees(text: str) -> bool:
    """Whether a reply is a bare yes."""
    return bool(_AGREES.match(text))


def declines(text: str) -> bool:
    """Whether a reply is a bare no."""
    return bool(_DECLINES.match(text))


def asks(sentence: str) -> bool:
    """Whether a sentence is a question."""
    return bool(_ASKS.search(sentence))


def points(sentence: str) -> bool:
    """Whether a sentence only points to what comes next, as code that is left out: "Here's what I have so far:"."""
    return bool(_POINTS.match(_straight(sentence)))


def asks_nothing(sentence: str) -> bool:
    """Whether a question names nothing that it asks for: "can you help me with that?"."""
    return bool(_ASKS_NOTHING.match(_straight(sentence)))


def begins_question(clause: str) -> bool:
    """Whether a clause after a comma begins a question of its own: "…, can you", "…, how do I"."""
    return bool(_ASKS_FOR_WORK.match(clause) or _ASKS_FOR_WORDS.match(clause) or _ASKING_WORD.match(clause))


def is_pleasantry(sentence: str) -> bool:
    """Whether a sentence says nothing: a greeting, thanks, applause - short, and naming no number or thing."""
    if _BARE.match(sentence):
        return True
    said = _straight(sentence)
    return len(said) <= 80 and bool(_PLEASANT.match(said)) and not _NAMES_A_THING.search(said)


def _names_a_thing(sentence: str) -> bool:
    """Whether a sentence has a number, a name that is not its first word, or something quoted in it."""
    return bool(_NAMES_A_THING.search(sentence) or _NAME_INSIDE.search(sentence))


def told_importance(sentence: str) -> int:
    """0 to 10, between people: what somebody did, and what has a name, a number or a day in it, is asked for later."""
    said = _straight(sentence)
    did = bool(_DID.search(said) or _HAPPENED.search(said))
    named = _names_a_thing(said) or bool(_WHEN.search(said))
    if _ABOUT_SELF.search(said) or (did and named):
        return 7
    if did or named or user_type(sentence) in _LASTING:
        return 6
    return 5 if _OWN.search(said) else 3


def is_reaction(sentence: str) -> bool:
    """Whether a sentence only speaks of the one it is said to, or of what that one said: praise, wishes, sympathy."""
    said = _straight(sentence)
    reacts = _ABOUT_YOU.match(said) or (_REACTS.match(said) if len(said) <= _SHORT_REACTION else None)
    return bool(reacts and len(said) <= _LONG_REACTION and not _OF_ONES_OWN.search(said, reacts.end()))


# ---- what agents say: in small letters, which is matched three times as fast as without regard to case

_FINDING = lazily(
    r"\b(?:root cause|the (?:real |actual |main |underlying )?(?:issue|problem|bug|cause|culprit|reason|"
    r"difference|catch) (?:is|was|here)|turns out|"
    r"caused by|due to|i (?:found|discovered|noticed|confirmed)|found (?:it|that|the (?:issue|bug|problem|cause))|"
    r"this (?:means|explains|is because)|"
    r"that'?s (?:why|because)|never (?:called|set|used)|doesn'?t (?:exist|handle|support|actually)|"
    r"already (?:exists?|has|handled)|conflicts? with)\b",
)
_AGENT_DECISION = lazily(
    r"\b(?:decided (?:to|on|against)|we(?:'ll| will) (?:use|go with|keep|drop)|going with|i(?:'ll|"
    r" will) (?:go with|use|keep|stick)|chose|chosen|opted|"
    r"settled on|recommend(?:ation|ed)?|trade-?off|out of scope|(?:we|i) (?:deferred|rejected)|"
    r"won'?t (?:be|do|add|support)|my (?:take|pick|choice)|"
    r"i'?d (?:go with|recommend|suggest))\b",
)
_DONE = (
    r"(?:done|fixed|implemented|added|created|updated|removed|deleted|refactored|renamed|migrated|committed|pushed|"
    r"merged|"
    r"released|deployed|published|rewrote|replaced|extracted|moved|completed?|resolved|verified|wrote|written|"
    r"successful(?:ly)?|works|now (?:works|supports|uses|shows|returns|handles|reads|has|is))"
)
_RESULT = lazily(rf"\b{_DONE}\b")
_RESULT_BEGINS_WITHIN = 50
"""Characters of a sentence in which it says that something was done."""
_NOT_DONE = lazily(
    r"\b(?:you|if|when|once|until|unless|because|should|could|would|will|must|not|never|who|\w+n't|to be)\b"
)
_I_DID = lazily(
    rf"\b(?:i|we)(?:'ve| have)? (?:\w+ )?{_DONE}\b|"
    r"\b(?:tests?|checks?|lint|build|ci)\b.{0,30}\b(?:pass(?:es|ed|ing)?|green|clean|succeed(?:s|ed)?)\b",
)
_BLOCKER = lazily(
    r"\b(?:blocked (?:by|on)|i (?:can'?t|cannot|couldn'?t|am unable|was unable)|unable to|not possible|(?:still|"
    r"keeps?) fail(?:s|ing)?|fails? with|"
    r"permission denied|requires? (?:you|your|access|manual|approval|credentials)|needs? (?:your|you to|access|"
    r"credentials|approval)|"
    r"waiting (?:for|on) (?:you|your|approval|access|review|credentials)|stuck|not (?:working|"
    r"available|installed|configured)|out of (?:memory|disk|quota)|"
    r"rate.limit)\b",
)
# A guess: at most a hypothesis, however it is worded.
_UNSURE = lazily(
    r"\b(?:maybe|perhaps|possibly|probably|might|may be|could be|seems? (?:to|like|that)|looks like|i (?:think|"
    r"suspect|guess|"
    r"assume|believe)|likely|not sure|unclear|hypothesis|presumably)\b",
)
_GOES_ON = lazily(r"\b(?:underway|still|in progress|so far|keep (?:monitoring|watching)|is running|continuing)\b")
# Says how far something is that will be over in a minute; not where a server runs.
_PROGRESS = lazily(
    r"\b(?:still|is|are|is now|are now) (?:(?:running|building)(?! (?:on|at|in|under|with|from|as)\b)|compiling|"
    r"continuing|progressing|finishing|underway|under way|in progress)\b|"
    r"\bwaiting (?:for|on) [^.;]{1,60} to (?:finish|end|complete|exit)\b|\bnear(?:ing)? the end\b",
)
_NEXT = lazily(
    r"^(?:(?:optional |suggested |recommended |possible )?next(?: (?:steps?|options?|up|actions?|suggestions?))?|"
    r"to ?-?do|"
    r"remaining|follow-?ups?|still (?:to do|open|missing)|not (?:yet )?done|what(?:'s| is) (?:left|next|missing)|"
    r"left to do|"
    r"open (?:questions?|items?|issues?))\b",
)
_NARRATES = lazily(
    r"^(?:now,? |then |next,? |first,? |ok(?:ay)?,? |good[,.] |great[,.!] |perfect[,.!] |alright,? |"
    r"so )*(?:let me|let'?s|i(?:'ll| will|'m (?:now |also |just |still )?\w+ing| need to|"
    r" want to| should|'m now|'m also|'m just)|now (?:i|let|add|update|run|fix|create)|checking|looking|running|"
    r"reading|searching|updating|"
    r"adding|creating|starting|using the)\b",
)
_ASKS_PLAINLY = lazily(r"^please (?:confirm|provide|share|specify|tell|choose|pick|clarify)\b")
_OFFERS = lazily(
    r"^(?:(?:sure|of course|absolutely|certainly)[,!] )?(?:i(?:'d be happy to| can| will|'ll)(?: certainly| gladly|"
    r" also)? "
    r"(?:help|assist)|would you like|do you want|want (?:me )?to|shall i|should i|let me know|feel free|"
    r"if you(?:'d like| want| need| have)|is there anything|"
    r"anything else|happy to|i can also|ready (?:to|for|when)|how (?:can|may) i (?:help|assist))\b",
)


def _small(sentence: str) -> str:
    return _straight(sentence).lower()


@lru_cache(maxsize=_REMEMBERED)
def agent_type(sentence: str) -> Type | None:
    """What a sentence of an agent is, or None where it only talks."""
    sentence = _small(sentence)
    if _OFFERS.match(sentence) or _NARRATES.match(sentence):
        return None
    if _ASKS.search(sentence) or _ASKS_PLAINLY.match(sentence):
        return Type.QUESTION
    if _BLOCKER.search(sentence):
        return Type.BLOCKER
    if _FINDING.search(sentence):
        return Type.FACT
    if _AGENT_DECISION.search(sentence) and not _GOES_ON.search(sentence):
        return Type.DECISION
    if _reports(sentence) and not _GOES_ON.search(sentence):
        return Type.OUTCOME
    if _NEXT.match(sentence):
        return Type.PLAN
    return None


def _reports(sentence: str) -> bool:
    """Whether a sentence says that something is done: it begins with that, or says that "I" did it.

    Not what somebody else once did, or would do; and not what stands in a table.
    """
    if " | " in sentence:
        return False
    done = _RESULT.search(sentence, 0, _RESULT_BEGINS_WITHIN)
    return bool(_I_DID.search(sentence)) or (done is not None and not _NOT_DONE.search(sentence, 0, done.start()))


@lru_cache(maxsize=_REMEMBERED)
def is_talk(sentence: str) -> bool:
    """Whether a sentence of an agent only announces, offers or pleases."""
    return is_narration(sentence) or offers(sentence) or is_pleasantry(sentence)


def is_narration(sentence: str) -> bool:
    """Whether a sentence says what is about to be done: "Let me look at the parser"."""
    return bool(_NARRATES.match(_small(sentence)))


def is_progress(sentence: str) -> bool:
    """Whether a sentence only says how far something is: "The build is still running"."""
    return bool(_PROGRESS.search(_small(sentence))) and agent_type(sentence) not in (Type.FACT, Type.DECISION)


def is_guess(sentence: str) -> bool:
    """Whether a sentence says itself that it is not sure."""
    return bool(_UNSURE.search(sentence.lower()))


def offers(sentence: str) -> bool:
    """Whether a sentence only offers to go on."""
    return bool(_OFFERS.match(_small(sentence)))


def opens_list_of_next(sentence: str) -> bool:
    """Whether a heading opens what is left to do."""
    return bool(_NEXT.match(sentence.lower()))


# ---- how sentences hang together

_LEANS = _words(
    "it(?:'s|'ll|'d)?", "this", "that(?:'s)?", "they(?:'re|'ve|'ll)?", "these", "those", "he(?:'s)?", "she(?:'s)?",
    "because",
    "since", "so", "which", "otherwise", "the (?:reason|other|others|same|latter|former)", "and", "but", "also",
    "or",
    "instead", "rather", "plus", "not", "too", "there(?:'s)?", "here", "both", "for example", "e\\.g\\.", "i\\.e\\.",
    "however",
    "therefore", "weil", "denn", "car", "parce que", "porque", "perché", "perche", "потому что", "это",
    at_start=True,
)  # fmt: skip
_LEANS_UNSPACED = lazily(r"^(?:因为|因為|所以|这|這|它|なぜなら|それ|これ|そのため|왜냐하면|그래서|그것)")


def leans(sentence: str) -> bool:
    """Whether a sentence needs the one before it to make sense: it gives its reason, or begins with a pronoun."""
    said = _straight(sentence)
    return bool(_LEANS.match(said) or _LEANS_UNSPACED.match(said))
