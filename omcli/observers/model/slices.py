"""Reading a batch with a model, slice by slice, and merging its rows with the rules' rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from omcli.base.record import field, mutable_record, replace
from omcli.llm.model import Calls
from omcli.memory.batch import Batch, Observed, Observer, part_of_batch
from omcli.memory.observation import Draft, Kind, Observation, Priority
from omcli.observers.model.merge import limit_priority, merge_rows
from omcli.observers.model.validation import ValidatedReply

Ask = Callable[[Batch, Calls], ValidatedReply | None]
"""Function that asks a model about a slice. It returns None if nothing in the slice can be shown to a model."""


@mutable_record
class SliceReader:
    """Reads a batch with a model, slice by slice.

    Rules read the whole batch first, because later messages often contain the outcome of earlier ones.
    """

    batch: Batch
    rules: Observer
    ask: Ask
    ask_warmer: Ask
    """Like `ask`, but at a higher temperature, to retry after a reply that repeats itself."""
    by_rules: tuple[Draft, ...]
    """The rules' rows for the batch."""
    through: int
    """`seq` of the last message of the slices that were read or skipped."""
    said: list[Draft] = field(default_factory=list)
    """The model's rows so far."""
    tasks: tuple[Draft, ...] = ()
    """The current task, if the model named one."""
    gone: list[Draft] = field(default_factory=list)
    """Rows from earlier slices that rows from later slices replaced."""
    unread: set[int] = field(default_factory=set)
    """`seq` of each message that was not shown to a model."""
    used: list[str] = field(default_factory=list)
    title: str | None = None
    findings: Counter[str] = field(default_factory=Counter)
    calls: Calls = field(default_factory=Calls)
    """The calls left to read the messages after `through`."""
    waits_after: int | None = None
    """The last slice's `after` if the model's reply to it had no rows, otherwise None."""

    def read(self, part: Batch, *, warmer: bool = False) -> None:
        """Ask the model about the next slice, with rows from earlier slices as context, and add its reply. Skip the
        slice if nothing in it can be shown. With `warmer`, ask at a higher temperature.

        Raise ProviderFailed if there is no usable reply, and NotAllowed or BadConfiguration as the provider does. Then
        the same slice is still the next one.
        """
        shown = dict(self._rows_before())
        replaced = {row for draft in shown.values() for row in draft.replaces}
        standing = [row for row in self.batch.context_rows if row.id not in replaced]
        own = [_as_context_row(label, draft, part.session) for label, draft in shown.items()]
        ask = self.ask_warmer if warmer else self.ask
        reply = ask(replace(part, context_rows=(*standing, *own)), self.calls)
        if reply is None:
            self.skip(part)
        else:
            self._add_reply(part, reply, shown)
            self.calls = Calls(is_begun=True)

    @property
    def may_ask(self) -> bool:
        """True if a call is left to read the next slice."""
        return not self.calls.is_over

    def skip(self, part: Batch) -> None:
        """Leave the next slice to the rules without asking the model."""
        self.unread.update(kept.seq for kept in part.messages)
        self.waits_after = None
        self.through = part.through
        self.calls = Calls()

    def observed(self) -> Observed:
        """Return the observations from the slices read or skipped so far. If other slices are left, set `by_rules` to
        the rules' rows for the messages up to `through`.
        """
        if self.through != self.batch.through:
            part = part_of_batch(self.batch, self.batch.after, self.through)
            self.by_rules = self.rules.observe(part).drafts
        drafts, findings = self._merged(self.by_rules)
        waits = self.waits_after
        if waits is not None and any(draft.sources[-1] > waits for draft in drafts):
            waits = None
        return Observed(
            drafts=(*drafts, *(self.tasks if drafts else ())),
            used=tuple(dict.fromkeys(self.used)),
            title=self.title if drafts else None,
            waits_after=waits,
            findings=dict(+(self.findings + findings)),
        )

    def _rows_before(self) -> Iterator[tuple[str, Draft]]:
        """Yield the merged rows of earlier slices with temporary ids."""
        if self.through > self.batch.after:
            drafts, _ = self._merged([draft for draft in self.by_rules if draft.sources[-1] <= self.through])
            yield from ((f"draft {number}", draft) for number, draft in enumerate((*drafts, *self.tasks)))

    def _merged(self, by_rules: Sequence[Draft]) -> tuple[tuple[Draft, ...], Counter[str]]:
        before = (*self.batch.earlier_calls, *([self.batch.last_said] if self.batch.last_said else []))
        roles = {kept.seq: kept.message.role for kept in (*before, *self.batch.messages)}
        ruled = [draft for draft in by_rules if not any(_is_same_row(draft, gone) for gone in self.gone)]
        rows = merge_rows(limit_priority(self.said, roles), ruled, roles, unread=self.unread)
        counts = {"added_back": rows.added_back, "recorded_by_rules": rows.recorded_by_rules}
        return rows.drafts, Counter(counts)

    def _add_reply(self, part: Batch, reply: ValidatedReply, shown: dict[str, Draft]) -> None:
        drafts = [self._replace(draft, shown) for draft in reply.drafts]
        if reply.task is not None:
            self.tasks = (self._replace(reply.task, shown),)
        self.said += drafts
        self.used += [row for row in reply.used if row not in shown]
        self.title = self.title or reply.title
        self.findings += reply.findings
        self.waits_after = part.after if reply.is_empty else None
        self.through = part.through

    def _replace(self, draft: Draft, shown: dict[str, Draft]) -> Draft:
        """Move the rows of earlier slices that a draft replaces from `said` to `gone`, and return the draft with their
        sources and with what they replaced.
        """
        earlier = [shown[row] for row in draft.replaces if row in shown]
        if not earlier:
            return draft
        self.gone += earlier
        self.said = [said for said in self.said if not any(_is_same_row(said, one) for one in earlier)]
        rows = [row for row in draft.replaces if row not in shown]
        replaces = tuple(dict.fromkeys([*rows, *(row for one in earlier for row in one.replaces)]))
        sources = tuple(sorted({*draft.sources, *(seq for one in earlier for seq in one.sources)}))
        return replace(draft, replaces=replaces, sources=sources, reason=draft.reason if replaces else None)


def _is_same_row(draft: Draft, earlier: Draft) -> bool:
    return draft.text == earlier.text and set(earlier.sources) <= set(draft.sources)


def _as_context_row(label: str, draft: Draft, session: str) -> Observation:
    return Observation(
        id=label,
        session=session,
        project=None,
        kind=Kind.OBSERVATION,
        type=draft.type,
        priority=draft.priority or Priority.of_importance(draft.importance),
        importance=draft.importance,
        status=draft.status,
        text=draft.text,
        observed_at=draft.event_at or "",
        event_at=draft.event_at,
        refers_to=draft.refers_to,
        message_ids=(),
        sources=draft.sources,
        tokens=0,
        counter="",
        source=draft.source,
        tags=draft.tags,
        metadata=draft.metadata,
    )
