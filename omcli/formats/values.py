"""Reading JSON values of unknown type as an expected type, and embedded images."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re

from omcli.base import lazily
from omcli.formats.source import Record
from omcli.memory.message import LARGEST_IMAGE, Image, attachment

_EMPTY: Record = {}


def record(value: object) -> Record:
    """Return the value if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else _EMPTY


def string(value: object) -> str | None:
    """Return the value if it is a non-empty string, otherwise None."""
    return value if isinstance(value, str) and value else None


def text(value: object) -> str:
    """Return the value if it is a string, otherwise ""."""
    return value if isinstance(value, str) else ""


def objects(value: object) -> list[Record]:
    """Return the objects in a list, or an empty list for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def exit_code(value: object) -> int | None:
    """Return an exit code given as a number or as digits, or None if it is invalid or out of range."""
    if isinstance(value, str) and len(value) <= 11 and value.removeprefix("-").isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**32 else None


_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""`json.dumps` would make an encoder for each value."""


def compact_json(value: object) -> str:
    """Return a value as JSON on one line, with non-ASCII characters unescaped. Strings are assumed to be JSON already.

    A value nested too deeply to be written is replaced by a note.
    """
    if isinstance(value, str):
        return value
    try:
        return _as_json(value)
    except RecursionError:
        return '"[nested too deep]"'


_DATA_URL = lazily(r"data:([\w.+-]+/[\w.+-]+)?[^,]{0,200},", re.IGNORECASE)


def image_from_text(encoded: str, media_type: str) -> Image:
    """Decode an image. Its content is omitted if the base64 is invalid (cut off or masked) or the image exceeds
    LARGEST_IMAGE.
    """
    is_whole = True
    try:
        content = base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        content, is_whole = encoded.encode("utf-8", "surrogatepass"), False
    return Image(
        media_type=media_type,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        content=content if is_whole and len(content) <= LARGEST_IMAGE else None,
    )


def data_in(url: str) -> tuple[str, str] | None:
    """Return the base64 text in a `data:` URL and its media type, or None for any other URL."""
    match = _DATA_URL.match(url)
    return (url[match.end() :], match[1] or "image") if match else None


def image_text(image: Image) -> str:
    """Return a placeholder for an image, such as `[image png 642 KB]`."""
    return attachment("image", image.media_type, image.size)


def attachment_text(kind: str, part: Record) -> str:
    """Return the text of an attached document, or a placeholder that names the attachment."""
    source, label = record(part.get("source")), kind.replace("_", " ")
    content, media_type = text(source.get("data")), text(source.get("media_type"))
    named = " ".join(filter(None, map(text, (part.get("title"), part.get("url"), part.get("tool_name")))))
    if source.get("type") == "text":
        return f"[{f'{label} {named}'.strip()}]\n{content}"
    if content:
        return attachment(f"{label} {named}".strip(), media_type, len(content) * 3 // 4)
    place = text(part.get("source")) or text(source.get("url")) or text(source.get("file_id"))
    return f"[{' '.join(filter(None, (label, named, place)))}]"
