"""Sessions, the freeze point of a session's pack, and the policy by which it moves."""

from __future__ import annotations

from omcli.base.record import record, replace

BY_HAND = "om"
"""`Session.agent` of a session that has rows, written by hand or imported, but no transcript."""
NO_PROJECT = ""  # in a query: rows that belong to no project


@record
class Author:
    """A person, or a program that runs by itself, and the machine at which they write."""

    name: str
    machine: str

    def __str__(self) -> str:
        return f"{self.name} at {self.machine}"


def author_fields(author: Author | None) -> dict[str, str]:
    """Return an author as all commands print it in JSON. An unknown one has no fields."""
    return {} if author is None else {"author": author.name, "machine": author.machine}


@record
class Session:
    """A conversation with an agent. `id` comes from the producer or the user, or is derived from the first prompt."""

    id: str
    agent: str
    """Format of the transcript (such as `claude-code`), or BY_HAND."""
    cwd: str | None = None
    """Working directory at the start of the session."""
    branch: str | None = None
    title: str | None = None
    model: str | None = None
    parent: str | None = None
    """Session that started this one, or from which it branched."""
    author: Author | None = None
    """Who first stored something of it, if known. The store writes its own (`Database.author`)."""

    @property
    def project(self) -> str | None:
        """Directory in which the session started. It is the scope of cross-session memory."""
        return self.cwd

    def merged(self, later: Session) -> Session:
        """Return this session updated by a later reading.

        The later `branch`, `title` and `model` replace the earlier ones if present. `cwd` and `parent` are set only if
        they were missing. A session without a transcript (BY_HAND) becomes `later`, with a missing `cwd` or `title`
        added.
        """
        if self.agent == BY_HAND:
            return replace(later, cwd=later.cwd or self.cwd, title=later.title or self.title)
        return replace(
            self,
            cwd=self.cwd or later.cwd,
            branch=later.branch or self.branch,
            title=later.title or self.title,
            model=later.model or self.model,
            parent=self.parent or later.parent,
        )


@record
class SessionSummary:
    """A session with its message and row counts."""

    session: Session
    messages: int
    """Number of counted messages (see `Message.is_counted`)."""
    observations: int
    """Number of visible rows."""
    pending: int
    """Number of counted messages that no batch covers yet."""
    is_observed: bool
    """True if no message is pending, counted or not."""
    first_at: str | None
    last_at: str | None
    """Latest instant of the messages or, without a transcript, of the rows, if any. `first_at` is the earliest."""
    seen_at: str
    """Instant at which messages of the session were last ingested or, without a transcript, rows were last written."""

    @property
    def active_at(self) -> str:
        """The earlier of `last_at` and `seen_at`, or `seen_at` if there is no `last_at`."""
        return min(self.last_at or self.seen_at, self.seen_at)


@record
class FreezePoint:
    """State of a session when its frozen pack last had to change. It is not stored but derived from stored data."""

    message: int
    """`seq` of the last message before the tail, or 0 if there is none."""
    position: int | None
    """Log position of the last row when the pack changed. None, for all rows, if no batch of the session has any."""
    at: str | None
    """Instant at which the last row up to `position` was written, or None if there is no such row."""
    is_last: bool
    """True if the freeze point cannot move further, because all messages after it are unobserved."""


@record
class EvictionPolicy:
    """Rule for cutting a tail of messages that exceeds `most` tokens down to about `left` tokens.

    Cuts are made at multiples of `most - left` tokens, counted from the start of the session. The last cut can
    therefore be computed from two sums at any time, and it only moves forward as messages arrive.
    """

    most: int
    left: int

    def within(self, room: int) -> EvictionPolicy:
        """Return the policy, scaled down proportionally if `most` exceeds `room` tokens."""
        most = max(1, min(self.most, room))
        return EvictionPolicy(most=most, left=self.left * most // max(1, self.most))

    def evicted_tokens(self, *, said: int, covered: int, further: int = 0) -> int | None:
        """Return the number of tokens to cut from the start of a session of `said` tokens, or None to cut all `covered`
        tokens. `covered` is the number of tokens in observed messages: only these are cut. `further` is the number of
        additional cuts, for a tail that is too long when printed.
        """
        step = max(1, self.most - self.left)
        reachable = covered // step
        cuts = min(-(-max(0, said - self.most) // step), reachable) + further
        return cuts * step if cuts <= reachable else None
