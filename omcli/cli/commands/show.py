"""`om show`: a row or a message in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.cli.command import Run, with_shared
from omcli.cli.console import counted
from omcli.cli.options import argument, option, row_ids
from omcli.cli.output import row_line, state
from omcli.cli.reports import operation_as_dict, operation_summary
from omcli.memory.message import message_fields
from omcli.memory.observation import full_row, handle, row
from omcli.operations import lookup
from omcli.text.instants import minute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omcli.memory.changes import RowHistory
    from omcli.memory.message import KeptMessage
    from omcli.memory.observation import Observation

_EXAMPLES = """\b
om show 3f9a1c2e
om show 3f9a1c2e --history
om show 3f9a1c2e --json | jq -r '.messages[].text'
"""


@with_shared(examples=_EXAMPLES, without=["counter", "now"])
def show(
    run: Run,
    id_: Annotated[
        str, argument(metavar="ID", help="Id or handle of a row, or id of a message.", autocompletion=row_ids)
    ],
    *,
    history: Annotated[bool, option("--history", help="Include related rows and operations.")] = False,
) -> None:
    """Show a row with its messages, or one message.

    `supports` lists the rows that the row was made from. `coverage` is `none`, `partial` or `strong` if no, one or
    several reflections were made from the row. `state` is `in sight`, `superseded` or `dropped`. --history adds the
    rows that it replaced, was made from or became part of, and the operations that made or hid it, numbered as in `om
    history`.
    """
    shown = lookup.show(run.wiring.reading, id_, with_traces=history)
    if run.json:
        about = _about(shown.observation, shown.coverage) if shown.observation else {}
        observation = {"observation": full_row(shown.observation) | about} if shown.observation else {}
        traces = {"history": _traces_as_dict(shown.traces)} if shown.traces else {}
        run.output.document({**observation, **traces, "messages": [message_fields(kept) for kept in shown.messages]})
        return
    if shown.observation is not None:
        run.output.paragraph(shown.observation.text)
        known = ((name, str(value)) for name, value in _about(shown.observation, shown.coverage).items())
        traced = _traces(shown.traces) if shown.traces is not None else ()
        run.output.fields([*_fields(shown.observation), *known, *traced], width=13, gap=1)
        if missing := len(shown.observation.sources) - len(shown.messages):
            run.console.note(f"{counted(missing, 'message')} of it not shown: pruned or forgotten")
    for kept in shown.messages:
        _print_message(run, kept)


def _about(observation: Observation, coverage: object) -> dict[str, object]:
    """Return the project of the row, its coverage and its state."""
    project = {"project": observation.project} if observation.project else {}
    return {**project, "coverage": coverage, "state": state(observation)}


def _traces_as_dict(traces: RowHistory) -> dict[str, object]:
    rows = {"replaced": traces.replaced, "made_of": traces.made_of, "made_into": traces.made_into}
    found: dict[str, object] = {name: [full_row(each) for each in some] for name, some in rows.items()}
    for name, done in (("made_by", traces.made_by), ("hidden_by", traces.hidden_by)):
        found |= {name: operation_as_dict(done)} if done else {}
    return found | ({"successor": full_row(traces.successor)} if traces.successor else {})


def _traces(traces: RowHistory) -> Iterator[tuple[str, str]]:
    for name, done in (("made by", traces.made_by), ("hidden by", traces.hidden_by)):
        if done is not None:
            yield name, f"{done.verb} {done.number}, {minute(done.at)}: {operation_summary(done)}"
    successor = (traces.successor,) if traces.successor else ()
    made_of = [row for row in traces.made_of if row not in traces.replaced]
    related = (
        ("in place of", traces.replaced), ("made of", made_of), ("made into", traces.made_into),
        ("replaced by", successor),
    )  # fmt: skip
    for name, rows in related:
        yield from ((name, row_line(each)) for each in rows)


def _fields(observation: Observation) -> Iterator[tuple[str, str]]:
    for name, value in row(observation).items():
        if name not in ("text", "message_ids"):
            yield name, ", ".join(value) if isinstance(value, list) else str(value)
    if observation.supports:
        yield "supports", ", ".join(map(handle, observation.supports))
    for name, value in observation.metadata.items():
        yield name, str(value)


def _print_message(run: Run, kept: KeptMessage) -> None:
    said = kept.message
    about = [
        minute(said.at) if said.at else "undated",
        said.name or said.role,
        said.tool,
        said.kind,
        f"in {said.agent}" if said.agent else None,
        said.cwd,
        "failed" if said.failed else None,
        None if said.exit_code is None else f"exit {said.exit_code}",
        counted(len(said.images), "image") if said.images else None,
        kept.key,
    ]
    run.output.section(" · ".join(part for part in about if part), said.text)
