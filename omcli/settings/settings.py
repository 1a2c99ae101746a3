"""All settings with their built-in defaults, and the files they are read from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from omcli.base.record import field, record

if TYPE_CHECKING:
    from omcli.llm.model import Price

PREFIX = "OM_"
"""Prefix of om's environment variables."""
FLAG = "flag"
"""Origin of values given on the command line."""

# Annotations are used at run time: `values` chooses the parser of a value by the text of its annotation.
Tokens: TypeAlias = int
"""A number of tokens. It may also be given as a share of `effective_context`: `32.5%`."""
Amount: TypeAlias = float
"""A share or multiple of another number of tokens if small, otherwise a number of tokens. Each setting says which
amounts are small. It may also be given as a share of `effective_context`: `32.5%`.
"""
Days: TypeAlias = float
Span: TypeAlias = str
"""A range, such as `2-5`."""
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
    """When and how much to observe, and limits on a model's prompt and reply."""

    trigger: Trigger = "tokens"
    """Condition under which `om tick` observes: unobserved tokens, the end of a turn, a tool's result, or never."""
    tokens: Tokens = 10_000
    """Unobserved tokens that make a batch due for a model; 0 for any number. Rules observe any number."""
    inclusive: bool = True
    """True if exactly `tokens` are enough."""
    chunk_messages: int = 0
    """Maximum number of messages that a model observes at a time, oldest first; 0 for no limit. Observing ahead (see
    `precompute`) waits for that many.
    """
    batch_tokens: Tokens = 6_000
    """Maximum tokens of messages shown to a model at a time, unless one message has more or `newest_only` is set."""
    max_transcript: Tokens | None = 35_000
    """Maximum number of tokens in a batch for a model or, with `newest_only`, of the part that it is shown; None for
    35,000.
    """
    newest_only: bool = False
    """True to observe batches of up to ten times `max_transcript`: a model is shown only the newest messages, and rules
    observe the rest.
    """
    max_output: Tokens | None = 8_000
    """Maximum number of tokens in the rows of one reply; None for 8,000."""
    sentences: Span | None = None
    """Number of sentences to ask a model for in one reply; None to ask for no number."""
    previous_tokens: Tokens | None = 1_500
    """Maximum tokens of earlier rows shown to a model so that it does not repeat them. They also have at most an eighth
    of the transcript's tokens, or 700 if that is more. None removes both limits.
    """
    verify: bool = False
    """True to drop a model's rows that name something missing from their messages, instead of marking them as
    unverified.
    """
    precompute: Amount = 0.0
    """Unobserved tokens at which a model observes before a batch is due: up to 1, a share of `tokens`; above 1, a
    number of tokens after which it observes each time. 0 for never.
    """
    precompute_late: Tokens = 0
    """Number of tokens that replaces a `precompute` above 1 once `precompute_late_from` tokens are unobserved; 0 for no
    change.
    """
    precompute_late_from: Tokens = 0
    floor: Tokens = 0
    """Minimum number of tokens to leave unobserved when buffered batches are written; at least one batch is written
    nevertheless.
    """
    block_after: Amount = 2.0
    """Unobserved tokens at which a command with `--background` observes at once instead of leaving that to a worker:
    below 100, a multiple of `tokens`; otherwise a number of tokens. 0 for never.
    """


@record
class ReflectSettings:
    """When to fold rows into fewer, and the size of the result."""

    tokens: Tokens | None = 20_000
    """Tokens of rows at which folding is due; None for never."""
    inclusive: bool = True
    """True if exactly `tokens` are enough."""
    target: Amount = 0.5
    """Size of the result: up to 1, a share of the folded rows; above 1, a number of tokens. 1 accepts anything smaller.
    """
    rows: int = 0
    """Maximum number of reflections made at once; 0 for no limit."""
    sentences: Span | None = None
    """Number of sentences to ask a model for in one reply; None to ask for no number."""
    attempts: int = 2
    """Maximum number of attempts with a model, at most one for each of the `levels`, until a reply meets the target.
    The shortest reply is used.
    """
    levels: tuple[int, ...] = (1, 3)
    """Compression to ask for in each attempt, from 0 (none) to 4 (strongest)."""
    temperature_step: float = 0.0
    """Number added to the reflector's temperature, if that is set, in each further attempt."""
    verbatim: Verbatim = "open"
    """High-priority rows to keep word for word: none, those that are open or mutable, or all."""
    meta: Meta = "never"
    """Folding of reflections: never, one generation at a time, or all of them every time."""
    meta_at: int = 5
    """Number of reflections of one generation at which they are folded into the next generation."""
    min_age: Days = 3.0
    """Minimum age of rows that are folded across sessions."""
    batch_tokens: Tokens = 20_000
    """Maximum tokens of rows folded at a time by `om compact` and across sessions; defaults to `tokens` if that is set.
    """


