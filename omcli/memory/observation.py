"""Rows of memory (observations, reflections, notes and items), their drafts, and their JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from omcli.base.record import field, record
from omcli.memory.session import Author, author_fields


class Kind(StrEnum):
    OBSERVATION = "observation"
    REFLECTION = "reflection"
    NOTE = "note"
    """Written by hand."""
    ITEM = "item"
    """A lasting fact for later sessions."""


class Type(StrEnum):
    # Found in what people and agents write.
    REQUEST = "request"
    QUESTION = "question"
    DECISION = "decision"
    PREFERENCE = "preference"
    INSTRUCTION = "instruction"
    """Applies to everything that follows, not just to one request."""
    CORRECTION = "correction"
    FACT = "fact"
    PLAN = "plan"
    TASK = "task"
    """Current work."""
    OUTCOME = "outcome"
    """A reported result."""
    BLOCKER = "blocker"
    EVENT = "event"
    # Tool events.
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
    """Lines copied verbatim from a file, an output or a paste, or a passage quoted from a message."""
    # Lasting facts.
    KNOWLEDGE = "knowledge"
    BEHAVIOR = "behavior"
    """The way a person works or asks others to work."""
    SKILL = "skill"
    """Instructions for doing something."""
    PROFILE = "profile"
    TOOL = "tool"


OVERRULED = frozenset({Type.DECISION, Type.FACT, Type.INSTRUCTION, Type.PREFERENCE})
"""Types of rows that apply until another row supersedes them."""
IN_FORCE = frozenset({Type.DECISION, Type.INSTRUCTION, Type.CORRECTION, Type.PREFERENCE})
"""Types of rows that are in force until they are settled (`Observation.is_in_force`)."""
ITEM_TYPES = (Type.KNOWLEDGE, Type.BEHAVIOR, Type.EVENT, Type.SKILL, Type.PROFILE, Type.TOOL)
"""Types of items."""
PINNED = "pinned"
"""Tag of rows that take precedence over all others."""
UNVERIFIED = "unverified"
"""Tag of a row that contains anchors missing from its sources, and metadata key for the list of these anchors."""
CURRENT = "current"
"""Tag of the row with the current task. Its metadata may contain the next step."""
NEXT_STEP = "next_step"
"""Metadata key for the next step of the current task."""
PROVISIONAL = "provisional"
"""Tag of rows that are made for one pack and not stored, because their messages are not observed yet."""
ASKED = frozenset({Type.REQUEST, Type.QUESTION})
FAILURES = frozenset({Type.COMMAND_ERROR, Type.TOOL_ERROR})
FILE_CHANGES = frozenset({Type.FILE_MODIFIED, Type.FILE_CREATED})
TOOL_EVENTS = frozenset({
    Type.FILE_MODIFIED, Type.FILE_CREATED, Type.FILE_READ, Type.COMMAND_RUN, Type.COMMAND_ERROR, Type.TOOL_ERROR,
    Type.TOOL_USED, Type.SEARCH_PERFORMED, Type.TODO_UPDATED, Type.TASK_DELEGATED, Type.EXCERPT,
})  # fmt: skip
"""Types of tool events. Of the observers, only rules write such rows."""


HIGH_FROM = 7
"""Minimum importance of a row with high priority."""


class Priority(StrEnum):
    """Priority of a row, based on the cost of losing it."""

    HIGH = "high"
    """Without such a row, a later session would act wrongly."""
    MEDIUM = "medium"
    """Useful for continuing the work."""
    LOW = "low"
    """Background information."""

    @classmethod
    def of_importance(cls, importance: int) -> Priority:
        """Convert an importance from 0 to 10: at least 7 is high, 4 to 6 medium, below 4 low."""
        return cls.HIGH if importance >= HIGH_FROM else cls.MEDIUM if importance >= 4 else cls.LOW

    @property
    def importance(self) -> int:
        """Importance assumed for a row if only its priority is known."""
        return _IMPORTANCE[self]


_IMPORTANCE: Mapping[Priority, int] = {Priority.HIGH: 8, Priority.MEDIUM: 5, Priority.LOW: 2}


class Status(StrEnum):
    """State of a request, question, task, command, problem or the like. Rows that cannot be settled have none."""

    OPEN = "open"
    DONE = "done"
    RESOLVED = "resolved"


SETTLED = frozenset({Status.DONE, Status.RESOLVED})


class Source(StrEnum):
    RULES = "rules"
    MODEL = "model"
    AGENT = "agent"
    USER = "user"
    IMPORT = "import"


@record
class Draft:
    """A row before it has an id and is stored. `text` is a single line."""

    text: str
    type: Type
    importance: int
    """From 0 to 10. Determines the priority unless `priority` is given."""
    sources: tuple[int, ...]
    """`seq` of the source messages, ascending. Empty for notes and for imported rows without messages."""
    priority: Priority | None = None
    status: Status | None = None
    event_at: str | None = None
    """Instant of the reported event, if known; usually the message's."""
    refers_to: str | None = None
    """Date the text refers to: a day (`YYYY-MM-DD`), month (`YYYY-MM`) or year, or an interval of days or months
    (`2026-03-02/2026-03-08`)."""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    replaces: tuple[str, ...] = ()
    """Ids of the rows to replace."""
    reason: str | None = None
    """Reason for replacing the rows in `replaces`."""
    supports: tuple[str, ...] = ()
    """Ids of the rows that a reflection or an item was made from."""
    source: Source = Source.RULES
    under: str | None = None
    """Start of the text of another row of the batch, if this one is a detail of it."""


