"""Hashes of 8 bytes, by which a long reading remembers what it has seen; the same in every run, short to write down."""

from __future__ import annotations

import base64
import hashlib
import struct
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from omcli.base.record import positional_record

_SMALLEST = 1 << 10
"""Places in a table to begin with."""


def hashed(*parts: str) -> int:
    """64 bits over texts."""
    content = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


class Hashes:
    """A set of hashes that takes 8 to 32 bytes for each; Python's own takes five times as many.

    Those it begins with stand in order, which takes no time where they came in order. The others stand in a table with
    open addressing: a hash is in the place that its last bits name, or in the next one that was free.
    """

    def __init__(self, hashes: Iterable[int] = ()) -> None:
        self._first = array("Q", sorted(dict.fromkeys(hashes)))
        self._table = array("Q", bytes(8 * _SMALLEST))
        self._length = 0
        self._has_zero = False
        """0 marks what is free."""

    def add(self, each: int) -> None:
        """Takes a hash in."""
        if self._is_first(each):
            return
        if each == 0:
            self._has_zero = True
        elif not self._table[place := self._place(each)]:
            self._table[place] = each
            self._length += 1
            if 2 * self._length > len(self._table):
                self._grow()

    def __contains__(self, each: int) -> bool:
        if self._is_first(each):
            return True
        return self._has_zero if each == 0 else self._table[self._place(each)] == each

    def __iter__(self) -> Iterator[int]:
        """In order."""
        zero = (0,) if self._has_zero else ()
        return iter(sorted((*self._first, *zero, *filter(None, self._table))))

    def _is_first(self, each: int) -> bool:
        place = bisect_left(self._first, each)
        return place < len(self._first) and self._first[place] == each

    def _place(self, each: int) -> int:
        """Where a hash stands, or would."""
        table = self._table
        last = len(table) - 1
        place = each & last
        while (there := table[place]) and there != each:
            place = (place + 1) & last
        return place

    def _grow(self) -> None:
        before = self._table
        self._table = array("Q", bytes(2 * before.itemsize * len(before)))
        for each in filter(None, before):
            self._table[self._place(each)] = each


@positional_record
class Packed:
    """Hashes as one text, which is what JSON has of them. Nothing that anybody said is in it."""

    text: str


def packed(hashes: Iterable[int]) -> Packed:
    """Hashes, to be written down, the first byte first."""
    each = tuple(hashes)
    return Packed(base64.b64encode(struct.pack(f">{len(each)}Q", *each)).decode("ascii"))


def unpacked(text: str) -> tuple[int, ...]:
    """The hashes in the text of a `Packed`."""
    content = base64.b64decode(text)
    return struct.unpack(f">{len(content) // 8}Q", content)


def packed_counts(counts: Mapping[int, int]) -> list[Any]:
    """How often each hash was seen, to be written down; nearly all were seen once."""
    often = [(key, number) for key, number in counts.items() if number != 1]
    return [packed([key for key, number in counts.items() if number == 1]), often]


def unpacked_counts(written: list[Any]) -> Counter[int]:
    """The counts in what JSON has of `packed_counts`."""
    once, often = written
    counts = Counter(dict.fromkeys(unpacked(once), 1))
    counts.update(dict(often))
    return counts
