"""Policies from the settings: budgets, selection, thresholds, retention; stores on servers, and keys of stores."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, TypeVar

from omcli.base import lazily
from omcli.base.errors import BadKey, IndexDamaged, NoKey, TryAgain
from omcli.base.record import fields_of, replace
from omcli.settings.settings import ServerUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from omcli.memory.retention import RetentionRules
    from omcli.memory.session import Author, EvictionPolicy
    from omcli.operations.clock import Clock
    from omcli.operations.deps import ObserverDeps
    from omcli.operations.model_calls import Limit, Patience
    from omcli.operations.tick import Due
    from omcli.pack.budget import Budgets
    from omcli.pack.context_pack import Choice
    from omcli.settings.settings import ObserveSettings, Settings
    from omcli.sqlite import SqliteStore
    from omcli.wiring import Wiring

_Result = TypeVar("_Result")
_LONGEST_AGO = 30_000
"""Maximum age in days. It reaches back before 1970, the earliest time in a store; much longer ones would overflow."""
_TOKENS = 100
"""`block_after` is a number of tokens if it is at least this, otherwise a multiple of the threshold."""
_MUCH = 10
"""Number of tokens in a batch per token shown to a model, if the model is shown only the newest messages."""

_DIGITS = 16
"""Number of digits of the name of a database in the user's state folder."""


def budgets(settings: Settings, asked: Mapping[str, int | None]) -> Budgets:
    """Return the budgets of a pack (`total`) and its tiers: the requested ones, otherwise those in the settings.

    By default, a tier that is not printed gets nothing, and neither do other sessions if the scope is one session. The
    tail of a frozen pack may grow until it is cut.
    """
    from omcli.memory.message import UNLIMITED
    from omcli.pack.budget import Tier, budgets

    tiers = settings.context
    grown = tiers.evict if tiers.freeze and tiers.evict is not None else tiers.tail
    usual = {Tier.CROSS: tiers.cross, Tier.SESSION: tiers.session, Tier.TAIL: grown}
    if settings.scope == "session":
        usual[Tier.CROSS] = 0
    defaults = {tier: most if tier in tiers.order else 0 for tier, most in usual.items()}
    most = {name: tokens if tokens is None else min(tokens, UNLIMITED) for name, tokens in asked.items()}
    return budgets(**most, defaults=defaults)


def observer_deps(said: ObserveSettings, usual: ObserverDeps, *, most: int | None = None) -> ObserverDeps:
    """Return `usual` with the limits for a model. If given, `most` also limits the tokens in a batch."""
    longest = said.max_transcript or usual.batch_tokens
    at_once = min(said.batch_tokens, longest)
    batch = _MUCH * longest if said.newest_only else at_once if said.chunk_messages else longest
    return replace(
        usual,
        batch_tokens=batch if most is None else min(batch, most),
        batch_messages=said.chunk_messages or None,
        slice_tokens=None if said.newest_only else at_once,
    )


