"""The Python API: the memory of a session, for programs that run an agent. `om` offers the same on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from omcli.base.errors import OF_MODELS, BadUsage, NoInput, OmError, StaleBatch
from omcli.base.record import record, replace
from omcli.memory.observation import LogQuery, Observation
from omcli.operations.ingest.window import Ingested
from omcli.settings import resolve
from omcli.settings.settings import ServerUrl, expanded, place_of
from omcli.text.clean import printed_name
from omcli.text.instants import check_number, parse_time
from omcli.wiring import Wiring

if TYPE_CHECKING:
    from anthropic.types import MessageParam
    from openai.types.chat import ChatCompletionMessageParam

    from omcli.formats.messages import Said
    from omcli.memory.notation import Notation
    from omcli.operations.deps import Deps
    from omcli.operations.recall import RecallResult
    from omcli.operations.reflect.session import Reflection
    from omcli.pack.budget import Tier
    from omcli.pack.context_pack import ContextPack
    from omcli.providers.command import ModelFunction


@record
class Stats:
    """Sizes of a context. All tokens are counted by `counter`."""

    working: int
    """Tokens of the last messages as printed."""
    session: int
    """Tokens of the session's own rows."""
    cross: int
    """Tokens of rows of other sessions, and of rows without a session, such as most lasting items."""
    total: int
    """Tokens of `Context.text`, including what surrounds the three tiers."""
    pending: int
    """Number of messages of the session that are not observed yet."""
    counter: str
    """Name of the token counter."""
    budget: int
    """Maximum number of tokens in `Context.text`."""


@record
class Context:
    """The memory for an agent at one moment."""

    text: str
    """The whole context as printed by `om context`. It has at most `stats.budget` tokens and may be empty."""
    memory: str
    """`text` without the last messages: the system prompt for an agent that gets `messages` separately."""
    cross: str
    """The cross-session tier, as in `text`."""
    session: str
    """The tier of this session, as in `text`."""
    working: str
    """The last messages, as in `text`."""
    messages: tuple[ChatCompletionMessageParam, ...]
    """The last messages in OpenAI's chat format, oldest first, so that an agent can continue from them. Each call has
    its result or a placeholder. Only calls at the very end may have neither: the agent has to answer them.

    Long results and arguments may be shortened. `ingest` recognises these messages.
    """
    anthropic_messages: tuple[MessageParam, ...]
    """The last messages in Anthropic's Messages format. The first one must be the user's: if an agent's would come
    first, a message of the user is put before it, which says that earlier messages are left out.
    """
    stats: Stats


@record
class Worked:
    """Results of observing and reflecting. If the settings disable writing, nothing is done and all are empty or 0."""

    observations: tuple[Observation, ...] = ()
    """Rows written by observing, oldest first."""
    reflections: tuple[Observation, ...] = ()
    """Rows that replaced other rows."""
    items: tuple[Observation, ...] = ()
    """Lasting facts for later sessions."""
    pending: int = 0
    """Number of messages that are not observed yet."""
    error: OmError | None = None
    """Error that stopped the work, or None. Earlier results are stored."""
    warnings: tuple[str, ...] = ()
    """Warnings for the user."""


_SCOPES = ("session", "project", "global")
_OBJECTS = count(1)
"""Numbers the compressors of this process."""


