"""What happens in a batch beside what is written down of it: something worked, a person replied, a turn ended."""

from __future__ import annotations

from omcli.memory.record import record


@record
class Passed:
    """Something worked that may have failed before."""

    targets: tuple[str, ...]
    """As `recurring.failed_run` and `failed_use` name them."""
    command: str = ""
    """The command that worked, where it was one: it may mend what was spelled otherwise (`spellings`)."""
    directory: str | None = None
    """Where a command ran, where that was said."""
    sources: tuple[int, ...]
    at: str | None

    @property
    def seq(self) -> int:
        """When it did."""
        return self.sources[-1]


@record
class Replied:
    """A person spoke next after a text of the agent, which may have asked something."""

    seq: int
    asked: int
    """`seq` of the agent's text."""


@record
class Ended:
    """An agent's turn ended with a text that says something, and the person did not object."""

    seq: int
    """Of the text."""
    at: str | None
    since: int | None
    """`seq` of the prompt that began the turn; None where that was in an earlier batch."""
    closes: bool
    """Whether it leaves nothing open: no question, and nothing that is missing or still fails."""
    asks: bool
    """Whether it asks something back."""
    reports: bool
    """Whether it reports a result."""
    accepted: bool
    """Whether the person went on to something else."""


@record
class Resumed:
    """What seemed to be the end of a turn was not: the agent went on, or the person was not content."""

    seq: int
    """Of the text that seemed to end it."""


Moment = Passed | Replied | Ended | Resumed