@record
class ContextSettings:
    """Content of a context pack."""

    budget: Tokens | None = None
    """Maximum tokens of the whole pack; None for the sum of its tiers."""
    cross: Tokens | None = 4_000
    """Maximum tokens of rows of other sessions or of no session; None for no limit except the whole pack's."""
    session: Tokens | None = 8_000
    """Maximum tokens of rows from the session; None as for `cross`."""
    tail: Tokens | None = 8_000
    """Maximum tokens of the last messages; None as for `cross`. While messages are unobserved, the tail may also use
    free budget.
    """
    evict: Tokens | None = None
    """With `freeze`: if the last messages exceed this many tokens, they are cut to `tail`, or to three quarters of this
    number if that is less. With None, a printed tail is cut to half when it is full, and a tail that is not printed is
    never cut. Unobserved messages are never cut off.
    """
    result_chars: int | None = 1_500
    """Maximum characters of a tool's arguments, a result or an event among the last messages; None for no limit. A
    small tail lowers it. Without `freeze`, the newest messages are whole as long as they take at most half of the tail.
    """
    order: tuple[Part, ...] = ("cross", "session", "tail")
    """Tiers to print, in this order. A tier that is left out is printed only if a budget is requested for it."""
    reflections: int | None = None
    """Maximum number of reflections from the session; None for no limit. Rows written together count once."""
    observations: int | None = None
    """The same for other rows from the session. Rows that are open or in force are kept beyond both limits."""
    select: Select = "worth"
    """Rows of the session to prefer if not all fit: the most informative, or the newest."""
    rank: Rank = "half-life"
    """Part of its score that a row of another session keeps with each week of its age: one half, or 1/e."""
    render: Direction = "asc"
    """Order of the session's rows: oldest first, or newest first."""
    block: bool = False
    """True if `om context` prints the working-memory block, unless tiers, another format or `--for` is requested."""
    append_only: bool = False
    """True to keep rows that later ones replaced, while all rows fit, so that the pack grows only at the end of its
    tiers until rows are folded, pruned or forgotten. `freeze` includes this."""
    freeze: bool = False
    """True to change a session's pack only at its end, where new messages are added, until rows are folded, folding is
    undone, a note is written, rows are imported, or the tail is cut.
    """


@record
class RetentionSettings:
    """Rows and messages that `om consolidate` keeps visible. Protected rows are always kept. `om prune` has options for
    the same rules.
    """

    older_than: Days | None = None
    """Age beyond which rows are hidden; None for no limit."""
    keep_last: int | None = None
    """Number of newest rows to keep in each session; None for no limit."""
    max_tokens: Tokens | None = None
    """Tokens of rows to keep in each session; None for no limit. Rows that were folded go first, then those of low
    priority, then old ones. Rows that are open, in force or of high priority stay even beyond this number.
    """
    keep_sessions: int | None = None
    """Number of most recently active sessions whose rows are kept; None for no limit."""
    raw_older_than: Days | None = None
    """Age beyond which observed messages are hidden; None for no limit."""


@record
class ModelSettings:
    """A model and its fallbacks. If no provider is set for the reflector, the observer's provider, model and related
    values also apply to it, except those that are set for it. This does not apply if rules observe and a model is set
    for the reflector.
    """

    provider: str | None = None
    """`anthropic`, `openai`, `ollama`, …, `command`, or `rules` for no model.

    None means the provider in `model`, or else the one whose API key is in the environment. Without a model, None means
    rules.
    """
    model: str | None = None
    """The provider's name for the model, or `PROVIDER/NAME`, which replaces `provider` unless that names its models in
    this form itself, as OpenRouter does. None means the default model of `provider`, or rules if that is None too.
    """
    base_url: str | None = None
    """Endpoint to use instead of the provider's own."""
    command: str | None = None
    """Command line to run for the provider `command`."""
    temperature: float | None = 0.3
    """Sampling temperature; None sends none. It is sent only if a preset, a file, a variable or an option sets it,
    because many models refuse one. So this default is shown, but never sent.
    """
    effort: str | None = None
    """Reasoning effort, if the provider supports it; None for the endpoint's default."""
    max_output: Tokens | None = None
    """Maximum number of tokens in a reply; None leaves the limit to the provider."""
    fallback_model: str | None = None
    """Model to try once if the first one fails, or None."""
    fallback: Fallback = "none"
    """Reaction to failing models: `none` leaves messages pending and rows unfolded; `rules` lets rules observe or
    reflect.
    """
    instructions_file: Path | None = None
    """File with additional instructions for the model, if any."""
    images: bool = True
    """True to show images to a model that accepts them. Only the observer uses this."""


