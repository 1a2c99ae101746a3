"""Rows of memory (observations, reflections, notes and items), drafts of rows, and rows as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from omcli.base.record import field, record


class Kind(StrEnum):
    """Kind of a row."""

    OBSERVATION = "observation"
    REFLECTION = "reflection"
    NOTE = "note"
    """Written by hand."""
    ITEM = "item"
    """A lasting fact for later sessions."""


class Type(StrEnum):
    """Subject of a row."""

    # Said.
    REQUEST = "request"
    QUESTION = "question"
    DECISION = "decision"
    PREFERENCE = "preference"
    INSTRUCTION = "instruction"
    """Holds for everything that follows, not for one request."""
    CORRECTION = "correction"
    FACT = "fact"
    PLAN = "plan"
    TASK = "task"
    """Current work."""
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
    """Verbatim lines of a file, an output or a paste, or a passage quoted from a message."""
    # Lasting.
    KNOWLEDGE = "knowledge"
    BEHAVIOR = "behavior"
    """A person's way of working, or one they ask for."""
    SKILL = "skill"
    """Instructions for doing something."""
    PROFILE = "profile"
    TOOL = "tool"


OVERRULED = frozenset({Type.DECISION, Type.FACT, Type.INSTRUCTION, Type.PREFERENCE})
"""Types of rows that hold until something supersedes them."""
IN_FORCE = frozenset({Type.DECISION, Type.INSTRUCTION, Type.CORRECTION, Type.PREFERENCE})
"""Types of rows that are kept word for word while they hold."""
ITEM_TYPES = (Type.KNOWLEDGE, Type.BEHAVIOR, Type.EVENT, Type.SKILL, Type.PROFILE, Type.TOOL)
"""Types of lasting facts."""
PINNED = "pinned"
"""Tag of a row that takes precedence over all others."""
FAILURES = frozenset({Type.COMMAND_ERROR, Type.TOOL_ERROR})
FILE_CHANGES = frozenset({Type.FILE_MODIFIED, Type.FILE_CREATED})
TOOL_EVENTS = frozenset({
    Type.FILE_MODIFIED, Type.FILE_CREATED, Type.FILE_READ, Type.COMMAND_RUN, Type.COMMAND_ERROR, Type.TOOL_ERROR,
    Type.TOOL_USED, Type.SEARCH_PERFORMED, Type.TODO_UPDATED, Type.TASK_DELEGATED, Type.EXCERPT,
})  # fmt: skip
"""Types of tool events, which only rules write, never a model."""


HIGH_FROM = 7
"""Lowest importance of a row with high priority."""


class Priority(StrEnum):
    """Priority of a row, by the cost of losing it."""

    HIGH = "high"
    """A later session would act wrongly without it."""
    MEDIUM = "medium"
    """Useful for continuing."""
    LOW = "low"
    """Background."""

    @classmethod
    def of_importance(cls, importance: int) -> Priority:
        """Convert an importance from 0 to 10: 7 and above is high, 4 to 6 medium, below 4 low."""
        return cls.HIGH if importance >= HIGH_FROM else cls.MEDIUM if importance >= 4 else cls.LOW

    @property
    def importance(self) -> int:
        """Importance assumed for a row if only its priority is known."""
        return _IMPORTANCE[self]


_IMPORTANCE: Mapping[Priority, int] = {Priority.HIGH: 8, Priority.MEDIUM: 5, Priority.LOW: 2}


class Status(StrEnum):
    """State of a task or problem; other rows have none."""

    OPEN = "open"
    DONE = "done"
    RESOLVED = "resolved"


SETTLED = frozenset({Status.DONE, Status.RESOLVED})


class Source(StrEnum):
    """Author of a row."""

    RULES = "rules"
    MODEL = "model"
    AGENT = "agent"
    USER = "user"
    IMPORT = "import"