UNDER = "under"
"""Metadata key for the id of the row that a detail belongs to."""


@record
class Observation:
    """A row of memory. Never edited: only its visibility, the fields that explain it, and `last_used_at` change."""

    id: str
    """UUIDv7 in lower case, with dashes."""
    session: str | None
    """None if the row belongs to a project, or to all projects, instead of a session."""
    project: str | None
    kind: Kind
    type: Type
    priority: Priority
    importance: int
    status: Status | None
    text: str
    observed_at: str
    """Instant at which the row was written."""
    event_at: str | None
    refers_to: str | None
    message_ids: tuple[str, ...]
    """Printed ids of the source messages, in order."""
    sources: tuple[int, ...]
    """`seq` of the source messages."""
    tokens: int
    counter: str
    source: Source
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    last_used_at: str | None = None
    generation: int = 0
    """0 unless the row is a reflection: one more than the highest of the rows it was made from, or as imported."""
    superseded_by: str | None = None
    dropped_at: str | None = None
    reason: str | None = None
    """Reason why the row was superseded or dropped."""
    supports: tuple[str, ...] = ()
    """Ids of the rows that a reflection or an item was made from."""
    author: Author | None = None
    """Who wrote the row, if known. The store writes its own (`Database.author`)."""

    @property
    def dated(self) -> str:
        """Instant of the event if known, otherwise the instant at which the row was written."""
        return self.event_at or self.observed_at

    @property
    def is_mutable(self) -> bool:
        """True if a later message may settle or supersede the row, regardless of its age."""
        return self.status is Status.OPEN or self.type in OVERRULED

    @property
    def is_in_force(self) -> bool:
        """True if the row is a decision, instruction, correction or preference that is not settled."""
        return self.type in IN_FORCE and self.status not in SETTLED

    @property
    def is_visible(self) -> bool:
        """True if the row is neither superseded nor dropped, even if it is forgotten."""
        return self.superseded_by is None and self.dropped_at is None


@record
class Replacement:
    row: str
    """Id of the row to hide."""
    by: str
    """Id of the row that replaces it."""
    reason: str


@record
class Dropped:
    """A row to hide: superseded by the row `by` if that is given, otherwise dropped."""

    row: str
    reason: str
    """A word such as `duplicate`, `resolved` or `trivial`, or other text for people."""
    by: str | None = None
    """Id of the row that makes it redundant, if any."""


@record
class LogQuery:
    """A selection of rows. By default it contains all visible rows; most fields narrow it."""

    session: str | None = None
    other_than: str | None = None
    """Only rows of other sessions than this one, and rows of no session."""
    other_counter: str | None = None
    """Only rows whose tokens were counted by another counter than this one."""
    project: str | None = None
    """Only rows of this project; with NO_PROJECT, only rows of no project."""
    author: str | None = None
    """Only rows by an author of this name, at any machine."""
    kinds: tuple[Kind, ...] = ()
    types: tuple[Type, ...] = ()
    priorities: tuple[Priority, ...] = ()
    since: str | None = None
    until: str | None = None
    """Only rows dated at or after `since`, and before `until`."""
    changed_since: str | None = None
    """Only rows written, superseded or dropped at or after this time."""
    hidden: bool = False
    """Also include superseded and dropped rows."""
    without_replaced: bool = False
    """With `hidden`: leave out rows that observing replaced. Those that an operation hid are included."""
    after: int = 0
    """Only rows added after this position (`Logged.position`). Used to follow the log."""
    last: int | None = None
    best: int = 0
    """`last` selects this many of the newest rows. `best`, with `last`, also selects this many of the most important
    (of equals, the newest), whether or not they are among those.
    """
    as_of: int | None = None
    """Only rows that were visible when the log ended at this position, as they were then, but `last_used_at` is None.
    Rows that were dropped since are left out, and with `session` also rows that an operation superseded since."""
    has_replaced: bool = False
    """With `last`: add the rows that these have replaced (by observing only), as they were before. Of all, keep the
    newest `last + best`."""
    bare: bool = False
    """Leave `sources`, `message_ids`, `metadata`, `supports` and `author` empty, because they take longest to read."""


@record
class Logged:
    """A row of the log. Positions increase in the order in which rows were added."""

    position: int
    observation: Observation


def handle(observation_id: str) -> str:
    """Return the handle of a row, its short name for people: the last 8 hex digits of the id. A UUIDv7 begins with the
    time, which all rows of a batch share, but ends in random digits.
    """
    return observation_id[-8:]


# ---- rows as printed in JSON by all commands


def row(observation: Observation) -> dict[str, object]:
    """Return the fields that each command prints, by name, without those that are None."""
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
        **author_fields(observation.author),
    }
    return {name: value for name, value in columns.items() if value is not None}


def full_row(observation: Observation) -> dict[str, object]:
    """Return the fields of `row` and, if not empty, `supports` (the rows it was made from), `metadata` and
    `last_used_at`.
    """
    more = {
        "last_used_at": observation.last_used_at,
        "supports": list(observation.supports),
        "metadata": dict(observation.metadata),
    }
    return row(observation) | {name: value for name, value in more.items() if value}
