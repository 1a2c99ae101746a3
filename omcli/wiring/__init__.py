"""The only place that chooses adapters. Each is imported and built on first use."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, cast

from omcli.base import ignore
from omcli.base.errors import BadConfiguration, BadUsage
from omcli.settings import is_off_in
from omcli.settings.settings import FLAG, ServerUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from omcli.llm.model import Embedder, Provider
    from omcli.memory.batch import Observer
    from omcli.memory.message import TokenCounter
    from omcli.memory.notation import Notation
    from omcli.memory.ports import Store
    from omcli.memory.reflection import Reflector
    from omcli.memory.session import EvictionPolicy
    from omcli.memory.transcript import Bookmark, Origin, Transcript
    from omcli.operations.clock import Clock
    from omcli.operations.deps import Deps, ObserverDeps, ReflectorDeps, StepCount
    from omcli.operations.embed import VectorSearch
    from omcli.operations.estimate import CallList
    from omcli.operations.ingest.sessions import TranscriptCounts
    from omcli.operations.model_calls import Limit, WaitingModel
    from omcli.operations.replay import EarlierStore
    from omcli.operations.tick import Due
    from omcli.pack.budget import Budgets
    from omcli.pack.context_pack import Choice
    from omcli.providers.command import ModelFunction
    from omcli.settings.settings import Settings
    from omcli.sqlite import SqliteStore
    from omcli.wiring.models import Models
    from omcli.wiring.policies import StoreOnServer


def _rule_reflector(counter: TokenCounter) -> Reflector:
    from omcli.reflectors.rules import RuleReflector

    return RuleReflector(counter)


class Wiring:
    """The components of one run, built from its settings."""

    def __init__(
        self,
        settings: Settings,
        *,
        now: str | None = None,
        worker: str = "",
        usual: Wiring | None = None,
        copy: SqliteStore | None = None,
        estimate: CallList | None = None,
        functions: Mapping[str, ModelFunction] | None = None,
        tell: Callable[[str], None] = ignore,
    ) -> None:
        """`now` pins the clock. `worker` distinguishes workers in one process. With a `usual` wiring, the store is
        temporary; a `copy` is the store. With `estimate`, model calls are only added to that list. `functions` by role
        (`observer`, `reflector`) are called instead of models. `tell` reports what was taken from the spool.
        """
        self.settings, self.tell = settings, tell
        self.rules: Observer | None = None
        self._now = now
        self._worker = worker
        self._usual = usual
        self._estimate = estimate
        self._functions = functions or {}
        self._opened: list[SqliteStore] = []
        self.may_write = False
        """True once `store` was to be opened for writing, even if that failed."""
        if copy is not None:
            self.store = self.reading = self.store_or_empty = copy
            self._opened.append(copy)

    @cached_property
    def clock(self) -> Clock:
        from omcli.operations.clock import Clock

        return Clock(self._now)

    def counter(self, name: str | None) -> TokenCounter:
        """Return the counter with this name, or the default one if the name is None. Raise BadUsage if the name is
        unknown, BadConfiguration if the counter is unavailable.
        """
        from omcli.tokenizers import DEFAULT, counter

        return counter(name or DEFAULT)

    def counter_or_default(self, warn: Callable[[str], None]) -> TokenCounter:
        """Return the counter in the settings. If it is unavailable or unknown, warn and return the default one.

        Raise BadUsage if a flag names an unknown counter.
        """
        try:
            return self.counter(self.settings.counter)
        except BadConfiguration as error:
            warn(f"{error.message}; counting with the default counter")
        except BadUsage as error:
            if self.settings.origin("counter") == FLAG:
                raise
            warn(f"`{self.settings.origin('counter')}`: {error.message}; counting with the default counter")
        return self.counter(None)

    def notation_or_default(self, warn: Callable[[str], None]) -> Notation:
        """Return the notation in the settings. If it is unknown, warn and return `words`."""
        from omcli.memory.notation import WORDS, named

        try:
            return named(self.settings.notation)
        except BadUsage as error:
            warn(f"`{self.settings.origin('notation')}`: {error.message}; writing `{WORDS.name}`")
        return WORDS

    def budgets(self, asked: Mapping[str, int | None]) -> Budgets:
        """Return the budgets of a pack (`total`) and its tiers: the requested ones, otherwise those in the settings."""
        from omcli.wiring import policies

        return policies.budgets(self.settings, asked)

    @property
    def eviction(self) -> EvictionPolicy | None:
        """Eviction policy of frozen packs, or None if packs are not frozen."""
        from omcli.wiring import policies

        return policies.eviction(self.settings)

    @property
    def choice(self) -> Choice:
        from omcli.wiring import policies

        return policies.choice(self.settings)

    @cached_property
    def store(self) -> SqliteStore:
        """The store, created or migrated if needed, and filled from its spool; temporary if the wiring is `apart`.

        Raise CannotCreate, InputOutput, TryAgain, UnusableStore or MigrationFailed if it cannot be opened or filled.
        """
        if self._usual is not None:
            return self.temporary()
        self.may_write = True
        store = self._open(wait=self.settings.wait)
        # Close the writing store last: the last one to close removes SQLite's log, which a read-only one cannot.
        self._opened.insert(0, store)
        if self._has_spool:
            from omcli.wiring.inputs import take_in

            take_in(self, store)
        return store

    @cached_property
    def reading(self) -> SqliteStore:
        """The store for reading only, or an empty one if it is missing."""
        if self._usual is not None:
            return self.temporary()
        self._opened.append(self._open(wait=self.settings.wait, read_only=True))
        return self._opened[-1]

    @cached_property
    def store_at_once(self) -> SqliteStore:
        """The store for a write that may be left out: it does not wait for other writers."""
        if self._usual is not None:
            return self.temporary()
        self._opened.insert(0, self._open(wait=0))
        return self._opened[0]

    @cached_property
    def _open(self) -> Callable[..., SqliteStore]:
        """Function that opens the store, with the arguments `wait` and `read_only`."""
        from omcli.sqlite import SqliteStore
        from omcli.sqlite.lanes import current_author

        author = current_author(self.settings.author)
        if self._server is not None:
            return partial(self._server.open, author=author)
        return partial(SqliteStore.open, self.spool_path, author=author, learn_key=self._learn_key)

    @cached_property
    def _server(self) -> StoreOnServer | None:
        if not isinstance(self.settings.db, ServerUrl):
            return None
        from omcli.wiring.policies import StoreOnServer

        return StoreOnServer(self.settings.db, wait=self.settings.wait)

    def _learn_key(self, name: str) -> None:
        from omcli.wiring.policies import learn_key

        learn_key(self.settings, name)

    @cached_property
    def store_or_empty(self) -> SqliteStore:
        """The store for work on existing rows, or an empty temporary one if it and its spool are missing."""
        return self.store if self.has_store or self._has_spool else self.temporary()

    @contextmanager
    def apart(self) -> Iterator[Wiring]:
        """Yield a wiring with the same settings and a temporary store, which is deleted at the end.

        Only the ledger of the usual store is used, so that model costs count towards its limits.
        """
        with closing(Wiring(self.settings, now=self._now, usual=self)) as wiring:
            yield wiring

    @contextmanager
    def estimating(self) -> Iterator[tuple[Wiring, CallList]]:
        """Yield a wiring with the same settings on a private copy of the store, and a list of the calls that it would
        make, which grows as it works. No model is called.
        """
        from omcli.operations.estimate import CallList

        calls = CallList()
        with closing(Wiring(self.settings, now=self._now, copy=self._copy(), estimate=calls)) as wiring:
            yield wiring, calls

    @contextmanager
    def as_of(self, moment: str) -> Iterator[tuple[Wiring, EarlierStore]]:
        """Yield a wiring with the same settings, with its clock at a moment and a private copy of the store as it was
        then, and the result of taking the copy back. Raise the errors of `operations.replay.take_back`.
        """
        from omcli.operations.replay import take_back

        with closing(Wiring(self.settings, now=moment, copy=(copy := self._copy()))) as wiring:
            yield wiring, take_back(copy.operations, copy.cut_after, moment)

    def with_index(self) -> AbstractContextManager[None]:
        """If the block raises IndexDamaged and writing is allowed, rebuild the index of words and raise TryAgain."""
        from omcli.wiring.policies import with_index

        return with_index(self.settings, lambda: Wiring(self.settings, now=self._now))

    @property
    def has_store(self) -> bool:
        """True if the store exists; False if `apart`. Raise the errors of `open` if its path cannot be a store's."""
        if self._server is not None:
            return self._usual is None and self._server.exists
        from omcli.sqlite.connection import exists

        return self._usual is None and exists(self.spool_path)

    @property
    def store_size(self) -> int | None:
        """Size in bytes of the store and its write-ahead log, or of its database; None if the store is missing."""
        if self._server is not None:
            return self._server.size_of(self.reading)
        from omcli.sqlite.connection import size

        return size(self.spool_path)

    def temporary(self) -> SqliteStore:
        from omcli.sqlite import SqliteStore

        self._opened.append(SqliteStore.temporary())
        return self._opened[-1]

    @property
    def spool_path(self) -> Path:
        """The store's file, beside which its spool is, or what stands for it if the store is on a server."""
        if self._server is not None:
            return self._server.spool_path
        return cast("Path", self.settings.db)

    @property
    def _has_spool(self) -> bool:
        from omcli.sqlite.connection import spool_folder

        return spool_folder(self.spool_path).is_dir()

    def _copy(self) -> SqliteStore:
        from omcli.sqlite import SqliteStore

        if not self.has_store:
            return SqliteStore.temporary()
        if self._server is not None:
            return self._server.copy()
        return SqliteStore.copy_of(self.spool_path, wait=self.settings.wait, learn_key=self._learn_key)

    def close(self) -> None:
        """Close all stores. When the last connection to a store is closed, SQLite writes its log into the file."""
        while self._opened:
            self._opened.pop().close()

    def transcript(
        self, name: str, *, format_name: str | None = None, session: str | None = None, is_whole: bool = False
    ) -> AbstractContextManager[Transcript]:
        """Open a file or standard input as a transcript in the given or detected format.

        A file that the same version of om ingested before, with the same format and session options, is read from its
        bookmark unless `is_whole`. Raise NoInput if reading fails, BadUsage if the given format is unknown, BadInput
        for a directory or if no format is detected, and the errors of opening the store.
        """
        from omcli.wiring.inputs import transcript

        find = (lambda _: ()) if is_whole else self._bookmarks
        return transcript(name, find, format_name=format_name, session=session)

    def _bookmarks(self, origin: Origin) -> tuple[Bookmark, ...]:
        return self.store.bookmarks.find(origin) if self.has_store else ()

    def deps(
        self,
        counter: TokenCounter,
        progress: Callable[[str, TranscriptCounts], None] = ignore,
        *,
        warn: Callable[[str], None] = ignore,
        busy: Callable[[str], None] = ignore,
        steps: Callable[[StepCount | None], None] = ignore,
        observer: ObserverDeps | None = None,
        reflector: ReflectorDeps | None = None,
        open_store: Callable[[], Store] | None = None,
        wait: float | None = None,
    ) -> Deps:
        """Return the dependencies of operations. Rules take the place of a missing `observer` or `reflector`.

        `open_store` replaces `Wiring.store`, and `wait` replaces the setting.
        """
        from omcli.operations.deps import Deps

        return Deps(
            open_store=open_store or partial(getattr, self, "store"),
            counter=counter,
            clock=self.clock,
            new_id=self.new_id,
            owner=self.owner,
            wait=self.settings.wait if wait is None else wait,
            observer=observer or self.rule_observer(),
            reflector=reflector or self._rule_reflector(counter),
            warn=warn,
            show_busy=busy,
            show_progress=progress,
            show_steps=steps,
            is_off_in=cache(lambda folder: not self.settings.disabled and is_off_in(folder, os.environ)),
        )

    def rule_observer(self, *, batch_tokens: int | None = None, takes_images: bool = False) -> ObserverDeps:
        """Return rules as the observer. `takes_images` keeps images for a model that observes later."""
        from omcli.operations.deps import BATCH_TOKENS, ObserverDeps

        return ObserverDeps(open=self._rules, batch_tokens=batch_tokens or BATCH_TOKENS, takes_images=takes_images)

    def _rules(self) -> Observer:
        from omcli.observers.rules import RuleObserver

        return self.rules or RuleObserver()

    def observer(
        self, counter: TokenCounter, *, warn: Callable[[str], None] = ignore, batch_tokens: int | None = None
    ) -> ObserverDeps:
        """Return the model that observes, or rules. `batch_tokens` limits the size of a batch.

        Raise NotAllowed or BadConfiguration if the model is unavailable and rules do not stand in for it, and NoInput
        if its file of instructions cannot be read.
        """
        model = self._models(counter, warn).observer(self.rule_observer(), most=batch_tokens)
        return model or self.rule_observer(batch_tokens=batch_tokens)

    def reflector(self, counter: TokenCounter, *, warn: Callable[[str], None] = ignore) -> ReflectorDeps:
        """Return the model that reflects, or rules. Raise the same errors as `observer`."""
        rules = self._rule_reflector(counter)
        return self._models(counter, warn).reflector(rules) or rules

    def model_to_ask(self, counter: TokenCounter, *, warn: Callable[[str], None] = ignore) -> Provider | None:
        """Return the model that answers questions, if any. Raise NotAllowed or BadConfiguration if unavailable."""
        return self._models(counter, warn).model_to_ask()

    def embedder(self, *, warn: Callable[[str], None] = ignore) -> Embedder:
        """Return the model that makes vectors. Raise NotAllowed or BadConfiguration if it is unavailable."""
        from omcli.wiring.models import embedder

        return embedder(self.settings, clock=self.clock, warn=warn, ledger=lambda: (self._usual or self).store)

    def vector_search(self, warn: Callable[[str], None]) -> VectorSearch | None:
        """Return the search by meaning, or None if no model for vectors is chosen or the settings disable writing."""
        if self.settings.disabled or not self.settings.embeddings.is_set:
            return None
        from omcli.operations.embed import VectorSearch

        return VectorSearch(self.reading, lambda: self.embedder(warn=warn))

    @property
    def model_names(self) -> tuple[str, str]:
        """Names of the models that observe and reflect, available or not, or `rules`."""
        from omcli.wiring.models import name_of

        said = self.settings
        return name_of(said.observer, said), name_of(said.reflector, said)

    def named_reflector(self, counter: TokenCounter) -> ReflectorDeps:
        """Return rules under the reflecting model's name, to check if any rows are due that the model has not tried."""
        name = self._models(counter, ignore).reflector_name()  # the run that reflects will warn
        return self._rule_reflector(counter, name=name)

    def _rule_reflector(self, counter: TokenCounter, *, name: str = "rules") -> ReflectorDeps:
        from omcli.operations.deps import Meta, Policy, ReflectorDeps, Verbatim

        said = self.settings.reflect
        policy = Policy(
            tokens=said.tokens,
            inclusive=said.inclusive,
            target=said.target,
            rows=said.rows,
            verbatim=Verbatim(said.verbatim),
            meta=Meta(said.meta),
            meta_at=said.meta_at,
        )
        return ReflectorDeps(open=partial(_rule_reflector, counter), policy=policy, name=name)

    def _models(self, counter: TokenCounter, warn: Callable[[str], None]) -> Models:
        from omcli.wiring.models import Models

        return Models(
            self.settings,
            counter=counter,
            clock=self.clock,
            warn=warn,
            store=lambda: self.store,
            ledger=lambda: (self._usual or self).store,
            estimate=self._estimate,
            functions=self._functions,
        )

    def waiting_models(self) -> tuple[WaitingModel, ...]:
        """Return the models that failed for a session and are not asked again yet. A missing store has none."""
        from omcli.wiring.policies import patience

        return patience(self.settings, self.clock).waiting(self.reading.ledger)

    @property
    def limits(self) -> tuple[Limit, ...]:
        from omcli.wiring.policies import limits

        return limits(self.settings)

    def due(self) -> Due:
        from omcli.wiring import models, policies

        has_model = "observer" in self._functions or models.is_named("observer", self.settings, os.environ)
        return policies.due(self.settings, has_model=has_model)

    def new_id(self) -> str:
        """Return a new UUIDv7."""
        from omcli.operations.clock import id_at

        return id_at(self.clock.milliseconds(), int.from_bytes(os.urandom(10), "big"))

    @property
    def owner(self) -> str:
        """Name of this process as an owner of leases."""
        from omcli.sqlite.lanes import current_process

        return current_process(self._worker)


def check_format(name: str) -> None:
    from omcli.formats import named

    named(name)


def formats() -> tuple[str, ...]:
    from omcli.formats import NAMES

    return NAMES


def counters() -> tuple[str, ...]:
    from omcli.tokenizers import NAMES

    return NAMES
