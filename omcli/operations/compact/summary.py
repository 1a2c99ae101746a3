"""Importing the summary of an earlier compaction."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from omcli.base import ignore
from omcli.base.errors import BadInput
from omcli.base.record import record, replace
from omcli.exchange.groups import Exchange, Group, NotARow
from omcli.exchange.pi import render
from omcli.exchange.summary import parse
from omcli.memory.message import UNLIMITED, Role
from omcli.memory.observation import LogQuery
from omcli.observers.rules.sentences import text_parts
from omcli.operations.deps import Deps
from omcli.operations.importing import ImportInput, import_files
from omcli.text.instants import minute
from omcli.text.similarity import folded_text

_SUMMARY = Exchange(name="summary", counter="chars-4", render=render, parse=parse)


@record
class SummaryReport:
    """The outcome of importing a summary."""

    rows: int
    tokens: int
    """Tokens of the summary, or 0 if it adds no row."""


def import_summary(name: str, text: str, session_id: str, deps: Deps) -> SummaryReport:
    """Store a summary as rows, except for facts that a row of the session, or a message of its agent, says already.

    Rows without a date get that of the session's first message, because a summary is about the time before.

    Raise BadInput if the summary is empty or gives no row, and the error of storing it if that fails.
    """
    if not text.strip():
        raise BadInput("the summary is empty")
    session = deps.store.sessions.find(session_id)
    project = (session.project if session else None) or ""
    [report] = import_files(
        [ImportInput(name=name, read=lambda: text)],
        replace(_SUMMARY, parse=partial(_parse_before, _first_minute(session_id, deps))),
        deps,
        session=session_id,
        project=project,
        each=ignore,
        told=_told(session_id, deps),
    )
    if report.error is not None:
        raise report.error
    return SummaryReport(rows=report.observations, tokens=deps.counter.text(text) if report.observations else 0)


def _first_minute(session_id: str, deps: Deps) -> str | None:
    times = [outline.at for outline in deps.store.messages.outline(session_id) if outline.at]
    return minute(min(times)) if times else None


def _parse_before(first: str | None, text: str) -> Iterator[Group | NotARow]:
    """Parse a summary, and date its undated rows `first`."""
    for found in parse(text):
        if isinstance(found, NotARow) or first is None:
            yield found
            continue
        dated = (
            entry if entry.clock or entry.line.dated else replace(entry, line=replace(entry.line, dated=first))
            for entry in found.entries
        )
        yield replace(found, entries=tuple(dated))


def _told(session_id: str, deps: Deps) -> frozenset[str]:
    """Return the texts of the session's rows and the sentences of its agent, which summaries by `om compact` quote.

    It is empty if there are no rows, because the summary is then all that is known.
    """
    query = LogQuery(session=session_id, hidden=True, bare=True)
    told = {folded_text(logged.observation.text) for logged in deps.store.rows.log(query)}
    if not told:
        return frozenset()
    spoken = (kept.message for kept in deps.store.messages.tail(session_id, max_tokens=UNLIMITED))
    sentences = (part for each in spoken if each.role is Role.ASSISTANT for part in text_parts(each.text))
    return frozenset(told.union(folded_text(part.text) for part in sentences))
