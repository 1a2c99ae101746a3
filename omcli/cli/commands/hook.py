"""`om hook`: what a client runs at its events."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage, InputOutput, OmError
from omcli.base.record import replace
from omcli.cli.command import Run, with_shared
from omcli.cli.hooks import enter, run_hook, work
from omcli.cli.options import argument, option
from omcli.clients import CLIENTS
from omcli.clients.events import BadCall, Moment
from omcli.clients.prepared import keep, store_state
from omcli.settings.settings import ServerUrl

if TYPE_CHECKING:
    from collections.abc import Callable

    from omcli.clients.events import HookCall
    from omcli.memory.message import TokenCounter
    from omcli.operations.context import Place
    from omcli.pack.context_pack import ContextPack

_EXAMPLES = """\b
om hook claude-code < event.json
"""
_CHARACTERS = 9_500
"""Maximum number of characters of an answer. Claude Code cuts longer ones at 10,000 characters, Codex at about as many
bytes.
"""
_WAIT = 2.0
"""Maximum number of seconds to wait for another process's lock. Clients end a hook after 5."""
_COMPACTED = "om compact"
"""Answer to a client whose extension then runs `om compact` itself. It gets no answer if memory is off."""
_COMPACTING = "Facts of this session, from its memory, that the summary should keep:\n\n"


@with_shared(examples=_EXAMPLES)
def hook(
    run: Run,
    client: Annotated[
        str,
        argument(metavar="CLIENT", help=f"Client that runs the hook: {', '.join(CLIENTS)}."),
    ],
    *,
    worker: Annotated[str | None, option("--worker", metavar="JSON", hidden=True)] = None,
) -> None:
    """Answer a hook of a client, such as Claude Code. `om install` has the client run this; you need not run it.

    The client passes a JSON object on stdin: the event, the session, its transcript, the directory. At the start of a
    session, and after a compaction, a context pack is printed in the form that the client wants, with at most
    `hook.tokens` tokens and 9,500 characters. With `hook.prompt`, a prompt is answered with the rows of other sessions
    that match it and were not shown before. After a tool, after a turn, before a compaction and at the end, a worker
    observes the transcript in the background. Before a compaction, Claude Code and OpenCode are also given the
    session's working memory for their summary, and pi is told to compact with om. Otherwise nothing is printed.

    A hook never disturbs its client: the exit code is always 0, and its errors are only logged (`om status`, `om
    doctor`). It does nothing if OM_MEMORY=0, OM_DISABLED=1 or `enabled = false` in a configuration file turns om off,
    or in a program that om runs as a model. With `hook.opt_in`, it also needs OM_MEMORY=1, or `enabled = true` in a
    file.
    """
    if worker is not None:
        from omcli.cli.main import run as run_line

        make = lambda asked: hook_text(Run(quiet=True), asked)  # noqa: E731
        work(client, worker, run=run_line, is_off=partial(_is_off, run), text=make, leave=partial(_leave, run))
        return
    if sys.stdin is not None and sys.stdin.isatty():
        raise BadUsage("a hook reads JSON on stdin", hint=f"`om install {client}` has the client run it")
    run_hook(client, partial(hook_text, run), has_options=bool(run.shared_arguments))


def hook_text(run: Run, asked: HookCall) -> str:
    """Return the answer to a client, or "" if it is given none, and change to the client's directory. Keep the pack of
    a new session for the next one or, if prompts are answered, the ids of the rows that are given. Raise BadCall with
    the message of an OmError.
    """
    try:
        enter(asked.folder)
        run.settings = replace(run.settings, wait=min(run.settings.wait, _WAIT))
        if _is_off(run) or (asked.moment is Moment.PROMPT and not (run.settings.hook.prompt and asked.prompt)):
            return ""
        if asked.moment is Moment.COMPACT:
            return _COMPACTED if asked.client == "pi" else _for_summary(run, asked)
        # Relative to the client's directory. The state of a server is unknown, so a pack of it is not kept.
        store = None if isinstance(run.settings.db, ServerUrl) else os.path.abspath(run.settings.db)  # noqa: PTH100
        before = None if store is None else store_state(store)
        made = _made(run, asked)
        is_secret = run.wiring.reading.key is not None
        if run.settings.hook.prompt and asked.session and made.printed:
            with suppress(OSError):  # then rows may be shown to the session again
                _keep_told(asked.session, made, anew=asked.moment is Moment.START)
    except OmError as error:
        raise BadCall(f"{error.message} ({error.hint})" if error.hint else error.message) from error
    finally:
        run.close()
    if asked.is_new and store is not None and not (is_secret or run.settings.hook.prompt or run.shared_arguments):
        keep(
            asked.client,
            asked.folder or run.project,
            os.environ,
            config=str(run.files.user),
            db=store,
            state=before,
            text=made.printed,
        )
    return made.printed


