"""The Python API: a session's memory for a program that runs an agent. What it does, `om` does on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self

from omcli.base.errors import OF_MODELS, BadUsage, NoInput, OmError, StaleBatch
from omcli.base.record import replace
from omcli.compressor.handed_in import Said, is_message, listed, transcript_of
from omcli.compressor.results import Context, Worked, context_of
from omcli.memory.observation import Observation
from omcli.operations.ingest.window import Ingested
from omcli.settings.resolve import resolve
from omcli.text.dates.instants import pinned, seconds
from omcli.wiring import Wiring

if TYPE_CHECKING:
    from omcli.operations.deps import Deps
    from omcli.operations.reflect.rows import Reflection

_OBJECTS = count(1)
"""Tells apart the compressors of a process."""


class ContextCompressor:
    """The memory of one session of an agent, in `om`'s store.

    `ingest` what is said, `build_context` before the model is called, and `tick` now and then, in a thread of its own
    where a model observes. Any of them may happen in any process: all that is remembered is in the store, and `om`
    works on the same session at the same time.

    Every call opens the store and closes it again (some milliseconds), and no connection is held in between. So one
    compressor may be used by several threads: `ingest` and `build_context` wait for no `tick`, and of several threads
    that `tick`, `flush` or `reflect` one works while the others wait. After a fork, the child makes one of its own.
    Nothing is printed.

    All errors are OmErrors.
    """

    def __init__(
        self,
        session: str,
        *,
        db: str | Path | None = None,
        preset: str | None = None,
        config: str | Path | None = None,
        counter: str | None = None,
        wait: float | None = None,
        settings: Mapping[str, object] | None = None,
        project: str | Path | None = None,
        now: str | None = None,
    ) -> None:
        """The memory of the session with this id, which need not exist.

        Settings are those of the command line, settled now, once: what is given here, then `OM_*` variables, the
        project's file, the user's (or `config`) and the `preset`. `db` is the store, `wait` how many seconds to wait
        for others that write; `settings` says anything else by its key (`om config`): `{"observe.tokens": 4000}`.

        `project` is the folder within which memory is shared between sessions; the current directory if left out.
        `now` pins the clock to an instant like `2026-01-28T09:30:00Z`.

        Raises BadUsage for what makes no sense, BadConfiguration for an unknown preset and a `config` that can't be
        read, NoInput where the current directory is gone.
        """
        if not session.strip():
            raise BadUsage("the id of the session is empty")
        self.session = session
        place = None if db is None else _absolute(db)
        given = {"db": place, "preset": preset, "counter": counter, "wait": seconds(wait)}
        flags = {**(settings or {}), **{key: value for key, value in given.items() if value is not None}}
        found = resolve(flags, os.environ, config=None if config is None else _absolute(config))
        self.settings = replace(found, db=_absolute(found.db))
        self._project = str(_absolute(project or ""))
        self._now = pinned(now)
        self._worker = f"{next(_OBJECTS)}"
        self._working = Lock()
        self._keeps_pictures: bool | None = None
        self._is_closed = False
        self._warnings = list(self.settings.warnings)
        with self._wired() as wiring:
            self._counter = wiring.counter_or_default(self._warnings.append)
            self._notation = wiring.notation_or_default(self._warnings.append)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the settings made no sense and is not followed, in words for people."""
        return tuple(self._warnings)

    def ingest(self, messages: Said | Iterable[Said]) -> Ingested:
        """Keeps messages, without secrets; nobody observes them yet, and no model is asked.

        A list is the conversation as the agent has it, from its beginning or from anywhere in it, also from what
        `build_context` gave: what follows the messages that are known is new. So it may be given again whenever it
        has grown. A single message, not in a list, is what was said next: it is new also where the same was said
        before, unless it has an `id`, or a time (`timestamp`), by which it is known.

        A message is a dict in the shape of OpenAI's chat interface or Anthropic's Messages, where objects of their
        SDKs may stand in the place of any dict, or a `Message`. System messages are not kept, nor what om printed.

        Raises BadInput for what is no message, StoreLocked where another process writes for longer than `wait`, and
        CannotCreate, InputOutput, BadConfiguration where the store can't be had.
        """
        said, is_next = ([messages], True) if is_message(messages) else (listed(messages), False)
        with self._wired() as wiring:
            transcript = transcript_of(said)
            if wiring.settings.disabled:
                return Ingested()
            from omcli.operations.ingest.window import ingest

            deps = wiring.deps(self._counter)
            deps = replace(deps, observer=replace(deps.observer, takes_images=self._keeps(wiring)))
            return ingest(transcript, deps, session=self.session, project=self._project, is_next=is_next)

    def build_context(self, budget: int | None = None) -> Context:
        """What the agent should know now, in at most `budget` tokens; by the settings if left out.

        It is of what is in the store at this moment: nothing is written, no lock is taken, no model is asked. Where the
        settings freeze packs (`context.freeze`) it is the frozen one, as `om context` prints it. The three tiers are
        there also where a preset has `om context` print the working-memory block in their place. Raises BadUsage for a
        budget that is no number from 0 up; InputOutput, BadConfiguration where the store can't be read.
        """
        if budget is not None and (not isinstance(budget, int) or budget < 0):
            raise BadUsage(f"{budget!r} is no number of tokens from 0 up")
        from omcli.operations.context import Place, context

        with self._wired() as wiring:
            said = wiring.settings
            place = Place(project=self._project, session=self.session, is_everywhere=said.scope == "global")
            contexted = context(
                wiring.reading,
                place,
                budgets=wiring.budgets({"total": said.context.budget if budget is None else budget}),
                counter=self._counter,
                now=wiring.clock.now(),
                notation=self._notation,
                choice=wiring.choice,
                eviction=wiring.eviction,
            )
            return context_of(contexted.pack, self._notation, order=wiring.choice.order)

    def tick(self) -> Worked:
        """Does what is due by the settings: observes what waits, then reflects. Usually that is nothing.

        What goes wrong - a model that fails, somebody else who is at the session - is said in the report's `error`:
        messages are kept and wait. Raises only what the store can't be opened for.
        """
        from omcli.operations import tick

        warnings: list[str] = []
        with self._at_work() as wiring:
            if wiring is None:
                return Worked()
            worked = Worked()
            try:
                deps = self._deps(wiring, warnings)
                for ticked in tick.tick(deps, wiring.due(), sessions=[self.session]):
                    worked = replace(_reflected(ticked.reflection), observations=ticked.rows, error=ticked.error)
            except OmError as error:
                worked = Worked(error=error)
            return self._told(worked, wiring, warnings)

    def flush(self) -> Worked:
        """Observes everything that waits, be it due or not, then reflects if that is due.

        Raises what goes wrong: ProviderFailed, NotAllowed, BadConfiguration of a model, LaneTaken where somebody else
        is at the session for longer than `wait`, StoreLocked, InputOutput. What was done before stays done.
        """
        from omcli.operations import tick

        warnings: list[str] = []
        with self._at_work() as wiring:
            if wiring is None:
                return Worked()
            deps = self._deps(wiring, warnings)
            worked = Worked(observations=tuple(_observed(self.session, deps)))
            for ticked in tick.tick(deps, wiring.due(), sessions=[self.session]):
                if ticked.error is not None:
                    raise ticked.error
                worked = replace(_reflected(ticked.reflection), observations=(*worked.observations, *ticked.rows))
            return self._told(worked, wiring, warnings)

    def reflect(self) -> Worked:
        """Folds what was observed into fewer rows, be it due or not, and writes down what lasts: for a session's end.

        Raises as `flush` does.
        """
        from omcli.operations.reflect.session import reflect_session

        warnings: list[str] = []
        with self._at_work() as wiring:
            if wiring is None:
                return Worked()
            worked = _reflected(reflect_session(self.session, self._deps(wiring, warnings)))
            return self._told(worked, wiring, warnings)

    def close(self) -> None:
        """Ends it: what is asked of it from now on raises BadUsage. What waits is left for the next `tick`."""
        self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _wired(self) -> Iterator[Wiring]:
        if self._is_closed:
            raise BadUsage("the compressor is closed")
        wiring = Wiring(self.settings, now=self._now, worker=self._worker)
        try:
            yield wiring
        finally:
            wiring.close()

    @contextmanager
    def _at_work(self) -> Iterator[Wiring | None]:
        """One thread at a time; None where nothing may be written."""
        with self._working, self._wired() as wiring:
            yield None if wiring.settings.disabled else wiring

    def _keeps(self, wiring: Wiring) -> bool:
        """Whether images are kept until they are observed; asked once, for an answer takes an SDK."""
        if self._keeps_pictures is None:
            self._keeps_pictures = False
            with suppress(*OF_MODELS):  # who observes later tells what is wrong
                self._keeps_pictures = wiring.observing(wiring.deps(self._counter)).observer.takes_images
        return self._keeps_pictures

    def _deps(self, wiring: Wiring, warnings: list[str]) -> Deps:
        return wiring.reflecting(wiring.observing(wiring.deps(self._counter, warn=warnings.append)))

    def _told(self, worked: Worked, wiring: Wiring, warnings: Iterable[str]) -> Worked:
        return replace(worked, pending=wiring.store.batches.pending(self.session).messages, warnings=tuple(warnings))


def _absolute(path: str | Path) -> Path:
    """A place as it is now: the current directory may be another one later. Raises NoInput."""
    try:
        return Path(path).expanduser().absolute()
    except FileNotFoundError:
        raise NoInput("the current directory does not exist any more") from None


def _observed(session: str, deps: Deps) -> Iterator[Observation]:
    """Observes until nothing waits; where somebody else was quicker with a batch, what is left."""
    from omcli.operations.observe.session import observe_session

    while True:
        try:
            for step in observe_session(session, deps):
                yield from step.rows
        except StaleBatch:
            continue
        return


def _reflected(reflection: Reflection | None) -> Worked:
    return Worked(reflections=reflection.rows, items=reflection.items) if reflection else Worked()
