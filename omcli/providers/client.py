"""The HTTP client of one request: follows no redirect, bounds the response, and tells when it is connected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx2

from omcli.base.errors import BadConfiguration
from omcli.providers.endpoints import is_local_url
from omcli.providers.wire import RequestFailed

_LARGEST_REPLY = 16 << 20
"""Bytes of a response, as they come over the wire."""


def http_client(address: str, *, seconds: float) -> httpx2.Client:
    """A client that follows no redirect, since a prompt goes only where it was sent, and that asks an endpoint on
    this machine without a proxy. Raises RequestFailed."""
    here = {f"all://{urlsplit(address).netloc}": None} if is_local_url(address) else {}
    try:
        return httpx2.Client(timeout=seconds, follow_redirects=False, mounts=here)
    except OSError as error:
        raise RequestFailed(
            BadConfiguration,
            f"the CA certificates cannot be read: {error.strerror or error}",
            hint="check SSL_CERT_FILE and SSL_CERT_DIR",
        ) from error


def watch(http: httpx2.Client, connected: Callable[[], None]) -> None:
    """Call `connected` once a request is being sent, and bound every response."""
    http.event_hooks = {"request": [lambda sent: _tell_when_connected(sent, connected)], "response": [_bound]}


def _bound(response: httpx2.Response) -> None:
    """End a response with an error if it is larger than any reply: whoever answers must not fill the memory."""
    response.stream = _BoundedStream(response.stream, most=_LARGEST_REPLY)


def _tell_when_connected(request: httpx2.Request, connected: Callable[[], None]) -> None:
    def trace(event: str, _details: object) -> None:
        if event.endswith("send_request_headers.started"):
            connected()

    request.extensions["trace"] = trace


class _BoundedStream(httpx2.SyncByteStream):
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
