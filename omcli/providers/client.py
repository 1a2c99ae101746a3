"""The HTTP client for one request. It follows no redirects, limits the response size, and reports the connection."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx2

from omcli.base.errors import BadConfiguration
from omcli.providers.endpoints import is_local_url
from omcli.providers.wire import RequestFailed

_ENCODINGS = ("gzip", "deflate")
"""Encodings that are asked for and decoded here."""
_PIECE = 1 << 16
"""Maximum number of bytes that one step of decoding yields."""
_ACCEPTED = {"accept-encoding": ", ".join(_ENCODINGS)}
_ANY_HEADER = zlib.MAX_WBITS | 32
"""Makes zlib accept both encodings."""


class ReplyTooLong(httpx2.ReadError):
    """Raised if a response is larger than any reply can be."""


def new_client(address: str, *, seconds: float) -> httpx2.Client:
    """Return a client that does not follow redirects and uses no proxy for local addresses.

    Raise RequestFailed if the CA certificates cannot be read.
    """
    here = {f"all://{urlsplit(address).netloc}": None} if is_local_url(address) else {}
    try:
        return httpx2.Client(timeout=seconds, follow_redirects=False, mounts=here, headers=_ACCEPTED)
    except OSError as error:
        raise RequestFailed(
            BadConfiguration,
            f"the CA certificates cannot be read: {error.strerror or error}",
            hint="check SSL_CERT_FILE and SSL_CERT_DIR",
        ) from error


def watch(http: httpx2.Client, connected: Callable[[], None], *, most: int) -> None:
    """Call `connected` once the connection is established, and make responses of more than `most` bytes fail."""
    http.event_hooks = {
        "request": [lambda sent: _call_when_connected(sent, connected)],
        "response": [lambda response: _limit_size(response, most)],
    }


def _limit_size(response: httpx2.Response, most: int) -> None:
    """Make reading a response fail after `most` decoded bytes, because a server could send an endless response.

    The response is decoded here, piece by piece. httpx2 would decode a piece of 64 kB to 64 MB at once. Raise
    DecodingError if the encoding was not asked for.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in _ENCODINGS:
        del response.headers["content-encoding"]
    elif encoding != "identity":
        raise httpx2.DecodingError(f"the response is encoded as {encoding[:40]!r}, which was not asked for")
    response.stream = _SizeLimit(response.stream, most=most, is_encoded=encoding in _ENCODINGS)


def _call_when_connected(request: httpx2.Request, connected: Callable[[], None]) -> None:
    def on_event(event: str, _details: object) -> None:
        if event.endswith("send_request_headers.started"):
            connected()

    request.extensions["trace"] = on_event


class _SizeLimit(httpx2.SyncByteStream):
    """A decoded byte stream that raises ReplyTooLong after `most` bytes."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, *, most: int, is_encoded: bool) -> None:
        assert isinstance(stream, httpx2.SyncByteStream), "the client is not asynchronous"
        self._stream = stream
        self._most = most
        self._is_encoded = is_encoded

    def __iter__(self) -> Iterator[bytes]:
        left = self._most
        for piece in _as_text(self._stream) if self._is_encoded else self._stream:
            left -= len(piece)
            if left < 0:
                raise ReplyTooLong(f"the reply has more than {self._most} bytes")
            yield piece

    def close(self) -> None:
        self._stream.close()


def _as_text(stream: httpx2.SyncByteStream) -> Iterator[bytes]:
    """Yield the decoded bytes of a stream in small pieces. Raise DecodingError if it cannot be decoded."""
    decoder = zlib.decompressobj(_ANY_HEADER)
    try:
        for piece in stream:
            rest = piece
            while rest and not decoder.eof:
                yield decoder.decompress(rest, _PIECE)
                rest = decoder.unconsumed_tail
    except zlib.error as error:
        raise httpx2.DecodingError(f"the response cannot be decoded: {error}") from error
    yield decoder.flush()
