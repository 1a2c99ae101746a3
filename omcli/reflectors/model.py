"""The reflector that asks a model, and asks again for less detail if the reply is not short enough."""

from __future__ import annotations

from collections.abc import Iterator

from omcli.base.errors import OF_MODELS, OF_REPLIES, PromptTooLong, ProviderFailed, Unusable
from omcli.base.record import record, replace
from omcli.llm import prompts
from omcli.llm.model import Calls, Prompt, Provider, Reply
from omcli.llm.schema import STATED, TEXT, TEXTS, list_of, object_of, one_of, optional
from omcli.memory.message import TokenCounter, rows_tokens
from omcli.memory.observation import Observation
from omcli.memory.reflection import Material, Reflected
from omcli.reflectors.drafts import part_of_material, verbatim_texts
from omcli.reflectors.reply import ReflectorReply, parse_reply, rows_by_label
from omcli.reflectors.validation import ValidatedReflection, joined, validate
from omcli.text.clean import one_line
from omcli.text.hashes import hash_of
from omcli.text.instants import minute

_MOST_FAULTS = 2
"""Number of failed parts after which the rest of a batch is given up."""
_MOST_REFUSALS = 8
"""Number of prompts too long for the model after which the rest of a batch is given up."""


class ModelReflector:
    """Folds rows with a model. Each attempt asks for less detail, until the result meets the target or no attempt is
    left.
    """

    def __init__(self, provider: Provider, counter: TokenCounter, *, compression: Compression) -> None:
        self._provider = provider
        self._counter = counter
        self._compression = compression

    def reflect(self, material: Material) -> Reflected:
        """Return the first valid reply that meets the target, or the shortest valid reply if none does.

        The result is empty if the model could not make the rows shorter. If no reply can be used, raise the error of
        the last one: Unusable, CutOff or Refused. Any other ProviderFailed except PromptTooLong ends the attempts, and
        is raised unless an earlier reply made the rows shorter. NotAllowed and BadConfiguration are raised even then.

        After PromptTooLong, the rows are folded in smaller parts. The rows of a part that fails stay unchanged. So do
        all further rows after two failed parts, or after eight prompts that were too long. Once a part is folded, any
        other error, even NotAllowed, is no longer raised, but leaves all further rows unchanged. If no part can be
        folded, raise the last error.
        """
        calls = Calls()
        rows, size = material.rows, len(material.rows)
        done: list[Reflected] = []
        faults: list[ProviderFailed] = []
        refusals = 0
        while rows and len(faults) < _MOST_FAULTS and refusals < _MOST_REFUSALS:
            part = rows[:size]
            try:
                done.append(self._reflected(part_of_material(material, part, self._counter), calls))
            except PromptTooLong as error:
                refusals += 1
                if len(part) > 1 and refusals < _MOST_REFUSALS:
                    size = len(part) // 2
                    continue
                faults.append(error)
            except OF_REPLIES as error:
                faults.append(error)
            except OF_MODELS:
                if not done:
                    raise
                done.append(Reflected(findings={"unreached": len(rows)}, attempts=0))  # folded parts were paid for
                break
            rows = rows[len(part) :]
            calls.renew()
        if not done:
            raise faults[-1]
        return done[0] if len(done) == 1 else joined(done, material.most_rows)

    def _reflected(self, material: Material, calls: Calls) -> Reflected:
        attempts = _ModelRun(self._provider, self._counter, self._compression, material, calls)
        best: ValidatedReflection | None = None
        try:
            for found in attempts.validated():
                best = found if best is None or found.tokens < best.tokens else best
                if found.tokens <= material.target:
                    break
        except PromptTooLong:
            raise
        except ProviderFailed:
            if best is None:
                raise
        if best is not None:
            return replace(best.reflected, attempts=attempts.asked)
        if attempts.usable is not None:
            return Reflected(attempts=attempts.asked, findings=attempts.usable.reflected.findings)
        raise attempts.fault


