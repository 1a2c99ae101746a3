"""A language model as the core sees it: a prompt out, a reply in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Protocol

from omcli.base.record import record


@record
class Price:
    """What a model costs: US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None
    """For input that is read from the endpoint's cache; None: the same as for other input."""


@record
class Picture:
    """An image inside a prompt."""

    media_type: str
    data: bytes


class Stop(StrEnum):
    """Why a reply ended."""

    END = "end"
    LENGTH = "length"
    """It was cut off: by its own limit, or by the end of the context."""
    REFUSAL = "refusal"
    """The model, or a filter, declined."""


@record
class Reply:
    """What a model answered, before anybody believes it."""

    text: str
    stop: Stop
    model: str
    """The model that answered, as the endpoint names it."""
    input_tokens: int | None = None
    """What the endpoint counted, cached ones included, over all attempts; None where it does not tell."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Those of the input that were read from the endpoint's cache."""


@record
class Prompt:
    """What a model is asked."""

    system: str
    """The rules it goes by. Nothing of a transcript is ever in here."""
    content: tuple[str | Picture, ...]
    """What it is shown, in order."""
    schema: Mapping[str, object]
    """JSON schema of the reply: every field required, null for absence, no further ones, no lengths, no `\\d`."""
    name: str
    """What the schema is called on the wire: letters and underscores."""
    max_output: int | None = None
    """Tokens the reply may have; None leaves it to the provider."""
    temperature: float | None = None
    """None: not sent."""
    session: str | None = None
    """Which session it is about, for the ledger: never sent."""
    reads: Callable[[Reply], object] | None = None
    """Reads a reply, and raises ProviderFailed for one that is of no use: for the ledger, who asks reads it as well."""


class Provider(Protocol):
    """A model behind some wire. A call has one deadline, over all its attempts."""

    @property
    def name(self) -> str:
        """The endpoint: `anthropic`, `openai`, `ollama`, `command`, …"""

    @property
    def model(self) -> str:
        """The model, as the endpoint knows it."""

    @property
    def takes_images(self) -> bool:
        """Whether a prompt may hold pictures."""

    def ask(self, prompt: Prompt) -> Reply:
        """The reply to a prompt. Raises ProviderFailed, NotAllowed, BadConfiguration."""


@record
class ModelCall:
    """A call of a model, for the ledger."""

    at: str
    """Instant at which it ended."""
    lane: str
    """What for: one of `ports.Lane`."""
    session: str | None
    provider: str
    model: str
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost: float | None
    """In US dollars; None where no price is known."""
    duration: int
    """Milliseconds."""
    outcome: str
    """`ok`, or the slug of what went wrong."""


class Ledger(Protocol):
    """Where calls are written down."""

    def note_call(self, call: ModelCall) -> None:
        """Writes a call down."""

    def calls(self, *, since: str | None = None, until: str | None = None) -> Iterator[ModelCall]:
        """Calls that ended at or after `since` and before `until`, oldest first."""

    def spent(self, *, since: str) -> Spent:
        """What calls from an instant on have come to."""


@record
class Spent:
    """What calls came to."""

    tokens: int
    """Of input and output, as far as endpoints told."""
    cost: float
    """In US dollars, as far as prices are known."""


class OutputMode(StrEnum):
    """A way to ask for a reply of a certain structure, the strictest first."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    PROMPT = "prompt"


class OutputModes(Protocol):
    """What is remembered of how endpoints take structured output."""

    def output_mode(self, endpoint: str, model: str) -> OutputMode | None:
        """The output_mode that worked last; None where nothing is known."""

    def put_output_mode(self, endpoint: str, model: str, output_mode: OutputMode) -> None:
        """Remembers what worked."""
