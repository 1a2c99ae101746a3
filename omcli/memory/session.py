"""A session: one conversation of one agent in one project."""

from __future__ import annotations

from omcli.base.record import record, replace


@record
class Session:
    """What is known about a session. `id` is the producer's, the user's, or derived from the first prompt."""

    id: str
    agent: str
    """The format it was read from (`claude-code`), or `om` for notes made by hand."""
    cwd: str | None = None
    """The working directory it started in."""
    branch: str | None = None
    title: str | None = None
    model: str | None = None
    parent: str | None = None
    """The session this one was spawned by or branched from."""

    @property
    def project(self) -> str | None:
        """What cross-session memory is shared within: the directory the session started in."""
        return self.cwd

    def merged(self, later: Session) -> Session:
        """This session with what a later reading of it knows: where a session began stays, what it is now moves on."""
        return replace(
            self,
            cwd=self.cwd or later.cwd,
            branch=later.branch or self.branch,
            title=later.title or self.title,
            model=later.model or self.model,
            parent=self.parent or later.parent,
        )


@record
class FreezePoint:
    """Where a session stood when its pack last had to change. It follows from what is stored, and is stored nowhere."""

    message: int
    """`seq`: the messages behind it are the tail."""
    position: int | None
    """The last row of the log that was there (`Logged.position`); None where nothing of the session was observed, and
    the pack has all rows that there are."""
    at: str | None
    """The instant when that row was written; None where there is none."""
    is_last: bool
    """Whether it can move no further: what is not observed yet stays behind it."""


@record
class EvictionPolicy:
    """How a tail of messages is cut: as soon as it has more than `most` tokens, so that about `left` of them stay.

    Cuts are at every multiple of `most - left` of what a session has said in all. So where the last one was follows
    from two sums, whenever it is asked for, and as messages come it only ever moves on.
    """

    most: int
    left: int

    def within(self, room: int) -> EvictionPolicy:
        """The same for a tail that is printed, and has room for so many tokens: in the same proportion."""
        most = max(1, min(self.most, room))
        return EvictionPolicy(most=most, left=self.left * most // max(1, self.most))

    def evicted_tokens(self, *, said: int, covered: int, further: int = 0) -> int | None:
        """How many of the tokens that a session has `said` are told by rows, from its beginning on; None for as many
        as observations cover.

        Nothing is cut off that is not `covered`. `further` cuts than need be are made where a tail costs more in print.
        """
        step = max(1, self.most - self.left)
        reachable = covered // step
        cuts = min(-(-max(0, said - self.most) // step), reachable) + further
        return cuts * step if cuts <= reachable else None
