"""Showing pending messages to an agent, and storing the valid part of its reply in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from omcli.base.errors import BadInput, BadUsage, StaleBatch, UnknownId
from omcli.base.record import field, record, replace
from omcli.llm.replies import row_text
from omcli.llm.schema import rules_of_user
from omcli.memory.batch import Batch, BatchOutcome, Observed
from omcli.memory.message import UNLIMITED, Image, KeptMessage, Role, TokenCounter
from omcli.memory.observation import PINNED, LogQuery, Observation, Replacement, Source, handle
from omcli.memory.ports import Store
from omcli.memory.reflection import Material, Reflected, ReflectionWrite, Scope, fingerprint
from omcli.memory.session import Session
from omcli.observers.agent_reply import (
    AgentReply,
    PendingToken,
    check_messages,
    observe_reply,
    parse_agent_reply,
    parse_token,
    shown_digest,
)
from omcli.observers.model.evidence import Evidence, select_context_rows
from omcli.observers.model.transcript import ObserverLimits, TranscriptView, view_transcript
from omcli.operations.deps import CONTEXT_ROWS, Deps
from omcli.operations.observe.rows import to_rows
from omcli.operations.reflect.session import as_fold
from omcli.operations.reflect.session import to_rows as reflected_rows
from omcli.pack.tail import TOOL_CHARS, excerpt
from omcli.reflectors.drafts import are_of_projects, is_newer_rule
from omcli.reflectors.reply import ProposedDrop, ProposedItem, ProposedRow, ReflectorReply, rows_by_label
from omcli.reflectors.validation import validate

_BY_AGENT = "agent"
_LABELS = ("m", "o")
"""First letters of the labels of messages and rows. No row id begins with either letter."""
_AGAIN = "nothing was written; `om pending` shows what waits now"


@record
class ApplyReport:
    """The changes that a reply made or, in a dry run, would make."""

    session: str
    messages: int
    """Number of newly covered messages."""
    rows: tuple[Observation, ...]
    """New reflections, items and observations."""
    hidden: tuple[str, ...]
    """Ids of the rows that were hidden."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """Number of corrections to the reply, by kind."""


def apply(
    document: object,
    deps: Deps,
    *,
    counters: Callable[[str], TokenCounter],
    dry_run: bool = False,
) -> ApplyReport:
    """Store the rows in an agent's reply to `om pending`, and make its changes to existing rows. A dry run writes
    nothing.

    `counters` returns the token counter with a given name. Raise BadInput if the reply is invalid, and StaleBatch if
    its messages or rows have changed since they were shown. In either case nothing is written.
    """
    given = parse_agent_reply(document)
    store = deps.store
    shown = _shown_again(parse_token(given.token), store, counters)
    rows = _rows(given, shown, store)
    check_messages(given, shown.evidence)
    seen = _observed(given, shown, rows, deps)
    folded = reflected(given, rows, counter=deps.counter, now=deps.clock.now())
    folding = _fold(shown.session.id, given, folded, rows, deps)
    findings = dict(Counter(seen.findings) + Counter(folded.findings))
    written = _Written.of(shown, seen, folding, findings, deps)
    if not dry_run:
        try:
            written.write(deps)
        except StaleBatch as error:
            raise StaleBatch(error.message, hint=_AGAIN) from None
    return written.told()


def _shown_again(wanted: PendingToken, store: Store, counters: Callable[[str], TokenCounter]) -> PendingView:
    """Rebuild the view that `om pending` showed, without its limit on tokens. Raise BadInput if the session or the
    counter is unknown, and StaleBatch if the view has changed.
    """
    session = store.sessions.find(wanted.session)
    if session is None:
        raise BadInput(f"token: session `{wanted.session}` is not in this store", hint="is `--db` the same as before?")
    batch = None
    if wanted.through:
        batch = store.batches.unobserved_up_to(session.id, wanted.through, context_rows=CONTEXT_ROWS)
    try:
        counter = counters(wanted.counter)
    except BadUsage as error:
        raise BadInput(f"token: {error.message}") from None
    shown = pending_view(store, session, batch, counter=counter)
    if shown.ticket != wanted:
        raise StaleBatch(f"session {session.id} has changed since `om pending` showed it", hint=_AGAIN)
    return shown


def _rows(given: AgentReply, shown: PendingView, store: Store) -> dict[str, Observation]:
    """Return the rows that the reply may refer to, by reference (label, id or handle).

    Raise BadInput for a reference that is unknown or ambiguous and for a row that belongs elsewhere, and StaleBatch for
    a hidden row.
    """
    rows = dict(shown.evidence.recorded.labels)
    rows |= {name: row for row in rows.values() for name in (row.id, handle(row.id))}
    for place, reference in given.rows():
        if reference in rows:
            continue
        try:
            row = store.rows.find(reference)
        except UnknownId as error:
            message = f"unknown row `{reference}`" if reference[:1] in _LABELS else error.message
            raise BadInput(f"{place}: {message}", hint="`om pending` prints the labels of rows") from None
        if not belongs(row, shown.session):
            raise BadInput(
                f"{place}: `{reference}` is a row of {f'session {row.session}' if row.session else row.project}"
            )
        if not row.is_visible:
            raise StaleBatch(f"{place}: `{reference}` is hidden already", hint=_AGAIN)
        rows[reference] = row
    return rows


def _observed(given: AgentReply, shown: PendingView, rows: Mapping[str, Observation], deps: Deps) -> Observed:
    """Return the observations in the reply.

    Raise BadInput if the reply lacks observations although messages were shown, or if it has any part of an observer's
    answer although none were.
    """
    if shown.batch is not None:
        if given.lacks_observations:
            raise BadInput("observations: is missing", hint="[] says that nothing is worth keeping")
        return observe_reply(given.answer, _evidence(shown, rows), shown.batch, rules=deps.observer.open())
    if given.is_about_messages:
        raise BadInput("observations: nothing was waiting; what is given now can only be about rows", hint=_AGAIN)
    return Observed(drafts=())


def _evidence(shown: PendingView, rows: Mapping[str, Observation]) -> Evidence:
    evidence = shown.evidence
    return Evidence(shown=evidence.shown, recorded=replace(evidence.recorded, labels=rows), cwd=evidence.cwd)


def _fold(
    session: str, given: AgentReply, folded: Reflected, rows: Mapping[str, Observation], deps: Deps
) -> ReflectionWrite | None:
    """Return the reply's changes to rows, or None if its reflections, items and retirements name no rows."""
    read = read_by(given, rows)
    if not read:
        return None
    scope = Scope(session=session)
    reflection, replaced = reflected_rows(scope, read, folded, deps)
    return as_fold(reflection, read, folded.dropped, replaced, fingerprint(read, _BY_AGENT))


