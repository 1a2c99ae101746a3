"""Identity of a message: the same when it is read again from the same file, a longer one, or a resumed copy."""

from __future__ import annotations

from collections import Counter

from omcli.memory.message import Message, Role, content_digest, digest

_SECOND = len("2026-01-25T10:47:18")
_TWINS = {"openai": "anthropic", "anthropic": "openai"}
"""Plain turns look the same in both formats; only a tool call shows which one a list is."""
_OF_BOTH = (Role.USER, Role.ASSISTANT)


class Identities:
    """Identities of the messages of one session, in transcript order.

    The content always counts: producers repeat ids (exports with masked ids do) and rewrite messages under the same id.
    The producer's id counts as well, or else the second of writing and the number of equal messages before: the same
    number whenever the transcript is read from its beginning, even if it has grown.

    `copies` is True if the format's sessions copy messages of earlier ones (after a resume): ids and instants then
    identify messages across sessions. Content alone never does, since two sessions may both say "ok".
    """

    def __init__(self, session: str, *, format_name: str, copies: bool, before: Counter[int] | None = None) -> None:
        """`before` is `counted()` of the reading that this one continues."""
        self._session = digest("session", format_name, session)
        twin = _TWINS.get(format_name)
        self._twin = twin and digest("session", twin, session)
        self._anywhere = digest("format", format_name) if copies else None
        self._before = before or Counter[int]()

    def counted(self) -> Counter[int]:
        """Return the number of times each message without an id has occurred."""
        return self._before

    def of(self, message: Message) -> str:
        """Return the identity of the next message, 32 hex digits."""
        identity, _ = self.with_earlier(message)
        return identity

    def with_earlier(self, message: Message) -> tuple[str, str | None]:
        """Return the identity of the next message, and the one it may have had in stores of schema 1, or in a list that
        was taken for the other format; None if there is no such other identity."""
        content = content_digest(message)
        if message.id is not None:
            return self._with_earlier(message, content, 0)
        short = self._short(message, content)
        self._before[short] += 1
        return self._with_earlier(message, content, self._before[short] - 1)

    def at_count(self, message: Message, before: int) -> tuple[str, str | None]:
        """Return what `with_earlier` gives for a message with this many equal ones before it."""
        return self._with_earlier(message, content_digest(message), before)

    def short(self, message: Message) -> int:
        """Return the key for counting messages without an id: equal for those that differ only in that count."""
        return self._short(message, content_digest(message))

    def _with_earlier(self, message: Message, content: str, before: int) -> tuple[str, str | None]:
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
        """Digest of the content with its place and time of writing."""
        anywhere = self._anywhere or session
        if message.id is not None:
            return digest(anywhere, "id", message.id, message.at, content)
        scope = anywhere if message.at else session
        # To the second: a program's prompt history keeps no more of the instants that its sessions have.
        return digest(scope, message.at and message.at[:_SECOND], content)


def printed_key(message: Message, identity: str) -> str:
    """Return the printed id of a message: the producer's, or `m` and 11 digits of its identity."""
    return message.id or f"m{identity[:11]}"


def derived_session(format_name: str, opening: Message) -> str:
    """Return a session id for a transcript without one, from its first prompt: also the same for a longer file, or a
    pipe."""
    return f"{format_name}-{digest(opening.id, opening.at, opening.name, opening.text)[:12]}"
