"""Base URLs: whether one can be used, and whether it is on this machine."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from omcli.base.errors import BadConfiguration


def checked_url(url: str) -> str:
    """The URL without its last slash. Raises BadConfiguration for one that no request can go to."""
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_whole = False
    if not is_whole or any(char.isspace() or not char.isprintable() for char in url):
        raise BadConfiguration(
            f"the base URL {url[:80]!r} is none", hint="it looks like `https://host/v1` or `http://localhost:11434/v1`"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadConfiguration(
            "a base URL is scheme, host and path, without user, query or fragment", hint="a key goes into its variable"
        )
    return url.rstrip("/")


def is_loopback(url: str) -> bool:
    """Whether a URL is of this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