class _ModelRun:
    def __init__(
        self, provider: Provider, counter: TokenCounter, compression: Compression, material: Material, calls: Calls
    ) -> None:
        self._provider = provider
        self._counter = counter
        self._compression = compression
        self._material = material
        self._calls = calls
        self._before = rows_tokens(material.rows, counter)
        self.asked = 0
        """Number of prompts for the model."""
        self.usable: ValidatedReflection | None = None
        """The last usable reply, even if it was not shorter than the rows."""
        self.fault: ProviderFailed = Unusable("no reply")
        """Error of the last reply that could not be used."""

    def validated(self) -> Iterator[ValidatedReflection]:
        """Make one attempt per level of compression, and yield the valid replies that are shorter than the rows.

        The attempts end early when no call is left. After a usable reply, the next attempt may make all calls again.
        """
        size: int | None = None
        for attempt in range(len(self._compression.levels)):
            if self._calls.is_over:
                return
            try:
                found = self._reply(attempt, size)
            except OF_REPLIES as error:
                self.fault = error
                continue
            self.usable = found
            size = found.written
            self._calls.renew()
            if found.tokens < self._before:
                yield found

    def _reply(self, attempt: int, size: int | None) -> ValidatedReflection:
        """Return a usable reply. Raise Unusable, CutOff or Refused if the reply cannot be used, and the provider's
        error if there is no reply.

        If a reply has text but cannot be parsed, ask again with the reason. This is done at most once per run, and only
        while a call is left.
        """
        reply = self._ask(attempt, size)
        try:
            parsed = parse_reply(reply)
        except Unusable as error:
            if self.asked > attempt + 1 or not reply.text.strip() or self._calls.is_over:
                raise
            fault = f"Your last reply could not be read: {error.message}."
            parsed = parse_reply(self._ask(attempt, size, fault=fault))
        return self._checked(parsed, attempt)

    def _checked(self, reply: ReflectorReply, attempt: int) -> ValidatedReflection:
        is_last = attempt == len(self._compression.levels) - 1
        found = validate(reply, self._material, self._counter, trims=self._compression.trims and is_last)
        if not (found.holds and reply.has_rows):
            raise Unusable(
                "the reply cites rows or has names that it was not shown, says nothing of its rows, or is empty"
            )
        return found

    def _ask(self, attempt: int, size: int | None, *, fault: str = "") -> Reply:
        prompt = prompt_of(self._material, self._compression, attempt=attempt, size=size, fault=fault)
        self.asked += 1
        return self._provider.ask(
            replace(prompt, reads=lambda reply: self._checked(parse_reply(reply), attempt), calls=self._calls)
        )


GUIDANCE = (
    "",
    "Keep about eight tenths of the detail. Merge repeated outcomes of tools; keep names, places, people and events.",
    "Keep about six tenths of the detail. Fold the older half strongly, by file or by subject; leave no redundancy.",
    (
        "Keep about four tenths of the detail. Of the oldest half and more make short summaries, one or two rows of "
        "ten that belong together. Drop what is superseded and how things were done; keep names, dates, decisions, "
        "errors and preferences."
    ),
    "Keep about two tenths of the detail: outcomes and final states only, one or two rows for each old subject.",
)
"""Instructions for each level of compression. Level 0 needs none."""


@record
class Compression:
    """Compression levels and other parameters for a model's attempts at a reflection."""

    levels: tuple[int, ...] = (1, 3)
    """Index into `GUIDANCE` for each attempt. An index that is too large means the last level."""
    temperature: float | None = None
    """Temperature of the first attempt. None means the endpoint's default for all attempts."""
    step: float = 0.0
    """Number added to the temperature with each further attempt."""
    max_output: int | None = None
    """Maximum number of tokens in a reply. None leaves it to the provider."""
    quotes_size: bool = False
    """True if prompts quote the size of the previous reply."""
    trims: bool = False
    """True to remove the last rows of the last attempt's reply if it is still too long."""
    headed: bool = False
    """True to show each row under a heading, with its date range."""
    guidance: str = ""
    """Additional instructions from the user."""


