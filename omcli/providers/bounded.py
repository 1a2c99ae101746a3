"""A response of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2


class Bounded(httpx2.SyncByteStream):
    """A stream of bytes that breaks off with an error behind so many."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, *, most: int) -> None:
        assert isinstance(stream, httpx2.SyncByteStream), "the client is no asynchronous one"
        self._stream = stream
        self._most = most

    def __iter__(self) -> Iterator[bytes]:
        left = self._most
        for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise httpx2.ReadError(f"the response has more than {self._most} bytes")
            yield piece

    def close(self) -> None:
        """Closes the stream below."""
        self._stream.close()
