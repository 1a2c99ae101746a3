"""Hashes of 8 bytes, by which a reader remembers what it has seen. They are stable between runs."""

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
"""Initial number of slots in the table."""


def hash_of(*parts: str) -> int:
    """Return a 64-bit hash of strings."""
    content = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


class HashSet:
    """A set of hashes that takes 8 to 32 bytes for each, a fifth of a Python set.

    The initial hashes are kept in a sorted array, which is quick if they are given in order. Later ones go into a hash
    table with open addressing.
    """

    def __init__(self, hashes: Iterable[int] = ()) -> None:
        self._first = array("Q", sorted(dict.fromkeys(hashes)))
        self._table = array("Q", bytes(8 * _SMALLEST))
        self._length = 0
        self._has_zero = False
        """True if 0 is in the set. It can't be in the table, where 0 marks a free slot."""

    def add(self, each: int) -> None:
        """Add a hash."""
        if self._is_first(each):
            return
        if each == 0:
            self._has_zero = True
        elif not self._table[place := self._place(each)]:
            self._table[place] = each
            self._length += 1
            if 2 * self._length > len(self._table):
                before, self._table = self._table, array("Q", bytes(2 * 8 * len(self._table)))
                for other in filter(None, before):
                    self._table[self._place(other)] = other

    def __contains__(self, each: int) -> bool:
        if self._is_first(each):
            return True
        return self._has_zero if each == 0 else self._table[self._place(each)] == each

    def __iter__(self) -> Iterator[int]:
        """Iterate in ascending order."""
        zero = (0,) if self._has_zero else ()
        return iter(sorted((*self._first, *zero, *filter(None, self._table))))

    def _is_first(self, each: int) -> bool:
        place = bisect_left(self._first, each)
        return place < len(self._first) and self._first[place] == each

    def _place(self, each: int) -> int:
        """Return the index of a hash in the table, or of the free slot for it."""
        table = self._table
        last = len(table) - 1
        place = each & last
        while (there := table[place]) and there != each:
            place = (place + 1) & last
        return place


@positional_record
class Packed:
    """Hashes encoded as one string, for JSON."""

    text: str


def packed(hashes: Iterable[int]) -> Packed:
    """Encode hashes in base64, each with the most significant byte first."""
    each = tuple(hashes)
    return Packed(base64.b64encode(struct.pack(f">{len(each)}Q", *each)).decode("ascii"))


def unpacked(text: str) -> tuple[int, ...]:
    """Return the hashes in the text of a `Packed`."""
    content = base64.b64decode(text)
    return struct.unpack(f">{len(content) // 8}Q", content)


def packed_counts(counts: Mapping[int, int]) -> list[Any]:
    """Encode the number of times each hash was seen, compactly, since most were seen once."""
    often = [(key, number) for key, number in counts.items() if number != 1]
    return [packed([key for key, number in counts.items() if number == 1]), often]


def unpacked_counts(written: list[Any]) -> Counter[int]:
    """Undo `packed_counts` on its JSON."""
    once, often = written
    counts = Counter(dict.fromkeys(unpacked(once), 1))
    counts.update(dict(often))
    return counts