def prompt_of(
    material: Material, compression: Compression, *, attempt: int, size: int | None, fault: str = ""
) -> Prompt:
    """Return the prompt for an attempt. The first attempt is 0.

    `size` is the number of tokens in the previous reply's reflections. `fault` explains why a reply could not be
    parsed.
    """
    rules = prompts.prompt("reflector")
    level = min(max(0, compression.levels[attempt]), len(GUIDANCE) - 1)
    return Prompt(
        system="\n\n".join(filter(None, (rules.strip(), compression.guidance.strip()))),
        content=(
            _about(material),
            _quoted(_shown(material, headed=compression.headed), material),
            "\n".join(filter(None, (GUIDANCE[level], _limits(material, compression, size), fault, _CLOSING))),
        ),
        schema=SCHEMA,
        name="reflection",
        max_output=compression.max_output,
        temperature=None
        if compression.temperature is None
        else round(compression.temperature + compression.step * attempt, 4),
        session=material.session,
        reads=parse_reply,
    )


_CLOSING = "Reply with the JSON object and nothing else."


def _about(material: Material) -> str:
    project = f" The project is {one_line(material.project)}." if material.project else ""
    return f"Today is {material.now[:10]}.{project} These are the rows, oldest first:"


def _limits(material: Material, compression: Compression, size: int | None) -> str:
    limits = f"What is left has to fit into {material.target} tokens."
    if material.most_rows:
        limits += (
            f" Write {'one reflection' if material.most_rows == 1 else f'{material.most_rows} reflections'} at most."
        )
    if compression.quotes_size and size is not None:
        limits += f" Your last reply came to {size} tokens; it has to be shorter."
    return limits


def _shown(material: Material, *, headed: bool) -> str:
    rows = rows_by_label(material)
    show = _under_heading if headed else _line
    return "\n".join(show(label, row, _verbatim(row, material)) for label, row in rows.items())


def _verbatim(row: Observation, material: Material) -> str:
    """Return a mark for a row that must be repeated word for word, with the words if only parts of it must be."""
    said = verbatim_texts(row, material)
    parts = "; ".join(map(one_line, said)) if said and said != (row.text,) else ""
    return f" (verbatim: {parts})" if parts else " (verbatim)" if said else ""


def _line(label: str, row: Observation, verbatim: str) -> str:
    return f"{label} {minute(row.dated)} {_kind(row)}{verbatim}: {one_line(row.text)}"


def _under_heading(label: str, row: Observation, verbatim: str) -> str:
    ends = (minute(row.event_at or row.observed_at), row.refers_to)
    return (
        f"## Group `{label}`\n_range: {':'.join(filter(None, ends))}_\n- {_kind(row)}{verbatim}: {one_line(row.text)}"
    )


def _kind(row: Observation) -> str:
    return " ".join(filter(None, (row.priority.value, row.type.value, row.status and row.status.value)))


def _quoted(rows: str, material: Material) -> str:
    """Return the rows between two lines with a hash of all rows. No row can contain such a line."""
    fence = f"rows-{hash_of(material.now, rows):016x}"
    return f"{fence}\n{rows}\n{fence}"


SCHEMA = object_of({
    "reflections": list_of(object_of({**STATED, "from": TEXTS, "first": optional(TEXT), "last": optional(TEXT)})),
    "keep": TEXTS,
    "drop": list_of(object_of({"row": TEXT, "reason": TEXT, "by": optional(TEXT)})),
    "items": list_of(
        object_of({
            "text": TEXT, "type": one_of("knowledge", "behavior", "event", "skill"), "tags": TEXTS, "from": TEXTS,
        })
    ),
})  # fmt: skip