@record
class _Written:
    shown: PendingView
    seen: Observed
    rows: tuple[Observation, ...]
    replaced: tuple[Replacement, ...]
    folding: ReflectionWrite | None
    findings: Mapping[str, int]

    @classmethod
    def of(
        cls,
        shown: PendingView,
        seen: Observed,
        folding: ReflectionWrite | None,
        findings: Mapping[str, int],
        deps: Deps,
    ) -> Self:
        batch, project = shown.batch, shown.session.project
        rows, replaced = to_rows(batch, seen.drafts, project=project, deps=deps) if batch else ((), ())
        return cls(shown=shown, seen=seen, rows=rows, replaced=replaced, folding=folding, findings=findings)

    def write(self, deps: Deps) -> None:
        """Write everything in one transaction. Raise StaleBatch if messages or rows have changed."""
        store, now = deps.store, deps.clock.now()
        if self.shown.batch is not None:
            store.batches.record(
                self.shown.batch,
                self.rows,
                outcome=BatchOutcome.OBSERVED if self.rows else BatchOutcome.EMPTY,
                now=now,
                replaced=self.replaced,
                used=self.seen.used,
                title=self.seen.title,
                folding=self.folding,
            )
        elif self.folding is not None:
            store.reflections.fold(self.folding, now=now)

    def told(self) -> ApplyReport:
        folded = self.folding
        hidden = [replacement.row for replacement in self.replaced]
        if folded is not None:
            hidden += [replacement.row for replacement in folded.replaced]
            hidden += [dropped.row for dropped in folded.dropped]
        return ApplyReport(
            session=self.shown.session.id,
            messages=len(self.shown.batch.messages) if self.shown.batch else 0,
            rows=(*(folded.rows if folded else ()), *self.rows),
            hidden=tuple(dict.fromkeys(hidden)),
            findings=self.findings,
        )


_LEFT_OUT = frozenset({"unaccounted"})
"""Findings to omit from the report, because agents may leave rows unmentioned."""