def _leave(run: Run, transcript: str) -> None:
    """Leave a transcript to the next command that writes to the store, if the spool can be written."""
    from omcli.wiring.inputs import open_spool

    with suppress(OmError):
        file = open_spool(run.wiring, InputOutput(f"{transcript} is left to the next event"))
        file.add_transcript(transcript)
        file.keep()


def _is_off(run: Run) -> bool:
    """Return True if the settings turn hooks off."""
    settings = run.settings
    is_asked = bool(os.environ.get("OM_MEMORY", "").strip()) or settings.origin("disabled") != "default"
    return settings.disabled or (settings.hook.opt_in and not is_asked)


def _made(run: Run, asked: HookCall) -> ContextPack:
    """Return the pack, chosen so that the client need not cut it."""
    from omcli.operations.context import context, context_for_prompt
    from omcli.pack.budget import Tier, budgets

    hook = run.settings.hook
    tokens = hook.prompt_tokens if asked.moment is Moment.PROMPT else hook.tokens
    place, now = _place(run, asked), run.wiring.clock.now()
    store, notation = run.wiring.reading, run.notation(None)
    counter = _fitting(run.counter, tokens=tokens, is_bytes=asked.client == "codex")
    if asked.moment is Moment.PROMPT:
        from omcli.clients.told import told
        from omcli.formats.injected import without_injected

        return context_for_prompt(
            store,
            place,
            without_injected(asked.prompt or ""),  # Gemini CLI puts the pack of the start into its first prompt
            shown=told(asked.session or "", os.environ),
            tokens=tokens,
            counter=counter,
            now=now,
            notation=notation,
        )
    usual = run.settings.context
    limits = budgets(
        total=tokens,
        session=None if asked.follows_compact else 0,  # otherwise its rows are in its context, or it has none
        tail=0,
        defaults={Tier.CROSS: usual.cross, Tier.SESSION: usual.session, Tier.TAIL: 0},
    )
    made = context(store, place, budgets=limits, counter=counter, now=now, notation=notation, choice=run.wiring.choice)
    return made.pack


def _fitting(counter: TokenCounter, *, tokens: int, is_bytes: bool) -> TokenCounter:
    """Return the counter, changed so that no text of more than `_CHARACTERS`, or as many bytes, fits into `tokens`."""
    from omcli.tokenizers import Counter

    size = (lambda text: len(text.encode("utf-8", "replace"))) if is_bytes else len
    share = tokens * (1 - counter.free_share) / _CHARACTERS

    def fitting(count: Callable[[str], int]) -> Callable[[str], int]:
        return lambda text: max(count(text), ceil(share * size(text)))

    return Counter(
        name=counter.name,
        count=fitting(counter.text),
        count_by_line=lambda: fitting(counter.remembering().text),
        free_share=counter.free_share,
    )


def _place(run: Run, asked: HookCall) -> Place:
    from omcli.operations.context import Place

    return Place(
        project=run.project,
        above=run.folders,
        session=asked.session,
        is_everywhere=run.settings.scope == "global",
    )


def _for_summary(run: Run, asked: HookCall) -> str:
    """Return the working-memory block for a client that is about to summarise the session."""
    from omcli.operations.working_block import working_block
    from omcli.pack.working_block import CAP

    rules = partial(run.deps, open_store=lambda: run.wiring.reading)
    found = working_block(run.wiring.reading, _place(run, asked), budget=CAP, counter=run.counter, rules=rules)
    printed = found.block.printed if found.session == asked.session else ""
    return f"{_COMPACTING}{printed.rstrip()}" if printed else ""


def _keep_told(session: str, made: ContextPack, *, anew: bool) -> None:
    from omcli.clients.told import add_told

    add_told(session, [row.id for row in (*made.cross, *made.observations)], os.environ, anew=anew)
