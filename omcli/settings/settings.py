"""What a run goes by: every setting by name, with its built-in default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from omcli.base.record import field, record

if TYPE_CHECKING:
    from omcli.llm.model import Price

PREFIX = "OM_"
"""How the names of om's environment variables begin."""
FLAG = "flag"
"""The origin of a value given on the command line."""

# An annotation is more than a type here: `values` reads by its words what a file or a variable may say.
Tokens: TypeAlias = int
"""May be stated as a share of `effective_context`: `32.5%`."""
Amount: TypeAlias = float
"""A share of something, up to 1, or tokens; those may be stated as a share of `effective_context` as well."""
Days: TypeAlias = float
Span: TypeAlias = str
"""From how many to how many: `2-5`."""
Trigger = Literal["tokens", "turn", "tool", "manual"]
Scope = Literal["session", "project", "global"]
Fallback = Literal["none", "rules"]
Verbatim = Literal["none", "open", "high"]
Meta = Literal["never", "generations", "whole"]
Select = Literal["worth", "recent"]
Rank = Literal["half-life", "time-constant"]
Direction = Literal["asc", "desc"]
Part = Literal["cross", "session", "tail"]


@record
class ObserveSettings:
    """When messages are observed, how many at once, and how much is shown and taken."""

    trigger: Trigger = "tokens"
    """What `om tick` waits for: tokens that no observation covers, the end of a turn, a tool's result, or nothing."""
    tokens: Tokens = 10_000
    """As many have to wait; 0 where anything that waits is due."""
    inclusive: bool = True
    """Exactly so many are enough."""
    chunk_messages: int = 0
    """The oldest so many at once; 0 for all."""
    batch_tokens: Tokens = 6_000
    """Tokens of the messages that a model is shown at once."""
    max_transcript: Tokens | None = 35_000
    """The most that is observed in one go."""
    newest_only: bool = False
    """Whether of more than that a model is shown only the newest, and rules alone observe the rest."""
    max_output: Tokens | None = 8_000
    """The most that the rows of one reply may have."""
    sentences: Span | None = None
    """How long a model is asked to be."""
    previous_tokens: Tokens | None = 1_500
    """Rows of before that a model is shown, so that it does not repeat them."""
    verify: bool = False
    """Whether rows of a model that name what their messages don't are left out, and not kept as unverified."""
    precompute: Amount = 0.0
    """When a batch is observed ahead of its time: at a share of `tokens`, or every so many; 0 for never."""
    precompute_late: Tokens = 0
    """Every so many instead, once `precompute_late_from` wait; 0 for the same as before."""
    precompute_late_from: Tokens = 0
    floor: Tokens = 0
    """As many stay unobserved when what was observed ahead is written down."""
    block_after: Amount = 2.0
    """How many times `tokens` (or how many tokens, from 100) may wait before a background run has to be waited for; 0
    for any."""


@record
class ReflectSettings:
    """When rows are folded into fewer, and into how many."""

    tokens: Tokens | None = 20_000
    """Rows of so many tokens are due; None where none ever are."""
    inclusive: bool = True
    """Exactly so many are enough."""
    target: Amount = 0.5
    """What the result should have: a share of what is folded, or tokens. 1: anything smaller will do."""
    rows: int = 0
    """How many rows it should be; 0 for as many as it takes."""
    sentences: Span | None = None
    """How long a model is asked to be."""
    attempts: int = 2
    """How often a model is asked before the best of its answers is taken."""
    levels: tuple[int, ...] = (1, 3)
    """How hard it is asked to shorten, attempt by attempt: 0 not at all, 4 hardest."""
    temperature_step: float = 0.0
    """Added to the reflector's temperature with every attempt."""
    verbatim: Verbatim = "open"
    """Which rows are kept to the letter: none, those of high priority while they are open, all of high priority."""
    meta: Meta = "never"
    """Whether reflections are folded again: never, a generation at a time, or all of them every time."""
    meta_at: int = 5
    """How many reflections of a generation make the next."""
    min_age: Days = 3.0
    """How old an observation is before the global reflection folds it."""
    batch_tokens: Tokens = 20_000
    """Tokens of the rows that a model is shown at once in a reflection across sessions; where nobody says, as many as
    `tokens`."""


@record
class ContextSettings:
    """What a context pack holds."""

    budget: Tokens | None = None
    """Tokens of the whole pack; None for what its tiers may have together."""
    cross: Tokens | None = 4_000
    """Tokens of rows of other sessions."""
    session: Tokens | None = 8_000
    """Tokens of rows of the session."""
    tail: Tokens | None = 8_000
    """Tokens of the last messages."""
    evict: Tokens | None = None
    """With `freeze`: at how many tokens of messages the tail is cut back to `tail`, and to three quarters of that many
    at most. None: at none, where the host has the messages; a tail that is printed is cut back to half when it is full.
    What is not observed yet is not cut off."""
    order: tuple[Part, ...] = ("cross", "session", "tail")
    """In which order the tiers are printed."""
    reflections: int | None = None
    """The most reflections of the session."""
    observations: int | None = None
    """The most other rows of the session."""
    select: Select = "worth"
    """Which rows of the session come first where not all find room: those that say most, or the newest."""
    rank: Rank = "half-life"
    """How the worth of other sessions' rows fades: by half every week, or to 1/e."""
    render: Direction = "asc"
    """Whether its rows are printed oldest first, or newest first."""
    block: bool = False
    """The working-memory block stands for all of it, where nothing else is asked for."""
    freeze: bool = False
    """A session's pack stays as it is until rows are folded, folding is undone, something is noted by hand or the tail
    is cut; until then messages are added at its end, where they are printed."""


