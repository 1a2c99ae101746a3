"""Observing files: each transcript is ingested, then the sessions in it are observed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from omcli.base.errors import OF_MATERIAL, OF_MODELS, OmError
from omcli.base.record import replace
from omcli.memory.observation import Observation
from omcli.operations.deps import Deps
from omcli.operations.ingest.files import FileInput, FileReport, count_pending, ingest_files
from omcli.operations.observe.session import observe_session


def _ignore(row: Observation) -> None:
    """Drop a row."""


def observe_files(
    inputs: Iterable[FileInput],
    deps: Deps,
    *,
    session: str | None = None,
    each: Callable[[Observation], None] = _ignore,
) -> Iterator[FileReport]:
    """Ingest and observe each input, and yield its report; an error in one stops no other.

    `session` overrides the sessions that the inputs name. `each` gets every row once it is stored: a transcript may
    give more than fit into memory. If the model itself fails, the inputs after that are only ingested.
    """
    is_asked = True
    for report in ingest_files(inputs, deps, session=session):
        rows = message_tokens = row_tokens = 0
        findings: Counter[str] = Counter()
        error: OmError | None = report.error
        try:
            for session_id in report.sessions if is_asked and error is None else ():
                for step in observe_session(session_id, deps):
                    rows += len(step.rows)
                    message_tokens += step.message_tokens
                    row_tokens += sum(row.tokens for row in step.rows)
                    findings.update(step.findings)
                    for row in step.rows:
                        each(row)
        except OmError as failure:
            error = failure
        is_asked = is_asked and (not isinstance(error, OF_MODELS) or isinstance(error, OF_MATERIAL))
        is_pending = report.sessions and (error is None or isinstance(error, OF_MODELS))
        yield replace(
            report,
            observations=rows,
            message_tokens=message_tokens,
            observation_tokens=row_tokens,
            findings=dict(findings),
            pending=count_pending(report.sessions, deps) if is_pending else 0,
            error=error,
        )
