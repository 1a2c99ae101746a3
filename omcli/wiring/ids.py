"""Ids of what is written down: each is new, and they sort by the time they were made."""

from __future__ import annotations


def uuid7(milliseconds: int, randomness: int) -> str:
    """The UUIDv7 of an instant and (at least) 74 random bits."""
    tail = 0x7 << 76 | (randomness >> 62 & 0xFFF) << 64 | 0b10 << 62 | randomness & (1 << 62) - 1
    digits = f"{(milliseconds & (1 << 48) - 1) << 80 | tail:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
