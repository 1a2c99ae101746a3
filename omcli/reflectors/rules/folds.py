"""Folding by rules: rows that one row can replace, and rows to drop.

Every fold is a proposal. `WorkingSet.fold` accepts it only if it is short and loses no name that matters. Outdated
rows are dropped first, then repeated ones, then the least informative.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from omcli.base import lazily
from omcli.base.record import field, mutable_record, record, replace
from omcli.llm.schema import rules_of_user
from omcli.memory.message import TokenCounter, row_tokens, rows_tokens
from omcli.memory.observation import (
    FAILURES,
    FILE_CHANGES,
    PINNED,
    SETTLED,
    Draft,
    Dropped,
    Kind,
    Observation,
    Priority,
    Status,
    Type,
)
from omcli.memory.reflection import Material
from omcli.pack.salience import by_salience
from omcli.pack.selection import OUTPUT_PART, quotes_output
from omcli.reflectors.drafts import folded as folded_draft
from omcli.reflectors.drafts import may_replace
from omcli.text.clean import AGENT, short
from omcli.text.phrases import anchors, counted, speaker, without_times
from omcli.text.terms import NEGATION, folded

_WHY_CHARACTERS = 100
_FILE_CHARACTERS = 150
"""Maximum length of a row of several edits. A pack chooses rows whole, so long ones would keep out what people said."""
_FILE = lazily(r"(?P<head>(?:Created|Modified|Deleted) .+?)(?: \(\d{1,9}\+? edits?(?: since)?\))?(?:: (?P<what>.*))?\Z")
_LISTS = lazily(r"(?:; )?(adds|removes) ([^·;]*)")

Groups = dict[object, list[Observation]]


def by_command(rows: Sequence[Observation]) -> Iterator[Draft]:
    """Yield a draft for each command that ran several times in a directory, at last with success: the count and the
    last result. Only settled rows are included, so failures only if they are resolved.
    """
    types = FAILURES | {Type.COMMAND_RUN}
    by_command: Groups = defaultdict(list)
    for row in rows:
        if row.type in types and (command := row.metadata.get("command")) and _is_settled(row):
            by_command[command, row.metadata.get("directory")].append(row)
    for same in by_command.values():
        last = max(same, key=lambda row: (row.dated, row.sources))
        if len(same) > 1 and last.type is Type.COMMAND_RUN:
            yield _counted(same, last)


def failures(rows: Sequence[Observation]) -> Iterator[Draft]:
    """Yield a draft for each command or target with several resolved failures: the count and the last failure. If at
    most three files changed between the last failure and its resolution, the draft names them.
    """
    changes = [row for row in rows if row.type in FILE_CHANGES and row.sources]
    by_target: Groups = defaultdict(list)
    for row in rows:
        if row.type in FAILURES and row.status is Status.RESOLVED:
            what = row.metadata.get("command") or row.metadata.get("target") or row.text
            by_target[row.type, what, row.metadata.get("directory")].append(row)
    for same in by_target.values():
        if len(same) > 1:
            draft = _counted(same, same[-1], status=Status.RESOLVED)
            between = [row for row in changes if same[-1].sources[:1] < row.sources[-1:] < same[-1].sources[-1:]]
            yield _with_change(draft, same, between)


def by_file(rows: Sequence[Observation]) -> Iterator[Draft]:
    """Yield drafts that fold changes to a file into its final state and the number of edits: one for each file or, if
    that would be too long or may not replace its rows, several.
    """
    by_path: Groups = defaultdict(list)
    for row in rows:
        if row.type in FILE_CHANGES and isinstance(path := row.metadata.get("path"), str) and _FILE.match(row.text):
            by_path[path].append(row)
    for same in by_path.values():
        draft: Draft | None = None
        group: list[Observation] = []
        for row in same:
            more = _file([*group, row]) if group else None
            if more and len(more.text) <= _FILE_CHARACTERS and may_replace(more.text, [*group, row]):
                draft = more
                group.append(row)
            else:
                if draft:
                    yield draft
                draft, group = None, [row]
        if draft:
            yield draft


def _file(same: Sequence[Observation]) -> Draft:
    read = [found for row in same if (found := _FILE.match(row.text))]
    verb, _, what = read[-1]["head"].partition(" ")
    created = any(row.type is Type.FILE_CREATED for row in same)
    verb = verb if verb == "Deleted" else "Created" if created else "Modified"
    changed = "" if verb == "Deleted" else _summary([found["what"] or "" for found in read])
    edits = sum(_edits(row) for row in same)
    times = (
        f" ({counted(edits)} edit{'s' if edits > 1 else ''}{' since' if created else ''})"
        if edits and verb != "Deleted"
        else ""
    )
    draft = folded_draft(same, f"{verb} {what}{times}{f': {changed}' if changed else ''}", reason="folded")
    about = {"path": same[-1].metadata["path"], "change": verb.lower(), "edits": edits}
    kind = Type.FILE_CREATED if created else Type.FILE_MODIFIED
    return replace(draft, type=kind, metadata={**draft.metadata, **about})


def _summary(changes: Sequence[str]) -> str:
    """Return all changes to a file: the names added or removed, each by its last change, and then the other parts."""
    became: dict[str, str] = {}
    rest: dict[str, None] = {}
    for each in changes:
        first, *others = each.split(" · ")
        lists = _LISTS.findall(first)
        for verb, listed in lists:
            became |= dict.fromkeys((name.strip() for name in listed.partition(" (+")[0].split(", ")), verb)
        rest |= dict.fromkeys(others if lists else [first, *others])
    names = {verb: [name for name, last in became.items() if last == verb] for verb in ("adds", "removes")}
    lists = [f"{verb} {', '.join(each)}" for verb, each in names.items() if each]
    return " · ".join(filter(None, ("; ".join(lists), *rest)))


ALL = (by_command, failures, by_file)


def _counted(same: Sequence[Observation], last: Observation, *, status: Status | None = None) -> Draft:
    """Return a draft with the text of `last` and the total count. If other rows are failures, add the reason of the
    last failure.
    """
    times = sum(_number(row, "times") for row in same)
    failed = [row for row in same if row.type in FAILURES and row is not last]
    what, arrow, outcome = without_times(last.text).partition(" → ")
    reason = short(without_times(failed[-1].text).partition(" → ")[2], _WHY_CHARACTERS) if failed else ""
    why = f"; failed: {reason}" if failed and arrow else ""
    text = f"{what} (× {counted(times)}{why}){f', last{arrow}{outcome}' if arrow else ''}"
    draft = replace(folded_draft(same, text, reason="counted"), status=status or last.status)
    about = {name: last.metadata[name] for name in ("command", "target", "tool", "exit_code") if name in last.metadata}
    return replace(draft, type=last.type, metadata={**draft.metadata, **about, "times": times})


def _with_change(draft: Draft, same: Sequence[Observation], changes: Sequence[Observation]) -> Draft:
    """Return the draft with the names of the files changed before the failure was resolved, unless over three were."""
    paths = list(dict.fromkeys(found["head"].partition(" ")[2] for row in changes if (found := _FILE.match(row.text))))
    if not 0 < len(paths) <= 3:
        return draft
    fixed = folded_draft(
        same, f"{draft.text} → works after changes to {', '.join(paths)}", reason="mended", also=changes
    )
    return replace(draft, text=fixed.text, sources=fixed.sources, supports=fixed.supports)


def _is_settled(row: Observation) -> bool:
    return row.status in SETTLED or (row.status is None and row.type is Type.COMMAND_RUN)


def _edits(row: Observation) -> int:
    """Return the number of edits in a row. Creating or deleting a file does not count."""
    edits = row.metadata.get("edits")
    return edits if isinstance(edits, int) else int(row.type is Type.FILE_MODIFIED)


def _number(row: Observation, name: str) -> int:
    number = row.metadata.get(name)
    return max(1, number) if isinstance(number, int) else 1


# ---- rows to drop


_COMPARED_TYPES = frozenset(
    {Type.FACT, Type.OUTCOME, Type.PLAN, Type.DECISION, Type.EVENT, Type.REQUEST, Type.QUESTION}
)
_DATED_TYPES = frozenset({Type.EVENT, Type.FACT})
"""Types of rows that may occur again on another day with the same wording."""
_STATE_TYPES = frozenset({Type.TASK, Type.TODO_UPDATED})
"""Types of rows that describe a state, so that only the latest row is current."""
_COMPARED = 50
"""Maximum number of rows with the same names and numbers to compare a row with."""
_FEWEST_WORDS = 4
"""Minimum number of words a row must have to count as repeated by another."""
_LEAST_SHARED = 0.75
"""Minimum number of words in a repeated row, as a share of those in the row that repeats it."""

_WORD = lazily(r"\w+(?:[-./:#@'’]+\w+)*")
_STOP_WORDS = frozenset("a an the is are was were be been am it this that i we you has have had just also now".split())
_CLAUSE_ENDS = lazily(r" · |[.:;!?](?= |$)")


def repeated(rows: Sequence[Observation]) -> Iterator[Dropped]:
    """Yield the rows that another row repeats, each with the id of the other row. `rows` is oldest first.

    Of rows with the same text the most important is kept, or the newest of equally important ones. Rows that differ in
    a detail such as a number, a name, a negation, the date they refer to or, for events and facts, their day do not
    repeat each other.
    """
    left: list[Observation] = []
    latest: dict[tuple[str, str | None, str | None], Observation] = {}
    newest = list(reversed(rows))
    newest.sort(key=lambda row: -row.priority.importance)
    for row in newest:
        if (same := latest.setdefault((row.text, *_day(row)), row)) is not row:
            yield Dropped(row=row.id, reason="duplicate", by=same.id)
        else:
            left.append(row)
    statements = [_Statement.of(row) for row in left if row.type in _COMPARED_TYPES]
    containing = _ClauseIndex(statements)
    kept: dict[tuple[object, ...], list[_Statement]] = defaultdict(list)
    for one in statements:
        alike = kept[one.names]
        by = next(
            (other for other in reversed(alike[-_COMPARED:]) if one.is_repeated_by(other)), None
        ) or containing.of(one)
        if by is None:
            alike.append(one)
        else:
            yield Dropped(row=one.row.id, reason="duplicate", by=by.row.id)


def stale(rows: Iterable[Observation], among: Iterable[Observation]) -> Iterator[Dropped]:
    """Yield the rows in `among` that are outdated: those about a state of a session, such as the current task or the
    todo list, except the latest of each.

    `rows` is all rows, oldest first.
    """
    latest = {(row.session, row.type): row for row in rows if row.type in _STATE_TYPES}
    for row in among:
        if row.type in _STATE_TYPES and row is not (current := latest[row.session, row.type]):
            yield Dropped(row=row.id, reason="superseded", by=current.id)


@record
class _Statement:
    row: Observation
    names: tuple[object, ...]
    """Parts that must be equal: type, speaker, day, names, numbers, the number of negations, and True for a row with
    rules of the user.
    """
    words: tuple[str, ...]
    """Normalised words in order, without stop words."""

    @classmethod
    def of(cls, row: Observation) -> _Statement:
        words = _WORD.findall(row.text)
        named = [word for word in words if word != word.lower() or not word.isalpha()]
        negated = sum(NEGATION.match(word) is not None for word in words)
        return cls(
            row=row,
            names=(
                row.type,
                speaker(row.text),
                *_day(row),
                frozenset((*named, *anchors(row.text))),
                negated,
                bool(rules_of_user(row)),
            ),
            words=tuple(folded(word.lower()) for word in words if word.lower() not in _STOP_WORDS),
        )

    def is_repeated_by(self, other: _Statement) -> bool:
        """Return True if another row with the same names contains all words of this row (at least four), in order, and
        few others.
        """
        if len(self.words) < _FEWEST_WORDS or len(self.words) < _LEAST_SHARED * len(other.words):
            return False
        rest = iter(other.words)
        return all(word in rest for word in self.words)


class _ClauseIndex:
    """Finds rows that contain the clauses of another row.

    For example, `Committed 38a965e on main: docs: link the guide` contains `docs: link the guide`.
    """

    def __init__(self, statements: Sequence[_Statement]) -> None:
        self._clauses = [_clauses(one.row.text) for one in statements]
        self._statements = statements
        self._places: dict[str, list[int]] = defaultdict(list)
        """Positions in `statements` of the rows with each clause."""
        for place, clauses in enumerate(self._clauses):
            for clause in set(clauses.strip("\n").split("\n")):
                self._places[clause].append(place)

    def of(self, one: _Statement) -> _Statement | None:
        """Return the row that contains the first part (before ` · `) of an agent's row, if each part is in a row that
        may cover it. Otherwise return None, also for rows of less than four words.
        """
        if not one.row.text.startswith(AGENT) or len(one.words) < _FEWEST_WORDS:
            return None
        parts = one.row.text.removeprefix(AGENT).split(" · ")
        holders = [self._whole(one.row, _clauses(part)) for part in parts]
        return holders[0] if all(holders) else None

    def _whole(self, row: Observation, part: str) -> _Statement | None:
        rarest = min((self._places[clause] for clause in part.strip("\n").split("\n")), key=len)
        for place in rarest:
            if _may_cover(row, self._statements[place].row) and part in self._clauses[place]:
                return self._statements[place]
        return None


def _may_cover(part: Observation, whole: Observation) -> bool:
    """Return True if `whole` may make `part` redundant. It must be more important, or equally important and longer.

    So two rows can never make each other redundant. Plans make no row redundant.
    """
    ranks = part.priority.importance, whole.priority.importance
    return whole.type is not Type.PLAN and (ranks[0], len(part.text)) < (ranks[1], len(whole.text))


def _clauses(text: str) -> str:
    """Return text in lower case with each clause on a line of its own. It begins and ends with a line break."""
    lines = (line.strip(" `*.").lower() for line in _CLAUSE_ENDS.sub("\n", text).split("\n"))
    return f"\n{chr(10).join(line for line in lines if line)}\n"


def _day(row: Observation) -> tuple[str | None, str | None]:
    """Return the date that a row refers to, and the day of the row itself.

    The second is None unless the row is an event or a fact that does not quote an agent.
    """
    return row.refers_to, row.dated[:10] if row.type in _DATED_TYPES and speaker(row.text) != "Agent" else None


@mutable_record
class WorkingSet:
    """The visible rows and the drafts while rows are folded and dropped."""

    counter: TokenCounter
    target: int
    """Number of tokens to reach."""
    tokens: int
    """Number of tokens in all visible rows, including drafts."""
    rows: dict[str, Observation]
    """Rows of the material that are still visible, by id, oldest first."""
    protected: frozenset[str]
    """Ids of rows that must stay visible."""
    fixed: frozenset[str]
    """Ids of rows that must not be merged or folded."""
    drafts: list[Draft] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    @classmethod
    def of(cls, material: Material, counter: TokenCounter, *, target: int) -> WorkingSet:
        """Return a working set of all rows in the material. Reflections can be folded again only if all rows are
        reflections.
        """
        again = all(row.kind is Kind.REFLECTION for row in material.rows)
        fixed = {row.id for row in material.rows if _is_kept(row) or (_is_reflection(row) and not again)}
        return cls(
            counter=counter,
            target=target,
            tokens=rows_tokens(material.rows, counter),
            rows={row.id: row for row in material.rows},
            protected=material.protected,
            fixed=material.protected | fixed,
        )

    @property
    def fits(self) -> bool:
        """True if the visible rows meet the target."""
        return self.tokens <= self.target

    @property
    def is_last(self) -> bool:
        """True if at most one row is left."""
        return len(self.rows) + len(self.drafts) <= 1

    def rows_to_merge(self) -> list[Observation]:
        """Return the rows that may be replaced with a row of the same content."""
        return [row for row in self.rows.values() if row.id not in self.fixed]

    def rows_to_fold(self) -> list[Observation]:
        """Return the rows whose wording may change."""
        return [row for row in self.rows_to_merge() if not (row.is_in_force or rules_of_user(row))]

    def drop(self, dropped: Dropped) -> None:
        self.tokens -= row_tokens(self.rows.pop(dropped.row), self.counter)
        self.dropped.append(dropped)

    def fold(self, draft: Draft) -> None:
        """Replace rows with a draft, unless one of the rows is no longer visible, or the draft is longer than the rows
        or may not replace them (`may_replace`).
        """
        if not all(row in self.rows for row in draft.replaces):
            return
        rows = [self.rows[row] for row in draft.replaces]
        before, after = rows_tokens(rows, self.counter), self.counter.text(draft.text)
        if after <= before and may_replace(draft.text, rows):
            for row in draft.replaces:
                del self.rows[row]
            self.tokens += after - before
            self.drafts.append(draft)


def by_value(working: WorkingSet) -> Iterator[Dropped]:
    """Yield rows to drop, the least informative first: those that a pack would choose last. Before them come rows that
    quote output, as far as they exceed the part that packs give to output.

    Protected, high-priority, open and pinned rows, rows in force, rules of the user, notes and items are never dropped.
    Ordering by age instead was worse: with long chats folded to half of their rows, packs answered an eighth fewer
    questions.
    """
    rows = list(working.rows.values())
    best = [rows[place] for place in by_salience(rows)]
    for row in (*reversed(list(_surplus(best, working))), *reversed(best)):
        is_kept = row.priority is Priority.HIGH or row.id in working.protected or _is_kept(row) or row.is_in_force
        if row.id in working.rows and not (is_kept or rules_of_user(row)):
            yield Dropped(row=row.id, reason="resolved" if row.status in SETTLED else "trivial")


def _surplus(best: Iterable[Observation], working: WorkingSet) -> Iterator[Observation]:
    """Yield rows that quote output, without the best ones that fit into the part of the target that packs give to
    output. `best` has the best row first.
    """
    room = working.target // OUTPUT_PART
    for row in best:
        if quotes_output(row):
            room -= row_tokens(row, working.counter)
            if room < 0:
                yield row


def _is_kept(row: Observation) -> bool:
    """Return True if a row must not be changed: if it is open, pinned, a note or an item."""
    return row.status is Status.OPEN or PINNED in row.tags or row.kind in (Kind.NOTE, Kind.ITEM)


def _is_reflection(row: Observation) -> bool:
    """Return True if a row was made by folding others."""
    return row.kind is Kind.REFLECTION
