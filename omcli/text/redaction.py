"""Redaction: removing secrets and <private> blocks from text before it is stored or sent."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from omcli.base.patterns import lazily
from omcli.base.record import record
from omcli.text.secrets import Secret, each_secret


@record
class Redacted:
    """Redacted text, and the number of removals by rule (`private` for <private> blocks)."""

    text: str
    counts: Mapping[str, int]


def redact(text: str) -> Redacted:
    """Replace every secret by `[redacted:<rule>]` and remove <private> blocks.

    An unclosed block extends to the end of the text, or of its string in JSON. Redacted JSON is still valid JSON.
    Redacting again changes nothing.
    """
    counts: Counter[str] = Counter()
    while True:
        if blocks := _private_blocks(text):
            text = _replaced(text, ((start, end, "") for start, end in blocks))
            counts["private"] += len(blocks)
        elif found := _apart(each_secret(text)):
            text = _replaced(text, ((secret.start, secret.end, f"[redacted:{secret.rule}]") for secret in found))
            counts.update(secret.rule for secret in found)
        else:
            return Redacted(text=text, counts=dict(counts))


def _apart(found: Iterable[Secret]) -> list[Secret]:
    """Return the secrets in order. Overlapping ones are merged, and named by the most reliable rule."""
    apart: list[Secret] = []
    for secret in sorted(found, key=lambda secret: secret.start):
        if apart and secret.start < apart[-1].end:
            last = apart.pop()
            surest = min(last, secret, key=lambda secret: secret.rank)
            apart.append(Secret(last.start, max(last.end, secret.end), surest.rank, surest.rule))
        else:
            apart.append(secret)
    return apart


def _replaced(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, replacement in replacements:
        parts += (text[at:start], replacement)
        at = end
    return "".join((*parts, text[at:]))


_TAG = r"<(?P<close>\\?/)?[Pp]rivate>"
_IN_TEXT = lazily(_TAG)
_IN_JSON = lazily(rf'{_TAG}|\\.|(?P<quote>")', re.DOTALL)


def _private_blocks(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the outermost <private> blocks. In JSON, a block ends at the latest with its string."""
    blocks: list[tuple[int, int]] = []
    if "rivate>" not in text:
        return blocks
    depth = start = 0
    for found in (_IN_JSON if _is_json(text) else _IN_TEXT).finditer(text):
        if found[0].lower() == "<private>":
            start = start if depth else found.start()
            depth += 1
        elif depth and found.lastgroup:
            ends_string = found.lastgroup == "quote"
            depth = 0 if ends_string else depth - 1
            if not depth:
                blocks.append((start, found.start() if ends_string else found.end()))
    return [*blocks, (start, len(text))] if depth else blocks


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
