"""Interfaces to language models: prompts, replies, and the ledger of model calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from omcli.base.record import field, mutable_record, record


@record
class Price:
    """Prices of a model in US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Price of input tokens read from the endpoint's cache. None means the price of other input."""


@record
class Picture:
    """An image in a prompt."""

    media_type: str
    data: bytes


class EndReason(StrEnum):
    END = "end"
    LENGTH = "length"
    """The reply was cut off by the output limit or by the end of the context."""
    REFUSAL = "refusal"
    """The model or a content filter declined."""


@record
class Reply:
    """A model's reply, not yet validated."""

    text: str
    stop: EndReason
    model: str
    """Name of the model that replied, as reported by the endpoint, or otherwise as requested."""
    input_tokens: int | None = None
    """Input tokens of all attempts as counted by the endpoint, including cached ones. None if unknown."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Number of input tokens read from the endpoint's cache; None if unknown."""


MOST_CALLS = 3
"""Maximum number of calls for one ask."""


@mutable_record
class Calls:
    """The calls left for one ask.

    An ask is everything done to get one usable reply: for the messages from one point of a session, or for one batch of
    rows. It includes retries after network errors, looser output modes, corrections, shorter replies and smaller
    slices. Requests that an endpoint refuses because of their form or length do not count, because no reply is made.
    """

    left: int = MOST_CALLS
    reserved: int = 0
    """Number of calls kept for a fallback model."""
    is_begun: bool = False
    """True if a session's wait need not be checked, because a model was already asked in this ask or in an earlier one
    for the same work.
    """

    @property
    def is_over(self) -> bool:
        """True if no call is left except reserved ones."""
        return self.left <= self.reserved

    @property
    def is_last(self) -> bool:
        """True if one call is left in addition to reserved ones."""
        return self.left == self.reserved + 1

    def take(self) -> None:
        """Count a call."""
        self.left -= 1

    def renew(self) -> None:
        """Allow all calls again, for the next ask of the same work."""
        self.left = MOST_CALLS


@record
class Prompt:
    system: str
    """Instructions. They never contain any part of a transcript."""
    content: tuple[str | Picture, ...]
    """Text and images, in order."""
    schema: Mapping[str, object]
    """JSON schema of the reply. All fields are required; null means absence. It has no length limits and no `\\d`."""
    name: str
    """Name of the schema in requests. It may contain letters and underscores."""
    max_output: int | None = None
    """Maximum number of tokens in the reply. None leaves the limit to the provider."""
    temperature: float | None = None
    """Sampling temperature, for protocols that have one. None means the endpoint's default."""
    session: str | None = None
    """Session that the call is for, recorded in the ledger; None if a reflection or question spans several. It is
    never sent to the model.
    """
    reads: Callable[[Reply], object] | None = None
    """Function that parses and checks a reply. It raises ProviderFailed if the reply is unusable; the ledger records
    that error.
    """
    calls: Calls = field(default_factory=Calls)
    """The calls left for the ask that the prompt belongs to. A provider takes one for each reply or failure that counts
    (see `Calls`).
    """


class Provider(Protocol):
    """A model at an endpoint. A single deadline limits all attempts of a call together."""

    @property
    def name(self) -> str:
        """Name of the provider, such as `anthropic`, `openai`, `ollama` or `command`."""

    @property
    def model(self) -> str:
        """Name of the model at the endpoint."""

    @property
    def takes_images(self) -> bool:
        """True if prompts may contain images."""

    def ask(self, prompt: Prompt) -> Reply:
        """Return the reply to a prompt. Each reply or failure that counts (see `Calls`) uses up one of the prompt's
        `calls`.

        At least one call must be left. Raise NotAllowed if the key is missing or not accepted, BadConfiguration if the
        model cannot be called as configured, and ProviderFailed on any other failure.
        """


@record
class EmbedReply:
    """Vectors of texts, in order, all with the same number of dimensions."""

    vectors: tuple[tuple[float, ...], ...]
    model: str
    """Name of the model that replied, as reported by the endpoint, or otherwise as requested."""
    input_tokens: int | None = None


class Embedder(Protocol):
    """A model that turns texts into vectors. Vectors of similar meaning have similar directions."""

    @property
    def name(self) -> str:
        """Name of the provider."""

    @property
    def model(self) -> str: ...

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> EmbedReply:
        """Return a vector for each text. `is_query` matters to models that make different vectors for questions than
        for texts.

        Raise the errors of `Provider.ask`.
        """


@record
class ModelCall:
    """A model call, as recorded in the ledger."""

    at: str
    """Instant at which the call ended."""
    lane: str
    """Purpose of the call, a value of `memory.ports.Lane`."""
    session: str | None
    provider: str
    model: str
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost: float | None
    """Cost in US dollars. None if the price is unknown."""
    duration: int
    """Duration in milliseconds."""
    outcome: str
    """`ok`, `interrupted`, the reason why the reply ended early (an `EndReason`), or the slug of the error."""


@record
class FailedCalls:
    """Failed calls of a model for one purpose and session, since its provider's last successful call for both."""

    lane: str
    session: str | None
    """None for a reflection or a question across sessions."""
    provider: str
    model: str
    number: int
    last: str
    """Instant at which the last of these calls ended."""


class Ledger(Protocol):
    """Record of all model calls and their costs."""

    def failing(self, *, since: str) -> tuple[FailedCalls, ...]:
        """Return the failed calls for each purpose, session, provider and model since the provider's last successful
        call for that purpose and session, the latest failure last. Only calls that ended at or after `since` count.

        Interrupted calls, and those refused because of the key or the settings, count as neither failed nor successful.
        """

    def note_call(self, call: ModelCall) -> None:
        """Record a call after it has ended."""

    def calls(self, *, since: str | None = None, until: str | None = None) -> Iterator[ModelCall]:
        """Yield the calls that ended at or after `since` and before `until`, oldest first."""

    def spent(self, *, since: str) -> Spent:
        """Return the total tokens and cost of the calls that ended at or after `since`."""


@record
class Spent:
    """Total tokens and cost of several calls."""

    tokens: int
    """Input and output tokens of all calls for which the endpoint reported them."""
    cost: float
    """Cost in US dollars of all calls with a known price."""


class OutputMode(StrEnum):
    """Ways to request structured output, strictest first."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    PROMPT = "prompt"


class OutputModes(Protocol):
    """Store for the output mode that works with each endpoint and model."""

    def output_mode(self, endpoint: str, model: str) -> OutputMode | None:
        """Return the mode that worked last, or None if it is unknown."""

    def put_output_mode(self, endpoint: str, model: str, output_mode: OutputMode) -> None:
        """Store the mode that worked."""