def read_by(given: AgentReply, rows: Mapping[str, Observation]) -> tuple[Observation, ...]:
    """Return the rows named in reflections, items and retirements, oldest first."""
    cited = [reference for reflection in given.reflections for reference in reflection.made_of]
    cited += [reference for item in given.items for reference in item.made_of]
    cited += [reference for retired in given.retired for reference in (retired.row, retired.by) if reference]
    found = {rows[reference].id: rows[reference] for reference in cited}
    return tuple(sorted(found.values(), key=lambda row: (row.dated, row.id)))


def reflected(given: AgentReply, rows: Mapping[str, Observation], *, counter: TokenCounter, now: str) -> Reflected:
    """Return the changes to rows that a reply makes. `rows` must contain every row that the reply names. A reflection
    replaces rows that a user wrote or pinned, and rules of the user, only if it repeats them word for word.

    Raise BadInput if the reply retires such a row. Only a rule of the user that was neither pinned nor written by
    hand may be retired, for a newer rule. Raise BadInput also if a row is to replace itself, if the reflections are no
    shorter than their source rows, if a text is empty once secrets are removed, if `validate` rejects it (for a name
    that its source rows lack, for example), or if its source rows are of several projects.
    """
    read = read_by(given, rows)
    if not read:
        return Reflected()
    _check_retired(given, rows)
    protected = frozenset(row.id for row in read if _is_user_row(row))
    material = Material(rows=read, target=0, now=now, protected=protected)
    answer = _answer(given, rows, {row.id: label for label, row in rows_by_label(material).items()})
    _check_texts(answer, material, counter)
    found = validate(answer, material, counter, retires=True)
    _check_size(given, rows, found.written, counter)
    made = found.reflected
    return replace(
        made,
        reflections=tuple(replace(draft, source=Source.AGENT) for draft in made.reflections),
        items=tuple(replace(draft, source=Source.AGENT) for draft in made.items),
        findings={name: number for name, number in made.findings.items() if name not in _LEFT_OUT},
    )


def _answer(given: AgentReply, rows: Mapping[str, Observation], labels: Mapping[str, str]) -> ReflectorReply:
    """Return the reply in the form of a model's reply."""

    def labels_of(references: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(labels[rows[reference].id] for reference in references))

    return ReflectorReply(
        reflections=tuple(
            ProposedRow(
                text=row_text(one.text),
                rows=labels_of(one.made_of),
                priority=one.priority,
                kind=one.kind,
                status=one.status,
            )
            for one in given.reflections
        ),
        drops=tuple(
            ProposedDrop(
                row=labels[rows[one.row].id],
                reason=row_text(one.reason),
                by=labels[rows[one.by].id] if one.by else "",
            )
            for one in given.retired
        ),
        items=tuple(
            ProposedItem(text=row_text(one.text), kind=one.type, tags=one.tags, rows=labels_of(one.made_of))
            for one in given.items
        ),
    )


def _check_texts(answer: ReflectorReply, material: Material, counter: TokenCounter) -> None:
    """Raise BadInput if the text of a reflection or item is invalid, or if it is made of rows of several projects. The
    error gives its position.
    """
    parts = [
        (f"reflections[{number}]", one.rows, ReflectorReply(reflections=(one,)))
        for number, one in enumerate(answer.reflections)
    ]
    parts += [(f"items[{number}]", one.rows, ReflectorReply(items=(one,))) for number, one in enumerate(answer.items)]
    rows = rows_by_label(material)
    for place, labels, part in parts:
        if are_of_projects(map(rows.__getitem__, labels or ())):
            raise BadInput(f"{place}.from: its rows are of several projects", hint="write one for each project")
        findings = validate(part, material, counter).reflected.findings
        if findings.get("rejected") or findings.get("rejected_items"):
            raise BadInput(
                f"{place}.text: it is empty once secrets are out, or names what the rows in `from` do not",
                hint="paths, identifiers and numbers have to stand in one of the rows",
            )


def _check_retired(given: AgentReply, rows: Mapping[str, Observation]) -> None:
    for number, one in enumerate(given.retired):
        row, by = rows[one.row], rows[one.by] if one.by else None
        if by and by.id == row.id:
            raise BadInput(f"retire[{number}].by: a row does not take its own place")
        if _is_user_row(row) or (rules_of_user(row) and not (by and is_newer_rule(by, row))):
            raise BadInput(f"retire[{number}].row: a person wrote or pinned it, and only a person takes it back")


def _check_size(given: AgentReply, rows: Mapping[str, Observation], after: int, counter: TokenCounter) -> None:
    made_of = {rows[reference].id: rows[reference].text for one in given.reflections for reference in one.made_of}
    before = sum(map(counter.text, made_of.values()))
    if given.reflections and after >= before:
        raise BadInput(
            f"reflections: they have {after} tokens, and the rows they are made of {before}",
            hint="say it in fewer words, or leave the rows as they are",
        )


