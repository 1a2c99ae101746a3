"""What an agent says of messages, as drafts: checked as a model's reply is."""

from __future__ import annotations

from collections import Counter

from omcli.memory.errors import BadInput, Unusable
from omcli.memory.observation import TOOL_EVENTS, Source
from omcli.memory.ports import Batch
from omcli.memory.record import replace
from omcli.memory.reply_schema import MOST_ROWS
from omcli.memory.roles import Observed, Observer
from omcli.observers.given.document import Handed
from omcli.observers.model.answer import Answer
from omcli.observers.model.believing import believed
from omcli.observers.model.evidence import Evidence
from omcli.observers.model.merging import merged


def check_messages(handed: Handed, evidence: Evidence) -> None:
    """Raises BadInput for a message that was not shown, and for a row that is about none of the waiting ones."""
    for place, label in handed.messages():
        if label not in evidence.shown.labels:
            raise BadInput(f"{place}: there is no message `{label}`", hint="labels are those that `om pending` printed")
    for number, row in enumerate(handed.answer.rows):
        if not evidence.shown.new.intersection(row.sources):
            raise BadInput(f"observations[{number}].sources: all of them were observed before")


def observed(answer: Answer, evidence: Evidence, batch: Batch, *, rules: Observer) -> Observed:
    """What a batch gives: of what was said the agent's rows, of what tools did those of the rules.

    Raises BadInput where most of the rows have no text once secrets are out.
    """
    try:
        told = believed(answer, evidence, batch, token="", most_rows=MOST_ROWS, verify=False)
    except Unusable as error:
        raise BadInput(f"observations: {error.message}") from None
    by_rules = [draft for draft in rules.observe(batch).drafts if draft.type in TOOL_EVENTS]
    roles = {kept.seq: kept.message.role for kept in evidence.shown.labels.values()}
    rows = merged(told.drafts, by_rules, roles)
    drafts = (*rows.drafts, *([told.task] if told.task else []))
    return Observed(
        drafts=tuple(
            replace(draft, source=Source.AGENT) if draft.source is Source.MODEL else draft for draft in drafts
        ),
        used=told.used,
        title=told.title,
        findings=dict(+(told.findings + Counter(recorded_by_rules=rows.recorded_by_rules))),
    )
