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
