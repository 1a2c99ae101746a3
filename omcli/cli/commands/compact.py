"""`om compact`: shorten a session to what an agent needs to continue it."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import OF_MODELS, BadInput, BadUsage, NoInput, TryAgain, UnknownSession
from omcli.base.record import fields_of, record, replace
from omcli.cli.command import Run, check_transcript, with_shared
from omcli.cli.console import Exit, counted
from omcli.cli.options import (
    LARGEST,
    AgainOption,
    BaseUrlOption,
    BestEffortOption,
    ModelOption,
    NotationOption,
    ObserverOption,
    VerifyOption,
    apply_model_options,
    argument,
    format_option,
    option,
    session_option,
    tokens_option,
    within_limit,
)
from omcli.cli.reports import missing_parts
from omcli.operations.compact.layouts import CompactFormat
from omcli.wiring.inputs import content

if TYPE_CHECKING:
    from omcli.operations.compact.output import CompactRequest
    from omcli.operations.compact.session import CompactReport
    from omcli.operations.deps import Deps
    from omcli.operations.ingest.files import FileReport
    from omcli.wiring import Wiring

_EXAMPLES = """\b
om compact < long.jsonl > short.md
om compact session.jsonl --budget 2000 --to markdown
om compact --session ID --tail-budget 1500 --to messages
om compact - --session ID --to pi --best-effort < session.jsonl
om compact --preset pi --to pi --best-effort < preparation.json
om compact grown.json --to messages > shorter.json
om compact session.jsonl --json | jq '{reached, tokens_before, tokens_after}'
"""

_DEFAULT_BUDGET = 4000
"""Default budget if the settings limit the tokens of a session's rows in a pack."""
_REFUSED = 1
_BUDGET = tokens_option(
    "--budget",
    "Maximum number of tokens to print.  [default: 4000, or reflect.tokens if context.session is unlimited]",
    aliases=("--target-tokens",),
)
_TAIL_BUDGET = tokens_option("--tail-budget", "Tokens reserved for the last messages.", aliases=("--keep-recent",))
_BATCH_TOKENS = tokens_option(
    "--batch-tokens", "Maximum number of tokens to observe at once.", aliases=("--chunk",), at_least=1
)
_ITERATIONS = option(
    "--max-iterations", metavar="N", at_least=0, help="Stop after N steps (batches and folds); 0 is no limit."
)
_DRY_RUN = option("--dry-run", help="With --session: print the result without changing the store.")
_SUMMARY = option("--summary", metavar="FILE", help="Earlier summary. Facts in it that the session lacks are added.")


@with_shared(examples=_EXAMPLES)
def compact(
    run: Run,
    file: Annotated[str | None, argument(metavar="[FILE]", help="Transcript; `-` is stdin.")] = None,
    *,
    format_: Annotated[str | None, format_option("Input format. Detected from content if omitted.")] = None,
    session: Annotated[str | None, session_option("Compact this session of the store; FILE is added to it.")] = None,
    budget: Annotated[int | None, _BUDGET] = None,
    tail_budget: Annotated[int | None, _TAIL_BUDGET] = None,
    batch_tokens: Annotated[int | None, _BATCH_TOKENS] = None,
    max_iterations: Annotated[int, _ITERATIONS] = 0,
    summary: Annotated[str | None, _SUMMARY] = None,
    to: Annotated[CompactFormat, option("--to", help="Output format.")] = CompactFormat.TEXT,
    notation: NotationOption = None,
    observer: ObserverOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    verify: VerifyOption = False,
    again: AgainOption = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    tolerant: BestEffortOption = False,
) -> None:
    """Shorten a session to what an agent needs to continue it.

    FILE or stdin is compacted without your memory; the store only records what models cost. A model observes if you
    name one, and rules fold. With --session, pending messages of a stored session are observed, and its rows are folded
    until they fit; `om undo` reverses the folding.

    Prints requests, decisions, changes and findings, then the last messages verbatim, within the budget. `--to
    messages` (OpenAI) and `--to anthropic` print a message list to continue from: one message with the memory, then the
    last messages, with tool calls and their results. Once that list has grown, compact it again: the memory that it
    begins with stays memory and keeps its dates. `--to pi` prints the result that pi's compaction hook must return.
    FILE is then pi's session file, whose last branch is compacted, or the hook's `preparation` as JSON.

    With --json, the output is in `text`, beside its rows and messages. `reached` is true if all rows fit.

    A result that would lose a message is never printed. If a session in FILE resumes another one, they count as one.

    \b
    The exit code is
      1       if the result would be empty or larger than its input,
      65      if FILE has messages of other sessions, unless --session names one
              for all, or messages of a user or agent that cannot be read (other
              lines that cannot be read are skipped, or with --strict refused),
      69      if a model fails on messages that are not among the last ones; to
              go on without it, use --observer rules or observer.fallback,
      75      if earlier messages than the last ones are still pending
              (--max-iterations, --dry-run), or the session is in use,
      77, 78  if the model cannot be used.

    In these cases, `--to pi` and --json print {"replace": false, "reason": …}; --best-effort then makes the exit code
    0. Other formats print nothing then, and their exit code is 0 only if the output can replace the messages.
    """
    apply_model_options(run, "observer", provider=observer, model=model, base_url=base_url, verify=verify, again=again)
    check_transcript("compact", given=(file or session) is not None, format_name=format_, session=session)
    job = _Job(
        run=run, file="-" if (file or session) is None else file, format=format_, session=session, shape=run.layout(to),
        summary=summary, is_dry=dry_run, is_tolerant=tolerant,
    )  # fmt: skip
    wanted = _wanted(job, target=budget, keep=tail_budget, notation=notation)
    _compact_or_refuse(job, wanted, chunk=batch_tokens, most=max_iterations)