@record
class RetentionSettings:
    """What `om consolidate` leaves in sight; `om prune` is told with every run."""

    older_than: Days | None = None
    """Rows older than so many days go; None: none do."""
    keep_last: int | None = None
    """Of a session's rows the newest so many stay."""
    max_tokens: Tokens | None = None
    """Of a session's rows what matters least goes until they have no more tokens than that."""
    keep_sessions: int | None = None
    """Rows of so many sessions stay, those that were active last."""
    raw_older_than: Days | None = None
    """Messages older than so many days go, as far as they were observed."""


@record
class ModelSettings:
    """A model, and who answers in its place. Without a provider of its own the reflector's is the observer's."""

    provider: str | None = None
    """Whose: `anthropic`, `openai`, `ollama`, …, `command`, or `rules` for no model. Where nobody says, the one whose
    key is in the environment."""
    model: str | None = None
    """By the name that the provider knows it by, or `PROVIDER/NAME`."""
    base_url: str | None = None
    """The endpoint, where it is not the provider's own."""
    command: str | None = None
    """For the provider `command`: the program."""
    temperature: float | None = 0.3
    """None: not sent."""
    effort: str | None = None
    """How hard it should think, where the provider takes that."""
    max_output: Tokens | None = None
    """The most tokens of a reply; None leaves it to the provider."""
    fallback_model: str | None = None
    """Asked once where the model fails."""
    fallback: Fallback = "none"
    """Who does the work where the models fail: nobody, so that it waits, or the rules."""
    instructions_file: Path | None = None
    """A text of yours that is added to what the model is told."""
    images: bool = True
    """Whether it is shown images, where it takes them. A reflector has none to see."""


@record
class ToolSettings:
    """How much of what tools are given and answer a model is shown."""

    args_chars: int = 1_500
    result_chars: int = 1_500


@record
class ProviderSettings:
    """How models are called."""

    timeout: float = 60.0
    """Seconds, over all attempts of a call."""


@record
class CostLimits:
    """What models may cost. From a soft limit on it is said, beyond a hard one nothing is asked."""

    day_tokens: int | None = None
    month_tokens: int | None = None
    day_cost: float | None = None
    """In US dollars."""
    month_cost: float | None = None
    soft_day_tokens: int | None = None
    soft_month_tokens: int | None = None
    soft_day_cost: float | None = None
    soft_month_cost: float | None = None


@record
class ConsolidateSettings:
    """What `om consolidate` looks after."""

    places: tuple[Path, ...] | None = None
    """Folders and files that transcripts are taken in from; None for where the agents that om knows keep theirs."""
    notes: Path | None = None
    """The folder of daily notes, `YYYY-MM-DD.md`."""
    archive_after: Days | None = None
    """Notes older than that are moved to `archive` there, and what lasts of them to `MEMORY.md`; None for never."""
    backups: int = 5
    """How many backups of the store are kept; 0 for none."""


@record
class Settings:
    """What a run goes by."""

    db: Path
    """The store."""
    preset: str = "default"
    wait: float = 10.0
    """Seconds to wait for a lock or a lane that somebody else holds."""
    disabled: bool = False
    """Nothing is written."""
    counter: str = "o200k-approx"
    """Name of the token counter."""
    notation: str = "words"
    """How priorities are written."""
    scope: Scope = "project"
    """Whose rows a pack holds: those of its session, also those of the project's others, or of all others."""
    effective_context: int = 200_000
    """Tokens that the model reading the pack can take."""
    observe: ObserveSettings = ObserveSettings()
    reflect: ReflectSettings = ReflectSettings()
    context: ContextSettings = ContextSettings()
    retention: RetentionSettings = RetentionSettings()
    observer: ModelSettings = ModelSettings()
    reflector: ModelSettings = ModelSettings(temperature=0.0)
    tools: ToolSettings = ToolSettings()
    provider: ProviderSettings = ProviderSettings()
    limits: CostLimits = CostLimits()
    consolidate: ConsolidateSettings = ConsolidateSettings()
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By the model's name; over those that are known."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Who says so, by key, where it is not a built-in default."""
    warnings: tuple[str, ...] = ()
    """What was wrong with variables and files, and is not followed."""

    def origin(self, key: str) -> str:
        """Who says what a key is: a flag, a variable, a file, a preset, or nobody."""
        return self.origins.get(key, "default")


@record
class Files:
    """Where a run looks for configuration."""

    user: Path
    is_named: bool
    """The user's own is one that was asked for, and has to be there."""
    project: Path | None
    """The project's, if it has one."""

    @property
    def user_is_there(self) -> bool:
        """Whether there is anything to read of the user's."""
        return self.is_named or is_there(self.user)


def is_there(path: Path) -> bool:
    """Whether there is something by this name, be it readable or not."""
    return os.path.lexists(path)
