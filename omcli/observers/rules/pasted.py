"""Passages that people paste or quote in a prompt, such as logs, mails, chats, documents and quotations.

Such passages ask for nothing and set no rules. But if a person introduces a passage as a wish ("Follow this from now
on: '…'"), the person says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from omcli.base import lazily
from omcli.observers.rules import cues
from omcli.text.clean import one_line

_MIN_PASTED = 200
"""A line of data of at most this many characters counts as the person's own words if it is the only one."""


def split_pasted(text: str) -> tuple[str, list[str]]:
    """Return a person's own words in a text, and the lines that the person pasted or quoted."""
    words: list[str] = []
    lines: list[str] = []
    after = 0
    for start, end in passages(text):
        words.append(text[after:start])
        lines += text[start:end].splitlines()
        after = end
    return " ".join((*words, text[after:])), lines


def passages(text: str) -> list[tuple[int, int]]:
    """Return start and end of each passage, sorted and without overlaps."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    fenced = _code_lines(lines)
    stripped = ["" if at in fenced else line.rstrip() for at, line in enumerate(lines)]
    shown: set[int] = set()
    for find in (_data_lines, _lines_from_header, _chat_lines, _block_lines, _quoted_lines):
        shown.update(find(stripped))
    shown -= fenced
    shown.update(_lines_below(stripped, shown | fenced))
    # Blank lines at the end of a passage separate it from the words.
    spans = [(starts[at], starts[at] + len(stripped[at])) for at in shown if stripped[at]]
    spans += _within_lines(
        "".join(" " * (len(line) - 1) + "\n" if at in fenced else line for at, line in enumerate(lines))
    )
    return _merged(text, spans)


def _merged(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and (start <= merged[-1][1] or (text[merged[-1][1] : start].isspace())):
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


# ---- who says it

_OTHERS_SAY = (
    r"(?:says?|said|writes|wrote|reads|states|stated|told (?:me|us|him|her|them|everyone)|tells (?:me|us)|asks|asked|"
    r"replied|answered|posted|commented|mentioned|claimed|suggests|suggested|recommends|recommended|announce[sd]|"
    r"tweeted|sent|quoted|printed|shows|showed|contains|returned|responds|responded|complains|complained|"
    r"schreibt|schrieb|sagt|sagte|écrit|dit|dice|escribió)"
)
"""Verbs of saying. Forms that are also nouns, as in "Comments: none", are left out."""
_ONE_TEXT = (
    r"(?:e-?mail|mail|message|letter|text|paragraph|sentence|passage|document|article|page|post|tweet|thread|chat|"
    r"conversation|discussion|transcript|ticket|essay|abstract|speech|quot(?:e|ation)|snippet|excerpt|reply|newsletter|"
    r"press release|contract|memo|announcement|story|poem|recipe|statement)"
)
_TEXT = rf"(?:{_ONE_TEXT}s?|docs|comments?|readme|logs?|outputs?|replies|stories|responses?|notes?|lyrics|reviews?)"
_NOT_FORM = r"(?! (?:formats?|styles?|templates?|rules?|conventions?|guidelines?|length|language|tone))"
_A_TEXT = (
    rf"(?:(?:this|that|these|those|following|an?|his|her|their|\w+'s) (?:[\w-]+ ){{0,3}}?{_TEXT}"
    rf"|(?:the|my|our) (?:[\w-]+ ){{0,3}}?{_ONE_TEXT})\b{_NOT_FORM}"
)
_PROCESS = (
    r"(?:translate|summari[sz]e|tl;?dr|proof-?read|paraphrase|rephrase|reword|spell-?check|transcribe|übersetze?|"
    r"traduis|traduce|zusammenfassen)"
)
_PROCESS_THIS = r"(?:explain|analy[sz]e|answer|reply to|respond to|correct|rewrite|shorten|polish|classify)"
_PROCESS_A_TEXT = (
    rf"(?:{_PROCESS_THIS}|review|improve|edit|fix|check|read|look at|see|comment on|format|convert|critique|evaluate|"
    r"discuss|rate|consider|from)"
)
_PRESENT = (
    r"(?:here(?:'s| is| are)|this is|these are|below (?:is|are)|attached(?: is| are)?|given|"
    r"(?:i|we)(?:'ve)? (?:just |also |have )*(?:got|get|received|found|read|saw|have))"
)
_SHOWS = lazily(
    rf"^(?:[\w',-]+ ){{0,4}}?{_PROCESS}\b|\b{_PROCESS_THIS} (?:this|these|that)$"
    rf"|\b{_PROCESS_A_TEXT}\b.{{0,60}}?\b{_A_TEXT}|\b{_PRESENT}\b.{{0,60}}?\b{_TEXT}\b{_NOT_FORM}"
    rf"|(?<=[^\s:,;] ){_OTHERS_SAY}\b[^:]{{0,40}}$|\bwhat (?:does|do|is|are)\b.{{0,40}}\b(?:mean|about)$"
    r"|\baccording to\b|\b(?:contents?|text|body|wording|transcript|copy|excerpt|quote) (?:of|from)\b"
)
"""Introduces what somebody else says, or a text to work on."""
_LABEL = lazily(
    r"^(?:the |original |full |source )*(?:(?:e-?mail|mail|letter|transcript|chat|thread|quote|excerpt|snippet|text|"
    r"message|article)(?: (?:from|by|of) .{1,40})?|\S+\.(?:md|txt|rst|html?|docx?|pdf))$"
)
_I_SAY = lazily(
    r"\b(?:i|we)(?:'ve|'d|'m| have| would| also| just| always| really| already| do| did)* "
    r"(?:said|say|saying|want|wanted|need|prefer|expect|like|told|mean|meant|decided|wrote|write|ask|asked|mention|"
    r"mentioned|insist|require|wish|suggest|suggested)\b"
    r"|\b(?:when|whenever|if|before|after|while|each time|every time)\b.{0,20} you\b"
    r"|\byour (?:\w+ )?(?:answers?|repl(?:y|ies)|responses?|messages?|reports?|commits?|comments?|summar(?:y|ies))\b"
    r"|\b(?:from|for|in|during|throughout) (?:the \w+ of )?(?:this|our) (?:\w+ )?"
    r"(?:conversation|chat|session|message on)\b"
    r"|\b(?:like this|as follows|this way)$"
)
"""Introduces the person's own words."""
_RULES = (
    r"(?:rules?|preferences?|instructions?|conventions?|constraints?|requirements?|guidelines?|style guide|polic(?:y|"
    r"ies)|principles?|goals?|tasks?|decisions?|reminders?|important|requests?|orders?|wish(?:es)?)"
)
_ADOPTS = lazily(
    r"\b(?:follow|obey|adopt|apply|respect|stick to|adhere to|comply with|remember|memori[sz]e|(?:keep|bear) in mind|"
    rf"from now on|in future|use (?:this|these|the following))\b|\b{_RULES}\b"
)
"""Introduces words that the person makes their own, such as rules."""
_SENTENCE_END = lazily(r"[.!?;:]\s+")
_LONGEST_LEAD = 160


