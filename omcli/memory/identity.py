"""What makes a message the same message when it comes again: from the same file, a grown one, or a resumed copy."""

from __future__ import annotations

from collections import Counter

from omcli.memory.message import Message, Role, content_digest, digest

_SECOND = len("2026-01-25T10:47:18")
_TWINS = {"openai": "anthropic", "anthropic": "openai"}
"""Plain turns are the same in both, and which of the two a list is shows only when a tool has been called."""
_OF_BOTH = (Role.USER, Role.ASSISTANT)


class Identities:
    """Identities for the messages of one reading of one session, in the order of the transcript.

    The content counts always: producers repeat ids (exports with masked ids do) and rewrite messages under the same
    id. With it goes the producer's id, or else the second in which it was written, and how often the same came before
    in this reading - the same number every time a transcript is read from its beginning, also when it has grown.

    `copies` says that the format's sessions copy messages of earlier sessions (after a resume): their ids and instants
    then hold over all sessions. Content alone never does: two sessions may well both say "ok".
    """

    def __init__(self, session: str, *, format_name: str, copies: bool, before: Counter[int] | None = None) -> None:
        """`before` is `counted()` of the reading that this one goes on with."""
        self._session = digest("session", format_name, session)
        twin = _TWINS.get(format_name)
        self._twin = twin and digest("session", twin, session)
        self._anywhere = digest("format", format_name) if copies else None
        self._before = before or Counter[int]()

    def counted(self) -> Counter[int]:
        """How often each message without an id came so far."""
        return self._before

    def of(self, message: Message) -> str:
        """The identity of the next message, 32 hex digits."""
        identity, _ = self.ever(message)
        return identity

    def ever(self, message: Message) -> tuple[str, str | None]:
        """The identity of the next message, and the one that it may have had formerly, where it is another: in stores
        of schema 1, or in a list that was still taken for one of the other kind."""
        content = content_digest(message)
        if message.id is not None:
            return self._ever(message, content, 0)
        short = self._short(message, content)
        self._before[short] += 1
        return self._ever(message, content, self._before[short] - 1)

    def nth(self, message: Message, before: int) -> tuple[str, str | None]:
        """What `ever` gives for a message that came so often before."""
        return self._ever(message, content_digest(message), before)

    def short(self, message: Message) -> int:
        """What messages without an id are counted under: the same for those that differ in nothing but their count."""
        return self._short(message, content_digest(message))

    def _ever(self, message: Message, content: str, before: int) -> tuple[str, str | None]:
        formerly = None
        if message.role is Role.RESULT and message.tool is not None:
            formerly = self._placed(message, content_digest(message, tool_of_result=True), self._session)
        elif self._twin is not None and message.role in _OF_BOTH:
            formerly = self._placed(message, content, self._twin)
        placed = self._placed(message, content, self._session)
        if message.id is not None:
            return placed, formerly
        return digest(placed, str(before)), formerly and digest(formerly, str(before))

    def _short(self, message: Message, content: str) -> int:
        # 8 bytes of the digest: a long transcript has many messages, and memory is not to grow with it.
        return int(self._placed(message, content, self._session)[:16], 16)

    def _placed(self, message: Message, content: str, session: str) -> str:
        """The content with what tells where and when it was written."""
        anywhere = self._anywhere or session
        if message.id is not None:
            return digest(anywhere, "id", message.id, message.at, content)
        scope = anywhere if message.at else session
        # To the second: a program's prompt history keeps no more of the instants that its sessions have.
        return digest(scope, message.at and message.at[:_SECOND], content)


def printed_key(message: Message, identity: str) -> str:
    """A message's id in print: the producer's, or `m` and 11 digits of its identity."""
    return message.id or f"m{identity[:11]}"


def derived_session(format_name: str, opening: Message) -> str:
    """A session id for a transcript that has none, from its first prompt: the same for a grown file, and for a pipe."""
    return f"{format_name}-{digest(opening.id, opening.at, opening.name, opening.text)[:12]}"