def _is_user_row(row: Observation) -> bool:
    return row.source is Source.USER or PINNED in row.tags


# ---- pending messages, as shown to an agent


@record
class PendingMessages:
    pending_view: PendingView | None
    """None if the requested session is unknown, or if none was requested and no session has pending messages."""
    messages: int
    """Number of pending messages in the session, including those shown."""


def pending(store: Store, *, session: str | None, tokens: int, counter: TokenCounter) -> PendingMessages:
    """Return the oldest pending messages of a session, about `tokens` tokens, or more if none of these messages would
    be shown. Of a batch that has only summaries none is shown.

    If `session` is None, the most recently active session with pending messages is used. The store is only read.
    """
    if session is None:
        session = next(iter(store.sessions.with_work(counter.name, pending=0)), "")
    meant = store.sessions.find(session)
    if meant is None:
        return PendingMessages(pending_view=None, messages=0)
    waiting = store.batches.pending(meant.id)
    most = sum(waiting.tokens.values())
    while True:
        batch = store.batches.unobserved(meant.id, max_tokens=tokens, context_rows=CONTEXT_ROWS)
        shown = pending_view(store, meant, batch, counter=counter, tokens=tokens)
        # Summaries of earlier messages are not shown, so a batch of only these would look as if nothing were pending.
        # A late batch ends at the first message that is covered, however large it may be.
        if batch is None or shown.evidence.shown.new or tokens >= most:
            return PendingMessages(pending_view=shown, messages=waiting.messages)
        tokens *= 2


_ROWS = 600
"""Number of newest rows from which the rows to show are chosen."""
_ROOM = 2_000
"""Maximum number of tokens for the rows shown."""
_CHARS_PER_TOKEN = 4
_BESIDE = 30
"""Tokens to add for each line, besides the text: label, time and speaker."""


@record
class PendingView:
    """The messages and rows shown to an agent."""

    session: Session
    batch: Batch | None
    """The pending messages, or None if there are none."""
    evidence: Evidence
    ticket: PendingToken


def pending_view(
    store: Store, session: Session, batch: Batch | None, *, counter: TokenCounter, tokens: int | None = None
) -> PendingView:
    """Return the messages of a batch and the rows of its session as shown to an agent.

    Messages are shortened to fit into about `tokens` tokens; None means no limit. Long calls and results are shortened
    in any case. Labels depend only on the store, the batch, and the counter, which decides how many rows fit.
    """
    rows = [logged.observation for logged in store.rows.log(LogQuery(session=session.id, last=_ROWS))]
    recorded = select_context_rows(rows, room=_ROOM, counter=counter)
    shown = _shown(batch, counter, tokens)
    ids = [row.id for row in recorded.labels.values()]
    ticket = PendingToken(
        session=session.id,
        after=batch.after if batch else 0,
        through=batch.through if batch else 0,
        counter=counter.name,
        shown=shown_digest(session.id, [kept.seq for kept in shown.labels.values()], ids),
    )
    evidence = Evidence(shown=shown, recorded=recorded, cwd=session.cwd)
    return PendingView(session=session, batch=batch, evidence=evidence, ticket=ticket)


def _shown(batch: Batch | None, counter: TokenCounter, tokens: int | None) -> TranscriptView:
    if batch is None:
        return TranscriptView(content=(), labels={}, new=frozenset(), utc_offset=None, tokens=0, minutes={})
    room = UNLIMITED if tokens is None else tokens + _BESIDE * (len(batch.messages) + 2)
    return view_transcript(batch, limits=ObserverLimits(transcript=room), counter=counter, pictures=_no_image)


def _no_image(_image: Image) -> bytes | None:
    """Return None, because images are described in words."""
    return None


def excerpt_of(kept: KeptMessage, tokens: int) -> str:
    """Return the text of a message, cut to about `tokens` tokens or, for a tool call or result, `TOOL_CHARS`
    characters.
    """
    said = kept.message
    return excerpt(said.text, TOOL_CHARS if said.role in (Role.CALL, Role.RESULT) else _CHARS_PER_TOKEN * tokens)


def belongs(row: Observation, session: Session) -> bool:
    """Return True if a reply about the session may change the row: the row belongs to the session, or to no session and
    no other project.
    """
    return row.session == session.id or (row.session is None and row.project in (None, session.project))