def _opening_words(before: str) -> str:
    """Return the last sentence of the text before a passage, in lower case and without its colon."""
    last = _SENTENCE_END.split(before[-2 * _LONGEST_LEAD :].rstrip(" \t:"))[-1]
    return one_line(last.strip(" \t-*+•#>")).replace("\u2019", "'").lower()[-_LONGEST_LEAD:]


def _shows(lead: str) -> bool:
    """Return True if words introduce what somebody else says, or a text to work on."""
    return bool(_SHOWS.search(lead)) and not _I_SAY.search(lead)


def _is_own(lead: str) -> bool:
    """Return True if words introduce what the person wants."""
    return not _shows(lead) and bool(_I_SAY.search(lead) or _ADOPTS.search(lead))


# ---- whole lines

_LINE_SHOWN = 300
"""Number of characters examined at the start of a line."""
_ESCAPES = 3
"""Minimum number of escaped line ends, quotes and quoted keys in a line of data."""
_ESCAPE_MARKS = ("\\n", '\\"', '":', '"}', '"]')

_TRACE = lazily(r"^\s*(?:Traceback \(most recent call last\)|Exception in thread |panic: |goroutine \d+ \[)")
_FRAME = lazily(r"^(?:\s|File \"|at \S)")
_DIFF = lazily(r"^(?:diff --git |@@ -\d|(?:---|\+\+\+) (?:[ab]/|/dev/null))")
_DIFF_GOES_ON = lazily(r"^(?:[ +@\\-]|$|index |new file|deleted file|similarity |rename |old mode|new mode)")
_JSON = lazily(r"^\s*[{\[]\s*$")
_JSON_GOES_ON = lazily(r"^\s*(?:[{}\[\]\"]|-?\d|true\b|false\b|null\b|$)")
_GIT_STATUS = lazily(r"^(?:On branch \S+$|Changes (?:not staged|to be committed)|Untracked files:)")
_GIT_GOES_ON = lazily(r"^(?:\s|$|\(use |Your branch |Changes |Untracked |no(?:thing| changes) (?:added )?to commit)")
_OPENERS = ((_TRACE, _FRAME), (_DIFF, _DIFF_GOES_ON), (_JSON, _JSON_GOES_ON), (_GIT_STATUS, _GIT_GOES_ON))
"""Pairs of patterns: one for the first line of pasted text, and one for its other lines."""
_RULED = lazily(r"^([=_])\1{4,} \S.{0,200} \1{3,}$|^=+ \d+ (?:passed|failed|errors?)\b.* =+$")
"""Matches a title between rows of `=` or `_`, with which test runners separate parts of their output."""
_INDENTED = lazily(r"^ +(?![*+•·-]|\d{1,3}[.)])\S")
"""An indented line that is not a list item."""
_LOG_LINE = lazily(
    r"^\s*(?:"
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b"  # log lines start with a time
    r"|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|npm ERR!)[\]: ]"
    r"|npm (?:error|warn) |--- (?:FAIL|PASS|SKIP): |(?:FAIL(?:ED)?|PASS(?:ED)?|ERROR) \S*[./:]\S"
    r"|File \"[^\"]+\", line \d"
    r"|at (?:(?:async |new )?\S+ \(\S+:\d+|\S+:\d+:\d+|\S+\(.{0,80}\)$)|\.{3} \d+ more$"
    r"|\S+[.:]\w+(?::\d+:\d+[: ]| ?\(\d+[,:]\d+\):)|(?:error|warning|note)(?:\[\w+\])?: \w|--> \S+:\d"  # compilers
    r"|\d{1,6} +\| |\|\s*[-~^]|[\w.-]{1,40}(?: +\| | exited with code \d)"  # numbered lines, and logs of containers
    r"|> \S+@\d\S* \S|#\d{1,4} (?:\d|\[|[A-Z]{2,} ?:?)"  # scripts of packages, builds of images
    r"|(?:Test Files|Tests?:?|Test Suites:) +\d+ |[✓✔✗✘✖×] \S|(?:FAIL|PASS|ok)(?:\s|$)(?!.*[.?]$)|(?:not )?ok \d"
    r"|=== (?:RUN|PAUSE|CONT|NAME) |exit status \d|test \S+ \.{3} \w+$|thread '.{1,80}' panicked at |> Task :\w"
    r"|CONFLICT \(|(?:hint|remote|fatal): |Auto-merging \S|(?:create|delete) mode \d|\d+ files? changed, \d"  # git
    r"|[─━═┃┌╭╰╔╚║]|│.{0,280}│$|\"[\w .-]{1,80}\"\s*:\s|[}\]]+[,;]?$"  # boxes, JSON
    r"|(?:[\w.]{1,80})?(?:Error|Exception)(?:: |$)"
    r"|(?:\([\w.\-]+\) ?)?[\w.\-]+@[\w.\-]+[:~ ]\S*\s*[$#%>](?:\s|\w|$)"  # a shell prompt
    r"|(?:\$|PS [A-Z]:\S*>) \S|[^➜❯]{0,60}[➜❯]\s"
    r")|\S\t+\S|\[ *\d{1,3}%\]|^ {2,}[\w./-]{1,200}\.\w{1,5}:\d+: \S"  # cells of a table, progress, places in files
)
_SPOKEN = lazily(
    r"\b(?:i|i'(?:m|ve|d|ll)|my|me|we|our|you|your|please|but|also|instead|should|want|need)\b|[?？]$|^#",
    re.IGNORECASE,
)
"""Matches what people write: "I", "you", "please" and the like, a question, a heading."""
_MOST_BETWEEN = 20
"""Maximum number of lines between two lines of output that still count as output."""