class ContextCompressor:
    """The memory of one agent session, in `om`'s store.

    Call `ingest` with new messages, `build_context` before each model call, and `tick` now and then, in a separate
    thread if a model observes. All state is in the store, so any process may make any of these calls, and `om` may work
    on the same session at the same time.

    Every call opens and closes the store, which takes some milliseconds. Threads may share a compressor. `ingest` and
    `build_context` do not wait for `tick`. `tick`, `flush` and `reflect` are run by one thread at a time; other threads
    wait. An async program awaits `asyncio.to_thread(memory.tick)`. After a fork, create a new compressor in the child
    process. Nothing is printed. All errors are OmErrors, except those of your own functions.
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
        observer: str | ModelFunction | None = None,
        reflector: str | ModelFunction | None = None,
        settings: Mapping[str, object] | None = None,
        project: str | Path | None = None,
        now: str | None = None,
    ) -> None:
        """Open the memory of the session with this id, which need not exist yet.

        Settings are resolved once, as on the command line. They come from these arguments, or otherwise from `OM_*`
        variables, the project's file, the user's file (or `config`), and the `preset`, in this order of precedence.
        `db` is the path of the store, or the URL of its database, and `wait` is the number of seconds to wait for other
        writers. `settings` sets anything else by its key (see `om config`), as in `{"observe.tokens": 4000}`.

        `observer` and `reflector` are `"rules"`, a provider such as `"anthropic"`, a model such as `"ollama/qwen3"`, or
        a function that takes instructions and a prompt, asks a model of its own, and returns the reply as text. Rules
        check each reply. An error that the function raises reaches the caller of `tick`, `flush` or `reflect`, unless
        it is a ProviderFailed, which is treated like one of any model.

        `project` is the folder whose sessions share memory, by default the current directory. `now` pins the clock to a
        time such as `2026-01-28T09:30:00Z`.

        Raise BadUsage if a value is invalid, BadConfiguration if the preset is unknown or `config` cannot be read, and
        NoInput if the current directory was deleted.
        """
        if not session.strip():
            raise BadUsage("the id of the session is empty")
        self.session = printed_name(session)
        place = None if db is None else _full_place(place_of(db))
        given = {"db": place, "preset": preset, "counter": counter, "wait": check_number(wait)}
        asked = {"observer": observer, "reflector": reflector}
        given |= dict(setting for role, one in asked.items() for setting in _chosen(role, one))
        flags = {**(settings or {}), **{key: value for key, value in given.items() if value is not None}}
        found = resolve(flags, os.environ, config=None if config is None else _full_path(config))
        self.settings = replace(found, db=_full_place(found.db))
        self._project = str(_full_path(project or ""))
        self._now = parse_time(now)
        self._worker = f"{next(_OBJECTS)}"
        self._functions = {role: one for role, one in asked.items() if one is not None and not isinstance(one, str)}
        self._working = Lock()
        self._keeps_pictures: bool | None = None
        self._is_closed = False
        self._warnings = [*self.settings.warnings, *self.settings.notes]
        with self._open_wiring() as wiring:
            self._counter = wiring.counter_or_default(self._warnings.append)
            self._notation = wiring.notation_or_default(self._warnings.append)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)

    def ingest(self, messages: Said | Iterable[Said]) -> Ingested:
        """Store messages without their secrets. They are observed later, by `tick` or `flush`.

        A list is all or part of the agent's conversation, or begins with messages from `build_context`. The messages
        after the known ones are new, so pass the whole list whenever it has grown. A single message is the next one. It
        is new even if its text is known, unless its `id` or `timestamp` is known.

        A message is a dict in the format of OpenAI's chat completions or Anthropic's Messages, an object of their SDKs,
        or a `Message`. System messages and om's own output are not stored. Nothing is stored if the settings disable
        writing.

        Raise BadInput if a message is invalid, StoreLocked if another process writes for longer than `wait`, and
        CannotCreate, InputOutput or UnusableStore if the store cannot be opened.
        """
        from omcli.formats.messages import is_message, message_list, transcript_of

        said, is_next = ([messages], True) if is_message(messages) else (message_list(messages), False)
        with self._open_wiring() as wiring:
            transcript = transcript_of(said)
            if wiring.settings.disabled:
                return Ingested()
            from omcli.operations.ingest.window import ingest

            deps = wiring.deps(self._counter, observer=wiring.rule_observer(takes_images=self._keep_images(wiring)))
            return ingest(transcript, deps, session=self.session, project=self._project, is_next=is_next)

    def build_context(self, budget: int | None = None, *, task: str = "") -> Context:
        """Return the memory for the agent's next call, in at most `budget` tokens (by default the budget in the
        settings). Rows that match the text of a `task` are chosen first, as by `om context --for`.

        The store is only read: no lock is taken and no model is called. With the setting `context.freeze`, the context
        is frozen, as for `om context`. All three tiers are returned, even with presets for which `om context` prints
        the working-memory block. Raise BadUsage if the budget is invalid, and InputOutput or UnusableStore if the
        store cannot be read.
        """
        if budget is not None and (not isinstance(budget, int) or budget < 0):
            raise BadUsage(f"{budget!r} is not a valid budget (expected tokens, 0 or more)")
        from omcli.operations.context import Place, context

        with self._open_wiring() as wiring:
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
                rules=lambda: wiring.deps(self._counter, open_store=lambda: wiring.reading),
                task=task,
            )
            return context_of(contexted.pack, self._notation, order=wiring.choice.order)

    def working_memory(self, budget: int = 800) -> str:
        """Return the session's current state, such as its task, modified files, errors, decisions and commands, as
        Markdown in at most `budget` tokens and never more than 800. It is empty if there is none.

        Messages that are not observed yet are observed by rules for this call. The store is only read, as by
        `build_context`, which raises the same errors.
        """
        if not isinstance(budget, int) or budget < 0:
            raise BadUsage(f"{budget!r} is not a valid budget (expected tokens, 0 or more)")
        from omcli.operations.context import Place
        from omcli.operations.working_block import working_block

        with self._open_wiring() as wiring:
            found = working_block(
                wiring.reading,
                Place(project=self._project, session=self.session),
                budget=budget,
                counter=self._counter,
                rules=lambda: wiring.deps(self._counter, open_store=lambda: wiring.reading),
            )
            return found.block.printed

    def search(self, query: str, *, limit: int = 8, scope: str = "global") -> tuple[RecallResult, ...]:
        """Search rows and messages, and return at most `limit` results, the best first. `scope` is `global` (all
        sessions), `project` or `session`.

        These are the results of `om recall`. Rows that are found count as used, unless the settings disable writing.
        Raise BadUsage if the query has no words or another argument is invalid, and InputOutput or UnusableStore if the
        store cannot be read.
        """
        if not isinstance(limit, int) or limit < 1:
            raise BadUsage(f"{limit!r} is not a valid limit (expected results, 1 or more)")
        if scope not in _SCOPES:
            raise BadUsage(f"{scope!r} is not a valid scope (expected {', '.join(_SCOPES)})")
        from omcli.operations.recall import RecallFilter, mark_used, recall

        session = self.session if scope == "session" else None
        project = self._project if scope == "project" else None
        with self._open_wiring() as wiring:
            wanted = RecallFilter(log=LogQuery(session=session, project=project))
            vectors = wiring.vector_search(self._warnings.append)
            results = recall(wiring.reading, query, wanted, limit=limit, nearest=vectors.nearest if vectors else None)
            if vectors and vectors.error:
                self._warnings.append(f"found by words alone: {vectors.error.message}")
            if not wiring.settings.disabled:
                mark_used(results, open_store=lambda: wiring.store_at_once, clock=wiring.clock)
            return results

    def tick(self) -> Worked:
        """Observe pending messages and reflect, if the settings make this due; usually there is nothing to do.

        Errors, such as those of a model, or LaneTaken if another process is working on the session, are returned in
        `Worked.error`. Messages that could not be observed stay pending. Errors are raised only if the store cannot be
        opened, or by your own functions.
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
        """Observe all pending messages, due or not, then reflect if that is due.

        Raise ProviderFailed, NotAllowed or BadConfiguration if a model fails, LaneTaken or StoreLocked if another
        process works for longer than `wait`, StaleBatch if another process has hidden rows that were being folded, and
        InputOutput if the disk fails. Earlier results are stored.
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
        """Fold observations into fewer rows and extract lasting items, due or not. Use it at the end of a session.

        Rows that yielded nothing before are skipped until they change. Raise the same errors as `flush`.
        """
        from omcli.operations.reflect.session import reflect_session

        warnings: list[str] = []
        with self._at_work() as wiring:
            if wiring is None:
                return Worked()
            worked = _reflected(reflect_session(self.session, self._deps(wiring, warnings)))
            return self._told(worked, wiring, warnings)

    def close(self) -> None:
        """Close the compressor: further calls raise BadUsage. Pending messages are left to the next `tick`."""
        self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _open_wiring(self) -> Iterator[Wiring]:
        if self._is_closed:
            raise BadUsage("the compressor is closed")
        wiring = Wiring(self.settings, now=self._now, worker=self._worker, functions=self._functions)
        try:
            with wiring.with_index():
                yield wiring
        finally:
            wiring.close()

    @contextmanager
    def _at_work(self) -> Iterator[Wiring | None]:
        """Admit one thread at a time. Yield None if om is disabled."""
        with self._working, self._open_wiring() as wiring:
            yield None if wiring.settings.disabled else wiring

    def _keep_images(self, wiring: Wiring) -> bool:
        """Return True if images are kept until observed. This is determined once, because it may load an SDK."""
        if self._keeps_pictures is None:
            self._keeps_pictures = False
            with suppress(*OF_MODELS):  # reported when messages are observed
                self._keeps_pictures = wiring.observer(self._counter).takes_images
        return self._keeps_pictures

    def _deps(self, wiring: Wiring, warnings: list[str]) -> Deps:
        warn = warnings.append
        observer = wiring.observer(self._counter, warn=warn)
        reflector = wiring.reflector(self._counter, warn=warn)
        return wiring.deps(self._counter, warn=warn, observer=observer, reflector=reflector)

    def _told(self, worked: Worked, wiring: Wiring, warnings: Iterable[str]) -> Worked:
        return replace(worked, pending=wiring.store.batches.pending(self.session).messages, warnings=tuple(warnings))


def _full_place(place: Path | ServerUrl) -> Path | ServerUrl:
    return _full_path(place) if isinstance(place, Path) else place


def _full_path(path: str | Path) -> Path:
    """Return the absolute path now, because the current directory may change. Raise NoInput if that directory no longer
    exists.
    """
    try:
        return expanded(path).absolute()
    except FileNotFoundError:
        raise NoInput("the current directory no longer exists") from None


def _chosen(role: str, choice: object) -> Iterator[tuple[str, str]]:
    """Yield the setting that chooses rules, a provider or a model for a role; for a function, yield nothing. Raise
    BadUsage if the choice is of another type.
    """
    from omcli.providers.endpoints import ENDPOINTS
    from omcli.wiring.models import RULES

    if isinstance(choice, str):
        yield f"{role}.{'provider' if choice in (RULES, *ENDPOINTS) else 'model'}", choice
    elif choice is not None and not callable(choice):
        raise BadUsage(f"{choice!r} is not a valid {role} (expected a name or a function)")


def _observed(session: str, deps: Deps) -> Iterator[Observation]:
    """Observe until nothing is pending, skipping batches that another process observed first. Yield the rows."""
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


# ---- context out


def context_of(pack: ContextPack, notation: Notation, *, order: tuple[Tier, ...]) -> Context:
    """Return a pack as a `Context`. In `memory`, the tiers have this `order`."""
    from omcli.pack.budget import Tier
    from omcli.pack.layouts.chat import ANTHROPIC, OPENAI
    from omcli.pack.layouts.layout import Head, PackContent
    from omcli.pack.layouts.text import Text

    head = Head(
        session=pack.session,
        counter=pack.counter,
        budgets=pack.budgets,
        pending=pack.pending,
        notation=notation,
        order=order,
    )
    layout = Text(head=head)
    shown = PackContent(cross=pack.cross, session=pack.observations, tail=pack.turns)
    parts = {tier: layout.part(tier, shown) for tier in Tier}
    return Context(
        text=pack.printed,
        memory=layout.block(parts[tier] for tier in head.order if tier is not Tier.TAIL),
        cross=parts[Tier.CROSS],
        session=parts[Tier.SESSION],
        working=parts[Tier.TAIL],
        messages=cast("tuple[ChatCompletionMessageParam, ...]", tuple(OPENAI.conversation(pack.turns))),
        anthropic_messages=cast("tuple[MessageParam, ...]", tuple(ANTHROPIC.conversation(pack.turns))),
        stats=Stats(
            working=pack.tokens[Tier.TAIL],
            session=pack.tokens[Tier.SESSION],
            cross=pack.tokens[Tier.CROSS],
            total=pack.total,
            pending=pack.pending,
            counter=pack.counter,
            budget=pack.budgets.total,
        ),
    )