def eviction(settings: Settings) -> EvictionPolicy | None:
    """Return the eviction policy, or None if packs are not frozen."""
    from omcli.memory.message import UNLIMITED
    from omcli.memory.session import EvictionPolicy

    said = settings.context
    if not said.freeze:
        return None
    if said.evict is None:
        return EvictionPolicy(most=UNLIMITED, left=UNLIMITED // 2)
    # A cut makes room for several turns, because otherwise nearly every turn would change the pack.
    return EvictionPolicy(
        most=said.evict, left=min(said.evict if said.tail is None else said.tail, said.evict * 3 // 4)
    )


def choice(settings: Settings) -> Choice:
    from omcli.pack.budget import Tier
    from omcli.pack.context_pack import Choice
    from omcli.pack.cross_session import HALF_LIFE, TIME_CONSTANT

    said = settings.context
    order = tuple(map(Tier, said.order))
    return Choice(
        reflections=said.reflections,
        others=said.observations,
        is_recent=said.select == "recent",
        is_descending=said.render == "desc",
        result_chars=said.result_chars,
        is_append_only=said.append_only,
        fading=TIME_CONSTANT if said.rank == "time-constant" else HALF_LIFE,
        order=(*order, *(tier for tier in Tier if tier not in order)),
    )


def due(settings: Settings, *, has_model: bool) -> Due:
    """Return the conditions under which observing is due. Without a model, any number of pending tokens is enough."""
    from omcli.memory.buffer import BufferPolicy
    from omcli.operations.tick import Due, Trigger

    said = settings.observe
    if not has_model:
        return Due(trigger=Trigger(said.trigger), tokens=1, is_free=True)
    ahead = BufferPolicy.of(
        said.precompute,
        tokens=said.tokens,
        late=said.precompute_late,
        late_from=said.precompute_late_from,
        messages=said.chunk_messages,
    )
    return Due(
        trigger=Trigger(said.trigger),
        tokens=said.tokens,
        inclusive=said.inclusive,
        batches=1 if said.chunk_messages else None,
        block_after=_block_after(said),
        ahead=ahead if said.precompute > 0 else None,
        floor=said.floor,
    )


def _block_after(said: ObserveSettings) -> int:
    most = said.block_after
    return int(most * said.tokens if most < _TOKENS else most)


def retention(settings: Settings, clock: Clock) -> RetentionRules:
    """Return the retention rules, which are empty if the settings contain none."""
    from omcli.memory.retention import RetentionRules

    said = settings.retention
    return RetentionRules(
        before=_days_ago(said.older_than, clock),
        keep_last=said.keep_last,
        max_tokens=said.max_tokens,
        keep_sessions=said.keep_sessions,
        messages_before=_days_ago(said.raw_older_than, clock),
    )


def _days_ago(days: float | None, clock: Clock) -> str | None:
    return None if days is None else clock.after(-min(days, _LONGEST_AGO) * 86_400)


def patience(settings: Settings, clock: Clock) -> Patience:
    from omcli.operations.model_calls import Patience

    return Patience(longest=settings.provider.longest_wait, clock=clock)


def limits(settings: Settings) -> tuple[Limit, ...]:
    from omcli.operations.model_calls import Limit

    return tuple(
        Limit(
            name=f"limits.{name}",
            most=most,
            is_cost=name.endswith("_cost"),
            of_month="month_" in name,
            is_hard=not name.startswith("soft_"),
        )
        for name, most in fields_of(settings.limits).items()
        if most is not None
    )


# ---- the key of an encrypted store

_VARIABLE = "OM_KEY"
_KEY = lazily(r"[0-9a-fA-F]{64}")
_KEYRING = "the keyring"
_SERVICE = "om store"
"""Name of om's entries in the keyring. The name of the user is the name of a key there."""
_PATIENCE = 60
"""Seconds that a command may take to print a key: it may have to ask for a password."""


# ---- the store and its key


def backups(path: Path) -> tuple[Path, ...]:
    """Return the copies of a store in its folder, sorted by name."""
    from glob import escape

    return tuple(sorted(path.parent.glob(f"{escape(path.name)}.*.bak")))


def store_version(settings: Settings) -> int:
    """Return the schema version of this program. Older stores are migrated to it."""
    if isinstance(settings.db, ServerUrl):
        from omcli.postgres.connection import newest

        return newest()
    from omcli.sqlite.connection import steps

    return len(steps())


class StoreOnServer:
    """The store in a database of a server: what differs from a store in a file."""

    def __init__(self, url: ServerUrl, *, wait: float) -> None:
        self._url = url
        self._wait = wait
        self._was_seen = False

    def open(self, *, wait: float, read_only: bool = False, author: Author | None = None) -> SqliteStore:
        """Open the store. Raise the errors of `PostgresStore.open`."""
        from omcli.postgres import PostgresStore

        return PostgresStore.open(self._url.url, wait=wait, name=str(self._url), read_only=read_only, author=author)

    @property
    def exists(self) -> bool:
        """True if the database has a store. Raise the errors of `PostgresStore.open`."""
        from omcli.postgres import PostgresStore

        if not self._was_seen:  # one that is missing may be created at any time
            with closing(self.open(wait=self._wait, read_only=True)) as found:
                self._was_seen = isinstance(found, PostgresStore)
        return self._was_seen

    @staticmethod
    def size_of(store: SqliteStore) -> int | None:
        """Return the size in bytes of the database of an open store, or None for one that stands for a missing one."""
        from omcli.postgres import PostgresStore
        from omcli.postgres.differences import size

        if not isinstance(store, PostgresStore):
            return None
        with store.database.reading() as connection:
            return size(connection)

    @property
    def spool_path(self) -> Path:
        """Path in the user's state folder that stands for the database. Only a spool may be beside it."""
        from hashlib import sha256
        from pathlib import Path

        from omcli.processes import state_folder

        name = sha256(str(self._url).encode()).hexdigest()[:_DIGITS]
        return Path(state_folder(os.environ), "servers", name)

    def copy(self) -> SqliteStore:
        """Open a private copy in memory."""
        from omcli.postgres.moving import copy_store
        from omcli.sqlite import SqliteStore

        copy = SqliteStore.temporary()
        with closing(self.open(wait=self._wait)) as store:
            copy_store(store, copy, private=True)
        return copy


@contextmanager
def with_index(settings: Settings, new_wiring: Callable[[], Wiring]) -> Iterator[None]:
    """If the block raises IndexDamaged and writing is allowed, rebuild the index of words and raise TryAgain."""
    try:
        yield
    except IndexDamaged as error:
        if settings.disabled:
            raise
        with closing(new_wiring()) as wiring:
            wiring.store.index.renew()
        raise TryAgain(
            "the index of words was damaged and has been rebuilt", hint="nothing is lost; run it again"
        ) from error


def with_key(settings: Settings, use: Callable[[], _Result]) -> _Result:
    """Return the result of a function. If it raises NoKey, learn the key and try again. Raise as `learn_key` does."""
    try:
        return use()
    except NoKey as error:
        learn_key(settings, error.name)
    return with_key(settings, use)


def learn_key(settings: Settings, name: str, *, of: str = "the store", command: str | None = None) -> None:
    """Let this process open a file that is encrypted with the key that has this name. `command` prints the key; without
    it, the key is taken from the place of the store's (`place_of_key`). `of` names the file in errors.

    Raise NoKey if the key is missing or cannot be read, BadKey if anything else is in its place, and the errors of
    `key_printed`.
    """
    from omcli.sqlite.cipher import learn, name_of

    place = place_of_key(settings) if command is None else "`--key-command`"
    hint = _HINT if of == "the store" else "`--key-command CMD` says what prints the key of the file"
    key = _key_in(place, settings, name=name) if command is None else checked_key(key_printed(command), place)
    if key is None:
        raise NoKey(f"{of} is encrypted, and its key is not in {place}", hint=hint)
    if name_of(key) != name:
        raise BadKey(f"the key in {place} is not that of {of}", hint=hint)
    learn(key)


def new_key(settings: Settings) -> str:
    """Return the key for a store that is to be encrypted. A new one is made and kept if `place_of_key` is the keyring,
    or a file that is missing. Raise NoKey if it cannot be kept or read, and BadKey if it is not valid.
    """
    from secrets import token_hex

    from omcli.sqlite.cipher import name_of

    place, file = place_of_key(settings), settings.store.key_file
    new = token_hex(32)
    if place == _KEYRING:
        return _kept_by_system(new, name_of(new))
    if file is not None and place == str(file) and not file.exists():
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "w") as stream:
                stream.write(f"{new}\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise NoKey(f"the key cannot be kept in {file}: {error.strerror}") from None
    key = _key_in(place, settings, name="")
    if key is None:
        raise NoKey(f"no key in {place}", hint=_HINT)
    return key


_RUN_IT = "run it by hand to see why"
_HINT = "the order is OM_KEY, `store.key_command`, `store.key_file`, the keyring: om-store(5)"


def place_of_key(settings: Settings) -> str:
    """Return the only place where a key is looked for: the first one that is set, otherwise the keyring."""
    if os.environ.get(_VARIABLE, "").strip():
        return _VARIABLE
    if settings.store.key_command:
        return "`store.key_command`"
    return str(settings.store.key_file or _KEYRING)


def _key_in(place: str, settings: Settings, *, name: str) -> str | None:
    """Return the key in a place, or None if none is there. Raise BadKey if something else is."""
    if place == _VARIABLE:
        text: str | None = os.environ[_VARIABLE]
    elif settings.store.key_command and place != str(settings.store.key_file):
        text = key_printed(settings.store.key_command)
    elif settings.store.key_file:
        text = _text_of(settings.store.key_file)
    else:
        text = _key_of_system(name)
    return None if text is None else checked_key(text, place)


def checked_key(text: str, place: str) -> str:
    """Return the key in a text, which was found in `place`. Raise BadKey if the text is not a key."""
    if not _KEY.fullmatch(text.strip()):
        raise BadKey(f"{place} has no valid key (expected 64 hexadecimal digits)", hint=_HINT)
    return text.strip().lower()


def key_printed(line: str, *, seconds: float = _PATIENCE) -> str:
    """Return the output of a command, run without a shell. It can ask on the terminal if there is one. Raise NoKey if
    it cannot be started, fails or takes too long, and BadConfiguration if it cannot be parsed or is not found.
    """
    import subprocess

    from omcli.processes import GUARD
    from omcli.providers.command import command

    found = command(line, seconds=seconds)
    other = None if os.isatty(0) else subprocess.DEVNULL  # stdin may be a transcript, and a client may read stderr
    try:
        process = subprocess.run(
            found.arguments,
            stdin=other,
            stdout=subprocess.PIPE,
            stderr=other,
            timeout=seconds,
            check=False,
            env={**os.environ, GUARD: "1"},
        )
    except subprocess.TimeoutExpired:
        raise NoKey(f"the key command `{found.model}` took longer than {seconds:g} s", hint=_RUN_IT) from None
    except OSError as error:
        raise NoKey(f"the key command `{found.model}` cannot be started: {error.strerror}") from None
    if process.returncode:
        raise NoKey(
            f"the key command `{found.model}` ended with {process.returncode}", hint="run it by hand to see why"
        )
    return process.stdout.decode(errors="replace")


def _text_of(file: Path) -> str | None:
    """Return the first 200 bytes of a key file, or None if it is missing. Raise NoKey if it is open to others or
    cannot be read.
    """
    try:
        with file.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if stat.S_IMODE(mode) & (stat.S_IRWXG | stat.S_IRWXO):
                raise NoKey(f"others may read the key in {file}", hint=f"chmod 600 {file}")
            return stream.read(200).decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NoKey(f"the key in {file} cannot be read: {error.strerror}") from None


def _key_of_system(name: str) -> str | None:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise NoKey("keyring is not installed", hint="pip install 'omcli[encryption]', or: om-store(5)") from None
    try:
        return keyring.get_password(_SERVICE, name)
    except (KeyringError, RuntimeError) as error:
        raise NoKey(f"the keyring cannot be read: {_line(error)}", hint=_HINT) from None


def _kept_by_system(key: str, name: str) -> str:
    """Put a key into the keyring and return it. Raise NoKey unless it can be read again."""
    _key_of_system(name)
    import keyring
    from keyring.errors import KeyringError

    try:
        keyring.set_password(_SERVICE, name, key)
    except (KeyringError, RuntimeError) as error:
        raise NoKey(f"the keyring cannot be written: {_line(error)}", hint=_HINT) from None
    if _key_of_system(name) != key:
        raise NoKey("the keyring has not kept the key", hint=_HINT)
    return key


def _line(error: BaseException) -> str:
    return str(error).partition("\n")[0].partition(". ")[0] or type(error).__name__
