"""Ports for language models: prompts, replies, and the ledger of calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Protocol

from omcli.base.record import record


@record
class Price:
    """Price of a model in US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Price of input read from the endpoint's cache; None if it is the same as for other input."""


@record
class Picture:
    """An image in a prompt."""

    media_type: str
    data: bytes


class EndReason(StrEnum):
    """Reason for the end of a reply."""

    END = "end"
    LENGTH = "length"
    """Cut off by the limit on output, or by the end of the context."""
    REFUSAL = "refusal"
    """The model, or a filter, declined."""


@record
class Reply:
    """A model's reply, before validation."""

    text: str
    stop: EndReason
    model: str
    """The model that replied, as named by the endpoint."""
    input_tokens: int | None = None
    """Input tokens as counted by the endpoint over all attempts, including cached ones; None if unknown."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of the input that was read from the endpoint's cache."""


@record
class Prompt:
    """A request to a model."""

    system: str
    """Instructions; never contains any part of a transcript."""
    content: tuple[str | Picture, ...]
    """Text and images, in order."""
    schema: Mapping[str, object]
    """JSON schema of the reply. All fields are required, with null for absence; no length limits, no `\\d`."""
    name: str
    """Name of the schema in requests: letters and underscores."""
    max_output: int | None = None
    """Limit in tokens for the reply; None leaves it to the provider."""
    temperature: float | None = None
    """None sends none, so that the endpoint's default applies."""
    session: str | None = None
    """Session it concerns, for the ledger; never sent."""
    reads: Callable[[Reply], object] | None = None
    """Parses a reply, and raises ProviderFailed if it is unusable, so that the ledger can record that."""


class Provider(Protocol):
    """A model behind an endpoint. A call has one deadline for all its attempts."""

    @property
    def name(self) -> str:
        """The endpoint: `anthropic`, `openai`, `ollama`, `command`, …"""

    @property
    def model(self) -> str:
        """The model's name at the endpoint."""

    @property
    def takes_images(self) -> bool:
        """True if a prompt may contain images."""

    def ask(self, prompt: Prompt) -> Reply:
        """Return the reply to a prompt. May raise ProviderFailed, NotAllowed or BadConfiguration."""


@record
class ModelCall:
    """A call of a model, as recorded in the ledger."""

    at: str
    """Instant of its end."""
    lane: str
    """Purpose of the call, a value of `ports.Lane`."""
    session: str | None
    provider: str
    model: str
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost: float | None
    """In US dollars; None if the price is unknown."""
    duration: int
    """In milliseconds."""
    outcome: str
    """`ok`, or the slug of the error."""


class Ledger(Protocol):
    """Port for the record of calls and their costs."""

    def note_call(self, call: ModelCall) -> None:
        """Add a call that has ended."""

    def calls(self, *, since: str | None = None, until: str | None = None) -> Iterator[ModelCall]:
        """Yield calls that ended at or after `since` and before `until`, oldest first."""

    def spent(self, *, since: str) -> Spent:
        """Return the total cost of the calls that ended at or after an instant."""


@record
class Spent:
    """Total tokens and cost of several calls."""

    tokens: int
    """Input and output tokens, as far as endpoints reported them."""
    cost: float
    """In US dollars, as far as prices are known."""


class OutputMode(StrEnum):
    """Ways to request structured output, the strictest first."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    PROMPT = "prompt"


class OutputModes(Protocol):
    """Port for remembering which output mode works with each endpoint and model."""

    def output_mode(self, endpoint: str, model: str) -> OutputMode | None:
        """Return the mode that worked last; None if unknown."""

    def put_output_mode(self, endpoint: str, model: str, output_mode: OutputMode) -> None:
        """Remember the mode that worked."""
