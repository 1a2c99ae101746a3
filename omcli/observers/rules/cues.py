"""Cues for all speakers: questions, requests, statements, courtesies, dependent sentences and words to leave out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from omcli.base import lazily
from omcli.observers.rules import languages

CACHE_SIZE = 512
"""Number of sentences whose type is cached, because each is classified several times."""
LEAD_IN = (
    r"(?:(?:so+|and|but|or|now|ok(?:ay)?|well|also|alright|right|then|next|first|finally|lastly|please|just|hmm+|yes|"
    r"if so|oh|wait)[,.!]* )*"
)
"""Pattern for filler at the start of a sentence: "ok so now"."""


def whole_words(*alternatives: str, at_start: bool = False) -> re.Pattern[str]:
    """Return a pattern for the alternatives as whole words. With `at_start`, they must start the sentence."""
    begin = "^" if at_start else r"\b"
    return lazily(rf"{begin}(?:{'|'.join(alternatives)})\b")


def plain_quotes(sentence: str) -> str:
    """Replace curly apostrophes with straight ones, which the cues use."""
    return sentence.replace("\u2019", "'")


def plain(sentence: str) -> str:
    """Return a sentence in lower case with straight apostrophes, as most cues expect."""
    return sentence.replace("\u2019", "'").lower()


_QUESTION_MARK = lazily(r"[?？؟][\"')\]”’»]*\s*$")
_QUESTION_START = whole_words(
    "(?:what|why|how)(?:'s| is| are| was| do| does| did| can| could| should| would| will| about| long| much| many|"
    " often)",
    "(?:is|are|was|were|does|did|has|had|should) (?:i|we|you|it|there|this|that|the|my|our|these|those|he|she|they)",
    at_start=True,
)  # fmt: skip
# A question without a question mark. "Do the same" is an order.
_QUESTION = whole_words(
    f"{LEAD_IN}(?:like,? )?(?:"
    "(?:what|why|how|which|who|where|when)(?:'s| is| are| was| were| do| does| did| can| could| should| would|"
    " will)|(?:should|can|could|shall|does|did|is|are|was|were|will|would|has)"
    " (?:i|we|you|it|there|this|that|these|those|the|my|our|your|they|he|she)|(?:do|have) (?:i|we|you|they)|"
    r"(?:i(?:'m| am)? )?(?:just |also )?wonder(?:ing)?:? (?:if|whether|how|why|what|which|who|where|when))",
    at_start=True,
)  # fmt: skip
_ASKS = r"(?:and |so |but |also |ok(?:ay)?,? |now |then |hi,? |hey,? )*(?:can|could|would|will) (?:you|we)"
_STARTS_REQUEST = lazily(rf"^(?:{_ASKS}|please|i (?:need|want|would like|'?d like) you to)\b")
_REQUESTS_WORK = lazily(
    rf"^{_ASKS}\b|\bplease\b|"
    r"^[^,?]{1,40},(?: [^,?]{1,40},)? (?:can|could|would|will) (?:you|we)\b|"
    r"^i (?:need|want|would like|'?d like) you to\b",
)
# Asks for an answer in text, not for work.
_REQUESTS_ANSWER = lazily(
    r"\b(?:can|could|would|will) you (?:please |also |maybe |just |possibly )*"
    r"(?:help|assist|explain|tell|show|suggest|recommend|describe|compare|advise|clarify|elaborate|guide|walk|share|"
    r"give|provide|offer|review|check if|confirm|summarize|summarise|point|list|outline|break (?:it|this|that) down|"
    r"think|recall|remind|know|happen|have)\b|"
    r"\b(?:can|could|may) i (?:get|have|ask)\b|"
    r"\bany (?:advice|tips|suggestions|ideas|thoughts|recommendations)\b|"
    r"\b(?:what|how|which|why|where|when|who) (?:\w+ ){0,3}?(?:do|does|should|can|could|would|is|are|will|might)"
    r" (?:i|we|you)\b|"
    r"\b(?:are|is|do|does|did|have|has|were) any of (?:them|these|those|the|our|my)\b|"
    r"\bi(?:'d| would) (?:like|love|appreciate) (?:to (?:know|hear|see|get|understand)|some|your|any|an?)\b",
)
# Names nothing specific: "can you help me with that?", "does that make sense?".
_VAGUE_QUESTION = lazily(
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


def has_question_mark(sentence: str) -> bool:
    return bool(_QUESTION_MARK.search(sentence))


def is_question(sentence: str) -> bool:
    """Return True if a sentence is a question, with or without a question mark."""
    return has_question_mark(sentence) or bool(_QUESTION.match(plain(sentence)))


def is_work_request(sentence: str) -> bool:
    """Return True if a sentence asks for work: "Can you split the module?"."""
    return bool(_REQUESTS_WORK.search(plain(sentence)))


def is_text_request(sentence: str) -> bool:
    """Return True if a sentence asks for an answer in text: "Can you explain the cache?"."""
    return bool(_REQUESTS_ANSWER.search(plain(sentence)))


def is_empty_question(sentence: str) -> bool:
    """Return True if a question names nothing specific: "can you help me with that?"."""
    return bool(_VAGUE_QUESTION.match(plain(sentence)))


def starts_question(clause: str) -> bool:
    """Return True if a clause after a comma starts a question: "…, can you", "…, how do I"."""
    said = plain(clause)
    return bool(_STARTS_REQUEST.match(said) or _REQUESTS_ANSWER.match(said) or _QUESTION_START.match(said))


# The speaker's life and work.
_ABOUT_SELF = lazily(
    r"\b(?i:my name is|i(?:'m| am) (?:a|an|the|from|based|called|working (?:at|for|as)|married|"
    r"engaged|divorced|pregnant|retired|allergic|vegan|vegetarian|\d+)|"
    r"i (?:work|live|moved|was born|study|teach|own|run)|my (?:wife|husband|partner|son|daughter|mother|father|mom|"
    r"dad|brother|sister|boss|manager|team|company|job|email|address|birthday|phone|dog|cat)"
    r"(?:'s| is| are| has| was| works?| lives?)|we (?:use|run|live|moved|are on)|"
    r"our \w+ (?:is|are|uses?|runs?|has)|"
    r"(?:this|the) (?:repo(?:sitory)?|project|codebase|package) (?:uses|runs))\b|"
    r"\b[iI]'?m [A-Z][a-z]+\b(?=[,.]| and)",
)
_EVENT = lazily(
    r"\b(?:i|we)(?:'ve| have|'d| had)? (?:just |already |recently |finally |also )?"
    r"(?:went|had|have|was|were|need|use|been|bought|started|completed|finished|met|got|made|did|added|set|created|"
    r"built|found|received|spent|paid|signed|booked|scheduled|planned|achieved|reached|hit|implemented|tested|"
    r"reviewed|attended|learned|read|wrote|submitted|earned|saved|hired|joined|left)\b|"
    r"\bmy \w+ (?:is|are|was|were|has|works?)\b",
)
# A change that has happened, unlike "want to reduce it to 5".
_CHANGE = lazily(
    r"\b(?:no longer|not any ?more|used to be|as of (?:now|today|this)|has since|"
    r"instead of the (?:old|original|previous)|(?:is|are|am|'s|'re|'m|has|have|had|was|were) now|"
    r"now (?:is|are|at|have|\w+s|set|expected|due|\d)|new (?:\w+ ){1,4}?(?:of|is|at) \W?\d|"
    r"(?:increased|decreased|reduced|improved|dropped|risen|rose|grown|grew|fell|fallen|raised|lowered|extended|moved|"
    r"postponed|pushed(?: back| out)?|rescheduled|delayed|brought forward|changed|switched|updated|upgraded|"
    r"downgraded|renamed|cut|shortened|expanded|doubled|adjusted|bumped|revised) (?:\w+ ){0,4}?(?:to|from|by|until)|"
    r"(?:moving|rescheduling|postponing|extending|pushing|changing) (?:\w+ ){1,8}?(?:to|until) \w*\d?)\b",
)
# Starts like a statement; other sentences tell an agent what to do: "Put it in the handler".
_STATEMENT = lazily(
    r"^(?:(?:so|and|but|or|now|ok(?:ay)?|well|also|hi|hey|hmm+|alright|yes|yeah|yep|no|oh|ah|then|sure|right|thanks)"
    r"[,.!]* )*(?:(?:i|i'm|i've|i'd|i'll|we|we're|we've|my|our|the|there|it|it's|this|that|that's|he|she|they|these|"
    r"those|a|an|since|as|given|because|when|if|after|while|however|although|though|like|which|where|who|for example|"
    r"in|on|for|with|from|to|at|by|during|just let|let me|looking|would|here|[a-z]\w+ (?:is|are|was|were|has|have))\b|"
    r"[^:.?!]{1,40}: ?\W*\w+)",
)
# A subject that is a name or has an article, and a verb of state: "The port of the API is 8080".
_ASSERTION = lazily(
    r"^(?:(?i:the|our|my|its|their|this|these)|[A-Z][\w-]+)(?: [\w/.'`-]+){0,6}?"
    r" (?:is|are|was|were|has|have|had|owns|lives|happens?|belongs)\b",
)
_WANTS = lazily(
    r"\b(?:i|we)(?:'d| would| really| also| just| now)* (?:want|need|like|wish|hope|plan|aim|intend|have to)\b|"
    r"\b(?:trying|looking|hoping|planning|need|needs|want|wants|going) to\b|"
    r"\b(?:should|must|could)\b|"
    r"\bfeel like\b",
)
_WISH = lazily(
    rf"^{LEAD_IN}(?:i (?:think|guess|feel(?: like)?) )?(?:i|we)(?: (?:also|really|still|just|actually|do|will))*"
    r"(?:'d like| would like| want| need| wish)\b",
)
# An order, even with a clause that is not one: "Summarize what we changed". "And" continues the previous sentence.
IMPERATIVE = lazily(
    rf"^(?!and |but |or ){LEAD_IN}(?:add|apply|build|change|check|choose|clean|close|commit|compare|convert|create|"
    r"delete|deploy|describe|do (?:the|this|that|it)|document|drop|ensure|explain|extract|find|finish|fix|implement|"
    r"include|install|investigate|list|look|make|merge|move|open|pick|propose|push|rebase|refactor|remove|rename|replace|"
    r"rerun|restore|revert|review|rewrite|run|show|split|start|summari[sz]e|test|try|update|upgrade|use|verify|write)"
    r"\b(?! (?:is|are|was|were|has|have|had)\b)",
)
# An order that is carried out by an answer alone.
_ASKS_TO_LOOK = lazily(
    rf"^{LEAD_IN}(?:(?:can|could|would|will) you |i (?:want|need|would like|'d like) (?:you )?to )?(?:please |just )*"
    r"(?:analy[sz]e|compare|describe|explain|explore|find out|investigate|list|look (?:at|for|into|up)|read|"
    r"review|search|show me|summari[sz]e|tell me|think about)\b(?!.*\b(?:and|then) (?:fix|change|update|write|add))",
)
_CLAUSE = lazily(r"(?:[,;:–—]| -) +(?:so |and |but |then )?")
_NAMES_SOMETHING = lazily(r"\d|[`/_@#]|[\"“]\w")


def is_about_speaker(sentence: str) -> bool:
    """Return True if a sentence describes the speaker's life or work: "Our server runs on port 8443"."""
    return bool(_ABOUT_SELF.search(plain_quotes(sentence)))


