"""Vectors of texts: making the missing ones in batches, and finding texts with the meaning of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from omcli.base.errors import OF_MODELS, InputOutput, OmError, TryAgain, Unusable, Waiting
from omcli.base.record import mutable_record, record, replace
from omcli.llm.model import Embedder, EmbedReply, EndReason, Ledger, Reply
from omcli.memory.observation import LogQuery
from omcli.memory.ports import Lane, Store
from omcli.memory.search import Nearest, TextPlace, VectorStatus
from omcli.operations.clock import Clock
from omcli.operations.deps import Deps, StepCount, hold
from omcli.operations.model_calls import CallLog, WaitingModel
from omcli.text.clean import clean
from omcli.text.instants import later
from omcli.text.redaction import redact

BATCH = 50
"""Maximum number of texts in a call, and of messages and rows whose vectors are written in one transaction."""
_BACK_OFF, _COOLDOWN = 60.0, 300.0
"""Seconds for which a model is not called after a failure, and after `_FEW` failures in a row."""
_FEW = 3
_LOOKED_BACK = 86_400.0
_LONGEST_QUERY = 1_000
"""Maximum number of characters of a query from which its vector is made. A part of a text has the same limit."""


def name_of(embedder: Embedder) -> str:
    """Return the name under which the vectors of a model are stored."""
    return f"{embedder.name}/{embedder.model}"


# ---- calls


class CountedEmbedder:
    """An embedder that records its calls in the ledger. It refuses calls once a hard limit is reached, and for some
    time after failures.
    """

    def __init__(self, embedder: Embedder, log: CallLog, *, clock: Clock, longest_wait: float) -> None:
        """`longest_wait` is the maximum number of seconds to wait after failures."""
        self._embedder = embedder
        self._log = log
        self._clock = clock
        self._longest_wait = longest_wait

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def model(self) -> str:
        return self._embedder.model

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> EmbedReply:
        """Return a vector for each text. Before the call, raise OverLimit if a hard limit is reached, and Waiting if
        earlier calls failed. Raise the errors of the embedder.
        """
        self._log.check()
        if found := self.waiting(self._log.ledger()):
            times = "once" if found.failures == 1 else f"{found.failures} times in a row"
            raise Waiting(
                f"{name_of(self)} failed {times} and is asked again at {found.until}",
                hint="nothing is lost; `om embed --again` asks now",
            )
        begun = self._clock.monotonic()
        try:
            reply = self._embedder.embed(texts, is_query=is_query)
        except OmError as error:
            self._log.note(self, begun, outcome=error.slug, session=None)
            raise
        except BaseException:  # interrupted by Ctrl-C: the call may have been billed
            self._log.note(self, begun, outcome="interrupted", session=None)
            raise
        billed = Reply(text="", stop=EndReason.END, model=reply.model, input_tokens=reply.input_tokens, output_tokens=0)
        self._log.note(self, begun, outcome="ok", session=None, reply=billed)
        return reply

    def waiting(self, ledger: Ledger) -> WaitingModel | None:
        """Return the failures that keep the model from being called now, or None."""
        now = self._clock.now()
        for each in ledger.failing(since=self._clock.after(-_LOOKED_BACK)):
            if (each.lane, each.provider, each.model) == (Lane.EMBED, self.name, self.model):
                wait = min(self._longest_wait, _BACK_OFF if each.number < _FEW else _COOLDOWN)
                if each.last <= now < (until := later(each.last, wait)):  # a clock may have been ahead
                    return WaitingModel(
                        lane=each.lane,
                        session=None,
                        provider=each.provider,
                        model=each.model,
                        failures=each.number,
                        until=until,
                    )
        return None


# ---- making vectors


@mutable_record
class EmbedReport:
    """Vectors made in one run."""

    places: int = 0
    """Number of messages and rows that got vectors."""
    texts: int = 0
    """Number of texts that the model was given."""
    calls: int = 0
    left: int = 0
    """Number of messages and rows without vectors that are left."""


def embed(
    deps: Deps,
    embedder: Embedder,
    *,
    most: int | None = None,
    report: EmbedReport | None = None,
    progress: Callable[[EmbedReport], None],
) -> EmbedReport:
    """Make the missing vectors, of at most `most` messages and rows. `progress` is called after each batch. `report` is
    filled in and returned, so that after an error it tells what was made.

    Each batch is written in one transaction. The lane is held for one batch at a time, so that several processes share
    the work. Raise the errors of the embedder and of the store; earlier batches are kept.
    """
    name, vectors = name_of(embedder), deps.store.vectors
    places = vectors.missing(name)
    report = report or EmbedReport()
    report.left = len(places)
    waiting = wanted = places[:most]
    while waiting:
        deps.show_steps(StepCount(noun="text", done=len(wanted) - len(waiting), total=len(wanted)))
        with hold("", Lane.EMBED, deps):
            taken, texts = _batch(deps.store, name, waiting[:BATCH])
            made = embedder.embed(texts).vectors if texts else ()
            report.places += vectors.put(name, waiting[:taken], dict(zip(texts, made, strict=True)))
        report.texts += len(texts)
        report.calls += bool(texts)
        report.left -= taken
        waiting = waiting[taken:]
        progress(report)
    deps.show_steps(None)
    return report


def _batch(store: Store, name: str, places: Sequence[TextPlace]) -> tuple[int, list[str]]:
    """Return the number of places that make a batch (at least one), and their texts without a vector, each once."""
    texts = store.vectors.texts(places)
    known = store.vectors.known(name, {part for parts in texts.values() for part in parts})
    batch: dict[str, None] = {}
    for taken, place in enumerate(places):
        new = dict.fromkeys(part for part in texts.get(place, ()) if part not in known)
        if batch and len(batch | new) > BATCH:
            return taken, list(batch)
        batch |= new
    return len(places), list(batch)


@record
class EmbedDeps:
    """Resources of one round, closed when the round ends."""

    deps: Deps
    embedder: Embedder


def watch(
    opened: Callable[[], AbstractContextManager[EmbedDeps]],
    *,
    clock: Clock,
    interval: float,
    progress: Callable[[EmbedReport], None],
) -> Iterator[EmbedReport | OmError]:
    """Make missing vectors in rounds, with pauses of `interval` seconds. Yield a report of each round that made some,
    also if it then failed.

    An error of the model or the disk is yielded once, until there is a success or a different error. If the store is
    locked, nothing is yielded and the next round tries again. A model that failed is called again after a minute, or
    after five if it failed three times in a row.
    """
    said, asked_from = "", 0.0
    while True:
        report = EmbedReport()
        try:
            if clock.monotonic() >= asked_from:
                with opened() as found:
                    embed(found.deps, found.embedder, report=report, progress=progress)
                said = ""
                if report.places:
                    yield report
        except (*OF_MODELS, TryAgain, InputOutput) as error:
            if report.places:
                yield report
            if isinstance(error, OF_MODELS) and not isinstance(error, Waiting):
                asked_from = clock.monotonic() + _BACK_OFF
            if not isinstance(error, (Waiting, TryAgain)) and error.message != said:
                said = error.message
                yield error
        clock.sleep(interval)


# ---- finding


class VectorSearch:
    """Search for texts with the meaning of a query. After a failure, no further search is tried in this run."""

    def __init__(self, store: Store, open_embedder: Callable[[], Embedder]) -> None:
        self.error: OmError | None = None
        """The reason why vectors are unavailable, or None."""
        self._store = store
        self._open = open_embedder
        self._embedder: Embedder | None = None
        self._vectors: dict[str, tuple[float, ...]] = {}

    def nearest(self, text: str, query: LogQuery, *, most: int) -> Nearest | None:
        """Return the messages and rows nearest to a text among those that `query` selects, or None if vectors are
        unavailable. The text is sent to the model once, without secrets and cut to `_LONGEST_QUERY` characters.
        """
        if self.error is None:
            try:
                embedder = self._embedder = self._embedder or self._open()
                vector = self._vectors.get(text) or self._vector(text, embedder)
                return self._store.vectors.nearest(name_of(embedder), vector, query, most=most)
            except OmError as error:
                self.error = error
        return None

    def _vector(self, text: str, embedder: Embedder) -> tuple[float, ...]:
        name = name_of(embedder)
        if self._store.vectors.length(name) is None:
            raise Unusable(f"no vectors of {name} yet", hint="`om embed` makes them")
        (vector,) = embedder.embed([clean(redact(text).text)[:_LONGEST_QUERY]], is_query=True).vectors
        self._vectors[text] = vector
        return vector


# ---- status


@record
class EmbedStatus:
    name: str
    """Provider and model."""
    vectors: VectorStatus
    failures: int = 0
    """Number of calls that failed since the last successful one."""
    failed_at: str | None = None
    error: str | None = None
    """Slug of the last failure."""
    until: str | None = None
    """Instant before which the model is not called again."""


def status(store: Store, ledger: Ledger, embedder: Embedder, *, clock: Clock) -> EmbedStatus:
    """Return the numbers of messages and rows with and without vectors, and the failed calls of the last day since the
    last successful one.
    """
    found = EmbedStatus(name=name_of(embedder), vectors=store.vectors.status(name_of(embedder)))
    if not isinstance(embedder, CountedEmbedder):
        return found
    last = None
    failures = 0
    for call in ledger.calls(since=clock.after(-_LOOKED_BACK)):
        if (call.lane, call.provider) == (Lane.EMBED, embedder.name) and call.outcome != "interrupted":
            failures = 0 if call.outcome == "ok" else failures + 1
            last = call
    if last is None or not failures:
        return found
    waiting = embedder.waiting(ledger)
    return replace(
        found, failures=failures, failed_at=last.at, error=last.outcome, until=waiting.until if waiting else None
    )