def _data_lines(lines: Sequence[str]) -> Iterable[int]:
    """Return the numbers of lines of data such as logs, diffs, JSON and tables, unless there is only one short line."""
    found: list[int] = []
    goes_on = None
    for at, line in enumerate(lines):
        shown = line[:_LINE_SHOWN]
        opens = next((others for first, others in _OPENERS if first.match(shown)), None)
        is_line = bool(_LOG_LINE.search(shown)) or sum(map(line.count, _ESCAPE_MARKS)) >= _ESCAPES
        if opens is None and goes_on is not None and not goes_on.match(shown):
            goes_on = None
        goes_on = opens or goes_on or (_INDENTED if is_line else None)
        if (goes_on is not None or is_line) and line.strip():
            found.append(at)
    ruled = [at for at, line in enumerate(lines) if _RULED.match(line[:_LINE_SHOWN])]
    if ruled:
        found = sorted({*found, *range(ruled[0], ruled[-1] + 1)})
    if len(found) < 2 and sum(len(lines[at]) for at in found) <= _MIN_PASTED:
        return ()
    return (*found, *_lines_within(lines, found))


def _lines_within(lines: Sequence[str], found: Sequence[int]) -> Iterator[int]:
    """Yield the numbers of lines that belong to an output although they don't look like output: a few lines between two
    lines of output, and an indented line before the first one. They are left out if a person might have written one of
    them.
    """
    before = next((at for at in range(found[0] - 1, -1, -1) if lines[at]), None)
    if before is not None and _INDENTED.match(lines[before]) and not _is_said(lines[before]):
        yield before
    for start, end in pairwise(found):
        between = [at for at in range(start + 1, end) if lines[at]]
        if len(between) <= _MOST_BETWEEN and not any(_is_said(lines[at]) for at in between):
            yield from between


