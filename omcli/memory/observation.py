"""An observation: one dated fact, and everything `om` keeps about it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from omcli.base.record import field, record


class Kind(StrEnum):
    """What sort of row this is."""

    OBSERVATION = "observation"
    REFLECTION = "reflection"
    NOTE = "note"
    """Written by hand."""
    ITEM = "item"
    """A lasting fact for later sessions."""


class Type(StrEnum):
    """What a row is about."""

    # Said.
    REQUEST = "request"
    QUESTION = "question"
    DECISION = "decision"
    PREFERENCE = "preference"
    INSTRUCTION = "instruction"
    """A standing instruction: holds for everything that follows, not for one request."""
    CORRECTION = "correction"
    FACT = "fact"
    PLAN = "plan"
    TASK = "task"
    """What is being done now."""
    OUTCOME = "outcome"
    """A reported result."""
    BLOCKER = "blocker"
    EVENT = "event"
    # Done with tools.
    FILE_MODIFIED = "file_modified"
    FILE_CREATED = "file_created"
    FILE_READ = "file_read"
    COMMAND_RUN = "command_run"
    COMMAND_ERROR = "command_error"
    TOOL_ERROR = "tool_error"
    TOOL_USED = "tool_used"
    SEARCH_PERFORMED = "search_performed"
    TODO_UPDATED = "todo_updated"
    TASK_DELEGATED = "task_delegated"
    EXCERPT = "excerpt"
    """Lines of a file, an output or a paste as they stand there, or a passage quoted from a message."""
    # Lasting.
    KNOWLEDGE = "knowledge"
    BEHAVIOR = "behavior"
    """How somebody wants things done, or does them."""
    SKILL = "skill"
    """How something is done."""
    PROFILE = "profile"
    TOOL = "tool"


OVERRULED = frozenset({Type.DECISION, Type.FACT, Type.INSTRUCTION, Type.PREFERENCE})
"""Types whose rows hold until somebody says otherwise."""
IN_FORCE = frozenset({Type.DECISION, Type.INSTRUCTION, Type.CORRECTION, Type.PREFERENCE})
"""Types of what somebody wants, settled or put right: it is kept word for word while it holds."""
ITEM_TYPES = (Type.KNOWLEDGE, Type.BEHAVIOR, Type.EVENT, Type.SKILL, Type.PROFILE, Type.TOOL)
"""Types of lasting facts."""
PINNED = "pinned"
"""Tag of a row that goes before all others."""
FAILURES = frozenset({Type.COMMAND_ERROR, Type.TOOL_ERROR})
FILE_CHANGES = frozenset({Type.FILE_MODIFIED, Type.FILE_CREATED})
TOOL_EVENTS = frozenset({
    Type.FILE_MODIFIED, Type.FILE_CREATED, Type.FILE_READ, Type.COMMAND_RUN, Type.COMMAND_ERROR, Type.TOOL_ERROR,
    Type.TOOL_USED, Type.SEARCH_PERFORMED, Type.TODO_UPDATED, Type.TASK_DELEGATED, Type.EXCERPT,
})  # fmt: skip
"""Types of rows of what tools did: rules write them, whatever a model says."""


HIGH_FROM = 7
"""The importance from which on a row is of high priority."""


class Priority(StrEnum):
    """How bad it would be to lose the row."""

    HIGH = "high"
    """A later session would act wrongly without it."""
    MEDIUM = "medium"
    """Useful for going on."""
    LOW = "low"
    """Background."""

    @classmethod
    def of_importance(cls, importance: int) -> Priority:
        """The priority of an importance from 0 to 10: 7 and up high, 4 to 6 medium, below low."""
        return cls.HIGH if importance >= HIGH_FROM else cls.MEDIUM if importance >= 4 else cls.LOW

    @property
    def importance(self) -> int:
        """The importance of a row of which only the priority is known. Of two priorities the graver has the higher."""
        return _IMPORTANCE[self]


_IMPORTANCE: Mapping[Priority, int] = {Priority.HIGH: 8, Priority.MEDIUM: 5, Priority.LOW: 2}


class Status(StrEnum):
    """Whether the matter is settled. Rows that are neither a task nor a problem have no status."""

    OPEN = "open"
    DONE = "done"
    RESOLVED = "resolved"


SETTLED = frozenset({Status.DONE, Status.RESOLVED})


class Source(StrEnum):
    """Who wrote a row."""

    RULES = "rules"
    MODEL = "model"
    AGENT = "agent"
    USER = "user"
    IMPORT = "import"


@record
class Draft:
    """A fact as an observer states it, before the store knows it. `text` is one line."""

    text: str
    type: Type
    importance: int
    """0 to 10; the priority follows from it unless `priority` says otherwise."""
    sources: tuple[int, ...]
    """`seq` of every message it came from, ascending, at least one."""
    priority: Priority | None = None
    status: Status | None = None
    event_at: str | None = None
    """When it happened: the instant of the message, where known."""
    refers_to: str | None = None
    """What the text speaks about, where it names one: a day (`YYYY-MM-DD`), month (`YYYY-MM`), year, or an interval of
    days or months (`2026-03-02/2026-03-08`), as `calendar` spells them."""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    replaces: tuple[str, ...] = ()
    """Ids of the rows it takes the place of."""
    reason: str | None = None
    """Why those are replaced."""
    supports: tuple[str, ...] = ()
    """Ids of the rows it was made of: for a reflection or an item."""
    source: Source = Source.RULES
    """Who states it."""
    under: str | None = None
    """How another row of the batch begins that it is a detail of."""


UNDER = "under"
"""The key in a row's `metadata` for the id of the row that it is a detail of."""