@record
class _Job:
    """The session to compact, and how to print the result."""

    run: Run
    file: str | None
    """The transcript to read. None means that the messages are already in the store."""
    format: str | None
    session: str | None
    """None means that the file is compacted without the store."""
    shape: CompactFormat
    summary: str | None
    is_dry: bool
    is_tolerant: bool

    @property
    def name(self) -> str:
        """The name of the file or session, for notes to the user."""
        return self.file or self.session or ""

    @property
    def wiring(self) -> AbstractContextManager[Wiring]:
        """The run's wiring if a session of the store is compacted, otherwise one with a temporary store."""
        return self.run.wiring.apart() if self.session is None else nullcontext(self.run.wiring)

    def check(self, *, target: int, keep: int | None) -> None:
        """Raise BadUsage if options contradict each other, or if an option lacks another one that it needs."""
        if self.file is None and self.format is not None:
            raise BadUsage("`--format` needs a transcript", hint="`om compact FILE --format NAME`")
        if self.is_dry and (self.session is None or self.file is not None):
            raise BadUsage("`--dry-run` needs a session of the store", hint="`om compact --session ID --dry-run`")
        if keep and keep >= target and self.shape.has_tail:
            raise BadUsage(f"`--tail-budget {keep}` leaves nothing of the budget of {target} tokens")

    @property
    def can_refuse(self) -> bool:
        """True if the output itself can tell the calling program to keep its messages."""
        return self.shape in (CompactFormat.JSON, CompactFormat.PI)

    def refuse(self, reason: str, *, code: int = 0, **numbers: int) -> None:
        """Print that the calling program should keep its messages, if the layout can express that. Raise Exit if `code`
        is not 0, unless the layout can express it and `--best-effort` is given. JSON has the `numbers` as well.

        With any other layout the exit code must not be 0, because a program would take the empty output for the result.
        """
        if self.shape is CompactFormat.JSON:
            self.run.output.document({"replace": False, "reason": reason, **numbers})
        elif self.shape is CompactFormat.PI:
            self.run.output.json_line({"replace": False, "reason": reason})
        if code and not (self.is_tolerant and self.can_refuse):
            raise Exit(code)


def _default_tokens(run: Run) -> int:
    """Return the default budget. If the settings let a pack hold all rows of a session, it is the size at which these
    are due to be folded.
    """
    settings = run.settings
    return _DEFAULT_BUDGET if settings.context.session is not None else settings.reflect.tokens or LARGEST


def _wanted(job: _Job, *, target: int | None, keep: int | None, notation: str | None) -> CompactRequest:
    from omcli.operations.compact.output import CompactRequest

    if target is None:
        target = _default_tokens(job.run)
    job.check(target=target, keep=keep)
    return CompactRequest(
        target=min(target, LARGEST),
        keep=within_limit(keep),
        shape=job.shape,
        is_kept=job.session is not None,
        notation=job.run.notation(notation),
        result_chars=job.run.settings.context.result_chars,
    )


def _compact_or_refuse(job: _Job, wanted: CompactRequest, *, chunk: int | None, most: int) -> None:
    if job.run.settings.disabled and (job.session is not None or _has_model(job.run)):
        job.run.is_read_only("nothing is observed or folded")
        job.refuse("disabled", code=0 if job.can_refuse else _REFUSED)
        return
    try:
        session = job.run.session(job.session) if job.file is None else job.run.session_or_new(job.session)
        _compact(replace(job, session=session), wanted, chunk=chunk, most=most)
    except (*OF_MODELS, TryAgain, UnknownSession) as error:
        tell = job.run.console.warn_of if job.is_tolerant else job.run.console.error
        tell(error)
        job.refuse(error.slug, code=error.exit_code)


