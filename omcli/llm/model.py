"""The port of a language model: prompts, replies, and the ledger of calls."""

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
    """For input read from the endpoint's cache; None if it costs the same as other input."""


@record
class Picture:
    """An image in a prompt."""

    media_type: str
    data: bytes


class EndReason(StrEnum):
    """Reason for the end of a reply."""

    END = "end"
    LENGTH = "length"
    """Cut off by its own limit, or by the end of the context."""
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
    """As counted by the endpoint, including cached ones, over all attempts; None if unknown."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of the input that was read from the endpoint's cache."""


@record
class Prompt:
    """A request to a model."""

    system: str
    """Instructions; never contains any part of a transcript."""
    content: tuple[str | Picture, ...]
    """Texts and images, in order."""
    schema: Mapping[str, object]
    """JSON schema of the reply: every field required, null for absence, no further ones, no lengths, no `\\d`."""
    name: str
    """Name of the schema on the wire: letters and underscores."""
    max_output: int | None = None
    """Limit in tokens for the reply; None leaves it to the provider."""
    temperature: float | None = None
    """None: not sent."""
    session: str | None = None
    """Session it is about, for the ledger; never sent."""
    reads: Callable[[Reply], object] | None = None
    """Reads a reply, and raises ProviderFailed if it is unusable. For the ledger; the caller reads it as well."""


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
        """Return the reply to a prompt. Raises ProviderFailed, NotAllowed, BadConfiguration."""


@record
class ModelCall:
    """A call of a model, for the ledger."""

    at: str
    """Instant of its end."""
    lane: str
    """Purpose: one of `ports.Lane`."""
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
    """Port for recording calls."""

    def note_call(self, call: ModelCall) -> None:
        """Record a call."""

    def calls(self, *, since: str | None = None, until: str | None = None) -> Iterator[ModelCall]:
        """Yield calls that ended at or after `since` and before `until`, oldest first."""

    def spent(self, *, since: str) -> Spent:
        """Return the total of calls since an instant."""


@record
class Spent:
    """Total of calls."""

    tokens: int
    """Of input and output, as far as reported."""
    cost: float
    """In US dollars, as far as prices are known."""


class OutputMode(StrEnum):
    """Ways to request structured output, the strictest first."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    PROMPT = "prompt"


class OutputModes(Protocol):
    """Port for remembering the output modes of endpoints."""

    def output_mode(self, endpoint: str, model: str) -> OutputMode | None:
        """Return the mode that worked last; None if unknown."""

    def put_output_mode(self, endpoint: str, model: str, output_mode: OutputMode) -> None:
        """Remember a mode that worked."""