@record
class Draft:
    """A row before it is stored and has an id. `text` is one line."""

    text: str
    type: Type
    importance: int
    """0 to 10. Determines the priority, unless `priority` is given."""
    sources: tuple[int, ...]
    """`seq` of the messages it came from, ascending, at least one."""
    priority: Priority | None = None
    status: Status | None = None
    event_at: str | None = None
    """Instant of what it reports, usually that of its message, if known."""
    refers_to: str | None = None
    """Date the text refers to: a day (`YYYY-MM-DD`), month (`YYYY-MM`) or year, or an interval of days or months
    (`2026-03-02/2026-03-08`)."""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    replaces: tuple[str, ...] = ()
    """Ids of the rows it replaces."""
    reason: str | None = None
    """Reason for replacing them."""
    supports: tuple[str, ...] = ()
    """Ids of the rows it was made from, if it is a reflection or an item."""
    source: Source = Source.RULES
    """Author of the row."""
    under: str | None = None
    """If it is a detail of another row in the batch, the start of that row's text."""


UNDER = "under"
"""Key in a row's `metadata` for the id of the row it is a detail of."""


@record
class Observation:
    """A row of memory. Rows are never edited; only their visibility, and the fields that explain it, change."""

    id: str
    """A UUIDv7 in lower case, with dashes."""
    session: str | None
    """None if the row belongs to a project, or to all projects, rather than to one session."""
    project: str | None
    kind: Kind
    type: Type
    priority: Priority
    importance: int
    status: Status | None
    text: str
    observed_at: str
    """Instant of writing."""
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
    """0 for an observation, n + 1 for a reflection on generation n."""
    superseded_by: str | None = None
    dropped_at: str | None = None
    reason: str | None = None
    """Reason for being superseded or dropped."""
    supports: tuple[str, ...] = ()
    """Ids of the rows it was made from, if it is a reflection or an item."""

    @property
    def dated(self) -> str:
        """Instant of the event if known, else of writing."""
        return self.event_at or self.observed_at

    @property
    def is_mutable(self) -> bool:
        """True if a later message may settle or supersede the row, however old the row is."""
        return self.status is Status.OPEN or self.type in OVERRULED

    @property
    def is_in_force(self) -> bool:
        """True if the row states a requirement or decision that still holds."""
        return self.type in IN_FORCE and self.status not in SETTLED

    @property
    def is_visible(self) -> bool:
        """True if the row is neither superseded nor dropped."""
        return self.superseded_by is None and self.dropped_at is None


@record
class Replacement:
    """The replacement of one row by another."""

    row: str
    """Id of the hidden row."""
    by: str
    """Id of the row that replaces it."""
    reason: str


@record
class Dropped:
    """A row to hide without a replacement."""

    row: str
    """Its id."""
    reason: str
    """`duplicate`, `superseded`, `resolved`, `trivial`, or other words."""
    by: str | None = None
    """Id of the row that makes it redundant, if there is one."""


def handle(observation_id: str) -> str:
    """Return the handle of a row, its short name for people: the last 8 hex digits of its id.

    A UUIDv7 begins with the time, which the rows of a batch share; its end is random.
    """
    return observation_id[-8:]


# ---- rows as all commands print them in JSON


def row(observation: Observation) -> dict[str, object]:
    """Return the columns of a row by name, without absent ones."""
    columns: dict[str, object] = {
        "id": observation.id,
        "session": observation.session,
        "kind": observation.kind,
        "type": observation.type,
        "priority": observation.priority,
        "status": observation.status,
        "importance": observation.importance,
        "text": observation.text,
        "observed_at": observation.observed_at,
        "event_at": observation.event_at,
        "refers_to": observation.refers_to,
        "message_ids": list(observation.message_ids),
        "source": observation.source,
        "tokens": observation.tokens,
        "counter": observation.counter,
        "tags": list(observation.tags) or None,
        "generation": observation.generation or None,
        "superseded_by": observation.superseded_by,
        "dropped_at": observation.dropped_at,
        "reason": observation.reason,
    }
    return {name: value for name, value in columns.items() if value is not None}


def full_row(observation: Observation) -> dict[str, object]:
    """Return the columns of a row, and also `supports` (the rows it was made from), `metadata` from its observer, and
    `last_used_at`, when a model last reported using it."""
    more = {
        "last_used_at": observation.last_used_at,
        "supports": list(observation.supports),
        "metadata": dict(observation.metadata),
    }
    return row(observation) | {name: value for name, value in more.items() if value}