@record
class Observation:
    """A row of memory. Rows are never edited: what changes is whether they are seen, and the columns that say why."""

    id: str
    """A UUIDv7, as usually written: lower case, with dashes."""
    session: str | None
    """None for a row that belongs to the project, or to everything, and not to one session."""
    project: str | None
    kind: Kind
    type: Type
    priority: Priority
    importance: int
    status: Status | None
    text: str
    observed_at: str
    """When the row was written."""
    event_at: str | None
    refers_to: str | None
    message_ids: tuple[str, ...]
    """Printed ids of the messages it came from, in order."""
    sources: tuple[int, ...]
    """`seq` of the same messages."""
    tokens: int
    counter: str
    source: Source
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    last_used_at: str | None = None
    generation: int = 0
    """0 for what was observed, n + 1 for a reflection on generation n."""
    superseded_by: str | None = None
    dropped_at: str | None = None
    reason: str | None = None
    """Why it was superseded or dropped."""
    supports: tuple[str, ...] = ()
    """Ids of the rows it was made of: for a reflection or an item."""

    @property
    def dated(self) -> str:
        """The instant the row is filed under: when it happened, else when it was written."""
        return self.event_at or self.observed_at

    @property
    def is_mutable(self) -> bool:
        """Whether a later message may settle or overrule the row, however long ago it was written."""
        return self.status is Status.OPEN or self.type in OVERRULED

    @property
    def is_in_force(self) -> bool:
        """Whether the row says what somebody wants or settled, and it still holds."""
        return self.type in IN_FORCE and self.status not in SETTLED

    @property
    def is_visible(self) -> bool:
        """Whether the row is in sight: neither superseded nor dropped."""
        return self.superseded_by is None and self.dropped_at is None


@record
class Replacement:
    """A row goes out of sight since another says what it said, or what became of it."""

    row: str
    """Its id."""
    by: str
    """The id of the row that takes its place."""
    reason: str


@record
class Dropped:
    """A row that goes out of sight, with nothing in its place but what is known already."""

    row: str
    """Its id."""
    reason: str
    """`duplicate`, `superseded`, `resolved` or `trivial`, or in words."""
    by: str | None = None
    """The id of the row that makes it superfluous, where one does."""


def handle(observation_id: str) -> str:
    """The short name of a row, for people: the last 8 hex digits of its id.

    The beginning of a UUIDv7 is a clock, equal for all rows of a batch; its end is random.
    """
    return observation_id[-8:]
