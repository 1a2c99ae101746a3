"""Options that several commands take, and what the shell offers to complete them with."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omcli.base.errors import OmError
from omcli.cli.arguments import Declared, option

if TYPE_CHECKING:
    from omcli.cli.run import Run
    from omcli.memory.ports import Store


def named_format(about: str) -> Declared:
    """`--format NAME`."""
    return option("--format", metavar="NAME", help=about, autocompletion=format_names)


def named_notation(about: str) -> Declared:
    """`--notation NAME`."""
    names = "words, emoji, brackets, levels, importance, none"
    return option("--notation", metavar="NAME", help=f"{about}: {names}.", autocompletion=notation_names)


def named_tokens(name: str, about: str, *, least: int = 0) -> Declared:
    """An option for a number of tokens."""
    return option(name, metavar="TOKENS", min=least, help=about)


def named_session(about: str) -> Declared:
    """`--session ID`."""
    return option("--session", metavar="ID", help=about, autocompletion=session_ids)


def named_yes() -> Declared:
    """`--yes`."""
    return option("--yes", "-y", help="Delete for good without being asked.")


def named_background(about: str) -> Declared:
    """`--background`."""
    return option("--background", help=about)


# ---- the model to use


def named_provider(role: str) -> Declared:
    """`--observer NAME` or `--reflector NAME`."""
    return option(
        f"--{role}",
        metavar="NAME",
        help="Who does it: anthropic, openai, ollama, …, or rules.",
        autocompletion=provider_names,
    )


def named_model() -> Declared:
    """`--model NAME`."""
    return option("--model", metavar="NAME", help="The model: NAME, or ollama/NAME, openrouter/NAME, …")


def named_url() -> Declared:
    """`--base-url URL`."""
    return option("--base-url", metavar="URL", help="Where the model is, if not at its provider's own address.")


def named_verify() -> Declared:
    """`--verify`."""
    return option("--verify", help="Leave out rows of a model that name what their messages don't.")


def named_best_effort() -> Declared:
    """`--best-effort`."""
    return option("--best-effort", help="A model that fails is a warning and no error.")


def apply_model_flags(
    run: Run, role: str, *, provider: str | None, model: str | None, base_url: str | None, verify: bool = False
) -> None:
    """Override the settings of a role's model with the options above."""
    run.override({f"{role}.provider": provider, f"{role}.model": model, f"{role}.base_url": base_url})
    run.override({"observe.verify": verify or None})


# ---- completion


# Typer knows its context by the name `ctx`, where it is not annotated as what only Typer has.
_LAST = 50
"""How many sessions or rows are offered."""


def format_names() -> list[str]:
    """Formats of transcripts."""
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
    """Ways to write memory down."""
    from omcli.exchange import NAMES

    return list(NAMES)


def notation_names() -> list[str]:
    """Notations of rows."""
    from omcli.memory.notation import NOTATIONS

    return [notation.name for notation in NOTATIONS]


def provider_names() -> list[str]:
    """Whose models observe and reflect."""
    from omcli.providers.endpoints import ENDPOINTS

    return [*ENDPOINTS, "rules"]


def session_ids(ctx: Any) -> list[tuple[str, str]]:
    """The last sessions, with their titles. Nothing where anything goes wrong: a TAB is no place for errors."""
    with suppress(OmError, OSError):
        found = _reading(ctx).sessions.summaries(last=_LAST)
        return [(summary.session.id, summary.session.title or summary.session.project or "") for summary in found]
    return []


def handles(ctx: Any) -> list[tuple[str, str]]:
    """The last rows, with the beginning of their texts. Nothing where anything goes wrong."""
    from omcli.memory.observation import handle
    from omcli.memory.ports import LogQuery

    with suppress(OmError, OSError):
        rows = [logged.observation for logged in _reading(ctx).rows.log(LogQuery(last=_LAST))]
        return [(handle(row.id), row.text[:60]) for row in rows]
    return []


def operation_numbers(ctx: Any) -> list[tuple[str, str]]:
    """The last operations that can be taken back, with what they were. Nothing where anything goes wrong."""
    from omcli.text.dates.instants import minute

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
