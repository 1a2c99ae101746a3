"""Messages on their way in: each is kept once, and what is known of their session with them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from omcli.base.errors import SessionTaken
from omcli.memory.ports import Incoming
from omcli.memory.session import Session
from omcli.sqlite import messages as message_table
from omcli.sqlite import pictures, sessions


def append(
    connection: sqlite3.Connection,
    session: Session,
    messages: Sequence[Incoming],
    *,
    counter: str,
    now: str,
    opening: int,
) -> tuple[bool, ...]:
    """Keeps what is new, and says of each message whether it was. The first `opening` have to be how the session began.

    Raises SessionTaken where it began otherwise.
    """
    number = sessions.merge(connection, session, now=now)
    message_table.rename(connection, messages)
    identities = [incoming.identity for incoming in messages[:opening]]
    if not message_table.begins_with(connection, identities, session=number):
        raise SessionTaken(f"session {session.id} was begun by another process meanwhile", hint="run it again")
    new = message_table.append(connection, messages, session=number, counter=counter)
    if any(new):
        pictures.keep(connection, [incoming.message for incoming in _some(messages, new)])
        added = (incoming.message.at for incoming in _some(messages, new))
        sessions.note_new(connection, number, instants=[at for at in added if at], now=now)
    return new


def _some(messages: Iterable[Incoming], chosen: Iterable[bool]) -> Iterator[Incoming]:
    return (incoming for incoming, is_chosen in zip(messages, chosen, strict=True) if is_chosen)
