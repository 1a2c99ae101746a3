"""Retention: the limits for pruning, and backups."""

from __future__ import annotations

from enum import StrEnum

from omcli.base.record import record
from omcli.memory.message import Role


class Support(StrEnum):
    """Degree to which reflections already cover a row."""

    NONE = "none"
    PARTIAL = "partial"
    STRONG = "strong"

    @classmethod
    def of(cls, reflections: int) -> Support:
        """Return the degree for a row from which this many reflections and items were made."""
        return (cls.NONE, cls.PARTIAL, cls.STRONG)[min(reflections, 2)]


@record
class RetentionRules:
    """Limits for pruning; None means no limit. A row that exceeds any limit is pruned unless it is protected.

    The limits apply to one session or to all sessions, and to either the sessions' own rows or cross-session rows.
    """

    before: str | None = None
    """Prune rows dated before this instant."""
    keep_last: int | None = None
    """In each session (or project, with `is_across`), keep only this many of the newest rows."""
    max_tokens: int | None = None
    """Prune the least important rows of each session (or project) down to this many tokens; none of high priority."""
    keep_sessions: int | None = None
    """Keep only the rows of this many most recently active sessions."""
    messages_before: str | None = None
    """Prune observed messages written before this instant."""
    session: str | None = None
    is_across: bool = False
    """Prune only cross-session rows (items and rows without a session), project by project."""
    spares_none: bool = False
    """Also prune protected rows (see `operations.prune.rows_to_go`)."""

    @property
    def is_empty(self) -> bool:
        return not self.is_about_rows and self.messages_before is None

    @property
    def is_about_rows(self) -> bool:
        """True if any limit applies to rows rather than messages."""
        return any(each is not None for each in (self.before, self.keep_last, self.max_tokens, self.keep_sessions))


@record
class MessageOutline:
    """A stored message without its text."""

    seq: int
    at: str | None
    role: Role
    call_id: str | None
    is_main: bool
    is_covered: bool
    is_counted: bool = True
    """See `Message.is_counted`."""


@record
class BackupResult:
    path: str | None
    """Path of the new backup, or None if none was due."""
    removed: tuple[str, ...] = ()
