"""Identity of a message: the same if it is read again from the same file, a grown one, or a resumed session's copy."""

from __future__ import annotations

from collections import Counter

from omcli.memory.message import Message, Role, content_digest, digest

_SECOND = len("2026-01-25T10:47:18")
_TWINS = {"openai": "anthropic", "anthropic": "openai"}
"""Plain turns look the same in both formats; only a tool call tells them apart."""
_OF_BOTH = (Role.USER, Role.ASSISTANT)


class Identities:
    """Identities of the messages of one session, in transcript order.

    The content always counts, since producers repeat ids (as in exports with masked ids) and rewrite messages under the
    same id. The producer's id counts too. Without one, the second of writing and the number of equal messages before it
    count instead; that number stays the same when the transcript grows.

    `copies` is True if the format's sessions copy messages from earlier ones (after a resume). Ids and instants then
    identify messages across sessions. Content alone never does, since two sessions may both say "ok".
    """

    def __init__(self, session: str, *, format_name: str, copies: bool, before: Counter[int] | None = None) -> None:
        """To continue an earlier reading, pass its `counted()` as `before`."""
        self._session = digest("session", format_name, session)
        twin = _TWINS.get(format_name)
        self._twin = twin and digest("session", twin, session)
        self._anywhere = digest("format", format_name) if copies else None
        self._before = before or Counter[int]()

    def counted(self) -> Counter[int]:
        """Return the number of times each message without an id has occurred, by `short` key."""
        return self._before

    def of(self, message: Message) -> str:
        """Return the identity of the next message, 32 hex digits."""
        identity, _ = self.with_earlier(message)
        return identity

    def with_earlier(self, message: Message) -> tuple[str, str | None]:
        """Return the identity of the next message, and the one it may have been stored under before, else None.

        Stores of schema 1 had others, and so has a message list that was taken for the other of two similar formats."""
        content = content_digest(message)
        if message.id is not None:
            return self._with_earlier(message, content, 0)
        short = self._short(message, content)
        self._before[short] += 1
        return self._with_earlier(message, content, self._before[short] - 1)

    def at_count(self, message: Message, before: int) -> tuple[str, str | None]:
        """Return the same as `with_earlier` for a message with `before` equal ones before it, without counting it."""
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
        # Only 8 bytes of the digest, since a long transcript has many messages to count.
        return int(self._placed(message, content, self._session)[:16], 16)

    def _placed(self, message: Message, content: str, session: str) -> str:
        """Return a digest of the content with its session, and with its id or second of writing."""
        anywhere = self._anywhere or session
        if message.id is not None:
            return digest(anywhere, "id", message.id, message.at, content)
        scope = anywhere if message.at else session
        # To the second, since the prompt history of some programs is no more precise than that.
        return digest(scope, message.at and message.at[:_SECOND], content)


def printed_key(message: Message, identity: str) -> str:
    """Return the printed id of a message: the producer's, or `m` and the first 11 digits of its identity."""
    return message.id or f"m{identity[:11]}"


def derived_session(format_name: str, opening: Message) -> str:
    """Return a session id derived from the first prompt, for a transcript without one. It stays the same if the file
    grows or is piped."""
    return f"{format_name}-{digest(opening.id, opening.at, opening.name, opening.text)[:12]}"
