"""Sessions, the freeze point of a session's pack, and the policy that moves it."""

from __future__ import annotations

from omcli.base.record import record, replace


@record
class Session:
    """A conversation with an agent. `id` is given by the producer or user, or derived from the first prompt."""

    id: str
    agent: str
    """Format it was read from (`claude-code`), or `om` for notes made by hand."""
    cwd: str | None = None
    """Working directory at its start."""
    branch: str | None = None
    title: str | None = None
    model: str | None = None
    parent: str | None = None
    """Session that started this one, or that it branched from."""

    @property
    def project(self) -> str | None:
        """The directory the session started in, which is the scope of cross-session memory."""
        return self.cwd

    def merged(self, later: Session) -> Session:
        """Return this session updated by a later reading. `cwd` and `parent` stay; the rest takes the later value."""
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
    """A session with counts of its messages and rows."""

    session: Session
    messages: int
    """Counted messages (`Message.is_counted`)."""
    observations: int
    """Visible rows."""
    pending: int
    """Stored messages that no observation batch covers yet."""
    first_at: str | None
    last_at: str | None
    """Earliest and latest instant of its messages; None if no message has one."""
    seen_at: str
    """Instant at which its messages were last ingested."""


@record
class FreezePoint:
    """State of a session when its frozen pack last had to change. Derived from stored data, not stored itself."""

    message: int
    """`seq` of the last message before the tail."""
    position: int | None
    """Position of the last row of the log then (`Logged.position`). None if the session had no observations: the pack
    then includes all rows."""
    at: str | None
    """Instant of the row at `position`."""
    is_last: bool
    """True if it cannot move further, since all messages after it are unobserved."""


@record
class EvictionPolicy:
    """Rule for cutting a tail of messages that exceeds `most` tokens down to about `left`.

    Cuts are made at multiples of `most - left` tokens, counted from the start of the session. So the last cut can be
    computed from two sums at any time, and only moves forward as messages arrive.
    """

    most: int
    left: int

    def within(self, room: int) -> EvictionPolicy:
        """Scale the policy down, in proportion, for a printed tail of at most `room` tokens."""
        most = max(1, min(self.most, room))
        return EvictionPolicy(most=most, left=self.left * most // max(1, self.most))

    def evicted_tokens(self, *, said: int, covered: int, further: int = 0) -> int | None:
        """Return the tokens to cut from the start of a session of `said` tokens; None for all that are `covered`.

        Never more than the `covered` tokens are cut. `further` adds cuts, for a tail that is longer in print.
        """
        step = max(1, self.most - self.left)
        reachable = covered // step
        cuts = min(-(-max(0, said - self.most) // step), reachable) + further
        return cuts * step if cuts <= reachable else None
