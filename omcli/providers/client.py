"""The HTTP client for one request. It follows no redirects, limits the response size, and reports the connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx2

from omcli.base.errors import BadConfiguration
from omcli.providers.endpoints import is_local_url
from omcli.providers.wire import RequestFailed

_LARGEST_REPLY = 16 << 20
"""Maximum size of a response in bytes, before decompression."""


def new_client(address: str, *, seconds: float) -> httpx2.Client:
    """Return a client that does not follow redirects and uses no proxy for local addresses.

    Raise RequestFailed if the CA certificates cannot be read.
    """
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
    """Call `connected` once the connection is established, and make responses that are too large fail."""
    http.event_hooks = {"request": [lambda sent: _call_when_connected(sent, connected)], "response": [_limit_size]}


def _limit_size(response: httpx2.Response) -> None:
    """Make reading a response fail after `_LARGEST_REPLY` bytes, because a server could send an endless response."""
    response.stream = _SizeLimit(response.stream, most=_LARGEST_REPLY)


def _call_when_connected(request: httpx2.Request, connected: Callable[[], None]) -> None:
    def on_event(event: str, _details: object) -> None:
        if event.endswith("send_request_headers.started"):
            connected()

    request.extensions["trace"] = on_event


class _SizeLimit(httpx2.SyncByteStream):
    """A byte stream that raises ReadError after `most` bytes."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, *, most: int) -> None:
        assert isinstance(stream, httpx2.SyncByteStream), "the client is not asynchronous"
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
        self._stream.close()