def _has_model(run: Run) -> bool:
    """Return True if a model is chosen to observe, and rules may not take over."""
    from omcli.wiring import models

    settings = run.settings
    return models.is_named("observer", settings, os.environ) and settings.observer.fallback != models.RULES


def _compact(job: _Job, wanted: CompactRequest, *, chunk: int | None, most: int) -> None:
    from omcli.operations.compact.session import CompactLimits, compact

    run = job.run
    with job.wiring as wiring:
        deps = _deps(job, wiring, chunk)
        asked = CompactLimits(
            wanted=wanted,
            most=most,
            rows_tokens=run.settings.reflect.batch_tokens,
            is_dry=job.is_dry,
        )
        taken = _ingest_file(job, wiring, deps)
        session_id = job.session if taken is None else taken.session_id
        if session_id is None or (taken is None and wiring.reading.sessions.find(session_id) is None):
            _refuse_empty(job, taken)
            return
        if taken is not None and _refuse_lost(job, taken, deps):
            return
        if taken is not None and job.shape.can_resume:
            asked = replace(asked, wanted=replace(wanted, abandoned=taken.abandoned, handover=taken.handover))
        if not job.is_dry:
            asked = replace(asked, earlier_tokens=_read_summary(job, taken, session_id, deps))
        _show(job, compact(session_id, deps, asked), taken)


def _deps(job: _Job, wiring: Wiring, chunk: int | None) -> Deps:
    """Return dependencies with the models of the settings, or with rules if nothing may be written, because model calls
    are recorded.

    A file that is compacted without the store is always folded by rules, because its rows are not kept.
    """
    run = job.run
    if job.is_dry:
        return run.deps(wiring, open_store=lambda: wiring.reading)
    if run.is_read_only("no model is asked"):
        return run.deps(wiring, observer=wiring.rule_observer(batch_tokens=chunk))
    observer = run.observer(wiring, batch_tokens=chunk)
    is_kept = job.session is not None
    return run.deps(wiring, observer=observer, reflector=run.reflector(wiring) if is_kept else None)


def _ingest_file(job: _Job, wiring: Wiring, deps: Deps) -> FileReport | None:
    """Ingest the transcript and return the report, or None if no transcript is given.

    Raise Exit if it could not be read to its end, because the rest would be lost.
    """
    if job.file is None:
        return None
    from omcli.operations.ingest.files import FileInput, ingest_files

    # Its live branch and the memory that it begins with are known only if the whole file is read.
    opened = partial(wiring.transcript, job.file, format_name=job.format, session=job.session, is_whole=True)
    [taken] = ingest_files([FileInput(name=job.file, open=opened)], deps, session=job.session, is_joined=True)
    if taken.error is not None:
        job.run.console.error(taken.error, about=job.file)
        job.refuse(taken.error.slug)
        raise Exit(taken.error.exit_code)
    return taken


def _refuse_empty(job: _Job, taken: FileReport | None) -> None:
    """Report that there are no messages to compact, or no such session. Raise Exit as `refuse` does."""
    if taken is not None:
        job.run.console.report(", ".join([f"{job.name}: no messages", *_missing_parts(job, taken)]))
    else:
        job.run.note_unknown_session(job.session or "")
    job.refuse("empty", code=_REFUSED)


def _refuse_lost(job: _Job, taken: FileReport, deps: Deps) -> bool:
    """Refuse, before anything is observed, if the result would lack messages of the transcript, or if lines were
    skipped with `--strict`. Return True if so, and raise Exit as `refuse` does.
    """
    others = sum(any(deps.store.messages.tokens(session).values()) for session in taken.sessions[1:])
    if others:
        reason = "other-sessions"
        lost = f"{counted(others, 'other session')} would be lost; `--session NAME` compacts all of them as one session"
    elif taken.unread:
        reason = "unread-messages"
        lost = f"{counted(taken.unread, 'message')} cannot be read; remove their lines if nothing is lost"
    elif job.run.strict and taken.faults:
        reason, lost = BadInput.slug, "--strict permits no skipped lines"
    else:
        return False
    error = BadInput(", ".join([f"{job.name}: not printed, {lost}", *_missing_parts(job, taken)]))
    (job.run.console.warn_of if job.is_tolerant else job.run.console.error)(error)
    skipped = sum(taken.faults.values())
    job.refuse(reason, code=error.exit_code, other_sessions=others, unread_messages=taken.unread, skipped_lines=skipped)
    return True