def _is_said(line: str) -> bool:
    """Return True if a line is not indented, and is a remark, an order or a list item of several words."""
    shown = line[:_LINE_SHOWN]
    if shown[0].isspace():
        return False
    is_item = bool(_ITEM.match(shown)) and len(shown.split(None, 3)) > 3
    return is_item or bool(_SPOKEN.search(shown)) or cues.is_imperative(shown)


_HEADER = lazily(
    r"^[>*\s]*(?:From|To|Cc|Bcc|Subject|Date|Sent|Reply-To|Von|An|Betreff|Gesendet|Datum|De|À|Objet|Para|Asunto)\**"
    r"\s*:\**\s+\S"
)
_MAIL = lazily(r"^[>*\s]*(?:Subject|Date|Sent|Betreff|Gesendet|Datum|Objet|Asunto)\b|\S@\S")
"""A header, or a part of one, that only mails have."""


def _lines_from_header(lines: Sequence[str]) -> Iterable[int]:
    """Return the numbers of a mail's lines, from the first of at least two adjacent headers on (see `_to_end`)."""
    headers = [bool(_HEADER.match(line)) for line in lines]
    for at, (is_header, follows) in enumerate(pairwise(headers)):
        if is_header and follows and any(map(_MAIL.search, lines[at : at + 2])):
            first = next((to + 1 for to in range(at - 1, -1, -1) if not headers[to]), 0)
            return _to_end(lines, first)
    return ()


