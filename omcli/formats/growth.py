"""Where a file goes on: how much of it is what was read before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from omcli.base.record import record
from omcli.memory.bookmark import Bookmark, Extent

_BLOCK = 1 << 18


@record
class Known:
    """The part of a file that need not be read again."""

    bookmark: Bookmark
    extent: Extent
    is_all: bool
    """Nothing follows."""


def known_part(stream: BinaryIO, bookmarks: Iterable[Bookmark]) -> Known | None:
    """The longest part that is still the same and that a reader can go on from; the stream is right behind it.

    None where there is none; the stream is then at its beginning. `bookmarks` are those of the file, in its order.
    """
    known = None
    extent = Extent()
    for bookmark in bookmarks:
        _extend(extent, stream, bookmark.offset)
        if extent.digest != bookmark.digest:
            break
        is_all = not stream.read(1)
        stream.seek(bookmark.offset)
        if is_all or bookmark.carried is not None:
            known = Known(bookmark=bookmark, extent=extent.copy(), is_all=is_all)
    stream.seek(known.bookmark.offset if known else 0)
    return known


def _extend(extent: Extent, stream: BinaryIO, end: int) -> None:
    while extent.length < end and (block := stream.read(min(_BLOCK, end - extent.length))):
        extent.add(block)
