"""`om tokens`: count tokens."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage, UnknownFormat
from omcli.cli.command import Run, is_terminal_input, with_shared
from omcli.cli.console import named
from omcli.cli.options import argument, format_option, option
from omcli.operations.sizes import CountUnit, count_items, count_text
from omcli.wiring import check_format
from omcli.wiring.inputs import STDIN, content, transcript_in

if TYPE_CHECKING:
    from omcli.operations.sizes import TokenCount

_EXAMPLES = """\b
om tokens transcript.jsonl
printf 'Hello world' | om tokens --counter chars-4-cjk-2
om tokens README.md --as text --json
"""


@with_shared(examples=_EXAMPLES, without=["db", "wait", "now"])
def tokens(
    run: Run,
    file: Annotated[str, argument(metavar="FILE", help="File to count; `-` is stdin.")] = "-",
    *,
    unit: Annotated[
        CountUnit | None,
        option("--as", help="How to count FILE. Default: as a transcript if recognised, otherwise as text."),
    ] = None,
    format_: Annotated[str | None, format_option("Transcript format. Detected from content if omitted.")] = None,
) -> None:
    """Count the tokens of text or of a transcript.

    A transcript is counted message by message, including the counter's overhead per message and, unless
    you give --as event, per conversation.

    Counters: o200k-approx (within 20 % of o200k); chars-2.5, chars-3.2, chars-3.5-3, chars-4 and chars-4-cjk-2
    (characters divided by that number; chars-3.5-3 divides those of tool calls and results by 3, and chars-4-cjk-2
    Chinese and Korean ones by 2); o200k and cl100k (exact, if their rank files are on disk).
    """
    if file == STDIN and is_terminal_input():
        raise BadUsage("nothing to count", hint="`om tokens FILE`, or `om tokens < FILE`")
    if format_:
        check_format(format_)
    with named(file):
        counted = _count(run, content(file), unit, format_)
    if run.json:
        optional = {"format": counted.format, "messages": counted.messages}
        run.output.document(
            {
                "tokens": counted.tokens,
                "counter": counted.counter,
                "unit": counted.unit,
                **{name: value for name, value in optional.items() if value is not None},
            }
        )
        return
    run.output.line(str(counted.tokens))
    run.console.note(f"{file}: {counted.format or counted.unit}, counted with {counted.counter}")


def _count(run: Run, content: bytes, unit: CountUnit | None, format_name: str | None) -> TokenCount:
    if unit is not CountUnit.TEXT:
        try:
            transcript = transcript_in(BytesIO(content), format_name=format_name)
        except UnknownFormat:
            if unit is not None:
                raise
        else:
            if transcript.format is not None or unit is not None:
                return count_items(
                    transcript.items, run.counter, format_name=transcript.format, unit=unit or CountUnit.TRANSCRIPT
                )
    return count_text(content.decode("utf-8", "replace"), run.counter)
