"""Folding old rows from all sessions of a project: selecting rows, batching them, and limiting the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from omcli.base.record import record, replace
from omcli.llm.schema import RULED, rules_of_user
from omcli.memory.message import TokenCounter, row_tokens
from omcli.memory.observation import PINNED, Draft, Kind, Observation, Status
from omcli.memory.reflection import Reflected
from omcli.pack.budget import last_fitting
from omcli.pack.cross_session import days
from omcli.reflectors.drafts import repeats, rules_in
from omcli.text.phrases import words_of
from omcli.text.similarity import is_about

GLOBAL = "global-prune"
"""Tag of rows made by folding across sessions. These rows are not folded again."""
_FEWEST = 20
"""Reflections are not cut to fewer tokens than this, because shorter ones would be meaningless."""
_MARKER = "… [truncated {} chars]"


@record
class GlobalBatch:
    """Rows of one project or of none, from any session, oldest first, that are folded together."""

    project: str | None
    rows: tuple[Observation, ...]
    tokens: int


@record
class GlobalPlan:
    """The visible rows, divided into those to keep and those to fold across sessions."""

    kept: tuple[Observation, ...]
    """Rows that are not folded, in the given order."""
    batches: tuple[GlobalBatch, ...]
    """Rows to fold. The batches of each project are in order, the oldest first."""


def plan_global(
    rows: Iterable[Observation], *, now: str, min_age: float, batch_tokens: int, counter: TokenCounter
) -> GlobalPlan:
    """Choose the rows to fold, and divide them into batches.

    Rows younger than `min_age` days are kept, because their details are still needed. Pinned and open rows, items, and
    rows already folded across sessions are kept too. Each batch contains rows from a single project, up to
    `batch_tokens`. A larger row gets a batch of its own.
    """
    visible = [row for row in rows if row.is_visible]
    kept = [row for row in visible if _is_kept(row) or days(now) - days(row.dated) < min_age]
    stay = {row.id for row in kept}
    by_project: dict[str | None, list[Observation]] = {}
    for row in sorted(visible, key=lambda row: row.dated):
        if row.id not in stay:
            by_project.setdefault(row.project, []).append(row)
    batches = [batch for project, old in by_project.items() for batch in _batches(project, old, batch_tokens, counter)]
    return GlobalPlan(kept=tuple(kept), batches=tuple(batches))


def _is_kept(row: Observation) -> bool:
    is_global = row.kind is Kind.REFLECTION and (row.session is None or GLOBAL in row.tags)
    return is_global or row.kind is Kind.ITEM or PINNED in row.tags or row.status is Status.OPEN


def _batches(
    project: str | None, rows: Sequence[Observation], most: int, counter: TokenCounter
) -> Iterable[GlobalBatch]:
    batch: list[Observation] = []
    tokens = 0
    for row in rows:
        size = row_tokens(row, counter)
        if batch and tokens + size > most:
            yield GlobalBatch(project=project, rows=tuple(batch), tokens=tokens)
            batch, tokens = [], 0
        batch.append(row)
        tokens += size
    if batch:
        yield GlobalBatch(project=project, rows=tuple(batch), tokens=tokens)


def limit_tokens(reflected: Reflected, rows: Sequence[Observation], *, target: int, counter: TokenCounter) -> Reflected:
    """Tag the reflections of a batch of `rows` with `GLOBAL`, and limit them to `target` tokens in total if possible.

    If they are too long, each reflection is cut to an equal share. If that is not enough, the last reflections are
    removed until the others fit or one is left. A row stays visible if its shortened reflection is not about the row,
    or lacks a rule of the user that the row contains. A reflection that would then replace no row is removed. If the
    rows would not become shorter, all of them stay.
    """
    drafts = [replace(draft, tags=tuple(dict.fromkeys((*draft.tags, GLOBAL)))) for draft in reflected.reflections]
    if sum(counter.text(draft.text) for draft in drafts) <= target:
        return replace(reflected, reflections=tuple(drafts))
    share = max(_FEWEST, target // len(drafts))
    known = {row.id: row for row in rows}
    left = [_shortened(draft, share, known, counter) for draft in drafts]
    left = [draft for draft, whole in zip(left, drafts, strict=True) if draft.replaces or not whole.replaces]
    while len(left) > 1 and sum(counter.text(draft.text) for draft in left) > target:
        left.pop()
    hidden = {row for draft in left for row in draft.replaces} | {gone.row for gone in reflected.dropped}
    freed = sum(row_tokens(row, counter) for row in rows if row.id in hidden)
    if sum(counter.text(draft.text) for draft in left) >= freed:
        return Reflected(items=reflected.items, attempts=reflected.attempts)
    findings = {**reflected.findings, "trimmed": len(drafts) - len(left)}
    return replace(reflected, reflections=tuple(left), findings={name: n for name, n in findings.items() if n})


def _shortened(draft: Draft, most: int, rows: Mapping[str, Observation], counter: TokenCounter) -> Draft:
    """Cut a draft to `most` tokens. Of the rows that it replaces or was made from, keep those that the remaining text
    is about and whose rules of the user it repeats.
    """
    text = _cut(draft.text, most, counter)
    if text == draft.text:
        return draft
    replaces, supports = (
        tuple(each for each in some if is_about(text.lower(), rows[each].text) and _is_repeated(rows[each], text))
        for some in (draft.replaces, draft.supports)
    )
    ruled = rules_in(text, map(rows.__getitem__, supports))
    metadata = {name: value for name, value in draft.metadata.items() if name != RULED}
    return replace(draft, text=text, replaces=replaces, supports=supports, metadata={**metadata, **ruled})


def _is_repeated(row: Observation, text: str) -> bool:
    return all(repeats(text, said) or repeats(text, words_of(said)) for said in rules_of_user(row))


def _cut(text: str, most: int, counter: TokenCounter) -> str:
    """Cut text at a space, if possible, so that it fits into `most` tokens together with a marker."""
    if counter.text(text) <= most:
        return text

    def cut(chars: int) -> str:
        return text[:chars] + _MARKER.format(len(text) - chars)

    fitting = last_fitting(lambda chars: counter.text(cut(chars)) <= most, 1, len(text) - 1)
    space = text.rfind(" ", 0, fitting + 1)
    return cut(space if space > 0 else fitting)
