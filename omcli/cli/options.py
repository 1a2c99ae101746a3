"""Options and arguments of commands: each is declared once, and parsed here or by Typer.

An agent starts `om` at every turn, and importing Typer takes four times as long as starting Python. So a plain command
line (known options in full, valid values) is parsed here without Typer. Help, completion, hidden aliases and all errors
are left to Typer, which parses every plain line to the same values (tests/unit/cli/test_options.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from omcli.base.errors import BadUsage, OmError
from omcli.base.record import record, replace
from omcli.memory.notation import NOTATIONS
from omcli.memory.observation import LogQuery, handle
from omcli.memory.session import NO_PROJECT
from omcli.operations.clock import period
from omcli.settings import resolve
from omcli.settings.settings import StoreName, expanded
from omcli.text.clean import one_line
from omcli.text.instants import minute
from omcli.wiring import Wiring, counters, formats

if TYPE_CHECKING:
    from omcli.cli.command import Run

Values = dict[str, object]
"""Values of a command's parameters, by name."""

_LONGEST_NUMBER = 15
"""Maximum number of characters of a number; longer ones are left to Typer."""


@record
class ParameterOptions:
    """Declaration of an option or argument. An option has `names`; an argument has none."""

    names: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    """Former names. They still work, but help and completion don't show them."""
    at_least: int | None = None
    """Smallest valid number; None for no limit."""
    settings: Mapping[str, object]
    """Further settings for Typer, such as help, metavar and completion."""


def option(
    *names: str, aliases: Sequence[str] = (), at_least: int | None = None, **settings: object
) -> ParameterOptions:
    """Declare an option, for use in `Annotated`. `settings` are passed to `typer.Option`."""
    return ParameterOptions(names=names, aliases=tuple(aliases), at_least=at_least, settings=settings)


def argument(*, at_least: int | None = None, **settings: object) -> ParameterOptions:
    """Declare an argument, for use in `Annotated`. `settings` are passed to `typer.Argument`."""
    return ParameterOptions(names=(), at_least=at_least, settings=settings)


@record
class Parameter:
    """An option or argument of a command."""

    name: str
    kind: Any
    """The type: `str`, `int`, `float`, `bool`, `Path`, an enumeration, or a list of one of these; each may be `| None`.
    """
    default: object
    """`...` if the parameter is required."""
    declared: ParameterOptions

    @property
    def is_list(self) -> bool:
        """True if the parameter may be given several times."""
        return get_origin(_value_kind(self.kind)) is list

    @property
    def number(self) -> type[int | float] | None:
        """`int` or `float` if the value is a number, otherwise None."""
        kind = _value_kind(self.kind)
        return kind if kind in (int, float) else None

    @property
    def values(self) -> list[Enum]:
        """The valid values, if they are those of an enumeration."""
        kind = self._kind_of_one
        return list(kind) if issubclass(kind, Enum) else []

    @property
    def _kind_of_one(self) -> Any:
        kind = _value_kind(self.kind)
        return get_args(kind)[0] if get_origin(kind) is list else kind

    def without_names(self, names: Collection[str]) -> Parameter:
        """Return the option without these of its names."""
        rest = tuple(name for name in self.declared.names if name not in names)
        return replace(self, declared=replace(self.declared, names=rest))

    def value(self, text: str) -> object:
        """Return the value of a word, or None if Typer has to parse or reject it."""
        kind = self._kind_of_one
        if not text:
            return None
        if issubclass(kind, Enum):
            return next((member for member in kind if member.value == text), None)
        if kind in (int, float):
            return _number(text, kind, self.declared.at_least)
        return kind(text)


@cache
def parameters(function: Callable[..., None]) -> tuple[Parameter, ...]:
    """Return the parameters of a function that are declared with `option` or `argument`, in order."""
    return tuple(_parameters(function))


