"""JSON values of any type, read as what was expected, or as nothing; and embedded images."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re

from omcli.base.patterns import lazily
from omcli.formats.source import Record
from omcli.memory.message import LARGEST_IMAGE, Image, attachment

_EMPTY: Record = {}


def record(value: object) -> Record:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else _EMPTY


def string(value: object) -> str | None:
    """The text, or None for anything else and for the empty text."""
    return value if isinstance(value, str) and value else None


def text(value: object) -> str:
    """The text, or the empty text."""
    return value if isinstance(value, str) else ""


def objects(value: object) -> list[Record]:
    """The objects of a list; none for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def exit_code(value: object) -> int | None:
    """The exit code of a command, as a number or its digits; None for what no command exits with."""
    if isinstance(value, str) and len(value) <= 11 and value.removeprefix("-").isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**32 else None


def compact_json(value: object) -> str:
    """A value as JSON on one line, non-ASCII as it is; a text is taken to be JSON already.

    What was parsed at the limit of nesting can be too deep to be written again; then a note stands for it.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return '"[nested too deep]"'


_DATA_URL = lazily(r"data:([\w.+-]+/[\w.+-]+)?[^,]{0,200},", re.IGNORECASE)


def image_of_base64(encoded: str, media_type: str) -> Image:
    """An image from its base64 text. Text that is no base64 (it was cut off, or masked) is measured as it stands."""
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


def image_of_url(url: str) -> Image | None:
    """An image from a `data:` URL; None for one that lies elsewhere."""
    match = _DATA_URL.match(url)
    return image_of_base64(url[match.end() :], match[1] or "image") if match else None


def placeholder(image: Image) -> str:
    """What stands in the text where an image was: `[image png 642 KB]`."""
    return attachment("image", image.media_type, image.size)
