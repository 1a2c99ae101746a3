"""`om ask`: answer a question from the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.base import lazily
from omcli.base.errors import OF_MODELS
from omcli.cli.command import Run, with_shared
from omcli.cli.commands.recall import (
    USUAL,
    note_fallback,
    note_unknown,
    print_results,
    recall_filter,
    renew_index_of,
    result_as_dict,
)
from omcli.cli.console import Exit, counted
from omcli.cli.options import (
    LARGEST,
    AgainOption,
    BaseUrlOption,
    BestEffortOption,
    EstimateOption,
    ModelOption,
    RowFilter,
    apply_model_options,
    argument,
    option,
    provider_names,
    tokens_option,
)
from omcli.memory.notation import WORDS
from omcli.memory.observation import UNVERIFIED
from omcli.operations.recall import each_once, mark_used
from omcli.operations.recall import recall as search
from omcli.text.clean import LOOKS_STRUCTURAL, printable, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omcli.operations.ask import AnsweredQuestion, Question
    from omcli.operations.recall import RecallFilter, RecallResult

_EXAMPLES = """\b
om ask "what is left to do for the release?" --project .
om ask "why did we drop redis" --model ollama/qwen2.5:7b
om ask "who approves deploys" --json | jq -r .answer
"""

_NOTHING = 1
_LIKE_ROW = lazily(r"\S{1,100} \[(?:[0-9]{4}-[0-9]{2}-[0-9]{2} |undated\])")
"""Matches text that could be taken for a row or message as printed below the answer."""
_MOST_RESULTS = 60
"""Maximum number of results to choose from. The budget usually has room for fewer."""


@with_shared(RowFilter, examples=_EXAMPLES, without=["last", "author"])
def ask(
    run: Run,
    rows: RowFilter,
    text: Annotated[str, argument(metavar="QUESTION", help="A question, in any language that the model knows.")],
    *,
    budget: Annotated[
        int, tokens_option("--budget", "Maximum number of tokens to show the model.", at_least=100)
    ] = 4_000,
    provider: Annotated[
        str | None,
        option(
            "--provider",
            metavar="NAME",
            help="Provider of the model (anthropic, openai, ollama, …), or `rules` for no model.",
            autocompletion=provider_names,
        ),
    ] = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    again: AgainOption = False,
    estimate: EstimateOption = False,
    tolerant: BestEffortOption = False,
) -> None:
    """Answer a question with a model, from what `om recall` finds.

    The model is the one that reflects (`reflector.*`, by default that of the observer), or the one you name. It sees
    the best rows and messages that fit into --budget, and is told to use nothing else. The answer cites rows and
    messages in brackets, by handles and ids that `om show` takes; what it cites is printed below. `from output` marks
    what only a tool, a page or a subagent says. An answer is marked `unverified` if it names something that none of the
    results contains. Answers are not stored; `om usage --by lane` shows what they cost.

    Without a model, or if it fails, the results are printed as by `om recall`. The exit code is 1 if nothing was found;
    then no model is asked.
    """
    apply_model_options(run, "reflector", provider=provider, model=model, base_url=base_url, again=again)
    wanted = recall_filter(run, rows)
    note_unknown(run, wanted.log)
    results = _search(run, text, wanted, estimate=estimate)
    if not results:
        if run.json:
            run.output.document(_as_dict(text, None, ()))
        run.console.note("nothing found")
        raise Exit(_NOTHING)
    question = _question(run, text, results, budget=min(budget, LARGEST), session=wanted.log.session)
    if estimate:
        _estimate(run, question)
        return
    answered, failed = None, None
    try:
        answered = _answer(run, question)
    except OF_MODELS as error:
        failed = error
        (run.console.warn_of if tolerant else run.console.error)(error)
    printed = results[:USUAL] if answered is None else answered.cites
    _show(run, text, answered, printed)
    if failed is None and not run.settings.disabled:
        mark_used(printed, open_store=lambda: run.wiring.store_at_once, clock=run.wiring.clock)
    if failed is not None and not tolerant:
        raise Exit(failed.exit_code)


def _search(run: Run, text: str, wanted: RecallFilter, *, estimate: bool) -> Sequence[RecallResult]:
    """Return the results for a question. To estimate its cost, no model for vectors is called."""
    vectors = None if estimate else run.wiring.vector_search(run.console.warn)
    nearest = vectors.nearest if vectors else None
    results = search(run.wiring.reading, text, wanted, limit=_MOST_RESULTS, nearest=nearest, renew=renew_index_of(run))
    note_fallback(run, vectors)
    return results


def _question(run: Run, text: str, results: Sequence[RecallResult], *, budget: int, session: str | None) -> Question:
    from omcli.operations.ask import Question
    from omcli.wiring.models import temperature

    sessions = run.wiring.reading.sessions

    def project_of(name: str) -> str | None:
        return found.project if (found := sessions.find(name)) else None

    return Question(
        text=text,
        results=each_once(results),
        budget=budget,
        now=run.wiring.clock.now(),
        session=session,
        project_of=project_of,
        max_output=run.settings.reflector.max_output,
        temperature=temperature(run.settings, "reflector"),
    )


def _answer(run: Run, question: Question) -> AnsweredQuestion | None:
    """Return the model's answer, or print a note and return None if no model is chosen or writing is disabled."""
    if run.is_read_only("no model is asked"):
        return None
    provider = run.wiring.model_to_ask(run.counter, warn=run.console.warn)
    if provider is None:
        run.console.note("no model is configured, so these are the results of `om recall`; `--model NAME` asks one")
        return None
    from omcli.operations.ask import ask as ask_model

    return ask_model(question, provider, run.counter)


