"""`om show`: one row in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import argument
from omcli.cli.completion import handles
from omcli.cli.options import Run, with_shared
from omcli.memory.dates import minute
from omcli.memory.observation import handle
from omcli.memory.rows import full_row, message, row

if TYPE_CHECKING:
    from omcli.memory.message import KeptMessage
    from omcli.memory.observation import Observation

EXAMPLES = """\b
om show 3f9a1c2e
om show 3f9a1c2e --json | jq -r '.messages[].text'
"""


@with_shared(without=["counter", "now"])
def show(
    run: Run,
    id_: Annotated[
        str,
        argument(metavar="ID", help="Of a row (or the end of it, as in the log) or a message.", autocompletion=handles),
    ],
) -> None:
    """Show a row with the messages it came from, or a message.

    `supports` are rows that it was made of; `coverage` tells whether reflections say what it says: none, one (partial)
    or several (strong).
    """
    from omcli.operations import show

    shown = show.show(run.wiring.reading, id_)
    if run.json:
        about = {"coverage": shown.coverage} if shown.coverage else {}
        observation = {"observation": full_row(shown.observation) | about} if shown.observation else {}
        run.output.document({**observation, "messages": [message(kept) for kept in shown.messages]})
        return
    if shown.observation is not None:
        _print_row(run, shown.observation)
        run.output.line(f"{'coverage':<13} {shown.coverage}")
    for kept in shown.messages:
        _print_message(run, kept)


def _print_row(run: Run, observation: Observation) -> None:
    run.output.line(observation.text)
    run.output.line("")
    for name, value in row(observation).items():
        if name not in ("text", "message_ids"):
            written = ", ".join(value) if isinstance(value, list) else str(value)
            run.output.line(f"{name:<13} {written}")
    if observation.supports:
        run.output.line(f"{'supports':<13} {', '.join(map(handle, observation.supports))}")
    for name, value in observation.metadata.items():
        run.output.line(f"{name:<13} {value}")


def _print_message(run: Run, kept: KeptMessage) -> None:
    said = kept.message
    about = [
        minute(said.at) if said.at else "undated",
        said.name or said.role,
        said.tool,
        said.aside,
        f"in {said.agent}" if said.agent else None,
        "failed" if said.failed else None,
        None if said.exit_code is None else f"exit {said.exit_code}",
        f"{len(said.images)} image(s)" if said.images else None,
        kept.key,
    ]
    run.output.line("")
    run.output.line(f"--- {' · '.join(part for part in about if part)}")
    for line in said.text.splitlines():
        run.output.line(line)
