"""Options shared by several commands, and shell completion of their values."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from omcli.base.errors import OmError
from omcli.cli.arguments import ParameterOptions, option
from omcli.memory.notation import NOTATIONS
from omcli.memory.observation import handle
from omcli.text.instants import minute

if TYPE_CHECKING:
    from omcli.cli.run import Run
    from omcli.memory.ports import Store

_LAST = 50
"""Largest number of sessions, rows or operations offered."""
_TIMES = "2026-01-28, 2026-01-28T09:30Z, 7d, 12h"


# ---- completion
# Typer passes its context to a parameter named `ctx` if it is annotated with Any.


def format_names() -> list[str]:
    """Transcript formats."""
    from omcli.wiring import formats

    return list(formats())


def counter_names() -> list[str]:
    """Token counters."""
    from omcli.wiring import counters

    return list(counters())


def preset_names() -> list[str]:
    """Presets of settings."""
    from omcli.settings.layers import PRESETS

    return list(PRESETS)


def exchange_names() -> list[str]:
    """Formats of exported memory."""
    from omcli.exchange import NAMES

    return list(NAMES)


def notation_names() -> list[str]:
    """Notations of rows."""
    return [notation.name for notation in NOTATIONS]


def provider_names() -> list[str]:
    """Providers of models, and `rules`."""
    from omcli.providers.endpoints import ENDPOINTS

    return [*ENDPOINTS, "rules"]


def session_ids(ctx: Any) -> list[tuple[str, str]]:
    """The last sessions with their titles; none on any error, since completion cannot show one."""
    with suppress(OmError, OSError):
        found = _reading(ctx).sessions.summaries(last=_LAST)
        return [(summary.session.id, summary.session.title or summary.session.project or "") for summary in found]
    return []


def row_ids(ctx: Any) -> list[tuple[str, str]]:
    """The last rows with the beginning of their text; none on any error."""
    from omcli.memory.ports import LogQuery

    with suppress(OmError, OSError):
        rows = [logged.observation for logged in _reading(ctx).rows.log(LogQuery(last=_LAST))]
        return [(handle(row.id), row.text[:60]) for row in rows]
    return []


def operation_numbers(ctx: Any) -> list[tuple[str, str]]:
    """The last operations that can be undone, with their verbs and times; none on any error."""
    with suppress(OmError, OSError):
        found = [done for done in _reading(ctx).operations.history() if done.can_be_undone][:_LAST]
        return [(str(done.number), f"{done.verb}, {minute(done.at)}") for done in found]
    return []


def _reading(ctx: Any) -> Store:
    """The store that the command would read."""
    from omcli.settings.resolve import resolve
    from omcli.wiring import Wiring

    db, config = (ctx.params.get(name) or ctx.parent.params.get(name) for name in ("db", "config"))
    return Wiring(
        resolve({"db": Path(db) if db else None}, os.environ, config=Path(config) if config else None)
    ).reading


# ---- rows to select


def session_option(about: str = "Only this session.") -> ParameterOptions:
    """`--session ID`."""
    return option("--session", metavar="ID", help=about, autocompletion=session_ids)


def project_option(about: str = "Only this project.") -> ParameterOptions:
    """`--project DIR`."""
    return option("--project", metavar="DIR", help=about)


def last_option(about: str) -> ParameterOptions:
    """`-n N`."""
    return option("--last", "-n", at_least=0, metavar="N", help=about)


SinceOption = Annotated[str | None, option("--since", metavar="TIME", help=f"Only since this time: {_TIMES}.")]
UntilOption = Annotated[
    str | None, option("--until", metavar="TIME", help="Only until this time; a day counts to its end.")
]
TagOption = Annotated[
    list[str] | None, option("--tag", metavar="TAG", help="Only with this tag. Repeat to require several.")
]
HiddenOption = Annotated[bool, option("--all", help="Include superseded and dropped rows.")]


# ---- input and output


def format_option(about: str) -> ParameterOptions:
    """`--format NAME`."""
    return option("--format", metavar="NAME", help=about, autocompletion=format_names)


def tokens_option(name: str, about: str, *, aliases: tuple[str, ...] = (), at_least: int = 0) -> ParameterOptions:
    """An option for a number of tokens."""
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
DryRunOption = Annotated[bool, option("--dry-run", help="Show what would change, and change nothing.")]
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
    str | None, option("--base-url", metavar="URL", help="Base URL of the API, if not the provider's own.")
]
VerifyOption = Annotated[
    bool, option("--verify", help="Drop a model's rows that name things missing from their messages.")
]
BestEffortOption = Annotated[bool, option("--best-effort", help="Treat model failures as warnings.")]


def apply_model_options(
    run: Run, role: str, *, provider: str | None, model: str | None, base_url: str | None, verify: bool = False
) -> None:
    """Override the settings of a role's model by the options above."""
    run.apply_options({f"{role}.provider": provider, f"{role}.model": model, f"{role}.base_url": base_url})
    run.apply_options({"observe.verify": verify or None})
