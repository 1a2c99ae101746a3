"""A table of rows whose status may change, with indexes for repeats, failures, requests and claims.

A claim is a short statement that may be superseded later, for example by a row with "use X instead of Y" or "no longer
Y", or by one that gives the same thing a new value.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING

from omcli.base import lazily
from omcli.base.record import field, mutable_record, record, replace
from omcli.memory.observation import ASKED, FAILURES, FILE_CHANGES, OVERRULED, Draft, Status, Type
from omcli.text.phrases import times_in, with_times, without_times

if TYPE_CHECKING:
    from omcli.observers.rules.failures import OpenFailures


@mutable_record
class RowTable:
    """Rows by number, in the order in which they were added. A changed row gets a new number."""

    rows: dict[int, Draft] = field(default_factory=dict)
    asked: dict[int, None] = field(default_factory=dict)
    """Numbers of the questions and requests that have source messages, in order."""
    open: dict[int, None] = field(default_factory=dict)
    """Numbers of the open rows, in order."""
    failures: OpenFailures | None = None
    """Open failures, or None before the first row about a failure."""
    todo_list: int = -1
    """Number of the row with the latest complete todo list, even if it was removed since, or -1 without one."""
    latest: int = 0
    """Largest `seq` among the sources of all rows added so far, or 0 if no row has any."""
    by_seq: list[tuple[int, int]] = field(default_factory=list)
    """Last source and number of each row that has sources, sorted."""
    _by_key: dict[tuple[Type, str, str | None], int] = field(default_factory=dict)
    _running: dict[int, int] = field(default_factory=dict)
    """Numbers of rows about running commands and subagents, by source `seq`."""
    _positions: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Sort keys of rows that keep the position of the row they replaced."""
    _claims: dict[int, _Claim | None] = field(default_factory=dict)
    """Claims by row number, computed when needed. None means that the row makes no claim."""
    _next: int = 0
    _first: int = 0

    def start_batch(self) -> None:
        """Mark all rows added so far as context rows."""
        self._first = self._next

    def changed_rows(self) -> tuple[Draft, ...]:
        """Return the new and changed rows, sorted by `position`."""
        rows = (self.rows[number] for number in sorted(self.new_numbers(), key=self.position))
        return tuple(row if row.replaces else replace(row, reason=None) for row in rows)

    def new_numbers(self) -> list[int]:
        return [number for number in range(self._first, self._next) if number in self.rows]

    def position(self, number: int) -> tuple[int, int]:
        """Return the sort key of a row, by default its last source and its number."""
        return self._positions.get(number) or (self.rows[number].sources[-1], number)

    def remaining(self, numbers: Iterable[int]) -> Iterator[tuple[int, Draft]]:
        """Yield each of these rows with its number, unless the row is no longer in the table when its turn comes.
        Settling a row may remove others with the same text.
        """
        for number in tuple(numbers):
            if number in self.rows:
                yield number, self.rows[number]

    def within(self, after: int, through: int) -> list[int]:
        """Return the numbers, in order, of the rows whose last source is after `after` and not after `through`."""
        begin, end = (bisect_left(self.by_seq, (seq + 1,)) for seq in (after, through))
        return sorted(number for _, number in self.by_seq[begin:end])

    def running(self, sources: Iterable[int]) -> set[int]:
        """Return the numbers of rows about running commands and subagents that have one of these sources."""
        return {self._running[seq] for seq in sources if seq in self._running}

    def add(self, draft: Draft, position: tuple[int, int] | None = None) -> int:
        """Add a row unchanged and return its number. `position` is the sort key of the row that it replaces, if any."""
        number = self._next
        self._next += 1
        self.rows[number] = draft
        self._by_key[row_key(draft)] = number
        if position is not None:
            self._positions[number] = position
        if draft.type in FAILURES:
            from omcli.observers.rules.failures import OpenFailures  # noqa: PLC0415

            self.failures = self.failures or OpenFailures()
            self.failures.add(number, draft, failure_directory(draft))
        if is_running(draft):
            self._running |= dict.fromkeys(draft.sources, number)
        if draft.sources:
            insort(self.by_seq, (draft.sources[-1], number))
        if draft.type in ASKED and draft.sources:
            self.asked[number] = None
        if draft.status is Status.OPEN:
            self.open[number] = None
        if todo_texts(draft):
            self.todo_list = number
        self.latest = max(self.latest, *draft.sources[-1:], 0)
        return number

    def remove(self, number: int) -> Draft:
        draft = self.rows.pop(number)
        self.asked.pop(number, None)
        self.open.pop(number, None)
        if draft.sources:
            del self.by_seq[bisect_left(self.by_seq, (draft.sources[-1], number))]
        key = row_key(draft)
        if self._by_key.get(key) == number:
            del self._by_key[key]
        if self.failures is not None:
            self.failures.remove(number)
        for seq in draft.sources:
            if self._running.get(seq) == number:
                del self._running[seq]
        return draft

    def replace(self, number: int, draft: Draft, *, reason: str) -> Draft:
        """Remove a row. Return the draft that replaces it, with the `sources` and `replaces` of both and the reason."""
        old = self.remove(number)
        replaces = (*old.replaces, *(one for one in draft.replaces if one not in old.replaces))
        return replace(draft, sources=merged(old.sources, draft.sources), replaces=replaces, reason=reason)

    def merge_repeats(self, draft: Draft) -> Draft:
        """Remove the open failures that a row repeats, and the row with the same key. Return the row merged with those
        removed, or unchanged if there are none.
        """
        if draft.type in FAILURES and self.failures is not None:
            for number, row in self.remaining(self.failures.repeated_by(draft, failure_directory(draft))):
                draft = self.replace(number, with_count(row, draft), reason="failed again")
        if (same := self._by_key.get(row_key(draft))) is not None:
            draft = self.replace(same, with_count(self.rows[same], draft), reason="said again")
        return draft

    def replace_claims(self, draft: Draft) -> Draft:
        """Remove the rows whose claims a draft overrules, and return the draft that replaces them, with their sources.
        Each claim, or only its value if nothing else differs, is appended as `(earlier: …)`, unless the draft has all
        its words.
        """
        change = _update_of(draft)
        for number, anew in self._replaced(change) if change else ():
            claim = self._claims[number]
            assert claim is not None
            draft = replace(draft, text=_with_earlier(draft.text, claim, anew=anew))
            draft = self.replace(number, draft, reason="overruled")
        return draft

    def _replaced(self, change: _ClaimUpdate) -> list[tuple[int, bool]]:
        """Return the number of each superseded row, with True if only its value differs."""
        claims: list[tuple[int, _Claim]] = []
        for number, row in self.rows.items():
            if number not in self._claims:
                self._claims[number] = _claim_of(row)
            if (claim := self._claims[number]) and _may_replace(change, claim):
                claims.append((number, claim))
        if change.takes_back:
            said = [number for number, row in self.rows.items() if row.text.startswith(f"{change.speaker}: ")]
            return [(n, False) for n, claim in claims if n in said[-1:] and claim.kind not in (Type.FACT, Type.REQUEST)]
        for named, about in change.given_up:
            for number, claim in reversed(claims):
                if _is_dropped(claim, named, about):
                    return [(number, False)]
        return [(number, True) for number, claim in claims if _has_new_value(claim, change)]


