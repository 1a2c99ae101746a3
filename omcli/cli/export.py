"""`om export`: write memory down as another design does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import argument, option
from omcli.cli.completion import exchange_names
from omcli.cli.options import Run, named_session, resolved, with_shared
from omcli.memory.errors import CannotCreate, InputOutput

if TYPE_CHECKING:
    from collections.abc import Iterable

EXAMPLES = """\b
om export --to zora-jsonl > memory.jsonl
om export --to pi --session ID notes.txt
om export --to duet-groups --project . | less
"""

_STDOUT = "-"


@with_shared(without=["counter", "now"])
def export(
    run: Run,
    file: Annotated[str, argument(metavar="[FILE]", help="Where to write it; `-` is stdout.")] = _STDOUT,
    *,
    to: Annotated[
        str,
        option(
            "--to",
            metavar="NAME",
            help="pi, zora, zora-jsonl, duet-groups, duet-headings, lango, lango-jsonl.",
            autocompletion=exchange_names,
        ),
    ],
    session: Annotated[str | None, named_session("Rows of this session.")] = None,
    project: Annotated[str | None, option("--project", metavar="DIR", help="Rows of this project.")] = None,
    all_: Annotated[bool, option("--all", help="Superseded and dropped rows as well.")] = False,
) -> None:
    """Write memory down as another design does.

    Rows in sight, in the order in which they were written; `om import` reads all that is written here. Times are UTC.
    """
    from omcli.memory.exchange import named
    from omcli.memory.ports import LogQuery
    from omcli.operations import log
    from omcli.operations.export import export as written

    exchange = named(to)
    query = LogQuery(session=session, project=resolved(project), hidden=all_)
    if unknown := log.unknown(run.wiring.reading, query):
        run.talk.note(unknown)
    pieces = written(run.wiring.reading, query, exchange, run.wiring.counter(exchange.counter))
    if file != _STDOUT:
        _write(Path(file), pieces)
    if run.json:
        run.output.document({"format": to, **({"text": "".join(pieces)} if file == _STDOUT else {"path": file})})
    elif file == _STDOUT:
        for piece in pieces:
            run.output.text(piece)


def _write(file: Path, pieces: Iterable[str]) -> None:
    """Writes a file that others may not read, like the store. Raises CannotCreate, InputOutput."""
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotCreate(f"cannot write {file}: {error.strerror}") from None
    try:
        with os.fdopen(opened, "w", encoding="utf-8", newline="") as stream:
            stream.writelines(pieces)
    except OSError as error:
        raise InputOutput(f"cannot write {file}: {error.strerror}") from None
