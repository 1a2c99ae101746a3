"""Attachments inside messages: noted with their kind, size and digest; the bytes of images go along with them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

from omcli.base.patterns import lazily
from omcli.memory.message import LARGEST_IMAGE, Image, attachment

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