def _read_summary(job: _Job, taken: FileReport | None, session_id: str, deps: Deps) -> int:
    """Store earlier summaries as rows, and return the number of tokens in those summaries that add rows.

    Earlier summaries are the memory that the transcript begins with, the given file, and what the host handed over.
    Raise NoInput or BadInput, naming the file, if the file cannot be read or gives no row.
    """
    handed = taken.handover.summary if taken is not None and taken.handover is not None else ""
    tokens = 0
    for memory in () if taken is None else taken.memory:
        with suppress(BadInput):  # it may consist of nothing but messages
            tokens += _import_summary(job, job.name, memory, session_id, deps)
    if job.summary is not None:
        try:
            given = content(job.summary).decode("utf-8", "replace")
        except (NoInput, BadInput) as error:
            raise type(error)(f"{job.summary}: {error.message}", hint=error.hint) from None
        tokens += _import_summary(job, job.summary, given, session_id, deps)
    if handed.strip():
        tokens += _import_summary(job, "previousSummary", handed, session_id, deps)
    return tokens


def _import_summary(job: _Job, name: str, text: str, session_id: str, deps: Deps) -> int:
    """Store a summary as rows; return its number of tokens, or 0 if it adds no row. Raise BadInput if it has none."""
    from omcli.operations.importing import import_summary

    try:
        earlier = import_summary(name, text, session_id, deps)
    except BadInput as error:
        raise BadInput(f"{name}: {error.message}", hint=error.hint) from None
    if earlier.rows:
        job.run.console.note(f"{name}: {counted(earlier.rows, 'row')} of an earlier summary")
    return earlier.tokens


def _show(job: _Job, compacted: CompactReport, taken: FileReport | None) -> None:
    from omcli.operations.compact.session import RefuseReason

    run, result = job.run, compacted.result
    if compacted.error is not None:
        run.console.warn(compacted.error.message)
    if compacted.refusal is None:
        run.output.text(_printed(job, compacted, taken))
        run.console.report(_summary(job, compacted, taken))
    else:
        run.console.note(", ".join([f"{job.name}: {_reason(job, compacted)}", *_missing_parts(job, taken)]))
        if taken is not None and taken.known_messages and not result.tokens_before:
            run.console.note("its messages are stored in another session; see `om sessions`")
        is_early = compacted.refusal is RefuseReason.UNCOVERED
        job.refuse(compacted.refusal, code=TryAgain.exit_code if is_early else _REFUSED)


def _printed(job: _Job, compacted: CompactReport, taken: FileReport | None) -> str:
    if job.shape is not CompactFormat.JSON:
        return compacted.pack.printed
    from omcli.pack.document import document

    skipped = {} if taken is None else {"skipped_lines": sum(taken.faults.values())}
    numbers = {**fields_of(compacted.contract), **fields_of(compacted.result), **skipped}
    return document(compacted.pack, {"replace": True, **numbers})


def _reason(job: _Job, compacted: CompactReport) -> str:
    from omcli.operations.compact.session import RefuseReason

    if compacted.refusal is RefuseReason.UNCOVERED:
        waiting = compacted.result.uncovered
        cause = "a dry run observes nothing" if job.is_dry else "--max-iterations left no step for them"
        return f"not printed, {counted(waiting, 'message')} would be lost: not observed yet, and {cause}"
    if compacted.refusal is RefuseReason.LARGER:
        return f"the result would be larger than the {compacted.result.tokens_before} tokens it has"
    return "nothing to replace, or nothing to replace it with"


def _summary(job: _Job, compacted: CompactReport, taken: FileReport | None) -> str:
    """Return the result in one line."""
    result = compacted.result
    messages = f"{counted(taken.counts.messages, 'message')}, " if taken is not None else ""
    tokens = f"{result.tokens_before} → {result.tokens_after} tokens by {compacted.pack.counter}"
    target = f"target of {compacted.contract.target_tokens}"
    fitting = f"{result.rows_fitting} of {counted(result.rows, 'row')}"
    outcome = f"{target} reached" if result.reached else f"{fitting} fit into the {target}"
    steps = f"{counted(result.iterations, 'iteration')}; {outcome}"
    return ", ".join([f"{job.name}: {messages}{tokens}, {steps}", *_missing_parts(job, taken)])


def _missing_parts(job: _Job, taken: FileReport | None) -> list[str]:
    """Return the numbers of missing messages, secrets and lines in words (see `missing_parts`)."""

    return [] if taken is None else list(missing_parts(taken, is_verbose=job.run.is_verbose))