_RESUMES = lazily(
    rf"^(?:please|can|could|would|will|what|who|whom|whose|which|how|why|when|where|is|are|was|were|do|does|did|should|"
    rf"shall|may|draft|answer|reply|respond|write|tell|give|list|explain|show|find|check|{_PROCESS})\b"
)
"""Begins a paragraph about a text above it."""
_LASTS = lazily(r"\b(?:always|never|from now on|every|each|whenever|don'?t ever|in future|prefer|without)\b")
_LONGEST_CLOSE = 300


def _to_end(lines: Sequence[str], start: int) -> Iterable[int]:
    """Return the numbers of the lines from `start` on, without a last paragraph that asks something about them."""
    blank = max((at for at in range(start, len(lines)) if not lines[at].strip()), default=start)
    close = one_line(" ".join(lines[blank:])).replace("\u2019", "'").lower()
    asks = bool(_RESUMES.match(close)) or close.endswith("?")
    has_text = any(line.strip() for line in lines[start:blank])
    if has_text and asks and len(close) <= _LONGEST_CLOSE and not _LASTS.search(close):
        return range(start, blank)
    return range(start, len(lines))


_DAY = r"(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})"
_CLOCK = rf"(?:{_DAY}[T, ]+)?\d{{1,2}}[:.]\d{{2}}(?::\d{{2}})?(?:\.\d{{1,6}})?Z?(?: ?[AaPp]\.?[Mm]\.?)?"
_SPEAKER = r"@?[^\W\d_][\w.'-]*(?: [\w.'-]+){0,3}"
_CHAT_LINE = lazily(
    rf"^\s*(?:(?:\[{_CLOCK}\]|\({_CLOCK}\)|{_CLOCK}),?\s*[-–—|]?\s*(?:<{_SPEAKER}>|{_SPEAKER}\s?:)\s"
    rf"|{_SPEAKER},? ?(?:\[{_CLOCK}\]|\({_CLOCK}\)|{_CLOCK})\s?:\s)"
)
"""A message in a chat, with its time and speaker."""
_CHAT_HEADING = lazily(rf"^\s*{_SPEAKER}\s+(?:\[{_CLOCK}\]|\({_CLOCK}\)|{_CLOCK})\s*$")
"""Speaker and time in the line above a message."""
_HALF_DAY = lazily(r"\d ?[AaPp]\.?[Mm]\.?\W*$")


