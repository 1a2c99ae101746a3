"""Hashes of 8 bytes, by which a long reading remembers what it has seen; the same in every run, short to write down."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from omcli.memory.record import positional_record


def hashed(*parts: str) -> int:
    """64 bits over texts."""
    content = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


@positional_record
class Packed:
    """Hashes as one text, which is what JSON has of them. Nothing that anybody said is in it."""

    text: str


def packed(hashes: Collection[int]) -> Packed:
    """Hashes, to be written down."""
    return Packed(base64.b64encode(struct.pack(f">{len(hashes)}Q", *hashes)).decode("ascii"))


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
