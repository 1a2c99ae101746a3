"""Compacting a session: what waits is observed, rows are folded until they fit, what remains is packed into a target.

drain      what no observation covers yet is observed, a chunk at a time          one transaction each
fold       rows in sight are folded, a chunk at a time, until they fit            one operation, as a whole undone
remains    rows, passages and last messages are chosen, and printed
refusal    nothing, or more than there was, replaces nothing
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from omcli.base.errors import OverLimit, ProviderFailed
from omcli.base.record import fields_of, mutable_record, record
from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.observation import Observation
from omcli.memory.ports import LogQuery, Store
from omcli.memory.reflection import ReflectionOutcome as Came
from omcli.memory.reflection import Scope
from omcli.memory.tokens import TokenCounter, message_tokens, row_tokens
from omcli.operations.compact.output import TailPlan, Wanted, ending, remains
from omcli.operations.deps import Deps
from omcli.operations.ingest.files import FileInput, FileReport, ingest_files
from omcli.operations.observe.session import observe_session
from omcli.operations.reflect.rows import Reflection
from omcli.operations.reflect.session import reflect_rows, rows_to_fold, tried
from omcli.pack.budget import UNLIMITED
from omcli.pack.context_pack import ContextPack
from omcli.pack.layouts.compacted import CompactFormat, CompactHead
from omcli.pack.layouts.layout import PackContent

_TRIES = 2
"""How often a batch is shown to a model that fails."""
_WORTH_IT = 0.9
"""What a fold may leave of what it read, at most, for another one to be tried."""


class Refusal(StrEnum):
    """Why what came of it should replace nothing."""

    EMPTY = "empty"
    """There is nothing to print, or nothing to be replaced."""
    LARGER = "larger"
    """It has more tokens than what it would replace."""
    UNCOVERED = "uncovered"
    """Messages would be lost that no observation covers, and that was not to be."""


@record
class Asked:
    """What a compaction is to keep to."""

    wanted: Wanted
    most: int = 0
    """Batches and folds together, at most; 0: as many as it takes."""
    rows_tokens: int = 20_000
    """Tokens of the rows that are folded at once, at most."""
    is_dry: bool = False
    """Nothing is observed or folded: what remains is chosen from what is there."""
    earlier_tokens: int = 0
    """Of a summary that came with the session, and is replaced as well."""
    is_strict: bool = False
    """Nothing is printed where messages would be lost that no observation covers."""


@record
class Contract:
    """What is kept to, whatever comes of it."""

    target_tokens: int
    """What is printed has no more."""
    chunk_tokens: int
    """Of the messages that are observed at once, at most."""
    chunk_messages: int
    """Likewise; 0: any number."""
    max_iterations: int
    """Batches that are observed and folds, together at most; 0: as many as it takes."""


@record
class CameTo:
    """How far it came."""

    iterations: int
    """Batches that were observed, and folds."""
    reached: bool
    """Whether all that is remembered holds the target: every row that is in sight now fits into it, together with the
    last messages, and no message is lost. Where it does not, what says least was left out."""
    tokens_before: int
    """Of the messages of the main thread, or of subagents where there is none, and of a summary that came with them."""
    tokens_after: int
    """Of what is printed; in JSON of what the rows and the messages in it say."""
    uncovered: int
    """Messages that are lost to who reads what is printed: no observation covers them, nor are they among the last."""


@record
class Compacted:
    """What became of a session."""

    session: str
    contract: Contract
    came_to: CameTo
    pack: ContextPack
    """Its counter is that of all tokens here."""
    refusal: Refusal | None
    error: ProviderFailed | None
    """What kept messages from being observed, or rows from being folded."""


@mutable_record
class _Steps:
    """How many have been made, of how many there may be."""

    most: int
    done: int = 0

    @property
    def left(self) -> int | None:
        """None for any number."""
        return self.most - self.done if self.most else None


def take_in(transcript: FileInput, deps: Deps, *, session: str | None = None) -> FileReport:
    """Keeps the messages of a transcript; they wait to be observed."""
    [report] = ingest_files([transcript], deps, session=session)
    return report


def compact(session_id: str, deps: Deps, asked: Asked) -> Compacted:
    """Brings a session down to a target, and prints what remains.

    A model that fails twice leaves messages waiting: the rest is done without them. Messages are never changed. Raises
    LaneTaken and StaleBatch where somebody else is at it, and what a model raises that cannot be had at all:
    what was done before stays done then.
    """
    steps = _Steps(most=asked.most)
    unobserved = None if asked.is_dry else _drain(session_id, deps, steps)
    room = _Room(
        session_id=session_id,
        deps=deps,
        asked=asked,
        ending=ending(deps.store, session_id, asked.wanted, deps.counter),
        lost=_lost(session_id, deps.store),
        tokens_before=_tokens_before(session_id, deps.store, deps.counter) + asked.earlier_tokens,
    )
    before = room.rows()
    unfolded = None if asked.is_dry else _fold(room, steps)
    after = room.rows()
    figures = _Figures(room=room, iterations=steps.done, is_held=room.holds(after))
    # Folded rows say nothing that those they were made of don't, and leave less to choose from.
    pack = room.pack(before, figures.printed())
    is_told = asked.wanted.shape is CompactFormat.JSON
    shown = PackContent(session=pack.observations, tail=pack.turns)
    came_to = figures.came_to(shown, None if is_told else pack.printed)
    return Compacted(
        session=session_id,
        contract=figures.contract,
        came_to=came_to,
        pack=pack,
        refusal=_refusal(pack, came_to, room),
        error=unobserved or unfolded,
    )


def _drain(session_id: str, deps: Deps, steps: _Steps) -> ProviderFailed | None:
    """Observes what waits; gives what a model failed at, where it did so twice."""
    failed: ProviderFailed | None = None
    for _ in range(_TRIES):
        if steps.left == 0 or isinstance(failed, OverLimit):
            break
        try:
            for _step in observe_session(session_id, deps, batches=steps.left):
                steps.done += 1
        except ProviderFailed as error:
            failed = error
        else:
            return None
    return failed


@record
class _Lost:
    """Messages that no observation covers, where some wait that nobody was shown."""

    seqs: frozenset[int] = frozenset()

    def without(self, seqs: Sequence[int]) -> int:
        """How many there are besides these messages."""
        return len(self.seqs.difference(seqs))


def _lost(session_id: str, store: Store) -> _Lost:
    if not any(store.batches.pending(session_id).fresh_tokens.values()):
        return _Lost()
    return _Lost(seqs=frozenset(each.seq for each in store.messages.outline(session_id) if not each.is_covered))


@record
class _Room:
    """A session and the room there is for what is remembered of it."""

    session_id: str
    deps: Deps
    asked: Asked
    ending: TailPlan
    lost: _Lost
    tokens_before: int
    """Of what is to be replaced, and of what stays."""

    @property
    def store(self) -> Store:
        """Where the session is."""
        return self.deps.store

    def rows(self) -> tuple[Observation, ...]:
        """The rows in sight."""
        return tuple(logged.observation for logged in self.store.rows.log(LogQuery(session=self.session_id)))

    def holds(self, rows: Sequence[Observation]) -> bool:
        """Whether all of these rows can be printed, together with the last messages."""
        counter, target = self.deps.counter, self.asked.wanted.target
        if sum(row.tokens for row in rows if row.counter == counter.name) > target:
            return False
        return not self.pack(rows, _NO_FIGURES, is_quoted=False).left_out

    def pack(self, rows: Sequence[Observation], figures: CompactHead, *, is_quoted: bool = True) -> ContextPack:
        """What remains of the session, by these rows."""
        return remains(
            self.store.sessions.find(self.session_id),
            rows,
            self.ending,
            self.asked.wanted,
            figures,
            counter=self.deps.counter,
            now=self.deps.clock.now(),
            pending=self.store.batches.pending(self.session_id).messages,
            is_quoted=is_quoted,
        )


_NO_FIGURES = CompactHead()


def _fold(room: _Room, steps: _Steps) -> ProviderFailed | None:
    """Folds rows until they fit, or no more comes of it; all folds are one operation. Gives what a model failed at."""
    operation: int | None = None
    while steps.left != 0 and not room.holds(room.rows()):
        read = left = 0
        for chunk, target in _chunks(rows_to_fold(room.session_id, room.deps), room):
            if steps.left == 0:
                break
            if tried(Scope(session=room.session_id), room.deps.reflector.mark(chunk, target=target), room.deps):
                continue  # what comes to nothing is no operation
            operation = operation or _operation(room)
            try:
                folded = reflect_rows(chunk, room.session_id, room.deps, target=target, part_of=operation)
            except ProviderFailed as error:
                return error
            steps.done += folded.ending is not None
            read, left = read + folded.tokens_before, left + _left(folded)
        if left >= _WORTH_IT * read:
            break
    return None


def _left(folded: Reflection) -> int:
    return folded.tokens_after if folded.ending is Came.DONE else folded.tokens_before


def _operation(room: _Room) -> int:
    """Begins the one operation that all folds are a part of."""
    figures = {"target_tokens": room.asked.wanted.target}
    change = OperationWrite(verb=OperationKind.COMPACT, scope=Scope(session=room.session_id), figures=figures)
    return room.store.operations.change(change, now=room.deps.clock.now()).number


def _chunks(rows: Sequence[Observation], room: _Room) -> Iterator[tuple[list[Observation], float]]:
    """Rows in stretches that are folded at once, each with the part of the target that falls to it."""
    counter = room.deps.counter
    costs = [row_tokens(row, counter) for row in rows]
    share = room.ending.budgets.session / max(1, sum(costs))
    chunk: list[Observation] = []
    held = 0
    for row, cost in zip([*rows, None], [*costs, 0], strict=True):
        if chunk and (row is None or held + cost > room.asked.rows_tokens):
            yield chunk, max(2.0, share * held)
            chunk, held = [], 0
        if row is not None:
            chunk.append(row)
            held += cost


@record
class _Figures:
    """What is said of a compaction, as soon as it is known."""

    room: _Room
    iterations: int
    is_held: bool
    """Whether all rows that are in sight now can be printed."""

    @property
    def contract(self) -> Contract:
        """What was kept to."""
        deps = self.room.deps
        return Contract(
            target_tokens=self.room.asked.wanted.target,
            chunk_tokens=deps.observer.batch_tokens,
            chunk_messages=deps.observer.batch_messages or 0,
            max_iterations=self.room.asked.most,
        )

    def came_to(self, shown: PackContent, printed: str | None = None) -> CameTo:
        """What it came to, by what is shown, and how that is printed; None in JSON, which tells this itself."""
        counter = self.room.deps.counter
        stays = [turn.kept.seq for turn in shown.tail] + [kept.seq for kept in self.room.ending.staying]
        texts = [row.text for row in shown.session] + [turn.text for turn in shown.tail]
        uncovered = self.room.lost.without(stays)
        return CameTo(
            iterations=self.iterations,
            reached=self.is_held and not uncovered,
            tokens_before=self.room.tokens_before,
            tokens_after=sum(map(counter.text, texts)) if printed is None else counter.text(printed),
            uncovered=uncovered,
        )

    def printed(self) -> CompactHead:
        """What is printed of it."""
        first, before = self.room.ending.first_kept, self.room.tokens_before
        first_id = None if first is None else first.message.id or first.key
        contract = fields_of(self.contract)

        def about(shown: PackContent) -> Mapping[str, object]:
            return {"replace": True, **contract, **fields_of(self.came_to(shown))}

        is_kept = self.room.asked.wanted.is_kept
        return CompactHead(first_kept=first_id, tokens_before=before, about=about, is_kept=is_kept)


def _refusal(pack: ContextPack, came_to: CameTo, room: _Room) -> Refusal | None:
    counter = room.deps.counter
    replaced = came_to.tokens_before - sum(message_tokens(kept, counter) for kept in room.ending.staying)
    if room.asked.is_strict and came_to.uncovered:
        return Refusal.UNCOVERED
    if not (pack.observations or pack.turns) or not pack.printed or not replaced:
        return Refusal.EMPTY
    return Refusal.LARGER if came_to.tokens_after > replaced else None


def _tokens_before(session_id: str, store: Store, counter: TokenCounter) -> int:
    """Tokens of all messages that count; those of the main thread that were counted otherwise are counted anew."""
    stored = store.messages.tokens(session_id)
    if set(stored) <= {counter.name}:
        return sum(stored.values())
    return sum(message_tokens(kept, counter) for kept in store.messages.tail(session_id, max_tokens=UNLIMITED))