def _chat_lines(lines: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the lines of a chat, from its first message to its last."""
    at_once = [at for at, line in enumerate(lines) if _CHAT_LINE.match(line[:_LINE_SHOWN])]
    if at_once:
        yield from range(at_once[0], at_once[-1] + 1)
    headings = [at for at, line in enumerate(lines) if _CHAT_HEADING.match(line[:_LINE_SHOWN])]
    if len(headings) > 1 or any(_HALF_DAY.search(lines[at]) for at in headings):
        end = next((at for at in range(headings[-1], len(lines)) if not lines[at]), len(lines))
        yield from range(headings[0], end)


_QUOTED = lazily(r"^\s*>")
_QUOTES = ("'''", '"""')
_RULER = lazily(r"^\s*([-=*_~])\1{2,}$")
_ITEM = lazily(r"^\s*(?:[-*+•·]|\d{1,3}[.)])\s")
_DEEP = lazily(r"^(?: {4}|\t)\s*(?!(?:[-*+•·]|\d{1,3}[.)])\s)\S")
"""A line that is indented like code."""
_FIELD = lazily(r"^[\w-]+:(?:\s|$)")


def _quoted_lines(lines: Sequence[str]) -> Iterable[int]:
    return (at for at, line in enumerate(lines) if _QUOTED.match(line))


def _block_lines(lines: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of lines in triple quotes, of lines between or below rulers if the line before introduces or
    asks about them (or, without a line before, if they are fields), and of lines indented like code. Lines that the
    line before makes the person's own are left out.
    """
    outside, end, item = "", 0, False
    unclosed: set[str] = set()
    is_deep = all(not line or line[0] in " \t" for line in lines)
    for at, line in enumerate(lines):
        if at < end or not line:
            continue
        before = lines[at - 1] if at else ""
        lead = _opening_words(outside)
        mark = line.lstrip()[:3]
        if mark in _QUOTES and mark not in unclosed:
            end = _block_end(lines, at, mark)
            unclosed |= set() if end else {mark}
            yield from range(at, end) if not _is_own(lead) else ()
        elif _RULER.match(line) and not outside.startswith("#"):
            asks = _shows(lead) or outside.endswith("?")
            closed = _block_end(lines, at, line.strip())
            is_field = not outside and closed > at and bool(_FIELD.match(lines[at + 1]))
            if (asks or is_field) and not _is_own(lead):
                end = closed or len(lines)
                yield from range(at, closed) if closed else _to_end(lines, at)
        elif not is_deep and not item and _DEEP.match(line) and (not before or before.endswith((":", "?"))):
            end = next((to for to in range(at, len(lines)) if lines[to] and lines[to][0] not in " \t"), len(lines))
            yield from range(at, end) if not _is_own(lead) else ()
        if at >= end:
            outside = line
            item = bool(_ITEM.match(line)) or (item and line[0] in " \t")


def _block_end(lines: Sequence[str], start: int, mark: str) -> int:
    """Return the number of the line after the one that closes a block, or 0 if it is not closed."""
    first = lines[start].strip()
    if len(first) > len(mark) and first.endswith(mark) and len(first) >= 2 * len(mark):
        return start + 1
    return next((at + 1 for at in range(start + 1, len(lines)) if lines[at].strip().endswith(mark)), 0)


_NOT_SHOWN = lazily(r"^\s*(?:<|```|~~~|https?://\S+$|(?:~|\.{0,2}|[A-Za-z]:)[/\\](?:\S+|\S.{0,300}\.\w{1,5})$)")
"""A line that is delimited in another way, or that only says where the text is."""
_POINTS_DOWN = lazily(r":$|\b(?:below|following)\b[^.!?]{0,40}[.!]?$")


def _lines_below(lines: Sequence[str], shown: set[int]) -> Iterator[int]:
    """Yield the numbers of the lines below an introduction: the lines of a list, or otherwise all (see `_to_end`).
    Nothing is yielded if the first of them is delimited in another way.
    """
    end = 0
    for at, line in enumerate(lines):
        if not line or at < end or at in shown or not _POINTS_DOWN.search(line):
            continue
        lead = _opening_words(line)
        start = next((to for to in range(at + 1, len(lines)) if lines[to]), None)
        if start is None or any(to in shown for to in range(at + 1, start + 1)):
            continue
        if not (_shows(lead) or _LABEL.match(lead)) or _NOT_SHOWN.match(lines[start]):
            continue
        if not _ITEM.match(lines[start]):
            yield from _to_end(lines, start)
            return
        goes_on = (to for to in range(start, len(lines)) if lines[to] and lines[to][0] not in " \t")
        end = next((to for to in goes_on if not _ITEM.match(lines[to])), len(lines))
        yield from range(start, end)


_FENCE = lazily(r"^ {0,3}(```+|~~~+)")


def _code_lines(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines of closed code blocks."""
    fenced: set[int] = set()
    opened: list[int] = []
    for at, line in enumerate(lines):
        if _FENCE.match(line):
            if opened:
                fenced.update(range(opened.pop(), at + 1))
            else:
                opened.append(at)
    return fenced


# ---- passages inside lines

_TAG = lazily(r"<(/?)([A-Za-z][\w.:-]*)(?:\s[^<>]{0,400})?>")
_OWN_TAG = lazily(
    rf"(?:\w+[-_])?(?:{_RULES}|query|question|prompt|user|human|format|role|context|b|i|u|em|strong|code|kbd|a|span)",
    re.IGNORECASE,
)
"""Tags with which people structure or emphasize their own words."""
_QUOTATIONS = lazily(
    r"“([^“”]{2,4000})”|„([^„“”]{2,4000})[“”]|«([^«»]{2,4000})»"
    r"|(?<![\w\"])\"(?!\s)((?:[^\"\n]|\n(?!\s*\n)){2,2000})(?<!\s)\"(?![\w\"])"
    r"|(?<![\w'])'(?!\s)((?:[^'\n]|(?<=\w)'(?=\w)){2,1000})(?<!\s)'(?![\w'])"
)
_COLON = lazily(r":(?=\s+\S)")
_OPENS_QUOTATION = ('"', "'", "“", "„", "«", "<", "`")
_LEAST_WORDS = 3
_MOST_COLONS = 6


def _within_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of passages in tags or quotation marks, or after a colon on a line that introduces them."""
    for find in (_tag_blocks, _quotes):
        yield from find(text)
    at = 0
    for line in text.splitlines(keepends=True):
        for found, _ in zip(_COLON.finditer(line), range(_MOST_COLONS), strict=False):
            rest = line[found.end() :]
            is_delimited = rest.lstrip().startswith(_OPENS_QUOTATION)
            if not is_delimited and _shows(_opening_words(line[: found.start()])):
                is_quoted = line.count('"', 0, found.start()) % 2 == 1
                end = line.find('"', found.end()) if is_quoted else -1
                yield at + line.index(rest.lstrip(), found.end()), at + (end if end > 0 else len(line.rstrip()))
                break
        at += len(line)


def _tag_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of blocks in tags, unless the tag or the words before make a block the person's own, or it
    has fewer than `_LEAST_WORDS` words.
    """
    opened: dict[str, list[re.Match[str]]] = {}
    for tag in _TAG.finditer(text) if "</" in text else ():
        if not tag[1]:
            opened.setdefault(tag[2], []).append(tag)
        elif opened.get(tag[2]):
            start = opened[tag[2]].pop()
            is_long = len(text[start.end() : tag.start()].split(None, _LEAST_WORDS)) >= _LEAST_WORDS
            if (
                is_long
                and not _OWN_TAG.fullmatch(tag[2])
                and not _is_own(_opening_words(_line_before(text, start.start())))
            ):
                yield start.start(), tag.end()


def _quotes(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of quotations that are introduced as the words of others. Quotations after a colon or without
    an introduction count, too, unless the words around them make them the person's own. One that is the whole text, or
    has fewer than `_LEAST_WORDS` words, does not count.
    """
    for found in _QUOTATIONS.finditer(text):
        said = next(filter(None, found.groups()))
        if len(said.split()) < _LEAST_WORDS or found[0] == text.strip():
            continue
        before = _line_before(text, found.start())
        lead = _opening_words(before)
        behind = text[found.end() :].partition("\n")[0]
        is_alone = not lead or before.rstrip().endswith((".", "!", "?"))
        if _shows(lead) or (
            (before.rstrip().endswith(":") or is_alone) and not _is_own(lead) and not _is_own(_opening_words(behind))
        ):
            yield found.span()


def _line_before(text: str, at: int) -> str:
    """Return the words before a place on its line, or the line above if there are none."""
    *above, line = text[max(0, at - 4 * _LONGEST_LEAD) : at].split("\n")
    if line.strip():
        return line
    return next((each for each in reversed(above) if each.strip()), "")
