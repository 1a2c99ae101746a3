"""`om compact`: shorten a transcript to what an agent needs to go on from it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import argument, option
from omcli.cli.diagnostics import Ended, counted
from omcli.cli.options import LARGEST, Run, check_transcript, named_format, named_session, with_shared
from omcli.memory.layouts import To

if TYPE_CHECKING:
    from omcli.operations.compact import Compacted

EXAMPLES = """\b
om compact < long.jsonl > short.md
om compact session.jsonl --target-tokens 2000 --to markdown
om compact session.jsonl --json | jq .tokens.total
"""

_TARGET = 4000


@with_shared()
def compact(
    run: Run,
    file: Annotated[str | None, argument(metavar="[FILE]", help="The transcript; `-` is stdin.")] = None,
    *,
    format_: Annotated[
        str | None,
        named_format("What it is: claude-code, codex, … Recognised by content."),
    ] = None,
    session: Annotated[
        str | None,
        named_session("The session it belongs to, whatever it says."),
    ] = None,
    target_tokens: Annotated[
        int, option("--target-tokens", metavar="TOKENS", min=0, help="The most to print.")
    ] = _TARGET,
    to: Annotated[To, option("--to", help="How to print it.")] = To.TEXT,
) -> None:
    """Shorten a transcript to what an agent needs to go on from it.

    The transcript is taken in as by `om observe`: its messages are kept, and what was shortened can be looked up with
    `om show`. Printed is what was asked, decided, changed and found, and the last messages as they were said; never
    more than the target.
    """
    from omcli.operations.compact import compact as shortened
    from omcli.operations.observe import Input
    from omcli.wiring.inputs import STDIN

    check_transcript("compact", given=file is not None, format_name=format_, session=session)
    layout = run.layout(to)
    if run.is_disabled("nothing is taken in or shortened"):
        return
    name = file or STDIN
    compacted = shortened(
        Input(name=name, open=partial(run.wiring.transcript, name, format_name=format_, session=session)),
        run.wiring.workshop(run.counter, run.show_progress),
        target_tokens=min(target_tokens, LARGEST),
        session=session,
        to=layout,
    )
    _tell(run, name, compacted)


def _tell(run: Run, name: str, compacted: Compacted) -> None:
    report = compacted.report
    if compacted.pack is not None:
        run.output.text(compacted.pack.printed)
        if others := len(report.sessions) - 1:
            left = f"{counted(others, 'other session')} of it left out"
            run.talk.note(f"only `{report.session_id}` was shortened, {left}; `om context --session ID` prints those")
        messages, tokens = report.counts.messages, sum(compacted.pack.tokens.values())
        run.talk.report(f"{name}: {counted(messages, 'message')} in {tokens} tokens")
    elif report.error is None:
        run.talk.report(f"{name}: no messages")
    if report.error is not None:
        run.talk.error(report.error, about=name)
        raise Ended(report.error.exit_code)
