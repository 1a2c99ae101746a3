"""What an agent makes of rows: checked as a model's answer is, but refused as a whole where a part does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omcli.base.errors import BadInput
from omcli.base.record import replace
from omcli.llm.json_reply import row_text
from omcli.memory.observation import PINNED, Observation, Source
from omcli.memory.ports import TokenCounter
from omcli.memory.roles import Material, Reflected
from omcli.observers.agent_reply import AgentReply
from omcli.reflectors.prompt import labelled
from omcli.reflectors.reply import Answer, Gone, Lasting, Merged
from omcli.reflectors.validation import candidate

_LEFT_OUT = frozenset({"unaccounted"})
"""What is no fault of an agent: of rows that it does not mention nothing is asked."""


def read_by(given: AgentReply, rows: Mapping[str, Observation]) -> tuple[Observation, ...]:
    """The rows that reflections, items and retirements are about, oldest first."""
    cited = [reference for reflection in given.reflections for reference in reflection.made_of]
    cited += [reference for item in given.items for reference in item.made_of]
    cited += [reference for retired in given.retired for reference in (retired.row, retired.by) if reference]
    found = {rows[reference].id: rows[reference] for reference in cited}
    return tuple(sorted(found.values(), key=lambda row: (row.dated, row.id)))


def reflected(given: AgentReply, rows: Mapping[str, Observation], *, counter: TokenCounter, now: str) -> Reflected:
    """What becomes of rows. `rows` has every one that is referred to.

    A row that a person wrote or pinned stays in sight, whatever is made of it. Raises BadInput where one is retired,
    where a text names what its rows don't, and where reflections are no shorter than what they are made of.
    """
    read = read_by(given, rows)
    if not read:
        return Reflected()
    _check_retired(given, rows)
    protected = frozenset(row.id for row in read if _is_protected(row))
    material = Material(rows=read, target=0, now=now, protected=protected)
    answer = _answer(given, rows, {row.id: label for label, row in labelled(material).items()})
    _check_texts(answer, material, counter)
    found = candidate(answer, material, counter, retires=True)
    _check_size(given, rows, found.written, counter)
    made = found.reflected
    return replace(
        made,
        reflections=tuple(replace(draft, source=Source.AGENT) for draft in made.reflections),
        items=tuple(replace(draft, source=Source.AGENT) for draft in made.items),
        findings={name: number for name, number in made.findings.items() if name not in _LEFT_OUT},
    )


def _answer(given: AgentReply, rows: Mapping[str, Observation], labels: Mapping[str, str]) -> Answer:
    """The same as a model would have answered."""

    def labels_of(references: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(labels[rows[reference].id] for reference in references))

    return Answer(
        merged=tuple(
            Merged(
                text=row_text(one.text),
                rows=labels_of(one.made_of),
                priority=one.priority,
                kind=one.kind,
                status=one.status,
            )
            for one in given.reflections
        ),
        gone=tuple(
            Gone(
                row=labels[rows[one.row].id],
                reason=row_text(one.reason),
                by=labels[rows[one.by].id] if one.by else "",
            )
            for one in given.retired
        ),
        items=tuple(
            Lasting(text=row_text(one.text), kind=one.type, tags=one.tags, rows=labels_of(one.made_of))
            for one in given.items
        ),
    )


def _check_texts(answer: Answer, material: Material, counter: TokenCounter) -> None:
    """Raises BadInput for a text that does not hold, with its place."""
    parts = [(f"reflections[{number}]", Answer(merged=(one,))) for number, one in enumerate(answer.merged)]
    parts += [(f"items[{number}]", Answer(items=(one,))) for number, one in enumerate(answer.items)]
    for place, part in parts:
        findings = candidate(part, material, counter).reflected.findings
        if findings.get("rejected") or findings.get("rejected_items"):
            raise BadInput(
                f"{place}.text: it is empty once secrets are out, or names what the rows in `from` do not",
                hint="paths, identifiers and numbers have to stand in one of the rows",
            )


def _check_retired(given: AgentReply, rows: Mapping[str, Observation]) -> None:
    for number, one in enumerate(given.retired):
        if _is_protected(rows[one.row]):
            raise BadInput(f"retire[{number}].row: a person wrote or pinned it, and only a person takes it back")
        if one.by and rows[one.by].id == rows[one.row].id:
            raise BadInput(f"retire[{number}].by: a row does not take its own place")


def _check_size(given: AgentReply, rows: Mapping[str, Observation], after: int, counter: TokenCounter) -> None:
    made_of = {rows[reference].id: rows[reference].text for one in given.reflections for reference in one.made_of}
    before = sum(map(counter.text, made_of.values()))
    if given.reflections and after >= before:
        raise BadInput(
            f"reflections: they have {after} tokens, and the rows they are made of {before}",
            hint="say it in fewer words, or leave the rows as they are",
        )


def _is_protected(row: Observation) -> bool:
    return row.source is Source.USER or PINNED in row.tags
