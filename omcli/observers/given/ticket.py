"""The token that `om pending` gives and `om apply` takes: what was shown, so that nothing else is taken for it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

from omcli.memory.errors import BadInput
from omcli.memory.message import digest
from omcli.memory.record import record

_MARK = "om1."
_HINT = "copy the `token` that `om pending` printed, as it is"


@record
class Ticket:
    """What an agent was shown."""

    session: str
    after: int
    """The observe cursor; with `through`, 0 where no message was waiting."""
    through: int
    """`seq` of the last message."""
    counter: str
    """The token counter by which rows were chosen to be shown."""
    shown: str
    """`digest_of` the messages and rows."""

    def written(self) -> str:
        """The ticket as a token: letters, digits, `-`, `_` and a dot."""
        content = json.dumps([self.session, self.after, self.through, self.counter, self.shown], separators=(",", ":"))
        return f"{_MARK}{base64.urlsafe_b64encode(content.encode()).decode().rstrip('=')}"


def ticket(token: str) -> Ticket:
    """The ticket that a token is. Raises BadInput."""
    mark, _, code = token.strip().partition(".")
    try:
        content = json.loads(base64.b64decode(code + "=" * (-len(code) % 4), altchars=b"-_", validate=True))
        session, after, through, counter, shown = content
    except (ValueError, TypeError, RecursionError):
        raise BadInput("token: it is none that `om pending` gave", hint=_HINT) from None
    are_numbers = all(type(number) is int and 0 <= number < 1 << 63 for number in (after, through))
    if f"{mark}." != _MARK or not are_numbers or not all(isinstance(text, str) for text in (session, counter, shown)):
        raise BadInput("token: it is none that `om pending` gave", hint=_HINT)
    return Ticket(session=session, after=after, through=through, counter=counter, shown=shown)


def digest_of(session: str, messages: Iterable[int], rows: Iterable[str]) -> str:
    """A digest of what is shown: messages by `seq`, and rows by id, in the order of their labels."""
    return digest(session, " ".join(map(str, messages)), *rows)