def is_about_event(sentence: str) -> bool:
    """Return True if a sentence states what the speaker did or has: "I finished 12 of the chapters"."""
    return bool(_EVENT.search(plain(sentence)))


def is_about_change(sentence: str) -> bool:
    """Return True if a sentence reports a change: "The deadline moved to 4 May"."""
    return bool(_CHANGE.search(plain(sentence)))


def starts_statement(sentence: str) -> bool:
    """Return True if a sentence starts like a statement, not like an order."""
    return bool(_STATEMENT.match(plain(sentence)))


def is_statement(sentence: str) -> bool:
    """Return True if a sentence without other cues is a statement, not a wish."""
    return starts_statement(sentence) and not _WANTS.search(plain(sentence))


def is_fact(sentence: str) -> bool:
    """Return True if a sentence without other cues states a fact, not an order or a wish."""
    return bool(_ASSERTION.match(plain_quotes(sentence))) and not (
        has_order(sentence) or _WANTS.search(plain(sentence))
    )


def is_wanted(sentence: str) -> bool:
    """Return True if a sentence expresses a wish or need. For an agent at work, it is a request."""
    return bool(_WISH.match(plain(sentence)))


def is_imperative(sentence: str) -> bool:
    """Return True for an order: "Summarize what we changed"."""
    return bool(IMPERATIVE.match(plain(sentence)))


