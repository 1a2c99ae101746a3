"""A summary that somebody made of a session before: what it says becomes rows, where the store has none of it."""

from __future__ import annotations

from omcli.base.errors import BadInput
from omcli.base.record import record
from omcli.exchange.groups import Exchange
from omcli.exchange.pi import render
from omcli.exchange.summary import parse
from omcli.memory.observation import Observation
from omcli.memory.ports import LogQuery
from omcli.operations.importing import Input, import_files
from omcli.operations.workshop import Workshop

_SUMMARY = Exchange(name="summary", counter="chars-4", render=render, parse=parse)


@record
class Earlier:
    """What became of a summary."""

    rows: int
    """That were made of it."""
    tokens: int
    """Of its text; 0 where nothing was made of it."""


def take_in_summary(name: str, text: str, session_id: str, workshop: Workshop) -> Earlier:
    """Makes rows of a summary, unless the store has rows of the session: what it says stands in those.

    Raises BadInput where it says nothing.
    """
    if not text.strip():
        raise BadInput("there is no summary in it")
    if next(workshop.store.log(LogQuery(session=session_id, hidden=True, last=1)), None) is not None:
        return Earlier(rows=0, tokens=0)
    session = workshop.store.session(session_id)
    project = (session.project if session else None) or ""
    [report] = import_files(
        [Input(name=name, read=lambda: text)],
        _SUMMARY,
        workshop,
        session=session_id,
        project=project,
        each=_kept,
    )
    if report.error is not None:
        raise report.error
    return Earlier(rows=report.observations, tokens=workshop.counter.text(text))


def _kept(_row: Observation) -> None:
    """Nobody is told of a row."""
