"""The reflector that asks a model, more than once where the first reply does not come out short enough."""

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
    """Fewer rows by a model: asked for less detail each time, until what it writes holds the target."""

    def __init__(self, provider: Provider, counter: TokenCounter, *, ladder: CompressionLevels) -> None:
        self._provider = provider
        self._counter = counter
        self._ladder = ladder

    def reflect(self, material: Material) -> Reflected:
        """The first reply that holds the target, else the one that comes out shortest.

        A reply counts only where what is left in sight is less than before. Where none is, the reason is raised:
        Unusable, CutOff or Refused. What keeps the model from replying at all ends the attempts, and is raised where no
        reply counts so far: the other ProviderFailed, NotAllowed, BadConfiguration. Rows that are more than the model
        takes are folded in halves.
        """
        try:
            return self._reflected(material)
        except PromptTooLong:
            if len(material.rows) < 2:
                raise
            return self._in_halves(material)

    def _in_halves(self, material: Material) -> Reflected:
        """The older and the newer rows by themselves. A half of which nothing comes stays as it is, one of the two."""
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
        """What should remain of some of the rows."""
        some, whole = (rows_tokens(each, self._counter) for each in (rows, material.rows))
        return material.target * some // max(1, whole)

    def _reflected(self, material: Material) -> Reflected:
        climb = _Climb(self._provider, self._counter, self._ladder, material)
        best: ValidatedReflection | None = None
        try:
            for found in climb.candidates():
                best = found if best is None or found.tokens < best.tokens else best
                if found.tokens <= material.target:
                    break
        except ProviderFailed:
            if best is None:
                raise
        if best is None:
            raise climb.fault
        return replace(best.reflected, attempts=climb.asked)


class _Climb:
    """The attempts at one reflection."""

    def __init__(
        self, provider: Provider, counter: TokenCounter, ladder: CompressionLevels, material: Material
    ) -> None:
        self._provider = provider
        self._counter = counter
        self._ladder = ladder
        self._material = material
        self._before = rows_tokens(material.rows, counter)
        self.asked = 0
        """How often the model was asked."""
        self.fault: ProviderFailed = Unusable("no reply")
        """Why the last attempt does not count."""

    def candidates(self) -> Iterator[ValidatedReflection]:
        """What counts of the replies, attempt by attempt."""
        size: int | None = None
        for attempt in range(len(self._ladder.levels)):
            try:
                answer = self._answer(attempt, size)
            except OF_REPLIES as error:
                self.fault = error
                continue
            is_last = attempt == len(self._ladder.levels) - 1
            found = validate(answer, self._material, self._counter, trims=self._ladder.trims and is_last)
            size = found.written
            if not found.holds:
                self.fault = Unusable("the reply cites rows or names things that it was not shown, or says nothing")
            elif found.tokens >= self._before:
                self.fault = Unusable(
                    f"the reply is no shorter than what it was to replace: {found.tokens} of {self._before} tokens"
                )
            else:
                yield found

    def _answer(self, attempt: int, size: int | None) -> ReflectorReply:
        """A reply that can be read. One that cannot is asked for again, once in all, with what was wrong."""
        reply = self._ask(attempt, size)
        try:
            return parse_reply(reply)
        except Unusable as error:
            if self.asked > attempt + 1 or not reply.text.strip():
                raise
            return parse_reply(self._ask(attempt, size, fault=f"Your last reply could not be read: {error.message}."))

    def _ask(self, attempt: int, size: int | None, *, fault: str = "") -> Reply:
        prompt = prompt_of(self._material, self._ladder, attempt=attempt, size=size, fault=fault)
        self.asked += 1
        return self._provider.ask(prompt)
