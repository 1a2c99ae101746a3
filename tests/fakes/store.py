"""The store in memory, under the same contract tests as the one in a file."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate, takewhile

from omcli.base.errors import LaneTaken, NotUndoable, SessionTaken, StaleBatch, UnknownId
from omcli.memory import buffer_text as block_text
from omcli.memory.backups import BackedUp, Backup, is_due
from omcli.memory.batching import Waiting, batch_length
from omcli.memory.bookmark import Bookmark, Origin, TakenIn
from omcli.memory.buffer import Block, in_line, is_superfluous
from omcli.memory.changes import (
    Change,
    Erased,
    Kin,
    Recorded,
    Titled,
    Traces,
    Undoing,
    Verb,
    tombstone,
    tombstone_of,
)
from omcli.memory.coverage import row_says
from omcli.memory.freeze import Cutting, Horizon
from omcli.memory.message import KeptMessage, Message, Role
from omcli.memory.observation import Kind, Observation, Source, handle
from omcli.memory.ports import (
    Appended,
    Batch,
    Covered,
    Incoming,
    Lane,
    LaneError,
    Logged,
    LogQuery,
    Outcome,
    Pending,
    Replacement,
    SessionSummary,
    StoreStatus,
)
from omcli.memory.reflection import Attempt, Ending, Folding, Scope
from omcli.memory.retention import Outlined
from omcli.memory.roles import Dropped
from omcli.memory.session import Session
from omcli.text.similarity import wording
from tests.fakes.rows import (
    asked_for,
    covers,
    marked_used,
    replaced_by,
    span,
    storable,
    taken_back,
    taken_out,
    told_by,
    unlinked,
    well_formed,
    without_pictures,
)


@dataclass(slots=True)
class _Done:
    """An operation, and what it made, hid and put aside."""

    recorded: Recorded
    part_of: int | None
    made: set[str]
    """Ids of rows."""
    hidden: set[str]
    messages: set[int]
    """`seq` of those that are aside by it, deleted or not."""
    rows: set[str]
    """Ids of rows that are."""
    titles: set[Titled]
    attempt: int | None = None
    """Which reflection it is."""


@dataclass(slots=True)
class _Seen:
    """A session and when it was last seen."""

    session: Session
    seen_at: str


class MemoryStore:
    """A store in memory: plain lists, searched from end to end."""

    def __init__(self, *, is_gone: Callable[[str], bool] = lambda _: False) -> None:
        self._is_gone = is_gone
        self._sessions: dict[str, _Seen] = {}
        self._identities: dict[str, KeptMessage] = {}
        self._messages: list[KeptMessage] = []
        self._log: list[Logged] = []
        self._cursors: Counter[str] = Counter()
        self._deferred: dict[tuple[str, int], int] = {}
        self._attempts: list[Attempt] = []
        self._pictures: dict[str, bytes] = {}
        self._snapshots = 0
        self._backed_up: str | None = None
        self._failures: dict[str, LaneError] = {}
        self._bookmarks: dict[str, tuple[str, tuple[Bookmark, ...]]] = {}
        self._leases: dict[tuple[str, Lane], tuple[str, str]] = {}
        self._blocks: list[Block] = []
        self._batches: list[tuple[Batch, range]] = []
        self._done: list[_Done] = []
        self._aside: list[KeptMessage] = []
        self._stubs: list[KeptMessage] = []
        """Messages that were deleted."""
        self._rows_aside: list[Logged] = []
        self._successors: list[Replacement] = []
        self._passed: dict[int, str] = {}
        """Messages that were put aside while they waited, and when."""
        self._tombs: list[tuple[str, _Done]] = []
        self._positions = 0
        self._seqs = 0
        self._operations = 0

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> Appended:
        session = storable(session)
        if self._is_forgotten_title(session.title):
            session = replace(session, title=None)
        for incoming in messages:
            if incoming.formerly in self._identities:
                self._identities.setdefault(incoming.identity, self._identities.pop(incoming.formerly))
        if not self.begins_with(session.id, [incoming.identity for incoming in messages[:opening]]):
            raise SessionTaken(f"session {session.id} was begun by another process meanwhile")
        seen = self._sessions.setdefault(session.id, _Seen(session, now))
        seen.session = seen.session.merged(session)
        new = tuple(self._keep(incoming, session=session.id, counter=counter) for incoming in messages)
        if any(new):
            seen.seen_at = max(seen.seen_at, now)
        return Appended(new=new)

    def _keep(self, incoming: Incoming, *, session: str, counter: str) -> bool:
        if incoming.identity in self._identities:
            return False
        for image in incoming.message.images:
            if image.content:
                self._pictures.setdefault(image.sha256, image.content)
        self._seqs += 1
        kept = KeptMessage(
            seq=self._seqs,
            session=session,
            key=well_formed(incoming.key),
            message=storable(without_pictures(incoming.message)),
            tokens=incoming.tokens,
            counter=counter,
        )
        self._identities[incoming.identity] = kept
        self._messages.append(kept)
        return True

    def begins_with(self, session: str, identities: Sequence[str]) -> bool:
        found = [self._identities.get(identity) for identity in dict.fromkeys(identities)]
        expected = [kept for kept in found if kept is None or kept.session == session]
        first = [kept for kept in self._ever() if kept.session == session]
        return all(kept == wanted for kept, wanted in zip(first, expected, strict=False))

    def known(self, identities: Sequence[str]) -> tuple[bool, ...]:
        return tuple(identity in self._identities for identity in identities)

    def newest(self, session: str, count: int) -> tuple[KeptMessage, ...]:
        own = [kept for kept in self._messages if kept.session == session]
        return tuple(own[max(0, len(own) - count) :])

    def bookmarks(self, origin: Origin) -> tuple[Bookmark, ...]:
        terms, bookmarks = self._bookmarks.get(well_formed(origin.path), ("", ()))
        return bookmarks if terms == well_formed(origin.terms) else ()

    def put_bookmarks(self, origin: Origin, bookmarks: Sequence[Bookmark]) -> None:
        self._bookmarks[well_formed(origin.path)] = (well_formed(origin.terms), tuple(bookmarks))

    def taken_in(self) -> tuple[TakenIn, ...]:
        return tuple(
            TakenIn(origin=Origin(path=path, terms=terms), stamp=bookmarks[-1].stamp)
            for path, (terms, bookmarks) in sorted(self._bookmarks.items())
            if bookmarks
        )

    def pending(self, session: str, *, ahead: bool = False) -> Pending:
        after = self._last_end(session) if ahead else self._cursors[session]
        offered = self._deferred.get((session, after), 0)
        waiting = [kept for kept in self._messages if kept.session == session and kept.seq > after]
        late = [] if ahead else self._late(session)
        tokens: Counter[str] = Counter()
        fresh: Counter[str] = Counter()
        for kept in (*waiting, *late):
            tokens[kept.counter] += kept.tokens
            fresh[kept.counter] += kept.tokens if kept.seq > offered or kept in late else 0
        waiting += late
        blocks = len(self._blocks_of(session))
        return Pending(messages=len(waiting), tokens=dict(tokens), fresh_tokens=dict(fresh), blocks=blocks)

    def _blocks_of(self, session: str) -> list[Block]:
        return [block for block in self._blocks if block.batch.session == session]

    def _last_end(self, session: str) -> int:
        return max([block.batch.through for block in self._blocks_of(session)] + [self._cursors[session]])

    def said_tokens(self, session: str) -> dict[str, int]:
        tokens: Counter[str] = Counter()
        own = [kept for kept in self._messages if kept.session == session]
        for kept in [kept for kept in own if kept.message.agent is None] or own:
            tokens[kept.counter] += kept.tokens
        return dict(tokens)

    def visible_tokens(self, session: str) -> dict[str, int]:
        tokens: Counter[str] = Counter()
        for logged in self.log(LogQuery(session=session)):
            tokens[logged.observation.counter] += logged.observation.tokens
        return dict(tokens)

    def unobserved(
        self,
        session: str,
        *,
        max_tokens: int,
        max_messages: int | None = None,
        standing: int = 0,
        ahead: bool = False,
    ) -> Batch | None:
        after = self._last_end(session) if ahead else self._cursors[session]
        run = () if ahead else self._passed_run(session)
        after = run[0].seq - 1 if run else after
        waiting = run or [kept for kept in self._waiting(session) if kept.seq > after]
        length = batch_length(
            (Waiting(kept.tokens, kept.message.role, kept.message.call_id) for kept in waiting),
            max_tokens=max_tokens,
            max_messages=max_messages,
        )
        return self._batch(session, waiting[:length], standing=standing, after=after)

    def unobserved_up_to(self, session: str, through: int, *, standing: int = 0) -> Batch | None:
        run = self._passed_run(session) if through <= self._cursors[session] else ()
        messages = [kept for kept in run or self._waiting(session) if kept.seq <= through]
        after = run[0].seq - 1 if run else self._cursors[session]
        return (
            self._batch(session, messages, standing=standing, after=after)
            if messages and messages[-1].seq == through
            else None
        )

    def _late(self, session: str) -> list[KeptMessage]:
        """What came back behind the cursor."""
        return [kept for kept in self._messages if kept.session == session and kept.seq in self._passed]

    def _passed_run(self, session: str) -> Sequence[KeptMessage]:
        """The first of those, without a covered message between them."""
        late = self._late(session)
        own = [kept for kept in self._messages if kept.session == session]
        return list(takewhile(lambda kept: kept in late, own[own.index(late[0]) :])) if late else ()

    def _waiting(self, session: str) -> list[KeptMessage]:
        return [kept for kept in self._messages if kept.session == session and kept.seq > self._cursors[session]]

    def _batch(self, session: str, messages: Sequence[KeptMessage], *, standing: int, after: int) -> Batch | None:
        if not messages:
            return None
        is_late = messages[0].seq in self._passed
        batch = Batch(
            session=session,
            after=after,
            through=messages[-1].seq,
            messages=tuple(messages),
            earlier_calls=self._earlier_calls(messages, after=after),
            last_said=self._last_said(session, after=after),
            cwd=self._sessions[session].session.cwd,
            standing=self._standing(session, standing),
            deferred_through=0 if is_late else self._deferred.get((session, after), 0),
            is_late=is_late,
        )
        return replace(batch, standing=tuple(row for row in batch.standing if not is_late or batch.follows(row)))

    def _standing(self, session: str, limit: int) -> tuple[Observation, ...]:
        seen = list(self.log(LogQuery(session=session, kinds=(Kind.OBSERVATION,))))
        newest = seen[max(len(seen) - limit, 0) :]
        changing = [row for row in seen if row.observation.may_change]
        chosen = {row.position for row in (*newest, *changing[max(len(changing) - limit, 0) :])}
        return tuple(row.observation for row in seen if row.position in chosen)

    def _earlier_calls(self, messages: Sequence[KeptMessage], *, after: int) -> tuple[KeptMessage, ...]:
        calls: dict[str | None, KeptMessage] = {}
        wanted: dict[int, KeptMessage] = {}
        for kept in self._messages:
            if kept.session == messages[0].session and kept.seq <= after and kept.message.role is Role.CALL:
                calls[kept.message.call_id] = kept
        for kept in messages:
            call = calls.pop(kept.message.call_id, None) if kept.message.call_id is not None else None
            if call is not None and kept.message.role is Role.RESULT:
                wanted[call.seq] = call
        return tuple(wanted[seq] for seq in sorted(wanted))

    def _last_said(self, session: str, *, after: int) -> KeptMessage | None:
        for kept in reversed(self._messages):
            if (
                kept.seq <= after
                and kept.session == session
                and kept.message.agent is None
                and kept.message.role is Role.ASSISTANT
            ):
                return kept
        return None

    def record(
        self,
        batch: Batch,
        observations: Sequence[Observation],
        *,
        outcome: Outcome,
        now: str,
        replaced: Sequence[Replacement] = (),
        used: Sequence[str] = (),
        title: str | None = None,
        error: str | None = None,
        folding: Folding | None = None,
    ) -> None:
        if (observations or replaced) and outcome is not Outcome.OBSERVED:
            raise ValueError(f"a batch that is {outcome} has no rows")
        self._check_place(batch, outcome)
        self._check_whole(batch)
        if folding is not None:
            self.fold(folding, now=now)
        self._log = [marked_used(logged, used, now) for logged in self._log]
        seen = self._sessions[batch.session]
        if not self._is_forgotten_title(title):
            seen.session = replace(seen.session, title=seen.session.title or title)
        if outcome is Outcome.FAILED:
            self._failures.pop(batch.session, None)
            self._failures[batch.session] = LaneError(
                session=batch.session, lane=Lane.OBSERVE, at=now, error=error or ""
            )
            return
        self._failures.pop(batch.session, None)
        if batch.through <= self._cursors[batch.session]:
            for kept in batch.messages if outcome is not Outcome.DEFERRED else ():
                del self._passed[kept.seq]
        elif outcome is Outcome.DEFERRED:
            offered = self._deferred.get((batch.session, batch.after), 0)
            self._deferred[batch.session, batch.after] = max(offered, batch.through)
        else:
            self._cursors[batch.session] = batch.through
            self._blocks = [block for block in self._blocks if not self._is_passed(block)]
        if outcome in (Outcome.OBSERVED, Outcome.EMPTY):
            number = len(observations) - sum(self.are_forgotten(observations))
            self._batches.append((batch, range(self._positions + 1, self._positions + 1 + number)))
            self._let_pictures_go(batch.messages)
        for row in observations:
            self.add(row)
        for replacement in replaced:
            if not any(logged.observation.id == replacement.row for logged in self.log(LogQuery())):
                self._successors.append(replacement)
            self._replace(replacement)

    def _let_pictures_go(self, messages: Sequence[KeptMessage]) -> None:
        """Of messages that were covered, or deleted: those that no other one waits with."""
        waiting = [kept for kept in self._messages if kept.seq > self._cursors[kept.session]]
        waiting += [kept for kept in (*self._messages, *self._aside) if kept.seq in self._passed]
        wanted = {image.sha256 for kept in waiting for image in kept.message.images}
        for image in (image for kept in messages for image in kept.message.images):
            if image.sha256 not in wanted:
                self._pictures.pop(image.sha256, None)

    def _check_whole(self, batch: Batch) -> None:
        own = [kept for kept in self._messages if kept.session == batch.session]
        there = [kept.seq for kept in own if batch.after < kept.seq <= batch.through]
        if there != [kept.seq for kept in batch.messages]:
            raise StaleBatch(f"messages of session {batch.session} were put aside, or brought back")

    def _replace(self, replacement: Replacement) -> None:
        if any(logged.observation.id == replacement.by for logged in self._log):
            self._log = [replaced_by(logged, replacement) for logged in self._log]

    def _drop(self, dropped: Dropped, now: str) -> None:
        if dropped.by is not None:
            self._replace(Replacement(row=dropped.row, by=dropped.by, reason=dropped.reason))
        else:
            self._log = [taken_out(logged, dropped, now) for logged in self._log]

    def put_block(self, block: Block) -> None:
        name = block.batch.session
        others = self._blocks_of(name)
        if is_superfluous(span(block), map(span, others), self._cursors[name]):
            raise StaleBatch(f"session {name} was worked on by another process meanwhile")
        there = [kept.seq for kept in self._messages if kept.session == name and covers(block, kept)]
        if there != [kept.seq for kept in block.batch.messages]:
            raise StaleBatch(f"messages of session {name} were put aside, or brought back")
        held = [other for other in others if is_superfluous(span(other), [span(block)], 0)]
        self._blocks = [*(other for other in self._blocks if other not in held), block]
        self._failures.pop(name, None)

    def blocks(self, session: str) -> tuple[Block, ...]:
        kept = {span(block): block for block in self._blocks_of(session)}
        return tuple(
            self._block(kept[span], after=after, through=span.through)
            for span, after in in_line(kept, self._cursors[session])
        )

    def put_aside(self) -> tuple[Observation, ...]:
        aside = sorted(self._rows_aside, key=lambda logged: logged.position)
        return tuple(unlinked(logged.observation) for logged in aside)

    def titles_aside(self) -> tuple[Titled, ...]:
        return tuple(sorted({titled for done in self._done for titled in done.titles}))

    def every_block(self) -> tuple[Block, ...]:
        return tuple(
            replace(
                self._block(block, after=block.begins, through=block.batch.through),
                batch=replace(block.batch, messages=()),
            )
            for block in self._blocks
        )

    def _block(self, block: Block, *, after: int, through: int) -> Block:
        session = block.batch.session
        there = tuple(kept for kept in self._messages if kept.session == session and after < kept.seq <= through)
        cwd = self._sessions[session].session.cwd
        batch = Batch(session=session, after=after, through=through, messages=there, cwd=cwd)
        observed, ids = block_text.read(block_text.written(block.observed, block.ids))
        if any(covers(block, kept) for kept in (*self._aside, *self._stubs)):
            observed = replace(observed, title=None)
        return replace(block, batch=batch, observed=observed, ids=ids)

    def _is_passed(self, block: Block) -> bool:
        return block.batch.through <= self._cursors[block.batch.session]

    def _check_place(self, batch: Batch, outcome: Outcome) -> None:
        if batch.through <= self._cursors[batch.session]:
            late = {kept.seq for kept in self._late(batch.session)}
            if not batch.messages or not late.issuperset(kept.seq for kept in batch.messages):
                raise StaleBatch(f"session {batch.session} was worked on by another process meanwhile")
            return
        places = {self._cursors[batch.session]}
        if outcome in (Outcome.FAILED, Outcome.DEFERRED):
            places |= {block.batch.through for block in self._blocks_of(batch.session)}
        if batch.after not in places:
            raise StaleBatch(f"session {batch.session} was worked on by another process meanwhile")

    def fold(self, folding: Folding, *, now: str) -> None:
        visible = {logged.observation.id for logged in self.log(LogQuery())}
        if not visible.issuperset(folding.read):
            raise StaleBatch("rows were replaced by another process while they were reflected on")
        whole = next((done.recorded for done in self._done if done.recorded.number == folding.part_of), None)
        if whole is not None and (whole.undone_by or whole.final_at):
            raise StaleBatch("what it is a part of was undone, or made final")
        known = {logged.observation.id for logged in self._log}
        self._attempts.append(
            Attempt(
                scope=folding.scope,
                at=now,
                ending=folding.ending,
                fingerprint=folding.fingerprint,
                error=folding.error,
                figures=json.loads(json.dumps(dict(folding.figures))),
            )
        )
        for row in folding.rows:
            self.add(replace(row, supports=tuple(row_id for row_id in row.supports if row_id in known)))
        for replacement in folding.replaced:
            self._replace(replacement)
        for dropped in folding.dropped:
            self._drop(dropped, now)
        done = self._note(Verb.REFLECT, folding.scope, folding.figures, now=now, part_of=folding.part_of)
        done.attempt = len(self._attempts) - 1
        done.made = {row.id for row in folding.rows}
        done.hidden = visible - {logged.observation.id for logged in self.log(LogQuery())}
        if folding.ending is not Ending.DONE:
            self._done.remove(done)

    def _note(
        self, verb: Verb, scope: Scope, figures: Mapping[str, object], *, now: str, part_of: int | None = None
    ) -> _Done:
        self._operations += 1
        number = self._operations
        recorded = Recorded(
            number=number,
            verb=verb,
            scope=scope,
            at=now,
            made=0,
            hidden=0,
            messages=0,
            figures=json.loads(json.dumps(dict(figures))),
        )
        done = _Done(
            recorded=recorded, part_of=part_of, made=set(), hidden=set(), messages=set(), rows=set(), titles=set()
        )
        self._done.append(done)
        return done

    def change(self, change: Change, *, now: str, for_good: bool = False) -> Recorded:
        if change.seen is not None and any(logged.position > change.seen for logged in self._log):
            raise StaleBatch("rows were written down meanwhile")
        done = self._note(change.verb, change.scope, change.figures, now=now)
        self.add(*change.made)
        done.made = {row.id for row in change.made}
        visible = {logged.observation.id for logged in self.log(LogQuery())}
        for dropped in change.dropped:
            self._drop(dropped, now)
        done.hidden = visible - {logged.observation.id for logged in self.log(LogQuery())}
        self._put_messages_aside(change.messages, done)
        self._put_rows_aside(change, done)
        self._take_titles(change.titles, done)
        self._tombs += [(digest, done) for digest in change.digests]
        if change.verb in (Verb.PRUNE, Verb.FORGET):
            titles = len(done.titles)
            erased = self.erase([done.recorded.number], now=now, besides=change.dropped) if for_good else None
            self._tell(done, erased, titles, ahead=len(change.digests))
        return self._recorded(done)

    def _put_messages_aside(self, seqs: Sequence[int], done: _Done) -> None:
        gone = [kept for kept in self._messages if kept.seq in seqs]
        for kept in gone:
            if kept.seq > self._cursors[kept.session]:
                self._passed[kept.seq] = done.recorded.at
        self._aside += gone
        self._messages = [kept for kept in self._messages if kept not in gone]
        done.messages = {kept.seq for kept in self._aside if kept.seq in seqs}

    def _put_rows_aside(self, change: Change, done: _Done) -> None:
        named = {*change.forgotten, *change.along}
        self._rows_aside += [logged for logged in self._log if logged.observation.id in named]
        self._log = [logged for logged in self._log if logged.observation.id not in named]
        aside = {logged.observation.id: logged.observation for logged in self._rows_aside}
        done.rows = named & aside.keys()
        self._tombs += [(tombstone(row), done) for name, row in aside.items() if name in change.forgotten]

    def _take_titles(self, wanted: Sequence[Titled], done: _Done) -> None:
        for titled in wanted:
            seen = self._sessions.get(titled.session)
            has_it = seen is not None and seen.session.title == titled.title
            if seen is not None and has_it:
                seen.session = replace(seen.session, title=None)
            if has_it or titled in self.titles_aside():
                done.titles.add(titled)
                self._tombs.append((tombstone_of(titled.title), done))

    def _is_forgotten_title(self, title: str | None) -> bool:
        return title is not None and tombstone_of(title) in self._tombstones()

    def _tell(self, done: _Done, erased: Erased | None, titles: int, *, ahead: int) -> None:
        counts = self._recorded(done)
        figures = {
            **done.recorded.figures,
            "rows": erased.rows if erased else counts.hidden,
            "messages": counts.messages,
            "titles": titles,
        } | ({"ahead": ahead} if ahead else {})
        done.recorded = replace(done.recorded, figures=figures)

    def _parts(self, done: _Done) -> list[_Done]:
        return [each for each in self._done if each is done or each.part_of == done.recorded.number]

    def _recorded(self, done: _Done) -> Recorded:
        here = {logged.observation.id for logged in self._log}
        put = {logged.observation.id for logged in self._rows_aside}
        parts = self._parts(done)
        return replace(
            done.recorded,
            made=len(here & {row for part in parts for row in part.made})
            + len(put & {row for part in parts for row in part.made}),
            hidden=len(here & {row for part in parts for row in part.hidden}) + len(done.rows),
            messages=self._counted(done.messages),
            uncounted=len(done.messages) - self._counted(done.messages),
        )

    def _counted(self, seqs: set[int]) -> int:
        return sum(kept.message.is_counted for kept in self._ever() if kept.seq in seqs)

    def _ever(self) -> list[KeptMessage]:
        """All messages that ever were."""
        return sorted([*self._messages, *self._aside, *self._stubs], key=lambda kept: kept.seq)

    def said_in_messages(self, text: str) -> tuple[KeptMessage, ...]:
        return tuple(kept for kept in self._kept() if text in wording(kept.message.text))

    def said_in_rows(self, text: str) -> tuple[Observation, ...]:
        rows = (*(self._linked(logged).observation for logged in self._log), *self.put_aside())
        return tuple(row for row in rows if row_says(row, text))

    def messages_named(self, key: str) -> tuple[KeptMessage, ...]:
        return tuple(kept for kept in self._kept() if kept.key == key)

    def _kept(self) -> list[KeptMessage]:
        """All messages that were not deleted."""
        return [kept for kept in self._ever() if kept not in self._stubs]

    def kin(self, rows: Sequence[str], messages: Sequence[int]) -> Kin:
        log = {logged.observation.id: logged.observation for logged in self._log}
        everything = log | {logged.observation.id: logged.observation for logged in self._rows_aside}
        given = set(rows) & everything.keys()
        derived: set[str] = set()
        replaced: set[str] = set()
        while True:
            places = {everything[name].superseded_by for name in given | derived}
            later = {
                name
                for name, row in log.items()
                if (given | derived) & set(row.supports) or set(messages) & set(row.sources) or name in places
            } - (given | derived)
            before = {
                name
                for name, row in log.items()
                if row.superseded_by in given | replaced and name not in everything[row.superseded_by].supports
            } - (given | replaced)
            if not later and not before:
                break
            derived |= later
            replaced |= before
        linked = [self._linked(logged).observation for logged in self._log]
        return Kin(
            derived=tuple(row for row in linked if row.id in derived),
            replaced=tuple(row for row in linked if row.id in replaced),
        )

    def outline(self, session: str) -> tuple[Outlined, ...]:
        return tuple(
            Outlined(
                seq=kept.seq,
                at=kept.message.at,
                role=kept.message.role,
                call_id=kept.message.call_id,
                is_main=kept.message.agent is None,
                is_covered=kept.seq <= self._cursors[session] and kept.seq not in self._passed,
                is_counted=kept.message.is_counted,
            )
            for kept in self._messages
            if kept.session == session
        )

    def traces(self, observation: str) -> Traces:
        row = self.observation(observation)
        everything = [self._linked(logged).observation for logged in self._log]
        made_by = next((done for done in self._done if row.id in done.made), None)
        hidden_by = next((done for done in reversed(self._done) if row.id in done.hidden), None)
        return Traces(
            made_by=self._recorded(made_by) if made_by else None,
            hidden_by=self._recorded(hidden_by) if hidden_by and not row.is_visible else None,
            replaced=tuple(each for each in everything if each.superseded_by == row.id),
            made_of=tuple(each for each in everything if each.id in row.supports),
            made_into=tuple(each for each in everything if row.id in each.supports),
            successor=next((each for each in everything if each.id == row.superseded_by), None),
        )

    def history(self, *, last: int | None = None) -> tuple[Recorded, ...]:
        whole = [self._recorded(done) for done in reversed(self._done) if done.part_of is None]
        return tuple(whole[:last])

    def undoing(self, number: int | None = None) -> Undoing:
        """By trying it on a copy."""
        done = self._to_undo(number)
        then = deepcopy(self)
        then.undo(done.recorded.number, now="")
        before = {logged.observation.id: logged.observation for logged in self._log}
        after = {logged.observation.id: logged.observation for logged in then._log}
        messages = done.messages - {kept.seq for kept in self._stubs}
        shared = [
            each.recorded.number
            for each in self._done
            if each is not done and (each.rows & done.rows or each.messages & messages or each.titles & done.titles)
        ]
        succeeded = {successor.row for successor in self._successors}
        hidden = {row for part in self._parts(done) for row in part.hidden if row in after and after[row].is_visible}
        return Undoing(
            undone=self._recorded(done),
            rows=tuple(
                row
                for name, row in after.items()
                if (name not in before or name in hidden) and (name not in succeeded or row.is_visible)
            ),
            gone=tuple(
                row for name, row in before.items() if row.is_visible and name in after and not after[name].is_visible
            ),
            messages=tuple(kept for kept in then._messages if kept not in self._messages),
            titles=tuple(sorted(set(self.titles_aside()) - set(then.titles_aside()))),
            held_by=tuple(shared),
        )

    def _to_undo(self, number: int | None) -> _Done:
        whole = [done for done in reversed(self._done) if done.part_of is None]
        wanted = [
            done
            for done in whole
            if done.recorded.verb is not Verb.UNDO
            and not (done.recorded.undone_by or done.recorded.final_at)
            and (self._recorded(done).can_be_undone if number is None else done.recorded.number == number)
        ]
        if not wanted:
            raise NotUndoable("there is nothing to undo")
        done = wanted[0]
        parts = self._parts(done)
        made = {row for part in parts for row in part.made}
        others = [each for each in self._done if each not in parts and each.recorded.undone_by is None]
        if any(made & (each.hidden | each.rows) for each in others):
            raise NotUndoable("another operation stands on what it made")
        return done

    def undo(self, number: int | None = None, *, now: str) -> Recorded:
        done = self._to_undo(number)
        parts = self._parts(done)
        undoing = self._note(Verb.UNDO, done.recorded.scope, {"undoes": done.recorded.number}, now=now)
        undoing.recorded = replace(undoing.recorded, undoes=done.recorded.number)
        came = self._bring_back(done)
        for part in parts:
            part.recorded = replace(part.recorded, undone_by=undoing.recorded.number)
            if part.attempt is not None:
                self._attempts[part.attempt] = replace(self._attempts[part.attempt], is_undone=True)
        self._settle(came, parts, now)
        return self._recorded(undoing)

    def _bring_back(self, done: _Done) -> set[str]:
        """Brings back what no other operation has put aside; gives the ids of the rows."""
        others = [each for each in self._done if each is not done]
        messages = done.messages.difference(*(other.messages for other in others))
        came = done.rows.difference(*(other.rows for other in others))
        titles = done.titles.difference(*(other.titles for other in others))
        back = [kept for kept in self._aside if kept.seq in messages]
        self._blocks = [
            block
            for block in self._blocks
            if not any(covers(block, kept) and block.at >= self._passed.get(kept.seq, "~") for kept in back)
        ]
        for kept in back:
            if kept.seq > self._cursors[kept.session]:
                self._passed.pop(kept.seq, None)
        self._aside = [kept for kept in self._aside if kept not in back]
        self._messages = sorted([*self._messages, *back], key=lambda kept: kept.seq)
        rows = [logged for logged in self._rows_aside if logged.observation.id in came]
        self._rows_aside = [logged for logged in self._rows_aside if logged not in rows]
        self._log = sorted([*self._log, *rows], key=lambda logged: logged.position)
        for name, title in sorted(titles):
            seen = self._sessions[name]
            seen.session = replace(seen.session, title=seen.session.title or title)
        done.rows, done.messages, done.titles = set(), set(), set()
        return came

    def _settle(self, came: set[str], parts: list[_Done], now: str) -> None:
        """What undone operations hid is in sight again, and what they made is not."""
        here = {logged.observation.id for logged in self._log}
        for each in self._done:
            if each.recorded.undone_by is None:
                continue
            back = each.hidden & (here if each in parts else came)
            each.hidden -= back
            self._log = [taken_back(logged, set(), back, now) for logged in self._log]
        for each in self._done:
            gone = each.made & (here if each in parts else came) if each.recorded.undone_by else set()
            visible = {logged.observation.id for logged in self.log(LogQuery())}
            self._log = [taken_back(logged, gone, set(), now) for logged in self._log]
            for other in self._done:
                if other.recorded.number == each.recorded.undone_by:
                    other.hidden |= gone & visible
        for successor in self._successors:
            self._replace(successor)

    def erase(self, numbers: Sequence[int], *, now: str, besides: Sequence[Dropped] = ()) -> Erased:
        named = [done for done in self._done if done.recorded.number in numbers and done.recorded.undone_by is None]
        gone = {dropped.row for dropped in besides}.union(*(done.hidden | done.rows for done in named))
        everything = [*self._log, *self._rows_aside]
        while (
            more := {logged.observation.id for logged in everything if logged.observation.superseded_by in gone} - gone
        ):
            gone |= more
        gone &= {logged.observation.id for logged in everything}
        stubs = [kept for kept in self._aside if any(kept.seq in done.messages for done in named)]
        titles = {titled for done in named for titled in done.titles}
        told = {digest for digest, by in self._tombs if by in named}
        self._blocks = [
            block for block in self._blocks if not (any(covers(block, kept) for kept in stubs) or told & told_by(block))
        ]
        self._log = [logged for logged in self._log if logged.observation.id not in gone]
        self._rows_aside = [logged for logged in self._rows_aside if logged.observation.id not in gone]
        self._aside = [kept for kept in self._aside if kept not in stubs]
        self._stubs += stubs
        for kept in stubs:
            self._passed.pop(kept.seq, None)
        self._let_pictures_go(stubs)
        for done in self._done:
            self._lose(done, gone, {kept.seq for kept in stubs}, titles, now)
        for done in named:
            done.recorded = replace(done.recorded, final_at=done.recorded.final_at or now)
        if gone or stubs or titles:
            self._bookmarks.clear()
        return Erased(
            rows=len(gone), messages=sum(kept.message.is_counted for kept in stubs), bytes_before=0, bytes_after=0
        )

    def erasing(self, numbers: Sequence[int]) -> Erased:
        """By trying it on a copy."""
        return deepcopy(self).erase(numbers, now="")

    def _lose(self, done: _Done, gone: set[str], stubs: set[int], titles: set[Titled], now: str) -> None:
        """Some of what an operation made, hid or put aside is no more."""
        touched = gone & (done.made | done.hidden | done.rows) or stubs & done.messages or titles & done.titles
        done.hidden -= gone
        done.rows -= gone
        done.titles -= titles
        whole = next(
            (each for each in self._done if done.part_of is not None and each.recorded.number == done.part_of), done
        )
        left = done.hidden or done.rows or done.titles or done.messages - {kept.seq for kept in self._stubs}
        is_left = whole.recorded.verb in (Verb.PRUNE, Verb.FORGET) and bool(left)
        is_open = whole.recorded.undone_by is None and whole.recorded.final_at is None
        if touched and is_open and not is_left and whole.recorded.verb is not Verb.UNDO:
            whole.recorded = replace(whole.recorded, final_at=now)

    def are_forgotten(self, rows: Sequence[Observation]) -> tuple[bool, ...]:
        return tuple(row.source is not Source.USER and tombstone(row) in self._tombstones() for row in rows)

    def are_forgotten_texts(self, texts: Sequence[str]) -> tuple[bool, ...]:
        return tuple(tombstone_of(text) in self._tombstones() for text in texts)

    def _tombstones(self) -> set[str]:
        return {digest for digest, done in self._tombs if done.recorded.undone_by is None}

    def picture(self, sha256: str) -> bytes | None:
        return self._pictures.get(sha256)

    def last_attempt(self, scope: Scope, mark: str | None = None) -> Attempt | None:
        attempts = [attempt for attempt in self._attempts if attempt.scope == scope]
        return next((each for each in reversed(attempts) if mark is None or each.is_about(mark)), None)

    def support(self, observation: str) -> int:
        is_there = any(logged.observation.id == observation for logged in self._log)
        return sum(observation in logged.observation.supports for logged in self._log) if is_there else 0

    def supports(self) -> Mapping[str, int]:
        numbers = {logged.observation.id: self.support(logged.observation.id) for logged in self._log}
        return {row: number for row, number in numbers.items() if number}

    def snapshot(self, *, now: str) -> str:
        self._snapshots += 1
        return f"snapshot {self._snapshots}"

    def back_up(self, *, keep: int, now: str) -> BackedUp:
        is_due = self.wants_backup(now=now)
        self._backed_up = now if is_due else self._backed_up
        return BackedUp(path=self.snapshot(now=now) if is_due else None)

    def wants_backup(self, *, now: str) -> bool:
        last = self._backed_up and Backup(name="", at=datetime.fromisoformat(self._backed_up[:19]), number=1)
        return is_due([last] if last else [], now)

    def covered(self, session: str) -> tuple[Covered, ...]:
        kept = [kept for kept in self._ever() if kept.session == session]
        here = {logged.position for logged in self._log}
        found: list[Covered] = []
        for batch, positions in self._batches:
            places = [place for place, each in enumerate(kept) if batch.after < each.seq <= batch.through]
            if batch.session == session and places:
                first, last = places[0], places[-1]
                found.append(
                    Covered(
                        first=kept[first].key,
                        last=kept[last].key,
                        start=first,
                        end=last + 1,
                        positions=tuple(position for position in positions if position in here),
                    )
                )
        return tuple(found)

    def add(self, *observations: Observation) -> None:
        for observation, is_forgotten in zip(observations, self.are_forgotten(observations), strict=True):
            if is_forgotten:
                continue
            self._positions += 1
            stored = replace(
                storable(observation),
                sources=tuple(sorted(set(observation.sources))),
                metadata=json.loads(json.dumps(dict(observation.metadata))),
            )
            self._log.append(Logged(position=self._positions, observation=stored))

    def log(self, query: LogQuery) -> Iterator[Logged]:
        log = self._log if query.as_of is None else [*self._then(query, query.as_of)]
        found = [self._linked(logged) for logged in log if asked_for(logged, query)]
        if query.bare:
            bare = (
                replace(logged.observation, sources=(), message_ids=(), metadata={}, supports=()) for logged in found
            )
            found = [replace(logged, observation=row) for logged, row in zip(found, bare, strict=True)]
        return iter(found if query.last is None else found[max(len(found) - query.last, 0) :])

    def _then(self, query: LogQuery, as_of: int) -> Iterator[Logged]:
        """The log up to a place in it, with rows in sight that others have taken the place of since."""
        places = {logged.observation.id: logged.position for logged in self._log if not logged.observation.dropped_at}
        by_operations = {row for done in self._done for row in done.hidden}
        for logged in self._log[: bisect_right(self._log, as_of, key=lambda logged: logged.position)]:
            row = logged.observation
            is_kept = query.session is None or row.id not in by_operations
            is_gone = row.dropped_at is None and is_kept and places.get(row.superseded_by or "", 0) > as_of
            if query.hidden or row.is_visible or is_gone:
                yield replace(logged, observation=replace(row, superseded_by=None, reason=None, last_used_at=None))

    def _linked(self, logged: Logged) -> Logged:
        """The row with the messages it came from, and the rows it was made of, as far as they are there."""
        kept = [kept for kept in self._ever() if kept.seq in logged.observation.sources]
        here = {logged.observation.id for logged in self._log}
        linked = replace(
            logged.observation,
            supports=tuple(row for row in logged.observation.supports if row in here),
            sources=tuple(message.seq for message in kept),
            message_ids=tuple(message.key for message in kept),
        )
        return replace(logged, observation=linked)

    def observation(self, reference: str) -> Observation:
        wanted = reference.strip().lower()
        found = [
            self._linked(logged).observation
            for logged in self._log
            if wanted in {logged.observation.id, logged.observation.id.replace("-", "")}
            or (len(wanted) >= 4 and handle(logged.observation.id).startswith(wanted))
        ]
        if len(found) != 1:
            raise UnknownId(f"{len(found)} rows are called `{reference}`")
        return found[0]

    def messages(self, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
        wanted = set(seqs)
        return tuple(kept for kept in self._messages if kept.seq in wanted)

    def message(self, key: str) -> KeptMessage:
        found = [kept for kept in self._messages if kept.key == key]
        if len(found) != 1:
            raise UnknownId(f"{len(found)} messages are called `{key}`")
        return found[0]

    def horizon(
        self, session: str, *, own: str | None, project: str | None, cutting: Cutting, further: int = 0
    ) -> Horizon:
        main = [kept for kept in self._messages if kept.session == session and kept.message.agent is None]
        sums = [*accumulate(kept.tokens for kept in main)]
        covered = [kept for kept in main if kept.seq <= self._cursors[session]]
        told = cutting.told(
            said=sum(kept.tokens for kept in main), covered=sum(kept.tokens for kept in covered), further=further
        )
        message = main[bisect_left(sums, told)].seq if told else 0 if told == 0 else self._cursors[session]
        position = self._last_row(session, home=own, project=project, message=message)
        before = [logged for logged in self._log if position is not None and logged.position <= position]
        at = before[-1].observation.observed_at if before else None
        return Horizon(message=message, position=position, at=at, is_last=told is None)

    def _last_row(self, session: str, *, home: str | None, project: str | None, message: int) -> int | None:
        observed = {at: batch.after for batch, positions in self._batches for at in positions}
        made = {
            row: done.recorded.undone_by is None
            and done.recorded.scope.session in (None, session)
            and (done.recorded.scope.session is not None or project in (None, done.recorded.scope.project))
            for done in self._done
            for row in done.made
        }
        ever = [*self._log, *self._rows_aside]
        own = {logged.position for logged in ever if logged.observation.session == session} & observed.keys()
        last = min(own, default=1) - 1
        for logged in self._log:
            at, row = logged.position, logged.observation
            if at in own:
                is_before = observed[at] < message
            elif row.id in made:
                is_before = made[row.id]
            else:
                is_by_hand = row.session is None and row.project == home and row.kind is not Kind.OBSERVATION
                is_before = at not in observed and row.is_visible and (row.session == session or is_by_hand)
            last = max(last, at) if is_before else last
        return last if own else None

    def tail(self, session: str, *, max_tokens: int, after: int = 0) -> tuple[KeptMessage, ...]:
        newest: list[KeptMessage] = []
        for kept in reversed(self._messages):
            if kept.session != session or kept.message.agent is not None or kept.seq <= after:
                continue
            if newest and kept.tokens + sum(other.tokens for other in newest) > max_tokens:
                break
            newest.append(kept)
        return tuple(reversed(newest))

    def session(self, session: str) -> Session | None:
        return self._sessions[session].session if session in self._sessions else None

    def sessions(self, *, project: str | None = None, last: int | None = None) -> tuple[SessionSummary, ...]:
        found = [seen for seen in self._sessions.values() if project is None or seen.session.project == project]
        found.sort(key=lambda seen: (seen.seen_at, seen.session.id), reverse=True)
        return tuple(self._summary(seen) for seen in found[:last])

    def _summary(self, seen: _Seen) -> SessionSummary:
        name = seen.session.id
        kept = [kept for kept in self._messages if kept.session == name]
        instants = sorted(kept.message.at for kept in self._ever() if kept.session == name and kept.message.at)
        return SessionSummary(
            session=seen.session,
            messages=sum(kept.message.is_counted for kept in kept),
            observations=len(list(self.log(LogQuery(session=name)))),
            pending=sum(kept.seq > self._cursors[name] or kept.seq in self._passed for kept in kept),
            first_at=instants[0] if instants else None,
            last_at=instants[-1] if instants else None,
            seen_at=seen.seen_at,
        )

    def status(self) -> StoreStatus:
        visible = [logged.observation for logged in self.log(LogQuery())]
        message_tokens: Counter[str] = Counter()
        observation_tokens: Counter[str] = Counter()
        for kept in self._messages:
            message_tokens[kept.counter] += kept.tokens
        for row in visible:
            observation_tokens[row.counter] += row.tokens
        return StoreStatus(
            sessions=len(self._sessions),
            messages=sum(kept.message.is_counted for kept in self._messages),
            observations=len(visible),
            hidden=len(self._log) - len(visible),
            pending=sum(summary.pending for summary in self.sessions()),
            message_tokens=dict(message_tokens),
            observation_tokens=dict(observation_tokens),
            blocks=len(self._blocks),
            ahead=sum(any(self._is_ahead(block, kept) for block in self._blocks) for kept in self._messages),
            errors=tuple(sorted([*self._failures.values(), *self._failed_attempts()], key=lambda error: error.at)),
        )

    def _is_ahead(self, block: Block, kept: KeptMessage) -> bool:
        after = max(block.begins, self._cursors[kept.session])
        return kept.session == block.batch.session and after < kept.seq <= block.batch.through

    def _failed_attempts(self) -> Iterator[LaneError]:
        for attempt in self._attempts:
            if attempt is self.last_attempt(attempt.scope) and attempt.ending is Ending.FAILED:
                session = attempt.scope.session
                yield LaneError(session=session, lane=Lane.REFLECT, at=attempt.at, error=attempt.error or "")

    def stored_texts(self) -> Iterator[Message | Observation]:
        yield from [kept.message for kept in self._messages]
        yield from [logged.observation for logged in self.log(LogQuery())]

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        holder, until = self._leases.get((session, lane), (owner, ""))
        if holder != owner and until > now and not self._is_gone(holder):
            self._leases[session, lane] = (holder, min(until, expires_at))
            raise LaneTaken(f"{holder} is at the {lane} lane of session {session}")
        self._leases[session, lane] = (owner, expires_at)

    def release(self, session: str, lane: Lane, *, owner: str) -> None:
        if self._leases.get((session, lane), ("", ""))[0] == owner:
            del self._leases[session, lane]