def _parameters(function: Callable[..., None]) -> Iterator[Parameter]:
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    defaults = dict(zip(reversed(positional), reversed(function.__defaults__ or ()), strict=False))
    defaults |= function.__kwdefaults__ or {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        for declared in getattr(hint, "__metadata__", ()):
            yield Parameter(name=name, kind=get_args(hint)[0], default=defaults.get(name, ...), declared=declared)


def plain(wanted: Sequence[Parameter], words: Sequence[str]) -> Values | None:
    """Return the values for the words that follow a command, or None if the line is not plain."""
    options = {name: parameter for parameter in wanted for name in parameter.declared.names}
    places = [parameter for parameter in wanted if not parameter.declared.names]
    given: Values = {}
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        parameter = options.get(name if name.startswith("--") else word)
        if parameter is None:
            # `-` is an argument; anything else that begins with it is an option.
            if not places or (word.startswith("-") and word != "-"):
                return None
            parameter, value = (places[0] if places[0].is_list else places.pop(0)), word
        elif parameter.kind is bool:
            if has_value:
                return None
            given[parameter.name] = True
            continue
        elif not has_value or not name.startswith("--"):
            value = next(rest, "-")
            if value.startswith("-"):
                return None
        meant = parameter.value(value)
        if meant is None:
            return None
        if parameter.is_list:
            meant = [*given.get(parameter.name, ()), meant]  # type: ignore[misc]
        given[parameter.name] = meant
    found = {parameter.name: given.get(parameter.name, parameter.default) for parameter in wanted}
    return None if ... in found.values() else found


def _value_kind(kind: Any) -> Any:
    kinds = [each for each in get_args(kind) if each is not NoneType]
    return kinds[0] if NoneType in get_args(kind) else kind


def _number(text: str, kind: type[int | float], at_least: int | None) -> float | None:
    digits = text.replace(".", "", 1) if kind is float else text
    if not digits.isdecimal() or not digits.isascii() or len(text) > _LONGEST_NUMBER:
        return None
    number = kind(text)
    return number if at_least is None or number >= at_least else None


SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
"""Environment variable in which an agent names its session."""
_LAST = 50
"""Maximum number of sessions, rows or operations that completion offers."""
_TIMES = "2026-01-28, 2026-01-28T09:30Z, 7d, 12h"


# ---- completion
# Typer passes its context to a parameter named `ctx` if it is annotated with Any.


def format_names() -> list[str]:
    """Return the transcript formats."""
    return list(formats())


def counter_names() -> list[str]:
    """Return the token counters."""
    return list(counters())


def preset_names() -> list[str]:
    """Return the presets."""
    from omcli.settings.layers import PRESETS

    return list(PRESETS)


def notation_names() -> list[str]:
    """Return the notations of rows."""
    return [notation.name for notation in NOTATIONS]


def provider_names() -> list[str]:
    """Return the providers of models, and `rules`."""
    from omcli.providers.endpoints import ENDPOINTS

    return [*ENDPOINTS, "rules"]


def session_ids(ctx: Any) -> list[tuple[str, str]]:
    """Return the last sessions with their titles or prompts. Return none on errors: completion cannot show them."""
    with suppress(OmError, OSError), closing(_wiring(ctx)) as wiring:
        store = wiring.reading.sessions
        found = [summary.session for summary in store.summaries(last=_LAST)]
        return [(each.id, one_line(each.title or store.prompt(each.id) or "")[:60]) for each in found]
    return []


def row_ids(ctx: Any) -> list[tuple[str, str]]:
    """Return the last rows with the beginning of their text; none on errors."""
    with suppress(OmError, OSError), closing(_wiring(ctx)) as wiring:
        rows = [logged.observation for logged in wiring.reading.rows.log(LogQuery(last=_LAST))]
        return [(handle(row.id), row.text[:60]) for row in rows]
    return []


def operation_numbers(ctx: Any) -> list[tuple[str, str]]:
    """Return the last operations that can be undone, with their verbs and times; none on errors."""
    with suppress(OmError, OSError), closing(_wiring(ctx)) as wiring:
        found = [done for done in wiring.reading.operations.history() if done.can_be_undone][:_LAST]
        return [(str(done.number), f"{done.verb}, {minute(done.at)}") for done in found]
    return []


def backup_days(ctx: Any) -> list[str]:
    """Return the days of backups, the newest first; none on errors."""
    from omcli.sqlite.backups import backup_files, by_age

    with suppress(OmError, OSError):
        wiring = _wiring(ctx)
        found = by_age(backup_files(wiring.spool_path), wiring.clock.now())
        return list(dict.fromkeys(f"{each.at:%Y-%m-%d}" for each in reversed(found)))
    return []


def _wiring(ctx: Any) -> Wiring:
    db, config = (ctx.params.get(name) or ctx.parent.params.get(name) for name in ("db", "config"))
    return Wiring(resolve({"db": db or None}, os.environ, config=Path(config) if config else None))


# ---- rows to select


def session_option(about: str = "Only this session.") -> ParameterOptions:
    """Declare `--session ID`. The value may be the beginning of an id, or `last`; `Run.session` finds the session."""
    return option("--session", metavar="ID", help=about, autocompletion=session_ids)


def project_option(about: str = "Only this project.") -> ParameterOptions:
    """Declare `--project DIR`."""
    return option("--project", metavar="DIR", help=about)


def last_option(about: str) -> ParameterOptions:
    """Declare `--last N`."""
    return option("--last", "-n", at_least=0, metavar="N", help=about)


SinceOption = Annotated[str | None, option("--since", metavar="TIME", help=f"Only since this time: {_TIMES}.")]
UntilOption = Annotated[
    str | None, option("--until", metavar="TIME", help="Only until this time; a day counts to its end.")
]
TagOption = Annotated[
    list[str] | None, option("--tag", metavar="TAG", help="Only rows with this tag. Repeat to require several tags.")
]
AuthorOption = Annotated[str | None, option("--author", metavar="NAME", help="Only what this author stored.")]
HiddenOption = Annotated[bool, option("--all", help="Include superseded and dropped rows.")]


class RowScope(StrEnum):
    """Sessions whose rows are included."""

    SESSION = "session"
    PROJECT = "project"
    GLOBAL = "global"
    ALL = "all"
    """The same as `global`."""

    @property
    def setting(self) -> str:
        """The value of the setting `scope`."""
        return str(RowScope.GLOBAL if self is RowScope.ALL else self)


ScopeOption = Annotated[
    RowScope | None,
    option(
        "--scope", help="Include this session, all sessions of this project, or all sessions (`global`, same as `all`)."
    ),
]


class RowFilter:
    """Options that select rows, shared by `om log`, `om recall`, `om export` and others."""

    def __init__(
        self,
        *,
        session: Annotated[str | None, session_option()] = None,
        project: Annotated[str | None, project_option()] = None,
        scope: ScopeOption = None,
        tag: TagOption = None,
        since: SinceOption = None,
        until: UntilOption = None,
        last: Annotated[int | None, last_option("Only the last N rows written.")] = None,
        author: AuthorOption = None,
        all_: HiddenOption = False,
    ) -> None:
        self.tags = tag or []
        self.last = within_limit(last)
        self._period = (since, until)
        self._query = replace(_within(scope, session, project_path(project)), author=author, hidden=all_)
        self.is_open = scope is None and session is None and project is None
        """True if no scope, session or project was given."""
        self._with_others = scope is RowScope.PROJECT and session is not None and project is None

    @property
    def is_empty(self) -> bool:
        """True if the options select all visible rows and no hidden ones."""
        return self._query == LogQuery() and self.last is None and self._period == (None, None) and not self.tags

    def query(self, run: Run) -> LogQuery:
        """Return a query for the rows. Tags and `last` are left to the command.

        With a session, `--scope project` selects the project of that session, or rows without a project if it has none.
        Otherwise it selects the current folder or, if the store knows nothing of it, the nearest known folder above.
        Raise BadUsage if the period is invalid, and UnknownSession if the session is unknown.
        """
        begins, ends = period(*self._period, now=run.wiring.clock.now())
        query = replace(self._query, since=begins, until=ends, session=run.session(self._query.session))
        store = run.wiring.reading
        if self._with_others and query.session is not None:
            known = store.sessions.find(query.session)
            return replace(query, session=None, project=(known.project if known else None) or NO_PROJECT)
        above = run.folders if query.project else ()
        if not above or query.project != run.project:
            return query
        from omcli.operations.context import known_project
        from omcli.operations.lookup import unknown

        is_known = unknown(store, LogQuery(project=query.project)) is None
        return query if is_known else replace(query, project=known_project(store, above) or query.project)


def _within(scope: RowScope | None, session: str | None, project: str | None) -> LogQuery:
    """Return a query for the session and project that are given or that the scope names.

    Raise BadUsage if the scope contradicts them, or if it needs a session and none is known.
    """
    if scope is RowScope.SESSION:
        session = session or os.environ.get(SESSION_VARIABLE, "").strip() or None
        if session is None:
            raise BadUsage("`--scope session` without a session", hint="name it: `--session ID`")
    elif scope is RowScope.PROJECT:
        project = project or project_path(".")
    elif scope is not None and (session or project):
        raise BadUsage(f"`--scope {scope}` and `--{'session' if session else 'project'}` exclude each other")
    return LogQuery(session=session, project=project)


LARGEST = 1_000_000_000
"""Upper limit for numbers of rows and tokens, because SQLite's integers have 64 bits. No store has more."""


def within_limit(number: int | None) -> int | None:
    """Return the number, but at most `LARGEST`. None stays None."""
    return None if number is None else min(number, LARGEST)


def is_within(at: str, begins: str | None, ends: str | None) -> bool:
    """Return True if a time is in a period as returned by `period`. The end is not part of the period."""
    return (begins is None or begins <= at) and (ends is None or at < ends)


def project_path(project: str | None) -> str | None:
    """Return a project as it is stored: an absolute path without a trailing slash. None stays None."""
    return None if project is None else str(expanded(project).absolute())


# ---- input and output


def format_option(about: str) -> ParameterOptions:
    """Declare `--format NAME`."""
    return option("--format", metavar="NAME", help=about, autocompletion=format_names)


def tokens_option(name: str, about: str, *, aliases: tuple[str, ...] = (), at_least: int = 0) -> ParameterOptions:
    """Declare an option for a number of tokens."""
    return option(name, aliases=aliases, metavar="TOKENS", at_least=at_least, help=about)


NotationOption = Annotated[
    str | None,
    option(
        "--notation",
        metavar="NAME",
        help="Mark rows with words, emoji, brackets, levels, importance or none.",
        autocompletion=notation_names,
    ),
]
StreamOption = Annotated[bool, option("--jsonl", help="Print one JSON object per line.")]
StoreOption = Annotated[
    StoreName | None,
    option("--db", metavar="PATH|URL", path_type=StoreName, help="Store to use.  [env: OM_DB]"),
]
DryRunOption = Annotated[bool, option("--dry-run", help="Show what would change without changing anything.")]
YesOption = Annotated[bool, option("--yes", "-y", help="Do not ask for confirmation.")]


# ---- the model to use


def _provider_option(role: str, product: str) -> ParameterOptions:
    return option(
        f"--{role}",
        metavar="NAME",
        help=f"Provider that writes {product} (anthropic, openai, ollama, …), or `rules`.",
        autocompletion=provider_names,
    )


ObserverOption = Annotated[str | None, _provider_option("observer", "observations")]
ReflectorOption = Annotated[str | None, _provider_option("reflector", "reflections")]
ModelOption = Annotated[str | None, option("--model", metavar="NAME", help="Model, as NAME or PROVIDER/NAME.")]
BaseUrlOption = Annotated[
    str | None, option("--base-url", metavar="URL", help="Base URL of the API, instead of the provider's own.")
]
VerifyOption = Annotated[
    bool, option("--verify", help="Drop a model's rows that mention things not found in their messages.")
]
AgainOption = Annotated[bool, option("--again", help="Ask the model now, even if it has just failed.")]
EstimateOption = Annotated[
    bool, option("--estimate", help="Print the calls, tokens and dollars it would take, and change nothing.")
]
JobsOption = Annotated[
    int | None,
    option("--jobs", "-j", metavar="N", at_least=1, help="Maximum number of processes for many files.  [env: OM_JOBS]"),
]
BestEffortOption = Annotated[bool, option("--best-effort", help="Treat model failures as warnings.")]


def apply_model_options(
    run: Run,
    role: str,
    *,
    provider: str | None,
    model: str | None,
    base_url: str | None,
    verify: bool = False,
    again: bool = False,
) -> None:
    """Override a role's model settings with the values of the options above. `role` is `observer` or `reflector`."""
    run.apply_options({f"{role}.provider": provider, f"{role}.model": model, f"{role}.base_url": base_url})
    run.apply_options({"observe.verify": verify or None, "provider.longest_wait": 0 if again else None})