@record
class EmbedSettings:
    """A model that makes vectors of texts, for `om embed` and `om recall`."""

    provider: str | None = None
    """`openai`, `ollama`, …, or `local` for a model in an installed package. `rules` means no vectors.

    None means the provider in `model`, or else the one whose API key is in the environment. Without a model, None means
    no vectors.
    """
    model: str | None = None
    """The provider's name for the model, or `PROVIDER/NAME`. None means the default model of `provider`."""
    base_url: str | None = None
    """Endpoint to use instead of the provider's own."""
    timeout: float = 5.0
    """Seconds that the request for the vector of a query may take, including all attempts. Somebody waits for it."""

    @property
    def is_set(self) -> bool:
        """True if a model is chosen, available or not. The provider `rules` means none."""
        return self.provider != "rules" and (self.provider is not None or self.model is not None)


@record
class ToolSettings:
    """Maximum number of characters of a tool call's arguments and result that are shown to an observing model."""

    args_chars: int = 1_500
    result_chars: int = 1_500


@record
class ProviderSettings:
    """Requests to models."""

    timeout: float = 60.0
    """Seconds that a request may take, including all attempts."""
    longest_wait: float = 21_600.0
    """Maximum number of seconds that a session waits after successive failures of a model; 0 for no wait."""


@record
class CostLimits:
    """Limits on the tokens and the cost of models per day and month; None means no limit. Soft limits only warn. Once a
    hard limit is reached, no request is sent.
    """

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
    """Input of `om consolidate`, and what it archives and backs up."""

    places: tuple[Path, ...] | None = None
    """Folders and files of transcripts, read in addition to files ingested before; None for the folders of all agents
    that om knows.
    """
    notes: Path | None = None
    """Folder of daily notes, which are named `YYYY-MM-DD.md`; None if there are no notes."""
    archive_after: Days | None = None
    """Age beyond which notes are moved to `archive`, once their lasting facts are in `MEMORY.md`; None for never."""
    backups: int = 5
    """Number of backups of the store to keep; with 0, none is made."""


@record
class HookSettings:
    """Answers of `om hook` to a client."""

    tokens: Tokens = 2_300
    """Maximum tokens of a pack. Clients cut longer answers, so these also have at most 9,500 characters."""
    prompt: bool = False
    """True to answer a prompt with the rows of other sessions that match it and were not shown before."""
    prompt_tokens: Tokens = 600
    """Maximum tokens of such an answer."""
    opt_in: bool = False
    """True if hooks do nothing unless `OM_MEMORY=1` or a file sets `enabled = true`."""


@record
class StoreSettings:
    """Place of an encrypted store's key: `OM_KEY`, or else `key_command`, or else `key_file`, or else the keyring."""

    key_command: str | None = None
    """Command line that prints the key, or None."""
    key_file: Path | None = None
    """File with the key, or None."""


class StoreName(str):
    """The store as the command line names it: the path of a file, or the URL of a database."""

    __slots__ = ()