def has_order(sentence: str) -> bool:
    """Return True if a clause of a sentence is an order: "CI is red, fix it"."""
    return any(map(is_imperative, _CLAUSE.split(sentence)))


def asks_to_look(sentence: str) -> bool:
    """Return True for an order that is carried out by an answer: "Find out why the build is slow"."""
    return bool(_ASKS_TO_LOOK.match(plain(sentence)))


def has_name_or_number(sentence: str) -> bool:
    """Return True if a sentence contains a digit, a quotation, or a character of code or paths such as `_` or `/`."""
    return bool(_NAMES_SOMETHING.search(sentence))


_NEEDS_PREVIOUS = whole_words(
    "it(?:'s|'ll|'d)?", "this", "that(?:'s)?", "they(?:'re|'ve|'ll)?", "these", "those", "he(?:'s)?", "she(?:'s)?",
    "because", "since", "so", "which", "otherwise", "the (?:reason|other|others|same|latter|former)", "and", "but",
    "also", "or", "instead", "rather", "plus", "not", "too", "there(?:'s)?", "here", "both", "for example", r"e\.g\.",
    r"i\.e\.", "however", "therefore", "weil", "denn", "car", "parce que", "porque", "perché", "perche", "потому что",
    "это", at_start=True,
)  # fmt: skip
_NEEDS_PREVIOUS_CJK = lazily(r"^(?:因为|因為|所以|这|這|它|なぜなら|それ|これ|そのため|왜냐하면|그래서|그것)")
_POINTS_AHEAD = lazily(
    r"^(?:(?:and|so|now|then|but|maybe|okay|ok|sure|yes),? )*(?:here(?:'s|'re| is| are)|this is|these are|below is|"
    r"below are|like|something like|for example|as follows|the following|e\.g\.|"
    r"i(?:'ve| have) (?:got|written|tried)?(?: the)?)[^.?!:]{0,90}:$",
)


