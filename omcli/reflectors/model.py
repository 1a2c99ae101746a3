"""The reflector that asks a model, repeatedly if its replies are not short enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omcli.base.errors import OF_MATERIAL, OF_REPLIES, PromptTooLong, ProviderFailed, Unusable
from omcli.base.record import replace
from omcli.llm.model import Provider, Reply
from omcli.memory.observation import Observation
from omcli.memory.reflection import Material, Reflected
from omcli.memory.tokens import TokenCounter, rows_tokens
from omcli.reflectors.prompt import CompressionLevels, prompt_of
from omcli.reflectors.reply import ReflectorReply, parse_reply
from omcli.reflectors.validation import ValidatedReflection, combined, validate


class ModelReflector:
    """Fewer rows by a model, which is asked for less detail in each attempt until the target holds."""

    def __init__(self, provider: Provider, counter: TokenCounter, *, compression: CompressionLevels) -> None:
        self._provider = provider
        self._counter = counter
        self._compression = compression

    def reflect(self, material: Material) -> Reflected:
        """Return the first valid reply that holds the target, else the shortest one.

        A reply is valid only if it leaves fewer tokens visible. If none is valid, raises the reason of the last:
        Unusable, CutOff or Refused. Any other ProviderFailed, NotAllowed or BadConfiguration ends the attempts, and is
        raised if no reply was valid before. Rows that exceed the model's context are folded in halves.
        """
        try:
            return self._reflected(material)
        except PromptTooLong:
            if len(material.rows) < 2:
                raise
            return self._split(material)

    def _split(self, material: Material) -> Reflected:
        """Reflect on the older and the newer rows separately; one half may fail and stay unchanged."""
        middle = len(material.rows) // 2
        parts: list[Reflected] = []
        fault: ProviderFailed | None = None
        for rows in (material.rows[:middle], material.rows[middle:]):
            try:
                parts.append(self.reflect(replace(material, rows=rows, target=self._share(material, rows))))
            except OF_MATERIAL as error:
                fault = error
        if fault is not None and not parts:
            raise fault
        return combined(parts, material.most_rows)

    def _share(self, material: Material, rows: Sequence[Observation]) -> int:
        """Return the share of the target for some of the rows."""
        some, whole = (rows_tokens(each, self._counter) for each in (rows, material.rows))
        return material.target * some // max(1, whole)

    def _reflected(self, material: Material) -> Reflected:
        attempts = _ModelRun(self._provider, self._counter, self._compression, material)
        best: ValidatedReflection | None = None
        try:
            for found in attempts.validated():
                best = found if best is None or found.tokens < best.tokens else best
                if found.tokens <= material.target:
                    break
        except ProviderFailed:
            if best is None:
                raise
        if best is None:
            raise attempts.fault
        return replace(best.reflected, attempts=attempts.asked)


class _ModelRun:
    """The attempts at one reflection."""

    def __init__(
        self, provider: Provider, counter: TokenCounter, compression: CompressionLevels, material: Material
    ) -> None:
        self._provider = provider
        self._counter = counter
        self._compression = compression
        self._material = material
        self._before = rows_tokens(material.rows, counter)
        self.asked = 0
        """Number of requests to the model."""
        self.fault: ProviderFailed = Unusable("no reply")
        """Reason why the last reply is not valid."""

    def validated(self) -> Iterator[ValidatedReflection]:
        """Yield the valid replies."""
        size: int | None = None
        for attempt in range(len(self._compression.levels)):
            try:
                reply = self._reply(attempt, size)
            except OF_REPLIES as error:
                self.fault = error
                continue
            is_last = attempt == len(self._compression.levels) - 1
            found = validate(reply, self._material, self._counter, trims=self._compression.trims and is_last)
            size = found.written
            if not found.holds:
                self.fault = Unusable("the reply cites rows or has names that it was not shown, or is empty")
            elif found.tokens >= self._before:
                self.fault = Unusable(
                    f"the reply is not shorter than the rows it replaces: {found.tokens} of {self._before} tokens"
                )
            else:
                yield found

    def _reply(self, attempt: int, size: int | None) -> ReflectorReply:
        """Return a parsed reply. Once per reflection, an unreadable one is asked for again with the reason."""
        reply = self._ask(attempt, size)
        try:
            return parse_reply(reply)
        except Unusable as error:
            if self.asked > attempt + 1 or not reply.text.strip():
                raise
            return parse_reply(self._ask(attempt, size, fault=f"Your last reply could not be read: {error.message}."))

    def _ask(self, attempt: int, size: int | None, *, fault: str = "") -> Reply:
        prompt = prompt_of(self._material, self._compression, attempt=attempt, size=size, fault=fault)
        self.asked += 1
        return self._provider.ask(prompt)