def _estimate(run: Run, question: Question) -> None:
    from omcli.cli.reports import report_estimate
    from omcli.operations.ask import meter

    with run.estimating() as calls:
        provider = run.wiring.model_to_ask(run.counter, warn=run.console.warn)
        if provider is not None:
            meter(question, provider, run.counter)
    report_estimate(run, calls)


# ---- output


def _show(run: Run, question: str, answered: AnsweredQuestion | None, printed: Sequence[RecallResult]) -> None:
    """Print the answer with the results that it cites, or the results without an answer."""
    if run.json:
        run.output.document(_as_dict(question, answered, printed))
    else:
        if answered is not None:
            run.output.paragraph(_safe(answered))
        print_results(run, printed)
    if answered is not None:
        _note(run, answered)


def _safe(answered: AnsweredQuestion) -> str:
    """Return the answer, marked if unverified, and indented so that no line can be read as a row, turn or heading."""
    first, _, rest = printable(answered.text).partition("\n")
    looks_like = (LOOKS_STRUCTURAL.match, WORDS.looks_marked.match, _LIKE_ROW.match)
    if answered.unverified:
        first = f"{UNVERIFIED}: {first}"
    elif any(match(visible(first)) for match in looks_like):
        first = f"  {first}"
    lines = [first, *(f"  {line}".rstrip() for line in rest.split("\n") if rest)]
    return "\n".join(lines)


def _note(run: Run, answered: AnsweredQuestion) -> None:
    if answered.unknown:
        run.console.note(f"removed {counted(answered.unknown, 'citation')} of labels that the model was not shown")
    if answered.unverified:
        run.console.note(f"unverified, because nothing that was found has it: {', '.join(answered.unverified)}")
    if not answered.cites:
        run.console.note("the answer cites nothing")


def _as_dict(question: str, answered: AnsweredQuestion | None, results: Sequence[RecallResult]) -> dict[str, object]:
    about: dict[str, object] = {"answer": None, "cites": []}
    if answered is not None:
        results = answered.shown
        about = {
            "answer": answered.text,
            "cites": _ids(answered.cites),
            "from_output": _ids(answered.heard),
            "unverified": list(answered.unverified),
            "unknown_cites": answered.unknown,
        }
    return {"query": question, **about, "results": [result_as_dict(result) for result in results]}


def _ids(results: Sequence[RecallResult]) -> list[object]:
    return [result_as_dict(result)["id"] for result in results]