def merged(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    """Return the sources of both rows, sorted and without duplicates."""
    return tuple(sorted({*old, *new}))


def row_key(draft: Draft) -> tuple[Type, str, str | None]:
    """Return the key that repeated rows share: type, text without its count, and a failure's directory."""
    text = without_times(draft.text) if _is_counted(draft) else draft.text
    return draft.type, text, failure_directory(draft)


def _is_counted(draft: Draft) -> bool:
    return draft.type in FAILURES or (draft.type is Type.COMMAND_RUN and "command" in draft.metadata)


def with_count(old: Draft, new: Draft) -> Draft:
    """Return the new row with the counts of both rows added up: edits of a file, or how often a command ran or a call
    failed.

    Other rows, and rows about running commands, are returned unchanged.
    """
    if new.type in FILE_CHANGES:
        edits = _edits(old) + _edits(new) + (new.type is Type.FILE_CREATED)  # the file already existed
        return replace(new, metadata=MappingProxyType({**new.metadata, "edits": edits}))
    if not _is_counted(new) or is_running(new):
        return new
    times = times_in(old.text) + times_in(new.text)
    metadata = MappingProxyType({**new.metadata, "times": times})
    return replace(new, text=with_times(without_times(new.text), times), metadata=metadata)


def _edits(draft: Draft) -> int:
    edits = draft.metadata.get("edits")
    return edits if isinstance(edits, int) else 1


def failure_directory(draft: Draft) -> str | None:
    """Return the directory that a failed command ran in. None means that it is unknown, or that the row is not about a
    failure.
    """
    directory = draft.metadata.get("directory") if draft.type in FAILURES else None
    return directory if isinstance(directory, str) else None


def is_running(draft: Draft) -> bool:
    """Return True if a row is about a process or subagent that is still running."""
    return draft.status is Status.OPEN and isinstance(draft.metadata.get("process"), str)


def todo_texts(row: Draft | None) -> frozenset[str]:
    """Return the entries of a complete todo list, or an empty set for other rows."""
    entries = row.metadata.get("todos") if row and row.type is Type.TODO_UPDATED else None
    if row is None or not isinstance(entries, list | tuple) or row.metadata.get("partial"):
        return frozenset()
    return frozenset(str(entry.get("text")) for entry in entries if isinstance(entry, dict))


def is_empty_todo(row: Draft, listed: Draft) -> bool:
    """Return True if a row is an empty todo list of the agent that wrote the list `listed`."""
    is_list = row.type is Type.TODO_UPDATED and not row.metadata.get("partial")
    return is_list and not row.metadata.get("todos") and row.metadata.get("agent") == listed.metadata.get("agent")


# ---- claims

_LONGEST_OLD = 160
"""Maximum length of a claim, in characters. Longer rows make several statements."""
_LONGEST_NEW = 400
_OVERRULING = OVERRULED | {Type.CORRECTION, Type.REQUEST}
_EARLIER = lazily(r" \(earlier: .*\)$")
_AGENT = "Agent"
_PERSON = "User"

# The thing given up. It ends at the next phrase (`_ENDS_PHRASE`).
_ABANDONS = lazily(
    r"\b(?:instead of|rather than|in place of|"
    r"(?:switch|mov|migrat|chang)(?:e|ed|es|ing|ing over)? (?:[\w\-]+ ){0,3}?from|"
    r"no longer|stop(?:ped)? using|not using|(?:forget|scrap|drop|never ?mind)(?: what i said)?(?: about)?|"
    r"changed my mind (?:about|on)) +(?P<old>[^\s,;.!?][^,;!?\n]{0,80})"
    r"|\b(?:don'?t|do not|doesn'?t|won'?t) (?P<anymore>[^,;.!?\n]{1,60}?) any ?more\b"
    r"|\bnot (?P<not>[^,;.!?\n]{1,40}?),? but\b|, not (?P<last>[^,;.!?\n]{1,40})[.!]*$",
    re.IGNORECASE,
)
_ENDS_PHRASE = lazily(r"\s(?:to|with|for|because|since|and|but|in|on|when|as|so|anymore|any more)\b|\.(?:\s|$)")
_TAKES_BACK = lazily(
    r"\b(?:scrap|forget|never ?mind) (?:that|it|this)\b|\b(?:i|we)(?:'ve| have)? changed (?:my|our) minds?\b",
    re.IGNORECASE,
)
_QUOTED = lazily(r"\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb|`[^`]*`|\A>.*")
"""Words of others that a statement quotes. They supersede nothing."""
_IN_USE = lazily(
    r"\b(?:use|uses|using|have|has|prefers?|is|are|runs?|lives?|works?|set|called|named|keep|stays?|go(?:ing)? with|"
    r"on|at|in)\b",
    re.IGNORECASE,
)

_WORDS = lazily(r"[^\W_][\w'./+#\-]*")
_STOP_WORDS = frozenset(
    (
        "a about actually agent an and any anymore anything are as at be but by do does for from go going have i in "
        "instead is it its just keep let let's longer make more my need no not now of on or our please prefer put "
        "rather said set so stay than that the then this to us use used user uses using want was we what when will "
        "with work works you your"
    ).split()
)

_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_VALUE = lazily(
    rf"\b{_MONTH}(?: \d{{1,2}}(?:st|nd|rd|th)?)?(?:,? \d{{4}})?\b|\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}(?: \d{{4}})?\b"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
    r"|(?<![\w.])v?\d[\w.:,/%\-]*"
    r"|(?<![.!?:] )(?<!^)\b(?P<name>[A-Z][\w\-]+(?: [A-Z][\w\-]+)*)"
)
_AS_VALUE = lazily(
    r"(?:\b(?:is|are|be|to|at|of|all|only|under|over|about|until|by|on|in|within|have|has|called|named)|[=:]) $",
    re.IGNORECASE,
)
_STATEMENT = lazily(r"(?:the|our|my|i|we|it|its|this|that|his|her|their|all)\b", re.IGNORECASE)
_PAST = lazily(r"\b(?:was|were|went|had|did|bought|got|saw|took|ran|made|\w+ed)\b", re.IGNORECASE)
_ONE_NAME = lazily(
    r"\b(?:i|we) (?:live|work|am based|are based)\b|\b(?:my|our|the) [\w\- ]{1,40} is\b|\b(?:called|named)\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3


@record
class _Claim:
    """A statement that a later row may supersede."""

    kind: Type
    speaker: str
    words: frozenset[str]
    """Lower-case words of the text, except stop words."""
    frame: tuple[Type, str, str] | None
    """Row type and the text around the claim's only value, such as `the limit is`, or None without such a value."""
    value: str
    said: str
    """Text without the speaker and without an appended `(earlier: …)`."""


@record
class _ClaimUpdate:
    """The part of a new row that supersedes earlier claims."""

    speaker: str
    given_up: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """Words for each thing given up, and for its subject: ({"postgres"}, {"queue"})."""
    takes_back: bool
    """True if the row withdraws the last statement: "scrap that"."""
    frame: tuple[Type, str, str] | None
    """As in `_Claim`. A claim of the same speaker with the same frame is superseded."""


def _claim_of(row: Draft) -> _Claim | None:
    speaker, said = _speaker_and_text(row.text)
    if not _is_claim(row, said):
        return None
    around = _split_at_value(said, speaker)
    return _Claim(
        kind=row.type,
        speaker=speaker,
        words=_content_words(said),
        frame=around and (row.type, around[0], around[2]),
        value=around[1] if around else "",
        said=said,
    )


def _update_of(row: Draft) -> _ClaimUpdate | None:
    if row.type not in _OVERRULING or len(row.text) > _LONGEST_NEW:
        return None
    speaker, said = _speaker_and_text(row.text)
    # Agents say "instead" and "not … but" in explanations; only their decisions supersede anything.
    given_up = _abandoned(said) if speaker != _AGENT or row.type is Type.DECISION else ()
    takes_back = not given_up and any(not _is_quoted(said, match.start()) for match in _TAKES_BACK.finditer(said))
    around = _split_at_value(said, speaker) if _is_claim(row, said) else None
    if not (given_up or takes_back or around):
        return None
    framed = around and (row.type, around[0], around[2])
    return _ClaimUpdate(speaker=speaker, given_up=given_up, takes_back=takes_back, frame=framed)


def _may_replace(change: _ClaimUpdate, claim: _Claim) -> bool:
    """Return True if the same speaker made the claim and wrote the new row, or if an agent made the claim and the user
    wrote the new row.
    """
    return claim.speaker == change.speaker or (claim.speaker == _AGENT and change.speaker == _PERSON)


def _is_dropped(claim: _Claim, named: frozenset[str], about: frozenset[str]) -> bool:
    """Return True if a claim uses the thing given up (`named`) for the same subject (`about`).

    A claim that itself gives up the thing does not count, and neither does an agent's claim that is not a decision.
    """
    if not named <= claim.words or (about and not about & claim.words):
        return False
    if claim.speaker == _AGENT and claim.kind is not Type.DECISION:
        return False
    if claim.kind in (Type.FACT, Type.REQUEST) and not _IN_USE.search(claim.said):
        return False
    return not any(named <= before for before, _ in _abandoned(claim.said))


def _has_new_value(claim: _Claim, change: _ClaimUpdate) -> bool:
    """Return True if the new row repeats a claim of the same speaker with another value: `The limit is 20` after `The
    limit is 10`.
    """
    return change.frame is not None and claim.frame == change.frame and claim.speaker == change.speaker


def _with_earlier(text: str, claim: _Claim, *, anew: bool) -> str:
    """Append the superseded claim, or with `anew` only its value, to text that does not contain it."""
    earlier = claim.value if anew else claim.said
    return text if _content_words(earlier) <= _content_words(text) else f"{text} (earlier: {earlier})"


def _is_claim(row: Draft, said: str) -> bool:
    """Return True if a row is a short decision, fact, instruction or preference, or a short request worded as a
    statement.
    """
    is_statement = row.type in OVERRULED or (row.type is Type.REQUEST and bool(_STATEMENT.match(said)))
    return is_statement and len(said) <= _LONGEST_OLD


def _abandoned(said: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    found = []
    for match in _ABANDONS.finditer(said):
        if _is_quoted(said, match.start()):
            continue
        phrase = next(filter(None, match.groups()))
        end = _ENDS_PHRASE.search(phrase)
        named = _content_words(phrase[: end.start()] if end else phrase)
        # "from A to B": the rest is the new value, not the subject.
        about = "" if end is None or end[0].strip() == "to" else phrase[end.end() :]
        if named:
            found.append((named, _content_words(about)))
    return tuple(found)


def _is_quoted(said: str, place: int) -> bool:
    return any(quoted.start() <= place < quoted.end() for quoted in _QUOTED.finditer(said))


def _split_at_value(said: str, speaker: str) -> tuple[str, str, str] | None:
    """Split a statement into the lower-case text before its value, the value, and the lower-case text after it.

    Return None unless the statement has exactly one value (a date, weekday, number or name) after a word such as "is"
    or "at", at least `_FEWEST_WORDS` other words and no past tense. A name counts only if the speaker is the user and
    there can be just one name: "I live in …".
    """
    values = list(islice(_VALUE.finditer(said), 2))
    if len(values) != 1:
        return None
    before, value, after = said[: values[0].start()], values[0][0], said[values[0].end() :]
    if not _AS_VALUE.search(before) or _PAST.search(said) or len(_WORDS.findall(before + after)) < _FEWEST_WORDS:
        return None
    if values[0]["name"] and (speaker != _PERSON or not _ONE_NAME.search(said)):
        return None
    return before.lower(), value, after.lower().rstrip(" .!")


def _speaker_and_text(text: str) -> tuple[str, str]:
    speaker, _, said = text.partition(": ")
    return speaker, _EARLIER.sub("", said.replace("\u2019", "'"))


def _content_words(text: str) -> frozenset[str]:
    words = map(str.rstrip, _WORDS.findall(text), repeat(".'/-"))
    return frozenset(map(str.lower, words)) - _STOP_WORDS