class ServerUrl:
    """The URL of a PostgreSQL database that holds the store. As text it lacks passwords, so that it can be shown."""

    __slots__ = ("url",)

    def __init__(self, url: str) -> None:
        self.url = url
        """The whole URL, for the server only."""

    def __str__(self) -> str:
        import re  # noqa: PLC0415 - most stores are files

        shown = re.sub(r"(://[^/@:?]*):[^/@]*@", r"\1@", self.url)
        return re.sub(r"([?&][^=&]*pass(?!file)[^=&]*=)[^&]*", r"\1…", shown, flags=re.IGNORECASE)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ServerUrl) and self.url == other.url

    def __hash__(self) -> int:
        return hash(self.url)

    @property
    def has_secret(self) -> bool:
        return str(self) != self.url

    @property
    def fault(self) -> str:
        """Fault in the form of the URL, or an empty text. No part is repeated, because it may be a password."""
        import re  # noqa: PLC0415

        host = r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s\[\]@/?#:,]*)(?::[0-9]{1,5})?"
        form = rf"postgres(?:ql)?://(?:[^\s@/?#:]*(?::[^\s@/?#]*)?@)?{host}(?:,{host})*(?:/[^\s@/?#]*)?(?:\?(\S*))?"
        found = re.fullmatch(form, self.url)
        if found is None:
            return "is not a URL like postgresql://user@host/database"
        if re.search(r"%(?![0-9A-Fa-f]{2})|%00", self.url):
            return "has a `%` that is not `%25`"
        wrong = found[1] and not all(re.fullmatch(r"[A-Za-z_]+=[^=?]*", each) for each in found[1].split("&"))
        return "has options that are not like `?sslmode=require&target_session_attrs=read-write`" if wrong else ""


def place_of(name: str | Path) -> Path | ServerUrl:
    """Return the place of the store that has this name."""
    is_server = isinstance(name, str) and name.strip().startswith(("postgresql://", "postgres://"))
    return ServerUrl(str(name).strip()) if is_server else Path(name)


@record
class Settings:
    """All settings of a run."""

    db: Path | ServerUrl
    """The store: the path of its file, or the database that holds it."""
    preset: str = "default"
    author: str | None = None
    """Name to store with what is written; None for the user's login name."""
    wait: float = 10.0
    """Seconds to wait for a lock or lane that another process holds."""
    jobs: int = 0
    """Maximum number of processes that share the work if there is much to read; 0 for one per processor, at most 4."""
    disabled: bool = False
    """True to write nothing."""
    counter: str = "o200k-approx"
    """Name of the token counter."""
    notation: str = "words"
    """Name of the notation that marks priorities."""
    scope: Scope = "project"
    """Sessions whose rows a pack contains: only its own, all of the project, or all."""
    effective_context: int = 200_000
    """Context window, in tokens, of the model that reads the pack."""
    observe: ObserveSettings = ObserveSettings()
    reflect: ReflectSettings = ReflectSettings()
    context: ContextSettings = ContextSettings()
    retention: RetentionSettings = RetentionSettings()
    observer: ModelSettings = ModelSettings()
    reflector: ModelSettings = ModelSettings(temperature=0.0)
    embeddings: EmbedSettings = EmbedSettings()
    tools: ToolSettings = ToolSettings()
    provider: ProviderSettings = ProviderSettings()
    limits: CostLimits = CostLimits()
    consolidate: ConsolidateSettings = ConsolidateSettings()
    hook: HookSettings = HookSettings()
    store: StoreSettings = StoreSettings()
    prices: Mapping[str, Price] = field(default_factory=dict)
    """Prices by model, which override the built-in ones."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Origins by key, for values that are not built-in defaults."""
    warnings: tuple[str, ...] = ()
    """Warnings about files, keys and values that were ignored."""
    notes: tuple[str, ...] = ()
    """Note on the settings that the project's file narrows, if it narrows any."""

    def origin(self, key: str) -> str:
        """Return the origin of a key's value: `flag`, a variable, a file, a preset, or `default`."""
        return self.origins.get(key, "default")


@record
class Files:
    """Configuration files of a run."""

    user: Path
    is_named: bool
    """True if the user's file was given explicitly, so it must exist."""
    project: Path | None
    """The project's file, or None if there is none."""
    pi_user: Path | None = None
    """The user's `memory.json` of pi, or None if there is none."""
    pi_project: Path | None = None
    """The same of the project. Both are read only with the preset `pi`."""

    @property
    def has_user_file(self) -> bool:
        """True if the user's file is to be read."""
        return self.is_named or exists(self.user)


def expanded(path: str | Path) -> Path:
    """Return a path with `~` replaced by the home folder. `~NAME` stays as it is if the user is unknown."""
    return Path(os.path.expanduser(path))  # noqa: PTH111


def exists(path: Path) -> bool:
    """Return True if something exists at the path, even a broken link."""
    return os.path.lexists(path)