def follows_on(sentence: str) -> bool:
    """Return True if a sentence depends on the previous one because of its first word, such as a pronoun or
    conjunction.
    """
    said = plain(sentence)
    return bool(_NEEDS_PREVIOUS.match(said) or _NEEDS_PREVIOUS_CJK.match(said))


def is_preamble(sentence: str) -> bool:
    """Return True if a sentence only introduces what follows: "Here's what I have so far:"."""
    return bool(_POINTS_AHEAD.match(plain(sentence)))


_YES = lazily(
    r"^(?:yes|yep|yeah|yup|y|ok(?:ay)?|sure|go(?: ahead| for it)?|(?:let'?s )?do (?:it|that|so|this)|sounds? good|"
    r"lgtm|looks? good|perfect|great|correct|right|exactly|agreed|approved?|please do|proceed|continue|carry on|"
    rf"go on|keep going|ship it|makes sense|fine|please|absolutely|of course|definitely|{languages.YES})"
    r"(?:[\s,.!]+(?:yes|please|thanks?|thank you|do it|do that|go ahead|go|sure|continue|proceed|that'?s fine|works|"
    r"for me))*[\s.!。！]*$",
)
_NO = lazily(
    rf"^(?:no|nope|nah|not now|don'?t|skip (?:it|that)|leave it|never ?mind|nvm|no need|rather not|{languages.NO})"
    r"(?:[\s.,!。！]*(?:thanks?|thank you)[\s.!。！]*|[\s.,!。！]*)$",
)
_COURTESY = whole_words(
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
_BARE_COURTESY = lazily(
    r"^\W?(?:(?:ok(?:ay)?|oh|ah|well|h+m+)\W+)?(?:(?:all )?(?:done|set|finished|sure|ok(?:ay)?|alright|understood|"
    r"got it|noted|found it|yo|sup|pause|h+m+|m+h+m*|u+h+|u+m+|huh|ty|good|i see|interesting|fair(?: enough)?)"
    r"|w?ho+ps|oo+ps|uh[ -]?oh|ugh+|yay+|ouch"
    r"|that(?:'s| is| was| will be) (?:all|everything)(?: i (?:need|want)(?:ed)?)?(?: for (?:now|today))?"
    rf"|{languages.COURTESY})\W*$",
)
_PAUSE = lazily(r"[,;:!–—]\s*|\s-\s")
# Whom a courtesy addresses: "Hi Claude, …".
_NAME = lazily(r"(?: \w+)?\s*[,;:!–—-]")


def is_yes(text: str) -> bool:
    """Return True if the whole text means yes."""
    return bool(_YES.match(plain(text)))


def is_no(text: str) -> bool:
    """Return True if the whole text means no."""
    return bool(_NO.match(plain(text)))


def is_courtesy(sentence: str) -> bool:
    """Return True for a bare acknowledgement such as "done" or "got it", and for a short greeting, thanks or praise
    without a digit, path or quotation (see `has_name_or_number`), and without a "but".
    """
    said = plain(sentence)
    if _BARE_COURTESY.match(said):
        return True
    is_short = len(said) <= 80 and " but " not in said
    return is_short and bool(_COURTESY.match(said)) and not has_name_or_number(said)


def after_courtesy(sentence: str) -> Iterator[tuple[str, bool]]:
    """Yield each possible rest of a sentence after its opening courtesy, with True if a pause precedes the rest."""
    if courtesy := _COURTESY.match(plain(sentence)):
        if not _NAME.match(sentence, courtesy.end()):
            yield sentence[courtesy.end() :].lstrip(), False
        yield from ((sentence[pause.end() :], True) for pause in _PAUSE.finditer(sentence, courtesy.end()))


# ---- words that a note-taker leaves out

_ADDED_NOTE = lazily(
    r"\[(?=[^\W\d_])[^\[\]\n]{2,600}\](?!\()|<[A-Z][\w ]{2,40}>|[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]"
)
_OPENING = lazily(
    r"^(?:(?:and|but|o+h+|a+h+|a+w+|wo+w|yay|btw|fyi|by the way|a?ha(?:ha)+|lol|"
    r"(?:hey|hi|hello)(?:(?-i: [A-Z]\w+)(?=[,.!]))?|"
    r"(?:so+|well|ok(?:ay)?|yes|yeah|yep|yup|sure|right|true|exactly|totally|definitely|absolutely|of course|for sure|"
    r"cool|nice|great|awesome|amazing|thanks|thank you|congrats|anyway|honestly|actually|"
    r"(?:un)?fortunately|luckily|guess what)"
    r"(?= ?[,.!:;…–—-]|(?-i: [A-Z]\w+[,!])))"
    r"(?:[,.!:;…]+| [–—-])?\s+)+",
    re.IGNORECASE,
)
_FIRST_WORDS = lazily(
    r"^(?:i (?:think|guess|mean|believe|must say|have to say)(?: that)? "
    r"(?=(?:i|it|the|my|we|this|he|she|they|there)\b)|"
    r"i(?:['’]m| am)(?: so| really| very)? (?:excited|happy|glad|proud|thrilled|pleased|sorry) to "
    r"(?:say|tell you|share|report)(?: that)? |i (?:just )?(?:wanted|want|have|need) to tell you (?:about |that )?|"
    r"you know what,? |i (?:just )?want(?:ed)? to let you know(?: that)? |"
    r"since (?:we|the|our) (?:last )?(?:chat(?:ted)?|spoke|talk(?:ed)?)(?: last)?,? )+",
    re.IGNORECASE,
)
_FILLER = lazily(
    r"(?<!\bnot )(?<!n't )(?<!n’t )(?<!\bnever )(?<!\bno )(?<!\bonly )(?:\b(?:really|very|just|actually|super|totally|"
    r"definitely|literally|basically|honestly|absolutely|truly|kinda) |, (?:you know|I mean|I guess|to be honest)(?=,)|"
    r"\b(?:I mean|you know|to be honest|honestly), )"
)
_LINKS = frozenset("and but as when since while because if after before where then".split())
"""Words before a new subject."""
_POINTING = frozenset({"it's", "that's", "there's"})
_POINTERS = frozenset("it that this there".split())
_STATES = frozenset("is are was were".split())
_ASKING = frozenset("when what why how where who whether".split())
_OTHERS = frozenset("we he she they who you it".split())
_ARTICLES = frozenset("the my our a an".split())
_SHARED_ARTICLES = ("a", "an", "A", "An")
"""Articles that are words of other languages too."""
_ENGLISH = frozenset("I I'm I've My We We've the my and of with".split())
_TITLES = ("The", "A", "An")
"""Words that are part of a name before a capitalised word, or within a sentence: "The Hobbit", "vitamin A"."""
_MEASURES = frozenset(
    "few lot bunch little couple bit while minute hour day night week month year dozen hundred thousand million half "
    "third quarter".split()
)
"""Words before which "a" stays, because it gives an amount: "a few", "twice a week"."""
_BEFORE_ARTICLE = frozenset("such what half quite many not".split())
"""Words after which "a" stays, because what remains would be hard to read."""
MARKS = ',.;:!?…()"“”'
_PAUSES = (",", ";", ":", ".", "!", "–", "—", "-")


def without_notes(text: str) -> str:
    """Return a message without emoji and without notes in brackets, such as a caption that a program added."""
    return _ADDED_NOTE.sub("", text)


def without_opening(sentence: str, other: str) -> str:
    """Return a sentence without the interjections that open it, and without the name of the person it addresses."""
    kept: list[str] = []
    words = _OPENING.sub("", sentence).split()
    for at, word in enumerate(words):
        name = word.strip(MARKS)
        ends = word.endswith(tuple(MARKS)) or at == len(words) - 1
        if len(name) > 2 and other.startswith(name) and ends and (not kept or kept[-1].endswith(",")):
            if kept:
                kept[-1] = kept[-1].rstrip(",") + word.rpartition(name)[2]
        else:
            kept.append(word)
    return _OPENING.sub("", " ".join(kept))


def short_sentence(sentence: str) -> str:
    """Return a sentence as a note-taker writes it: without fillers, "the", "a", "my", and "I" or "it is" before a verb.

    The other words keep their order. No negation is left out. "I" stays after another subject: "She left and I stayed".
    """
    words = _FILLER.sub("", _FIRST_WORDS.sub("", sentence)).split()
    said = [*(plain(word).strip(MARKS) for word in words), "", ""]
    kept: list[str] = []
    is_english = not _ENGLISH.isdisjoint(words)
    at, opens, others = 0, True, False
    while at < len(words):
        skipped = _words_left_out(said, at, opens=opens, others=others)
        if words[at] in _SHARED_ARTICLES and not is_english:
            skipped = 0
        is_title = words[at] in _TITLES and (words[min(at + 1, len(words) - 1)][0].isupper() or not opens)
        if is_title or any(word.endswith(_PAUSES) for word in words[at : at + skipped]):
            skipped = 0
        if not skipped:
            kept.append(words[at])
            others = others or said[at] in _OTHERS or (at > 0 and words[at][0].isupper() and said[at][:1] != "i")
        opens = words[at].endswith(_PAUSES) or said[at] in _LINKS
        at += skipped or 1
    return " ".join(kept).rstrip(" !.,;:-–—…")


def _words_left_out(said: Sequence[str], at: int, *, opens: bool, others: bool) -> int:
    """Return the number of words to leave out at a place in a sentence. `opens` is True if a clause begins there, and
    `others` if other people act in the sentence.
    """
    word, following, third = said[at : at + 3]
    if word in _ARTICLES and following:
        counts = word in _SHARED_ARTICLES and following in _MEASURES
        return int(not counts and (word == "the" or _BEFORE_ARTICLE.isdisjoint(said[max(0, at - 2) : at])))
    if not opens or not following or following in _ASKING:
        return 0
    if word in ("i", "i'm", "i've"):
        return int(not at or (said[0].startswith("i") and not others))
    is_state = word in _POINTERS and following in _STATES and third and third not in _ASKING
    after_link = at > 0 and said[at - 1] in _LINKS  # "and it was dark"
    return 0 if after_link else 1 if word in _POINTING else 2 if is_state else 0
